// Generated matmuls of a few rows with a matrix in every layout: against the reference, with epilogues, and in panels
// of columns where the matrix is large.
#include <random>

#include "compiler/support.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

HostTensor random_floats(std::mt19937_64& engine, const Shape& shape) {
  HostTensor t{{shape, float32}, {}};
  std::normal_distribution<double> normal;
  for (int64_t k = num_elements(shape); k > 0; --k)
    t.data.push_back(kernel::round_to(Number::of_real(normal(engine)), float32));
  return t;
}

/// A product of [rows, depth] and [depth, columns], as [columns, rows] where the few rows are those of B.
struct Product {
  int64_t rows, columns, depth;
  bool exchanged, across;  // the matrix is B^T; its columns are not adjacent
};

Graph graph_of(const Product& p, bool epilogue) {
  const Value few = parameter({{p.rows, p.depth}, float32}),
              matrix = parameter({p.across ? Shape{p.columns, p.depth} : Shape{p.depth, p.columns}, float32});
  const int64_t along = p.across ? 1 : 0;
  Value c = p.exchanged ? dot(matrix, few, {along}, {1}) : dot(few, matrix, {1}, {along});
  const Value bias = parameter({{p.exchanged ? p.rows : p.columns}, float32});
  if (epilogue) c = unary(Op::sigmoid, c + broadcast(bias, c.shape()));
  return {{few, matrix, bias}, {c}};
}

std::string error_of(std::mt19937_64& engine, const Product& p, bool epilogue) {
  const Graph g = graph_of(p, epilogue);
  std::vector<HostTensor> inputs;
  for (const Value& v : g.inputs) inputs.push_back(random_floats(engine, v.shape()));
  Policy policy;
  policy.libraries = false;
  const Result got = compile_and_run(g, inputs, {}, policy);
  const std::vector<HostTensor> expected = evaluate_reference(g, inputs);
  return difference(got.outputs[0], expected[0], 8, 1e-4) +
         (got.program->stats().count() == 1 ? "" : "more than one launch");
}

}  // namespace

TEST_CASE("a generated matmul of a few rows agrees with the reference in every layout") {
  std::mt19937_64 engine(31);
  const auto size = [&](int64_t most) { return 1 + static_cast<int64_t>(engine() % static_cast<uint64_t>(most)); };
  for (int repeat = 0; repeat < 48; ++repeat) {
    const Product p{size(9), size(700), size(300), repeat % 2 == 1, repeat % 4 >= 2};
    INFO(fmt::format("{} x {} x {}, exchanged {}, across {}", p.rows, p.columns, p.depth, p.exchanged, p.across));
    const std::string error = error_of(engine, p, repeat % 3 == 0);
    CHECK_MESSAGE(error.empty(), error);
  }
}

TEST_CASE("a generated matmul of a few rows keeps its sums in scratch where the matrix is large") {
  if (weft::test::target_under_test().machine().simt) return;
  Policy policy;
  policy.libraries = false;
  const auto in_panels = [&](const Product& p) {
    const auto program = build({graph_of(p, false), {}, {}}, weft::test::target_under_test(), policy);
    return program->print("kernels").find("alloc") != std::string::npos;
  };
  CHECK_FALSE(in_panels({9, 1024, 512, false, false}));  // limited by arithmetic
  for (const bool exchanged : {false, true}) {
    CHECK(in_panels({1, 1024, 512, exchanged, false}));
    CHECK(in_panels({4, 1030, 515, exchanged, false}));
    CHECK_FALSE(in_panels({1, 64, 64, exchanged, false}));    // small
    CHECK_FALSE(in_panels({1, 1024, 512, exchanged, true}));  // lanes along k
  }
}
