// Every row of the operator table through the compiler, held against its reference: random shapes (0 and 1 among the
// extents), dtypes, strides.
#include "compiler/support.h"
#include "graph/instances.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler::testing;

namespace {

/// Random strides with the same elements: a permuted layout, perhaps with holes.
Strides random_strides(testing::Random& r, const Shape& shape) {
  std::vector<size_t> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  r.shuffle(order);
  Strides strides(shape.size());
  int64_t next = 1 + r.below(2);
  for (size_t axis : order) {
    strides[axis] = next;
    next *= std::max<int64_t>(1, shape[axis].bound()) + r.below(2);
  }
  return strides;
}

std::string check_instance(const testing::Instance& instance, testing::Random& r, bool strided) {
  Graph g;
  std::vector<Strides> strides;
  for (const HostTensor& t : instance.inputs) {
    g.inputs.push_back(parameter(t.type));
    strides.push_back(strided ? random_strides(r, t.type.shape) : Strides{});
  }
  g.outputs = make_all(instance.op, g.inputs, instance.attrs);
  auto expected = evaluate_reference(g, instance.inputs);
  auto got = compile_and_run(g, instance.inputs, strides);
  double terms = 1;
  if (instance.op == Op::reduce || instance.op == Op::cumulative || instance.op == Op::dot)
    terms = static_cast<double>(std::max<size_t>(1, instance.inputs[0].data.size()));
  if (instance.op == Op::scatter) terms = static_cast<double>(std::max<size_t>(1, instance.inputs.back().data.size()));
  for (size_t k = 0; k < expected.size(); ++k) {
    // One unit for the rounding of the result beside the operator's own error; sums are bounded by the size of their
    // terms.
    double ulp = row(instance.op).ulp * std::sqrt(terms) + 1;
    if (instance.op == Op::call && instance.attrs.call.ends_with("fft"))
      terms = static_cast<double>(std::max<size_t>(2, instance.inputs[0].data.size()));
    if (instance.op == Op::call && testing::decomposes(instance.attrs.call)) terms = 64;  // of numbers up to 32
    testing::forget_signs(g.outputs[k], expected[k]);
    testing::forget_signs(g.outputs[k], got.outputs[k]);
    if (testing::error_is_of_arguments(instance.op)) terms = 2;
    const double absolute = (terms > 1 ? terms * 8 * ulp_of(1, expected[k].type.dtype) : 0) +
                            error_of_tensor_cores(instance.op, instance.inputs);
    if (auto error = difference(got.outputs[k], expected[k], ulp, absolute); !error.empty())
      return error + "\n" + print(g);
  }
  return {};
}

}  // namespace

TEST_CASE("every row compiles to its reference") {
  for (const Row* row : table()) {
    if (row->op == Op::parameter || row->op == Op::composite || graph::is_control(row->op)) continue;
    for (bool strided : {false, true}) {
      testing::Random r(17 + strided);
      for (const testing::Instance& instance : testing::instances(row->op, 100 + strided, strided ? 4 : 12)) {
        std::string error;
        try {
          error = check_instance(instance, r, strided);
        } catch (const std::exception& e) {
          error = e.what();
          for (const HostTensor& t : instance.inputs) error += " " + to_string(t.type);
        }
        CHECK_MESSAGE(error.empty(), row->name, ": ", error);
      }
    }
  }
}
