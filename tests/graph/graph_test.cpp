// Nodes and graphs: identity, lifetime, walks, printing, verification.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "checks.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::graph::testing;

namespace {

HostTensor tensor(const Shape& shape, const std::vector<double>& values) {
  HostTensor out{{shape, float64}, {}};
  for (double v : values) out.data.push_back(Number::of_real(v));
  return out;
}

std::shared_ptr<const Composite> twice() {
  Composite c;
  c.name = "twice";
  c.body = [](std::span<const Value> in) -> Values { return {in[0] + in[0]}; };
  return std::make_shared<Composite>(c);
}

/// twice(twice(x)), as a region of its own.
std::shared_ptr<const Composite> four_times() {
  Composite c;
  c.name = "four_times";
  c.body = [](std::span<const Value> in) -> Values { return composite(twice(), composite(twice(), {in[0]})); };
  return std::make_shared<Composite>(c);
}

}  // namespace

TEST_CASE("graphs a hundred thousand nodes deep are walked, rewritten and freed without recursion") {
  const Value x = parameter({{2}, float32}, 0);
  Value v = x;
  for (int k = 0; k < 100000; ++k) v = -v;
  CHECK(topological(std::span(&v, 1)).size() == 100001);
  const Graph graph{{x}, {v}};
  CHECK(inline_composites(graph).outputs[0] == v);
  const Value y = parameter({{2}, float32}, 1);
  Value moved = substitute(graph.outputs, graph.inputs, std::span(&y, 1))[0];
  CHECK(moved != v);
  CHECK(topological(std::span(&moved, 1)).size() == 100001);
  moved = {};
  const std::weak_ptr<Node> middle = v.node->inputs()[0].node;
  const_cast<Values&>(graph.outputs).clear();
  v = {};
  CHECK(middle.expired());
}

TEST_CASE("a deep graph whose nodes are read twice, or by two chains, is freed without recursion") {
  Value v = parameter({{2}, float32}, 0);
  const std::weak_ptr<Node> first = v.node;
  for (int k = 0; k < 100000; ++k) v = v + v;
  v = {};
  CHECK(first.expired());
  Value a = parameter({{2}, float32}, 0), b = -a;
  const std::weak_ptr<Node> low = b.node;
  for (int k = 0; k < 100000; ++k) {
    const Value sum = a + b;
    b = a * b;
    a = sum;
  }
  a = {};
  CHECK_FALSE(low.expired());
  b = {};
  CHECK(low.expired());
}

TEST_CASE("a materialised node is a leaf that lets go of its inputs") {
  const Value x = parameter({{2}, float64}, 0);
  std::weak_ptr<Node> inner;
  Value y;
  {
    const Value middle = exp(x);
    inner = middle.node;
    y = middle * 2;
  }
  CHECK(y.node->storage(0) == nullptr);
  const auto buffer = runtime::allocate(4 * sizeof(double));
  auto* elements = static_cast<double*>(buffer->data());
  for (int k = 0; k < 4; ++k) elements[k] = k + 0.5;
  y.node->materialise({Storage{buffer, 3, {-2}}});  // elements 3 and 1
  CHECK(inner.expired());
  CHECK(topological(std::span(&y, 1)).size() == 1);
  CHECK(reals(evaluate_reference({{}, {y + 1}}, {})[0]) == std::vector<double>{4.5, 2.5});
  CHECK_THROWS_AS(y.node->materialise({}), internal_error);
}

TEST_CASE("data leaves of every dtype are read by the reference") {
  for (Dtype t :
       {bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64}) {
    const auto buffer = runtime::allocate(16);
    std::fill_n(static_cast<unsigned char*>(buffer->data()), 16, static_cast<unsigned char>(0));
    if (t == float16 || t == bfloat16) static_cast<uint16_t*>(buffer->data())[1] = t == float16 ? 0x3c00 : 0x3f80;
    else if (t == float32) static_cast<float*>(buffer->data())[1] = 1;
    else if (t == float64) static_cast<double*>(buffer->data())[1] = 1;
    else static_cast<unsigned char*>(buffer->data())[t.size()] = 1;
    CAPTURE(std::string(dtype_name(t)));
    CHECK(reals(evaluate_reference({{}, {data({{2}, t}, {buffer, 0, {1}})}}, {})[0]) == std::vector<double>{0, 1});
  }
}

