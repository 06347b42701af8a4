// Attention on CPUs: against the region's meaning in float64 over random sizes, strides, masks and dtypes, forward
// and backward; how many launches it takes; the same bits for any number of threads.
#include <random>

#include "compiler/support.h"
#include "graph/regions/composites.h"
#include "runtime/threads.h"
#include "thinning.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler::testing;

namespace {

struct Case {
  int64_t batch = 1, heads = 1, tq = 8, tk = 8, width = 4, value_width = 4;
  bool causal = false, qkv = false;  // q, k and v are slices of one array
  int mask = 0;                      // 0: none; 1: bool; 2: additive
  Shape mask_shape = {};
  Dtype dtype = float32;
  bool sinks = false;  // a number for each head
  double dropout = 0;
};

/// The inputs with their values, and what is computed of them: the result, and with `backward` the gradients.
struct Problem {
  Graph graph;
  std::vector<HostTensor> inputs;
};

HostTensor random_tensor(std::mt19937_64& engine, const Shape& shape, Dtype dtype) {
  HostTensor t{{shape, dtype}, {}};
  std::normal_distribution<double> normal;
  for (int64_t k = num_elements(shape); k > 0; --k)
    t.data.push_back(dtype == bool_ ? Number::of_int(engine() % 4 != 0)
                                    : kernel::round_to(Number::of_real(normal(engine)), dtype));
  return t;
}

/// Heads lie behind the rows, as in models: [batch, rows, heads, width], permuted.
Value heads_first(const Value& v) { return permute(v, {0, 2, 1, 3}); }

Problem problem(const Case& c, bool backward, uint64_t seed, Dtype dtype) {
  std::mt19937_64 engine(seed);
  Problem p;
  auto input = [&](const Shape& shape, Dtype stored, Dtype used) {
    HostTensor t = random_tensor(engine, shape, stored);
    t.type.dtype = used;
    p.inputs.push_back(std::move(t));
    p.graph.inputs.push_back(parameter(p.inputs.back().type));
    return p.graph.inputs.back();
  };
  Value q, k, v;
  if (c.qkv) {
    Value all = input({c.batch, c.tq, 3, c.heads, c.width}, c.dtype, dtype);
    auto part = [&](int64_t i) {
      return heads_first(graph::reshape(graph::slice(all, {0, 0, i, 0, 0}, {c.batch, c.tq, 1, c.heads, c.width}),
                                        {c.batch, c.tq, c.heads, c.width}));
    };
    q = part(0), k = part(1), v = part(2);
  } else {
    q = heads_first(input({c.batch, c.tq, c.heads, c.width}, c.dtype, dtype));
    k = heads_first(input({c.batch, c.tk, c.heads, c.width}, c.dtype, dtype));
    v = input({c.batch, c.heads, c.tk, c.value_width}, c.dtype, dtype);
  }
  Value mask;
  if (c.mask == 1) mask = input(c.mask_shape, bool_, bool_);
  if (c.mask == 2) mask = input(c.mask_shape, c.dtype, dtype);
  const Value sinks = c.sinks ? input({c.heads}, c.dtype, dtype) : Value{};
  AttentionDropout dropout;
  if (c.dropout > 0) {
    p.inputs.push_back({{{2}, uint32}, {Number::of_int(12345), Number::of_int(4000000000)}});
    p.graph.inputs.push_back(parameter(p.inputs.back().type));
    dropout = {c.dropout, p.graph.inputs.back()};
  }
  Value o = attention(q, k, v, 0.5, c.causal, mask, sinks, dropout);
  p.graph.outputs = {o};
  if (!backward) return p;
  Value g = input(o.shape(), c.dtype, dtype);
  const Values results{o, {o.node, 1}}, cotangents{g, {}};
  Values gradients = o.node->attrs().composite->vjp(o.node->inputs(), results, cotangents);
  for (const Value& gradient : gradients)
    if (gradient) p.graph.outputs.push_back(gradient);
  return p;
}

Case random_case(std::mt19937_64& engine, bool large) {
  auto below = [&](int64_t n) { return static_cast<int64_t>(engine() % static_cast<uint64_t>(n)); };
  Case c;
  c.batch = 1 + below(3), c.heads = 1 + below(large ? 4 : 3);
  c.tq = 8 + below(large ? 150 : 40), c.tk = below(3) ? c.tq : 1 + below(large ? 200 : 60);
  c.width = 1 + below(large ? 256 : 40), c.value_width = below(2) ? c.width : 1 + below(40);
  c.causal = below(2) == 0 && (c.tq == c.tk || below(2) == 0);
  c.qkv = c.tq == c.tk && c.width == c.value_width && below(2) == 0;
  c.mask = static_cast<int>(below(3));
  c.mask_shape = {below(2) ? c.batch : 1, below(2) ? c.heads : 1, below(3) ? c.tq : 1, below(3) ? c.tk : 1};
  if (below(3) == 0) c.mask_shape.erase(c.mask_shape.begin(), c.mask_shape.begin() + 2);
  c.dtype = below(4) == 0 ? bfloat16 : below(4) == 0 ? float16 : float32;
  c.sinks = below(3) == 0;
  c.dropout = !c.sinks && c.tk % 2 == 0 ? 0.2 : 0;
  return c;
}

std::string describe(const Case& c) {
  return fmt::format(
      "batch {} heads {} tq {} tk {} width {} value width {} causal {} qkv {} mask {} {} dtype {} sinks {} dropout {}",
      c.batch, c.heads, c.tq, c.tk, c.width, c.value_width, c.causal, c.qkv, c.mask, to_string(c.mask_shape),
      dtype_name(c.dtype), c.sinks, c.dropout);
}

/// Empty where the compiled program agrees with float64 on the same (rounded) inputs.
std::string check_case(const Case& c, bool backward, uint64_t seed) {
  Problem exact = problem(c, backward, seed, float64), p = problem(c, backward, seed, c.dtype);
  auto expected = evaluate_reference(exact.graph, exact.inputs);
  auto got = compile_and_run(p.graph, p.inputs);
  const double unit = c.dtype == float32 ? 2e-6 : c.dtype == float16 ? 2e-3 : 1.6e-2;
  for (size_t k = 0; k < expected.size(); ++k) {
    double largest = 1;
    for (const Number& v : expected[k].data) largest = std::max(largest, std::abs(v.f));
    // The gradient of a mask that is spread out is a sum over all that it was spread to. A GPU's trees and products
    // round it otherwise, the more terms it has, and so do separate matmuls, where registers are few: scores lie in
    // memory between them, in the dtype of the operands.
    const bool rounds = weft::test::on_gpu() || weft::test::target_under_test().machine().vector_registers < 32;
    const double terms = k == 4 && rounds ? static_cast<double>(c.batch * c.heads * c.tq * c.tk) /
                                                static_cast<double>(expected[k].data.size())
                                          : 1;
    const double bound = unit * largest * 4 * std::max(1.0, std::sqrt(terms) / 16);
    for (size_t i = 0; i < expected[k].data.size(); ++i) {
      double a = got.outputs[k].data[i].f, b = expected[k].data[i].f;
      if (!(std::abs(a - b) <= bound))
        return fmt::format("output {} element {}: {} instead of {}; {}", k, i, a, b, describe(c));
    }
  }
  return {};
}

int steps(const Graph& g) { return compiler::build({g, {}, {}}, target::null())->stats().count(); }

}  // namespace

