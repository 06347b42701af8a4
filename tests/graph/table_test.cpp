// Every row of the operator table on random instances: types, reference, derivatives, batching, factors, intervals. And
// the checkers themselves: each rule is corrupted in turn, and must be caught.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>

#include "checks.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::graph::testing;

namespace {

using Checker = std::string (*)(const Row&, const Instance&);

/// The first complaint about the instances of a row.
std::string run(Checker checker, const Row& r, uint64_t seed, int count, bool float64_only) {
  for (const Instance& in : instances(r.op, seed, count, float64_only))
    if (std::string error = checker(r, in); !error.empty()) return error;
  return "";
}

std::string check_reference_only(const Row& r, const Instance& in) { return check_reference(r, in); }
std::string check_vmap_all(const Row& r, const Instance& in) { return check_vmap(r, in); }

void require_all(Checker checker, int count, bool float64_only, bool (*applies)(const Row&)) {
  for (const Row* r : table()) {
    if (!applies(*r)) continue;
    CAPTURE(r->name);
    CHECK(run(checker, *r, 1, count, float64_only) == "");
    CHECK(run(checker, *r, 2, count, float64_only) == "");
  }
}

bool always(const Row&) { return true; }
// A gradient that is stopped is not the function's derivative, and bits have none.
bool is_function(const Row& r) { return r.op != Op::stop_gradient && r.op != Op::bitcast; }

}  // namespace

TEST_CASE("the table lists each operator once, in order") {
  CHECK(table().size() == static_cast<size_t>(Op::count_));
  for (size_t k = 0; k < table().size(); ++k) {
    CHECK(static_cast<size_t>(table()[k]->op) == k);
    CHECK(&row(static_cast<Op>(k)) == table()[k]);
    for (size_t j = 0; j < k; ++j) CHECK(table()[j]->name != table()[k]->name);
  }
}

TEST_CASE("docs/operators.md lists the rows as they are") {
  const std::string path = std::string(WEFT_SOURCE_DIR) + "/docs/operators.md";
  if (std::getenv("WEFT_WRITE_DOCS")) std::ofstream(path) << operators_page();
  std::ifstream file(path);
  if (!file) file.open("docs/operators.md");  // the program was built elsewhere: where scripts/gpu-check stands
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CHECK_MESSAGE(text == operators_page(), "run this test with WEFT_WRITE_DOCS=1 to write the page anew");
  CHECK(operators_page().find("?") == std::string::npos);
}

TEST_CASE("shape and dtype rules agree with nodes and values") { require_all(check_types, 60, false, always); }

TEST_CASE("reference rules agree with a second formulation") {
  require_all(check_reference_only, 80, false, always);
  require_all(check_reference_only, 40, true, always);
  for (const Row* r : table()) {  // nearly every operator has one
    int compared = 0;
    for (bool only : {false, true})
      for (const Instance& in : instances(r->op, 1, 80, only)) check_reference(*r, in, &compared);
    CAPTURE(r->name);
    if (r->op != Op::parameter && r->op != Op::composite && !is_control(r->op) && r->op != Op::random_bits &&
        !on_complex_only(r->op))
      CHECK(compared > 0);
  }
}

TEST_CASE("vjp rules agree with finite differences") { require_all(check_vjp, 25, true, is_function); }
TEST_CASE("jvp rules agree with finite differences") { require_all(check_jvp, 25, true, is_function); }

TEST_CASE("vjp and jvp are each other's transpose") {
  for (const Row* r : table()) {
    if (!r->vjp.rule || !r->jvp.rule) continue;
    for (const Instance& in : instances(r->op, 5, 25, true)) {
      if (!differentiable(in)) continue;
      const Graph graph = graph_of(in);
      Random random(3);
      Graph both{graph.inputs, {}};
      std::vector<HostTensor> values = in.inputs;
      const auto fresh = [&](const Type& type) {
        values.push_back(random_tensor(random, type));
        both.inputs.push_back(parameter(type));
        return both.inputs.back();
      };
      Values tangents(in.inputs.size());
      std::vector<size_t> tangent_at(in.inputs.size());
      for (size_t k = 0; k < in.inputs.size(); ++k) {
        if (in.inputs[k].type.dtype != float64) continue;
        tangent_at[k] = values.size();
        tangents[k] = fresh(in.inputs[k].type);
      }
      const size_t cotangent_at = values.size();
      const Value cotangent = fresh(graph.outputs[0].type());
      const Values back =
          r->vjp.rule(*graph.outputs[0].node, graph.inputs, graph.outputs, cotangents_of(graph, cotangent));
      both.outputs = {r->jvp.rule(*graph.outputs[0].node, graph.inputs, graph.outputs, tangents)[0]};
      REQUIRE(both.outputs[0]);
      std::vector<size_t> which;
      for (size_t k = 0; k < back.size(); ++k) {
        if (!back[k]) continue;
        which.push_back(k);
        both.outputs.push_back(back[k]);
      }
      const std::vector<HostTensor> results = evaluate_reference(both, values);
      const double left = inner(reals(values[cotangent_at]), reals(results[0]));
      double right = 0;
      for (size_t k = 0; k < which.size(); ++k)
        right += inner(reals(results[k + 1]), reals(values[tangent_at[which[k]]]));
      CAPTURE(describe(in));
      CHECK(close(left, right, 1e-9));
    }
  }
}