TEST_CASE("old and new nodes are listed in the order of their making, however far apart") {
  std::vector<Value> old;
  for (int k = 0; k < 40; ++k) {
    old.push_back(parameter({{4}, float32}));
    for (int gap = 0; gap < 500; ++gap) constant(float32, Number::of_real(gap));  // ids of nodes that are gone
  }
  for (const int length : {0, 1, 3, 15, 16, 17, 100, 3000}) {
    CAPTURE(length);
    Value v = square(old[7]);
    for (int k = 0; k < length; ++k) v = v + old[static_cast<size_t>(k * 11 % 40)];
    const NodeRefs nodes = reachable(std::span(&v, 1));
    std::set<const Node*> distinct;
    for (const std::shared_ptr<Node>* node : nodes) {
      distinct.insert(node->get());
      for (const Value& input : (*node)->inputs()) CHECK(distinct.contains(input.node.get()));
    }
    CHECK(distinct.size() == nodes.size());
    CHECK(nodes.size() >= static_cast<size_t>(length) + 2);
    for (size_t k = 1; k < nodes.size(); ++k) CHECK((*nodes[k - 1])->id() < (*nodes[k])->id());
  }
}

TEST_CASE("topological order has inputs before users and each node once") {
  const Value x = parameter({{3}, float32}, 0);
  const Value a = exp(x), b = a * a, c = b + a;
  const Values outputs{c, b};
  const auto nodes = topological(outputs);
  REQUIRE(nodes.size() == 4);
  CHECK(nodes[0] == x.node);
  CHECK(nodes[1] == a.node);
  CHECK(nodes[3] == c.node);
}

TEST_CASE("composites are inlined all the way down, and only what changed is rebuilt") {
  const Value x = parameter({{2}, float64}, 0);
  const Value kept = exp(x);
  const Graph graph{{x}, {composite(four_times(), {kept})[0] * 3, kept}};
  const Graph flat = inline_composites(graph);
  for (const auto& node : topological(flat.outputs)) CHECK(node->op() != Op::composite);
  CHECK(flat.outputs[1] == kept);
  verify(flat);
  verify(graph);
  const HostTensor in = tensor({2}, {0, 1});
  const auto a = reals(evaluate_reference(graph, std::span(&in, 1))[0]),
             b = reals(evaluate_reference(flat, std::span(&in, 1))[0]);
  CHECK(a == b);
  CHECK(a[0] == doctest::Approx(12));
}

TEST_CASE("substitution replaces values at their place") {
  const Value x = parameter({{2}, float64}, 0), y = parameter({{2}, float64}, 1);
  const Value e = exp(x), out = e * e + x;
  const Values outputs{out};
  const Value changed = substitute(outputs, std::span(&e, 1), std::span(&y, 1))[0];
  const Graph graph{{x, y}, {changed}};
  const std::vector<HostTensor> in{tensor({2}, {1, 2}), tensor({2}, {3, 5})};
  CHECK(reals(evaluate_reference(graph, in)[0]) == std::vector<double>{10, 27});
  CHECK(substitute(outputs, std::span(&y, 1), std::span(&x, 1))[0] == out);
  const Value other = parameter({{3}, float64});
  CHECK_THROWS_AS(substitute(outputs, std::span(&x, 1), std::span(&other, 1)), internal_error);
}

