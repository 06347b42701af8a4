// Sorts of which slices alone are read: which window they compute, and that values and positions are those of the whole
// sort.
#include <algorithm>

#include "compiler/rewrite/sort_window.h"
#include "compiler/support.h"
#include "graph/calls/call.h"
#include "graph/instances.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

std::vector<int64_t> window(const Graph& g) {
  const Ir ir = eliminate_dead_code(narrow_sorts(eliminate_dead_code(import({g, {}, {}}))));
  for (const IrNode& n : ir.nodes)
    if (n.op == Op::call) return n.attrs->integers;
  return {};
}

std::string error_of(const Graph& g, const HostTensor& x) {
  const std::vector<HostTensor> inputs{x}, expected = evaluate_reference(g, inputs);
  const Result got = compile_and_run(g, inputs);
  for (size_t k = 0; k < expected.size(); ++k)
    if (auto error = difference(got.outputs[k], expected[k], 0, 0); !error.empty()) return error + "\n" + print(g);
  return {};
}

/// Values with ties, NaN and both zeros.
HostTensor drawn(graph::testing::Random& r, const Shape& shape, Dtype dtype) {
  HostTensor t = graph::testing::random_tensor(r, {shape, dtype});
  for (Number& n : t.data) {
    if (!is_float(dtype)) continue;
    if (r.chance(9)) n = Number::of_real(NAN);
    else if (r.chance(3)) n = Number::of_real(r.chance(2) ? -0.0 : 1);
  }
  return t;
}

}  // namespace

TEST_CASE("a sort computes the smallest window that holds all slices of both results") {
  const Value x = parameter({{6, 40}, float32});
  const Sorted s = sort(x, 1);
  const auto ends = [&](const Value& v, int64_t start, int64_t count) { return slice_axis(v, 1, start, count); };
  CHECK(window({{x}, {ends(s.values, 32, 8)}}) == std::vector<int64_t>{1, 32, 8});
  CHECK(window({{x}, {ends(s.order, 0, 3)}}) == std::vector<int64_t>{1, 0, 3});
  CHECK(window({{x}, {ends(s.values, 4, 3), ends(s.order, 10, 2) + 1}}) == std::vector<int64_t>{1, 4, 8});
  CHECK(window({{x}, {slice(s.values, {1, 30}, {2, 5}, {2, -3})}}) == std::vector<int64_t>{1, 18, 13});
  CHECK(window({{x}, {slice(s.values, {2, 0}, {3, 40})}}) == std::vector<int64_t>{1});
  CHECK(window({{x}, {ends(s.values, 0, 3), s.order}}) == std::vector<int64_t>{1});
  CHECK(window({{x}, {ends(s.values, 0, 3), exp(s.values)}}) == std::vector<int64_t>{1});
}

TEST_CASE("the best of rows are one routine that writes nothing else") {
  const Value x = parameter({{4096, 64}, float32});
  const auto program = build({{{x}, {slice_axis(sort(x, 1).values, 1, 56, 8)}}, {}, {}}, target::null());
  CHECK(program->stats().count() == 1);
  CHECK(program->print("plan").find("[4096,8]") != std::string::npos);
}

TEST_CASE("windows of sorts have the values and positions of whole sorts") {
  graph::testing::Random r(5);
  for (int repeat = 0; repeat < 60; ++repeat) {
    const Dtype dtype = r.of<Dtype>({float32, float32, bfloat16, int32, uint8, int64, float64});
    const int64_t n = r.of<int64_t>({1, 2, 17, 64, 300, 2000});
    Shape shape = {r.between(1, 4), n};
    if (r.chance(2)) shape.push_back(r.between(1, 20));
    if (r.chance(8)) shape = {n};
    const int axis = shape.size() == 1 ? 0 : 1;
    const int64_t count = r.between(1, r.chance(2) ? std::min<int64_t>(n, 9) : n),
                  first = r.of<int64_t>({0, n - count, (n - count) / 2});
    const Value x = parameter({shape, dtype});
    const Sorted s = sort(x, axis);
    const Value values = slice_axis(s.values, axis, first, count), order = slice_axis(s.order, axis, first, count);
    const std::string error =
        error_of({{x}, r.chance(3) ? Values{order} : Values{values, order}}, drawn(r, shape, dtype));
    CHECK_MESSAGE(error.empty(), error);
  }
}

TEST_CASE("the best of one long row are selected by all threads") {
  graph::testing::Random r(6);
  for (const int64_t n : {300001, 131073}) {
    const Value x = parameter({{n}, float32});
    const HostTensor t = drawn(r, {n}, float32);
    for (const auto& [first, count] :
         {std::pair<int64_t, int64_t>{0, 5}, {n - 7, 7}, {0, 900}, {n - 3000, 3000}, {n / 2, 2}}) {
      const Sorted s = sort(x, 0);
      const std::string error =
          error_of({{x}, {slice_axis(s.values, 0, first, count), slice_axis(s.order, 0, first, count)}}, t);
      CHECK_MESSAGE(error.empty(), error);
    }
  }
}

TEST_CASE("windows without elements, and sorts of nothing") {
  const Value x = parameter({{3, 5}, float32}), none = parameter({{0, 5}, float32});
  graph::testing::Random r(7);
  CHECK(error_of({{x}, {slice_axis(sort(x, 1).values, 1, 2, 0)}}, drawn(r, {3, 5}, float32)) == "");
  CHECK(error_of({{none}, {slice_axis(sort(none, 1).values, 1, 2, 2)}}, drawn(r, {0, 5}, float32)) == "");
}