TEST_CASE("vmap rules agree with a stack of single evaluations") {
  require_all(check_vmap_all, 25, false, [](const Row& r) { return r.vmap.rule != nullptr; });
}

TEST_CASE("factors say how an operator may be split") {
  require_all(check_factors, 60, false, [](const Row& r) { return r.factors.rule != nullptr; });
}

TEST_CASE("intervals contain the values") {
  require_all(check_interval, 120, false, [](const Row& r) { return r.interval.rule != nullptr; });
}

TEST_CASE("intervals are tight where shapes and indices need them") {
  const Type i32{{4}, int32}, f32{{4}, float32};
  const auto bound = [](Op op, std::vector<Interval> in, const Type& type, Attrs attrs = {}) {
    const Interval i = row(op).interval.rule(attrs, in, type);
    return std::pair(i.min, i.max);
  };
  Attrs along;
  along.shape = {4};
  along.axes = {0};
  CHECK(bound(Op::iota, {}, i32, along) == std::pair<int64_t, int64_t>(0, 3));
  CHECK(bound(Op::add, {{0, 3}, {5, 5}}, i32) == std::pair<int64_t, int64_t>(5, 8));
  CHECK(bound(Op::sub, {{0, 3}, {0, 5}}, i32) == std::pair<int64_t, int64_t>(-5, 3));
  CHECK(bound(Op::mul, {{-2, 3}, {-7, 5}}, i32) == std::pair<int64_t, int64_t>(-21, 15));
  CHECK(bound(Op::mod, {{-9, 9}, {4, 4}}, i32) == std::pair<int64_t, int64_t>(0, 3));
  CHECK(bound(Op::floordiv, {{-9, 9}, {4, 4}}, i32) == std::pair<int64_t, int64_t>(-3, 2));
  CHECK(bound(Op::add, {{0, INT32_MAX}, {1, 1}}, i32) == std::pair<int64_t, int64_t>(INT32_MIN, INT32_MAX));
  CHECK(bound(Op::add, {{0, INT64_MAX}, {1, 1}}, {{4}, int64}) == std::pair<int64_t, int64_t>(INT64_MIN, INT64_MAX));
  CHECK(bound(Op::sub, {{0, 3}, {0, 5}}, {{4}, uint32}) == std::pair<int64_t, int64_t>(0, UINT32_MAX));
  CHECK(bound(Op::select, {{0, 1}, {0, 3}, {7, 9}}, i32) == std::pair<int64_t, int64_t>(0, 9));
  CHECK(bound(Op::add, {{0, 3}, {0, 3}}, f32) == std::pair<int64_t, int64_t>(INT64_MIN, INT64_MAX));
}

// ---- the meta-test ----