TEST_CASE("nodes with equal attributes and types share them") {
  const Value x = parameter({{2, 3}, float32}, 0), y = graph::reshape(x, {6}), z = graph::reshape(x + 1, {6});
  CHECK(&y.node->attrs() == &z.node->attrs());
  CHECK(&y.node->types() == &z.node->types());
  SharedAttrs own = y.node->shared_attrs();
  own.edit().shape = {3, 2};
  CHECK(y.node->attrs().shape == Shape{6});
  const Value zero = constant(float32, Number::of_real(0)), negative = constant(float32, Number::of_real(-0.0));
  CHECK(&zero.node->attrs() != &negative.node->attrs());
  CHECK(std::signbit(negative.node->attrs().number.real()));
  CHECK(parameter({{Dim(symbol("n", 8))}, float32}).type() != parameter({{8}, float32}).type());
}

TEST_CASE("what a composite's functions hold goes with its nodes") {
  const Value x = parameter({{2, 3}, float32}, 0);
  const auto held = std::make_shared<int>(1);
  composite(std::make_shared<Composite>(
                Composite{"held", "", [held](std::span<const Value> in) { return Values{in[0] + 1}; }, {}}),
            {x});
  CHECK(held.use_count() == 1);
}

TEST_CASE("graphs of old and new nodes are listed in the order in which nodes were made") {
  Values nodes{parameter({{2}, float32}, 0)};
  for (int k = 0; k < 400; ++k) {
    if (k == 20)
      for (int skipped = 0; skipped < 5000; ++skipped) parameter({{2}, float32}, 1);
    nodes.push_back(k % 3 ? nodes.back() + 1 : exp(nodes.back()));
  }
  std::reverse(nodes.begin(), nodes.end());
  uint64_t before = 0;
  for (const auto& node : topological(nodes)) {
    CHECK(node->id() > before);
    before = node->id();
  }
  CHECK(before == nodes[0].node->id());
  CHECK(topological(nodes).size() == reachable(nodes).size());
}

TEST_CASE("graphs print one node a line") {
  const Value x = parameter({{2, 3}, float32}, 0);
  const Graph graph{{x}, {permute(x + 1, {1, 0})}};
  CHECK(print(graph) ==
        "%0 = parameter 0 : f32(2,3)\n"
        "%1 = constant 1 : f32()\n"
        "%2 = broadcast %1 : f32(2,3)\n"
        "%3 = add %0 %2 : f32(2,3)\n"
        "%4 = permute %3 axes(1,0) : f32(3,2)\n"
        "return %4\n");
  CHECK(to_string(Type{{Dim(symbol("n", 8)), 2}, bfloat16}) == "bf16(n<=8,2)");
}

TEST_CASE("verify finds nodes that break their row") {
  const Value x = parameter({{2, 3}, float32}, 0);
  const auto broken = [&](Op op, Values inputs, Type type, Attrs attrs = {}) {
    return Graph{
        {x},
        {{std::make_shared<Node>(op, std::move(inputs), std::move(attrs), std::vector<Type>{std::move(type)}), 0}}};
  };
  CHECK_NOTHROW(verify(broken(Op::exp, {x}, {{2, 3}, float32})));
  CHECK_THROWS_AS(verify(broken(Op::exp, {x}, {{2, 4}, float32})), internal_error);
  CHECK_THROWS_AS(verify(broken(Op::exp, {x}, {{2, 3}, float64})), internal_error);
  CHECK_THROWS_AS(verify(broken(Op::exp, {x, x}, {{2, 3}, float32})), internal_error);
  CHECK_THROWS_AS(verify(broken(Op::exp, {{x.node, 1}}, {{2, 3}, float32})), internal_error);
  CHECK_THROWS_AS(verify(broken(Op::add, {x, parameter({{3}, float32})}, {{2, 3}, float32})), internal_error);
  Attrs with_axes;
  with_axes.axes = {0};
  CHECK_THROWS_WITH_AS(verify(broken(Op::exp, {x}, {{2, 3}, float32}, with_axes)),
                       doctest::Contains("has attribute axes, which the operator does not read"), internal_error);
  CHECK_THROWS_AS(verify(Graph{{}, {exp(x)}}), internal_error);
  CHECK_THROWS_AS(verify(Graph{{x, x}, {exp(x)}}), internal_error);
}