TEST_CASE("attention is one launch forward and one backward, read and written where its neighbours lie") {
  Case c{.batch = 4, .heads = 12, .tq = 64, .tk = 64, .width = 64, .value_width = 64, .causal = true, .qkv = true};
  for (int mask : {0, 1, 2}) {
    c.mask = mask, c.mask_shape = {64, 64};
    CHECK(steps(problem(c, false, 1, float32).graph) == 1);
    if (mask < 2) CHECK(steps(problem(c, true, 1, float32).graph) == 2);
  }
  // With sinks the same two, and what is done to a result: nothing of the scores' size is written.
  c.mask = 0, c.sinks = true;
  CHECK(steps(problem(c, false, 1, float32).graph) == 2);
  CHECK(compiler::build({problem(c, true, 1, float32).graph, {}, {}}, target::null())->stats().arena_bytes <
        4 * 12 * 64 * 64 * 4 * 4);
  // Between a projection and the next one: slices in front, heads behind the rows after it.
  Value x = parameter({{4, 64, 768}, float32}), w = parameter({{2304, 768}, float32}),
        out = parameter({{768, 768}, float32});
  Value qkv = dot(x, w, {2}, {1});
  auto part = [&](int64_t i) {
    return heads_first(graph::reshape(graph::slice(qkv, {0, 0, 768 * i}, {4, 64, 768}), {4, 64, 12, 64}));
  };
  Value o = heads_first(attention(part(0), part(1), part(2), 0.125, true, {}));
  CHECK(steps({{x, w, out}, {dot(graph::reshape(o, {4, 64, 768}), out, {2}, {1})}}) == 3);
}