namespace {

const Row* truth = nullptr;  // the row that the corrupted rules below are made from

Number other_number(Number n, Dtype t) {
  if (t == bool_) return Number::of_int(!n.i);
  return is_float(t) ? Number::of_real(n.f + 1)
                     : kernel::round_to(Number::of_int(static_cast<int64_t>(static_cast<uint64_t>(n.i) + 1)), t);
}

std::vector<Shape> wrong_shape(const Attrs& a, std::span<const Type> in) {
  std::vector<Shape> out = truth->shape(a, in);
  out[0].push_back(2);
  return out;
}
std::vector<Dtype> wrong_dtype(const Attrs& a, std::span<const Type> in) {
  return {truth->dtype(a, in)[0] == int16 ? int8 : int16};
}

Values negated(Values values) {
  for (Value& v : values)
    if (v) v = -v;
  return values;
}
Values plus_one(Values values) {
  for (Value& v : values)
    if (v) v = v + 1;
  return values;
}
Values wrong_vjp(const Node& n, std::span<const Value> x, std::span<const Value> y, std::span<const Value> g) {
  return plus_one(truth->vjp.rule(n, x, y, g));
}
Values negated_vjp(const Node& n, std::span<const Value> x, std::span<const Value> y, std::span<const Value> g) {
  return negated(truth->vjp.rule(n, x, y, g));
}
Values no_vjp(const Node&, std::span<const Value> x, std::span<const Value>, std::span<const Value>) {
  return Values(x.size());
}
Values wrong_jvp(const Node& n, std::span<const Value> x, std::span<const Value> y, std::span<const Value> t) {
  return plus_one(truth->jvp.rule(n, x, y, t));
}
Values negated_jvp(const Node& n, std::span<const Value> x, std::span<const Value> y, std::span<const Value> t) {
  return negated(truth->jvp.rule(n, x, y, t));
}
Values no_jvp(const Node&, std::span<const Value>, std::span<const Value> y, std::span<const Value>) {
  return Values(y.size());
}

/// The batch in the reverse order.
Values wrong_vmap(const Node& n, std::span<const Value> x, std::span<const int> axes) {
  Values out = truth->vmap.rule(n, x, axes);
  for (Value& v : out) {
    std::vector<int64_t> start(v.shape().size(), 0), step(v.shape().size(), 1);
    start[0] = v.shape()[0] - 1;
    step[0] = -1;
    v = slice(v, start, v.shape(), step);
  }
  return out;
}
Factors wrong_factors(const Attrs& a, std::span<const Type> in, std::span<const Type> out) {
  Factors f = truth->factors.rule(a, in, out);
  if (f.outputs[0].size() < 2) f.outputs[0].push_back(0);
  else std::swap(f.outputs[0][0], f.outputs[0][1]);
  return f;
}
/// Axes that must stay whole declared free.
Factors bold_factors(const Attrs& a, std::span<const Type> in, std::span<const Type> out) {
  Factors f = truth->factors.rule(a, in, out);
  int next = 40;
  for (auto* lists : {&f.inputs, &f.outputs})
    for (auto& axes : *lists)
      for (int& axis : axes)
        if (axis < 0) axis = next++;
  return f;
}
std::vector<HostTensor> wrong_reference(const Attrs& a, std::span<const HostTensor> in, std::span<const Type> types) {
  std::vector<HostTensor> out = truth->reference(a, in, types);
  if (!out[0].data.empty()) out[0].data.back() = other_number(out[0].data.back(), out[0].type.dtype);
  return out;
}
Interval wrong_interval(const Attrs& a, std::span<const Interval> in, const Type& type) {
  const Interval i = truth->interval.rule(a, in, type);
  return {i.max, i.min};
}

void must_fail(const std::string& column, Checker checker, const Row& corrupted, int count, bool float64_only) {
  CAPTURE(corrupted.name);
  CAPTURE(column);
  std::string error;
  try {
    error = run(checker, corrupted, 1, count, float64_only);
  } catch (const std::exception& e) {
    error = e.what();
  }
  CHECK(error != "");
}

}  // namespace

TEST_CASE("a corrupted rule is caught, in every row and column") {
  for (const Row* r : table()) {
    if (r->op == Op::parameter || r->op == Op::composite || is_control(r->op) || on_complex_only(r->op)) continue;
    truth = r;
    const auto corrupt = [&](auto change) {
      Row copy = *r;
      change(copy);
      return copy;
    };
    must_fail("shape", check_types, corrupt([](Row& c) { c.shape = wrong_shape; }), 20, false);
    must_fail("dtype", check_types, corrupt([](Row& c) { c.dtype = wrong_dtype; }), 20, false);
    if (r->op != Op::random_bits)
      for (bool only : {naive_ints().count(r->op) == 0 && r->op != Op::bitcast})
        must_fail("reference", check_reference_only, corrupt([](Row& c) { c.reference = wrong_reference; }), 200, only);
    if (r->vjp.rule) {
      must_fail("vjp + 1", check_vjp, corrupt([](Row& c) { c.vjp = wrong_vjp; }), 20, true);
      must_fail("-vjp", check_vjp, corrupt([](Row& c) { c.vjp = negated_vjp; }), 20, true);
      must_fail("no vjp", check_vjp, corrupt([](Row& c) { c.vjp = no_vjp; }), 20, true);
      must_fail("jvp + 1", check_jvp, corrupt([](Row& c) { c.jvp = wrong_jvp; }), 20, true);
      must_fail("-jvp", check_jvp, corrupt([](Row& c) { c.jvp = negated_jvp; }), 20, true);
      must_fail("no jvp", check_jvp, corrupt([](Row& c) { c.jvp = no_jvp; }), 20, true);
    }
    if (r->vmap.rule) must_fail("vmap", check_vmap_all, corrupt([](Row& c) { c.vmap = wrong_vmap; }), 30, false);
    if (r->factors.rule)
      must_fail("factors", check_factors, corrupt([](Row& c) { c.factors = wrong_factors; }), 60, false);
    if (r->interval.rule)
      must_fail("interval", check_interval, corrupt([](Row& c) { c.interval = wrong_interval; }), 120, false);
  }
  for (const Op op : {Op::slice, Op::pad, Op::concat, Op::window, Op::assign, Op::reduce, Op::gather, Op::scatter}) {
    truth = &row(op);
    Row bold = *truth;
    bold.factors = bold_factors;
    must_fail("bold factors", check_factors, bold, 120, false);
  }
}
