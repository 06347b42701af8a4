// Every row of the operator table, at least ten thousand elements read or written each: random shapes of rank 0 to 5 (0
// and 1 among the extents), dtypes and strides (permuted, with holes, negative), and among the values NaN, the
// infinities, both zeros and subnormals. Many instances make one program.
#include "compiler/support.h"
#include "graph/instances.h"
#include "thinning.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler::testing;

namespace {

using testing::Instance;
using testing::Random;

const int64_t wanted_cases = weft::test::some_of(10000);
constexpr int batch = 48;
constexpr int64_t members = 8;  // of a batch by vmap

/// Strides over the same elements in another order, perhaps with holes, perhaps backwards.
Strides random_strides(Random& r, const Shape& shape) {
  std::vector<size_t> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  r.shuffle(order);
  Strides strides(shape.size());
  int64_t next = 1 + r.below(2);
  for (size_t axis : order) {
    strides[axis] = r.chance(3) ? -next : next;
    next *= std::max<int64_t>(1, shape[axis].bound()) + r.below(2);
  }
  return strides;
}

bool one_of(Op op, std::initializer_list<Op> ops) { return std::find(ops.begin(), ops.end(), op) != ops.end(); }

/// Values at the ends of what a float can be. Sums and products take no huge or tiny ones, whose intermediate results
/// depend on the order.
Number hard_number(Random& r, Dtype t, bool accumulates) {
  static constexpr double always[] = {0.0, -0.0, NAN, INFINITY, -INFINITY, 1, -1};
  static constexpr double alone[] = {1e-42, -1e-42, 0x1p-126, 0x1p-149, 1e30, -1e30, 0.5, -2, 3, 7.25, 1e-3, 2.5};
  const double v = accumulates || r.chance(2) ? always[r.below(7)] : alone[r.below(12)];
  return kernel::round_to(Number::of_real(v), t);
}

void harden(Random& r, Instance& in) {
  if (one_of(in.op, {Op::random_bits, Op::constant, Op::iota})) return;
  if (in.op == Op::call && in.attrs.call.ends_with("fft"))
    return;  // which parts an infinity reaches depends on the passes that the length is cut into
  if (in.op == Op::call && testing::decomposes(in.attrs.call)) return;
  const bool accumulates = one_of(in.op, {Op::reduce, Op::cumulative, Op::dot, Op::scatter});
  if (one_of(in.op, {Op::reduce, Op::cumulative}) && in.attrs.reducer == kernel::Reducer::prod)
    return;  // 0, inf and underflow: the order decides
  // float32 trigonometry is promised up to 1e4 only.
  const bool small = one_of(in.op, {Op::sin, Op::cos, Op::tan});
  for (HostTensor& t : in.inputs) {
    if (!is_float(t.type.dtype)) continue;
    if (in.attrs.call == "searchsorted" && &t == &in.inputs[0]) continue;  // it must stay sorted
    for (Number& n : t.data)
      if (r.chance(accumulates ? 40 : 3)) {
        n = hard_number(r, t.type.dtype, accumulates);
        if (small && std::isfinite(n.f) && std::fabs(n.f) > 1e4) n = Number::of_real(1);
      }
  }
}

/// Elementwise instances over larger arrays: their cases are elements.
void enlarge(Random& r, Instance& in) {
  const Op op = in.op;
  if (!(op >= Op::neg && op <= Op::stop_gradient)) return;
  Shape shape = testing::random_shape(r, 1, 5);
  if (num_elements(shape) < 1500) shape = {r.between(6, 9), r.between(9, 12), r.between(29, 40)};
  for (size_t k = 0; k < in.inputs.size(); ++k)
    in.inputs[k] = testing::random_tensor(r, {shape, in.inputs[k].type.dtype}, in.domains[k]);
}

/// Eight draws of the instance stacked along a new first axis: what its vmap rule takes.
std::vector<HostTensor> stacked(Random& r, const Instance& in) {
  std::vector<HostTensor> out = in.inputs;
  for (HostTensor& t : out) t.type.shape.insert(t.type.shape.begin(), Dim(members));
  for (int64_t k = 1; k < members; ++k) {
    Instance draw = in;
    if (!testing::drawn_to_measure(in)) testing::refill(r, draw);
    harden(r, draw);
    for (size_t i = 0; i < out.size(); ++i)
      out[i].data.insert(out[i].data.end(), draw.inputs[i].data.begin(), draw.inputs[i].data.end());
  }
  return out;
}

/// The operator on parameters of the tensors' types, by its vmap rule where these are stacks.
Values apply(const Instance& in, const Values& args, bool stacks) {
  if (!stacks) return make_all(in.op, args, in.attrs);
  Values single;
  for (const HostTensor& t : in.inputs) single.push_back(parameter(t.type));
  const Values plain = make_all(in.op, single, in.attrs);
  return row(in.op).vmap.rule(*plain[0].node, args, std::vector<int>(args.size(), 0));
}

struct Batch {
  Graph graph;
  std::vector<HostTensor> inputs;
  std::vector<Strides> strides;
  std::vector<const Instance*> of;  // by output
  std::vector<size_t> first;        // of its inputs, by output
};

Batch batched(Random& r, const std::vector<Instance>& instances, bool stacks) {
  Batch b;
  for (const Instance& in : instances) {
    Values args;
    const size_t first = b.inputs.size();
    for (const HostTensor& t : stacks ? stacked(r, in) : in.inputs) {
      args.push_back(parameter(t.type));
      b.strides.push_back(r.chance(2) ? Strides{} : random_strides(r, t.type.shape));
      b.inputs.push_back(t);
    }
    b.graph.inputs.insert(b.graph.inputs.end(), args.begin(), args.end());
    for (const Value& v : apply(in, args, stacks)) {
      b.graph.outputs.push_back(v);
      b.of.push_back(&in);
      b.first.push_back(first);
    }
  }
  return b;
}

std::string compare(const Batch& b, int64_t& cases) {
  std::vector<HostTensor> expected = evaluate_reference(b.graph, b.inputs);
  Result got = compile_and_run(b.graph, b.inputs, b.strides);
  for (size_t k = 0; k < expected.size(); ++k) {
    const Instance& in = *b.of[k];
    double terms = one_of(in.op, {Op::reduce, Op::cumulative, Op::dot})
                       ? static_cast<double>(std::max<size_t>(1, in.inputs[0].data.size()))
                       : 1;
    if (in.op == Op::scatter) terms = static_cast<double>(std::max<size_t>(1, in.inputs.back().data.size()));
    const double ulp = row(in.op).ulp * std::sqrt(terms) + 1;
    if (in.op == Op::call && in.attrs.call.ends_with("fft"))
      terms = static_cast<double>(std::max<size_t>(2, in.inputs[0].data.size()));
    if (in.op == Op::call && testing::decomposes(in.attrs.call)) terms = 64;  // of numbers up to 32
    testing::forget_signs(b.graph.outputs[k], expected[k]);
    testing::forget_signs(b.graph.outputs[k], got.outputs[k]);
    if (testing::error_is_of_arguments(in.op)) terms = 2;
    const double absolute = (terms > 1 ? terms * 8 * ulp_of(1, expected[k].type.dtype) : 0) +
                            error_of_tensor_cores(in.op, std::span(b.inputs).subspan(b.first[k]));
    if (auto error = difference(got.outputs[k], expected[k], ulp, absolute); !error.empty()) {
      Graph one{{}, {b.graph.outputs[k]}};
      return error + "\n" + print(one);
    }
    cases += static_cast<int64_t>(expected[k].data.size());
  }
  for (const HostTensor& t : b.inputs) cases += static_cast<int64_t>(t.data.size());
  return {};
}

}  // namespace

TEST_CASE("every row on ten thousand hard elements") {
  for (const Row* r : table()) {
    if (one_of(r->op, {Op::parameter, Op::composite, Op::constant})) continue;
    Random random(static_cast<uint64_t>(r->name.size()) * 977 + static_cast<uint64_t>(r->name.front()));
    int64_t cases = 0;
    std::string error;
    for (int round = 0; cases < wanted_cases && round < 40 && error.empty(); ++round) {
      std::vector<Instance> instances =
          testing::instances(r->op, 7000 + static_cast<uint64_t>(round), r->scalar >= 0 ? batch / 8 : batch);
      if (instances.empty()) break;  // rows whose instances are tested by themselves
      for (Instance& in : instances) {
        enlarge(random, in);
        harden(random, in);
      }
      try {
        error = compare(batched(random, instances, round > 0 && r->vmap.rule), cases);
      } catch (const std::exception& e) {
        error = e.what();
      }
    }
    CHECK_MESSAGE(error.empty(), r->name, ": ", error);
    if (error.empty() && cases > 0) CHECK_MESSAGE(cases >= wanted_cases, r->name, " met only ", cases);
  }
}