TEST_CASE("attention of any size, mask, layout and dtype agrees with float64") {
  std::mt19937_64 engine(20);
  for (int64_t round = 0; round < weft::test::some_of(40); ++round) {
    Case c = random_case(engine, round % 8 == 7);
    std::string error = check_case(c, true, engine());
    CHECK_MESSAGE(error.empty(), error);
  }
}

TEST_CASE("attention has the same bits for any number of threads") {
  Case c{.batch = 3, .heads = 5, .tq = 100, .tk = 70, .width = 24, .value_width = 33};
  Problem p = problem(c, true, 3, float32);
  const int before = runtime::num_threads();
  runtime::set_num_threads(1);
  auto one = compile_and_run(p.graph, p.inputs).outputs;
  runtime::set_num_threads(5);
  auto five = compile_and_run(p.graph, p.inputs).outputs;
  runtime::set_num_threads(before);
  for (size_t k = 0; k < one.size(); ++k) CHECK(difference(five[k], one[k], 0).empty());
}

TEST_CASE("attention: rows that see nothing give zeros, and one program serves all lengths") {
  Value q = parameter({{2, 9, 5}, float32}), k = parameter({{2, 7, 5}, float32}), mask = parameter({{9, 7}, bool_});
  std::mt19937_64 engine(4);
  HostTensor nothing;
  nothing.type = mask.type();
  nothing.data.assign(63, Number::of_int(0));
  auto got =
      compile_and_run({{q, k, mask}, {attention(q, k, k, 1, false, mask)}},
                      {random_tensor(engine, {2, 9, 5}, float32), random_tensor(engine, {2, 7, 5}, float32), nothing});
  for (const Number& v : got.outputs[0].data) CHECK(v.f == 0);

  const Dim n = symbol("rows", 100);
  for (bool causal : {false, true}) {
    auto graph_of = [&](Dim length) {
      Graph g;
      for (int i = 0; i < 4; ++i) g.inputs.push_back(parameter({{2, length, 12}, float32}));
      Value o = attention(g.inputs[0], g.inputs[1], g.inputs[2], 0.3, causal, {});
      const Values results{o, {o.node, 1}}, cotangents{g.inputs[3], {}};
      g.outputs = o.node->attrs().composite->vjp(o.node->inputs(), results, cotangents);
      g.outputs.push_back(o);
      return g;
    };
    Graph general = graph_of(n);
    auto program = compiler::build({general, {}, {}}, weft::test::target_under_test());
    for (int64_t length : {1, 8, 31, 32, 33, 77, 100}) {
      Graph special = graph_of(length);
      std::vector<HostTensor> inputs;
      std::vector<Storage> storages;
      for (const Value& v : special.inputs) {
        inputs.push_back(random_tensor(engine, v.shape(), float32));
        storages.push_back(to_storage(inputs.back(), row_major_strides({2, 100, 12})));
      }
      auto expected = evaluate_reference(special, inputs);
      auto results = program->run(storages, std::vector<int64_t>{length});
      for (size_t r = 0; r < results.size(); ++r) {
        auto error = difference(from_storage(results[r], special.outputs[r].type()), expected[r], 64, 2e-5);
        CHECK_MESSAGE(error.empty(), "length ", length, " result ", r, ": ", error);
      }
    }
  }
}
