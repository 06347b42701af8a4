// Errors of the shape and dtype rules, symbolic axes, the builders, and values that the rows promise at the edges.
#include <doctest/doctest.h>

#include "checks.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::graph::testing;

namespace {

Value of(const Shape& shape, Dtype t = float32) { return parameter({shape, t}); }
Dim n() { return symbol("n", 8); }
Dim m() { return symbol("m", 6); }

template <class F>
std::string message(F f) {
  try {
    f();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "nothing was thrown";
}
#define REFUSES(text, ...) CHECK(message([&] { __VA_ARGS__; }).find(text) == 0)

HostTensor run(const Graph& graph, const std::vector<HostTensor>& in) { return evaluate_reference(graph, in)[0]; }
HostTensor tensor(const Shape& shape, Dtype t, const std::vector<double>& values) {
  HostTensor out{{shape, t}, {}};
  for (double v : values)
    out.data.push_back(is_float(t) ? Number::of_real(v) : Number::of_int(static_cast<int64_t>(v)));
  return out;
}

}  // namespace

TEST_CASE("dtype rules say what they take") {
  REFUSES("[exp] expected a floating array, got int32: cast it first", exp(of({2}, int32)));
  REFUSES("[div] expected a floating array, got int32", of({2}, int32) / of({2}, int32));
  REFUSES("[bit_and] expected an integer array, got float32", binary(Op::bit_and, of({2}), of({2})));
  REFUSES("[add] expected a numeric array, got bool", of({2}, bool_) + of({2}, bool_));
  REFUSES("[add] arguments must have one dtype, got f32(2) and i32(2)", of({2}) + of({2}, int32));
  REFUSES("[add] arguments must have one shape, got f32(2) and f32(3)", of({2}) + of({3}));
  REFUSES("[select] the condition must be bool", select(of({2}), of({2}), of({2})));
  REFUSES("[dot] needs two floating arrays", matmul(of({2, 2}, int32), of({2, 2}, int32)));
  REFUSES("[all] expected a bool array", reduce(kernel::Reducer::all, of({2}), {0}));
  REFUSES("[add] takes 2 arguments, got 1", make(Op::add, {of({2})}));
  REFUSES("[add] argument 1 is empty", make(Op::add, {of({2}), Value{}}));
  CHECK(binary(Op::lt, of({2}, int8), of({2}, int8)).dtype() == bool_);
  CHECK(binary(Op::bit_or, of({2}, bool_), of({2}, bool_)).dtype() == bool_);
}

TEST_CASE("shape rules refuse what does not fit") {
  REFUSES("[reshape] f32(2,3) has 6 elements, (4) would have 4", reshape(of({2, 3}), {4}));
  REFUSES("[permute] axes (0,0)", permute(of({2, 3}), {0, 0}));
  REFUSES("[broadcast] f32(2) does not broadcast to (3)", broadcast(of({2}), {3}));
  REFUSES("[slice] axis 0 of f32(4): start 2, size 3, step 1 leaves the array", slice(of({4}), {2}, {3}));
  REFUSES("[slice] axis 0 of f32(4): start 0, size 2, step -1", slice(of({4}), {0}, {2}, {-1}));
  REFUSES("[slice] axis 0 of f32(4): start 0, size 2, step 0", slice(of({4}), {0}, {2}, {0}));
  REFUSES("[pad] axis 0 of f32(4)", pad(of({4}), {-1}, {0}));
  REFUSES("[assign] axis 0 of f32(4): start 2, size 3, step 1 leaves the array", assign(of({4}), of({3}), {2}));
  REFUSES("[assign] axis 0 of f32(4): start 3, size 3, step -2 leaves the array", assign(of({4}), of({3}), {3}, {-2}));
  REFUSES("[assign] the array and its update must have one dtype", assign(of({4}), of({3}, int32), {0}));
  REFUSES("[window] axis 0 of f32(4): 3 elements with dilation 2 do not fit", window(of({4}), 0, 3, 1, 2));
  REFUSES("[window] size, step and dilation must be at least 1, got (2,0,1)", window(of({4}), 0, 2, 0));
  REFUSES("[window] axis 1 of f32(3,n<=8) is symbolic", window(of({3, n()}), 1, 2));
  REFUSES("[concat] all axes but 0 must be equal", concat({of({2, 3}), of({2, 4})}, 0));
  REFUSES("[dot] contracted axis 1", matmul(of({2, 3}), of({4, 2})));
  REFUSES("[gather] indices must be integers", gather(of({4}), {of({2})}, {0}, {1}));
  REFUSES("[gather] a slice of (5)", gather(of({4}), {of({2}, int32)}, {0}, {5}));
  REFUSES("[gather] index arrays must have one shape",
          gather(of({4, 4}), {of({2}, int32), of({3}, int32)}, {0, 1}, {1, 1}));
  REFUSES("[scatter] updates", scatter(ScatterMode::add, of({4}), {of({2}, int32)}, of({3, 1}), {0}));
  REFUSES("[random_bits] the key must be two words", random_bits(of({3}, uint32), {4}));
  REFUSES("[random_bits] the key must be uint32", random_bits(of({2}, int32), {4}));
}

TEST_CASE("symbolic axes pass where they keep their meaning") {
  CHECK((of({n(), 3}) + of({n(), 3})).shape() == Shape{n(), 3});
  CHECK(broadcast(of({1, 3}), {n(), 3}).shape() == Shape{n(), 3});
  CHECK(permute(of({n(), 3}), {1, 0}).shape() == Shape{3, n()});
  CHECK(reshape(of({2, n(), 6}), {2, n(), 2, 3}).shape() == Shape{2, n(), 2, 3});
  CHECK(reshape(of({2, n(), 6}), {1, 2, n(), 6, 1}).shape() == Shape{1, 2, n(), 6, 1});
  CHECK(slice(of({10, 4}), {0, 1}, {n(), 2}).shape() == Shape{n(), 2});
  CHECK(slice(of({n(), 4}), {0, 1}, {n(), 2}).shape() == Shape{n(), 2});
  CHECK(pad(of({n(), 4}), {0, 1}, {0, 2}).shape() == Shape{n(), 7});
  CHECK(concat({of({n(), 4}), of({n(), 2})}, 1).shape() == Shape{n(), 6});
  CHECK(sum(of({2, n(), 4}), {1}).shape() == Shape{2, 4});
  CHECK(matmul(of({n(), 3, m()}), of({n(), m(), 5})).shape() == Shape{n(), 3, 5});
  CHECK(matmul(of({n(), 3}), of({3, m()})).shape() == Shape{n(), m()});
  CHECK(take(of({50, 4}), of({2, n()}, int32), 0).shape() == Shape{2, n(), 4});
  CHECK(take(of({3, n()}), of({2, m()}, int32), 1).shape() == Shape{3, 2, m()});
  CHECK(scatter(ScatterMode::add, of({n(), 3}), {of({m()}, int32)}, of({m(), 1, 3}), {0}).shape() == Shape{n(), 3});
  CHECK(iota({n(), 2}, 0, int32).shape() == Shape{n(), 2});
  CHECK(zeros_like(of({n()})).shape() == Shape{n()});
}

TEST_CASE("symbolic axes are refused where their length would be frozen") {
  REFUSES("[reshape] f32(n<=8,3) to (24)", reshape(of({n(), 3}), {24}));
  REFUSES("[reshape] f32(n<=8,3) to (3,n<=8): the axes before and after", reshape(of({n(), 3}), {3, n()}));
  REFUSES("[reshape] f32(n<=8) to (m<=6)", reshape(of({n()}), {m()}));
  REFUSES("[add]", of({n()}) + of({8}));
  REFUSES("[slice] axis 0 of f32(n<=8) is symbolic", slice(of({n()}), {0}, {4}));
  REFUSES("[slice] axis 0 of f32(7)", slice(of({7}), {0}, {n()}));
  REFUSES("[pad] axis 0 of f32(n<=8) is symbolic", pad(of({n()}), {1}, {0}));
  REFUSES("[concat] axis 0 of f32(n<=8) is symbolic", concat({of({n()}), of({2})}, 0));
  REFUSES("[dot] contracted axis 1", matmul(of({2, n()}), of({m(), 2})));
  REFUSES("[gather] a slice of (2)",
          gather(of({n()}), {of({2}, int32)}, {0}, {2}));  // two elements of an axis that may have one
  REFUSES("[gather] a slice of (n<=8)", gather(of({n()}), {of({2}, int32)}, {0}, {n()}));
  REFUSES("[random_bits] the shape must be static", random_bits(of({2}, uint32), {n()}));
}

TEST_CASE("builders return their argument where nothing changes") {
  const Value x = of({2, 3});
  CHECK(reshape(x, {2, 3}) == x);
  CHECK(permute(x, {0, 1}) == x);
  CHECK(broadcast(x, {2, 3}) == x);
  CHECK(slice(x, {0, 0}, {2, 3}) == x);
  CHECK(pad(x, {0, 0}, {0, 0}) == x);
  CHECK(cast(x, float32) == x);
  CHECK(sum(x, {}) == x);
  CHECK(sum_to(x, {2, 3}) == x);
  CHECK(sum_to(of({4, 2, 3}), {1, 3}).shape() == Shape{1, 3});
  CHECK(expand_dims(x, {0, -1}).shape() == Shape{1, 2, 3, 1});
  CHECK(squeeze(of({1, 2, 1}), {0, 2}).shape() == Shape{2});
  CHECK(mean(x, {1}, true).shape() == Shape{2, 1});
  CHECK(take(of({2, 5, 3}), of({4, 6}, int32), 1).shape() == Shape{2, 4, 6, 3});
}

TEST_CASE("out-of-range indices: gather moves inside, scatter drops, the last update of an element stays") {
  const Value v = of({4}, float64), i = of({5}, int32), u = of({5, 1}, float64);
  const HostTensor data = tensor({4}, float64, {10, 11, 12, 13}), index = tensor({5}, int32, {-1, -5, 9, 1, 1});
  const HostTensor updates = tensor({5, 1}, float64, {1, 2, 4, 8, 16});
  CHECK(reals(run({{v, i}, {gather(v, {i}, {0}, {1})}}, {data, index})) == std::vector<double>{13, 10, 13, 11, 11});
  CHECK(reals(run({{v, i, u}, {scatter(ScatterMode::add, v, {i}, u, {0})}}, {data, index, updates})) ==
        std::vector<double>{10, 35, 12, 14});
  CHECK(reals(run({{v, i, u}, {scatter(ScatterMode::set, v, {i}, u, {0})}}, {data, index, updates})) ==
        std::vector<double>{10, 16, 12, 1});
}

TEST_CASE("random bits are Threefry's in the layout of JAX and MLX") {
  const Value key = of({2}, uint32);
  const auto bits = [&](const Shape& shape, double k0, double k1) {
    return run({{key}, {random_bits(key, shape)}}, {tensor({2}, uint32, {k0, k1})});
  };
  // Random123's known answers for key 0, counter 0: words 6b200159 99ba4efe.
  const HostTensor two = bits({2}, 0, 0);
  Number args[] = {Number::of_int(0), Number::of_int(0), Number::of_int(0), Number::of_int(1)};
  CHECK(kernel::reference(kernel::ScalarOp::threefry0, uint32, args).i == two.data[0].i);
  CHECK(kernel::reference(kernel::ScalarOp::threefry1, uint32, args).i == two.data[1].i);
  const HostTensor one = bits({}, 0, 0);
  CHECK(one.data[0].i == 0x6b200159);
  // Odd counts: words 0 and 3 + 0, 1 and 4 of counters (i, i + 3); word 2 of counter (2, 0).
  const HostTensor five = bits({5}, 7, 9);
  const auto word = [](kernel::ScalarOp op, int64_t a, int64_t b) {
    const Number in[] = {Number::of_int(7), Number::of_int(9), Number::of_int(a), Number::of_int(b)};
    return kernel::reference(op, uint32, in).i;
  };
  using kernel::ScalarOp;
  const std::vector<int64_t> expected{word(ScalarOp::threefry0, 0, 3), word(ScalarOp::threefry0, 1, 4),
                                      word(ScalarOp::threefry0, 2, 0), word(ScalarOp::threefry1, 0, 3),
                                      word(ScalarOp::threefry1, 1, 4)};
  for (size_t k = 0; k < 5; ++k) CHECK(five.data[k].i == expected[k]);
}

TEST_CASE("Philox words depend on their own number alone") {
  const Value key = of({2}, uint32);
  const auto bits = [&](const Shape& shape) {
    return run({{key}, {random_bits(key, shape, Generator::philox)}}, {tensor({2}, uint32, {0, 0})});
  };
  const HostTensor few = bits({6}), many = bits({3, 5});
  const std::vector<int64_t> first{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  for (size_t k = 0; k < 6; ++k) {
    CHECK(few.data[k].i == many.data[k].i);
    if (k < 4) CHECK(few.data[k].i == first[k]);
  }
}

TEST_CASE("gradients at the edges of their domains") {
  const auto gradients = [](Op op, std::vector<double> a, std::vector<double> b) {
    const Value x = of({static_cast<int64_t>(a.size())}, float64), y = of(x.shape(), float64);
    const Value out = binary(op, x, y), one = full_like(out, 1);
    const Values g = row(op).vjp.rule(*out.node, Values{x, y}, Values{out}, Values{one});
    const auto r = evaluate_reference(
        {{x, y}, g}, std::vector<HostTensor>{tensor(x.shape(), float64, a), tensor(x.shape(), float64, b)});
    return std::pair(reals(r[0]), reals(r[1]));
  };
  using V = std::vector<double>;
  CHECK(gradients(Op::max, {1, 2, 3}, {2, 2, 2}) == std::pair(V{0, 0, 1}, V{1, 1, 0}));
  CHECK(gradients(Op::min, {1, 2, 3}, {2, 2, 2}) == std::pair(V{1, 0, 0}, V{0, 1, 1}));
  CHECK(gradients(Op::pow, {0, 0, -2, 0}, {0, 2, 3, 1}) == std::pair(V{0, 0, 12, 1}, V{0, 0, 0, 0}));

  const auto reduced = [](kernel::Reducer reducer, std::vector<double> a) {
    const Value x = of({static_cast<int64_t>(a.size())}, float64), out = reduce(reducer, x, {0}),
                one = full_like(out, 1);
    const Values g = row(Op::reduce).vjp.rule(*out.node, Values{x}, Values{out}, Values{one});
    return reals(run({{x}, g}, {tensor(x.shape(), float64, a)}));
  };
  CHECK(reduced(kernel::Reducer::max, {1, 3, 3, 2}) == V{0, 0.5, 0.5, 0});
  CHECK(reduced(kernel::Reducer::prod, {2, 0, 5}) == V{0, 10, 0});
  CHECK(reduced(kernel::Reducer::prod, {0, 0, 5}) == V{0, 0, 0});
}

TEST_CASE("every component of a reducer's state has the derivatives of finite differences") {
  for (const kernel::Reducer r : {kernel::Reducer::logsumexp, kernel::Reducer::attention, kernel::Reducer::welford}) {
    CAPTURE(std::string(kernel::name(r)));
    Random random(3);
    Values x, weights;
    std::vector<HostTensor> at;
    for (size_t k = 0; k < kernel::components_of(r); ++k) {
      x.push_back(of({3, 4}, float64));
      at.push_back(random_tensor(random, x[k].type()));
      if (r == kernel::Reducer::welford && k == 1)  // counts
        for (Number& n : at[k].data) n = Number::of_real(static_cast<double>(random.between(2, 5)));
    }
    const Values y = reduce_state(r, x, {1});
    Value total;  // of all results, each with a weight of its own
    for (size_t k = 0; k < y.size(); ++k) {
      weights.push_back(full_like(y[k], 0.4 + 0.3 * static_cast<double>(k)));
      total = total ? total + sum(y[k] * weights[k], {0}) : sum(y[k] * weights[k], {0});
    }
    const Graph forward{x, {total}};
    Values tangents;
    for (const Value& v : x) tangents.push_back(full_like(v, 1));
    const Values gradients = row(Op::reduce).vjp.rule(*y[0].node, x, y, weights);
    std::vector<std::vector<double>> direction(x.size(), std::vector<double>(12));
    for (size_t k = 0; k < x.size(); ++k) {
      const std::vector<double> given = reals(run({x, {gradients[k]}}, at));
      for (size_t j = 0; j < given.size(); ++j) {
        direction[k][j] = 1;
        CHECK(close(given[j], differences(forward, at, direction)[0], 1e-6));
        direction[k][j] = 0;
      }
      // Along one component alone, and along all.
      for (const bool all : {false, true}) {
        Values along(x.size());
        for (size_t i = 0; i < x.size(); ++i)
          if (i == k || all) along[i] = tangents[i], direction[i].assign(12, 1.0);
        const Values moved = row(Op::reduce).jvp.rule(*y[0].node, x, y, along);
        for (size_t i = 0; i < y.size(); ++i) {
          const std::vector<double> expected = differences({x, {y[i]}}, at, direction);
          const std::vector<double> got = moved[i] ? reals(run({x, {moved[i]}}, at)) : std::vector<double>(3);
          for (size_t j = 0; j < 3; ++j) CHECK(close(got[j], expected[j], 1e-6));
        }
        direction.assign(x.size(), std::vector<double>(12));
      }
    }
  }
}

TEST_CASE("the transpose of windows that do not overlap is movement alone, of overlapping ones a short sum") {
  const auto adds = [](const Value& v, int64_t size, int64_t step, int64_t dilation) {
    const Value w = window(v, 1, size, step, dilation), g = of(w.shape());
    int reductions = 0, count = 0;
    const Values back = row(Op::window).vjp.rule(*w.node, Values{v}, Values{w}, Values{g});
    CHECK(back[0].type() == v.type());
    for (const auto& node : topological(back)) count += node->op() == Op::add, reductions += node->op() == Op::reduce;
    return std::pair(count, reductions);
  };
  const Value x = of({n(), 64, 3});
  CHECK(adds(x, 2, 2, 1) == std::pair(0, 0));
  CHECK(adds(x, 3, 7, 3) == std::pair(0, 0));
  CHECK(adds(x, 3, 2, 1) == std::pair(1, 0));
  CHECK(adds(x, 3, 1, 1) == std::pair(2, 0));
  CHECK(adds(x, 3, 4, 4) == std::pair(2, 0));
  CHECK(adds(x, 40, 1, 1) == std::pair(0, 1));
  CHECK(adds(x, 40, 4, 1) == std::pair(9, 0));
}

TEST_CASE("products with a transposed weight differentiate without a transpose of the result") {
  const Value x = of({4, 5, 3}), w = of({7, 3});  // a linear layer: weight [out, in]
  const Value y = dot(x, w, {2}, {1}), g = of({4, 5, 7});
  const Values grads = row(Op::dot).vjp.rule(*y.node, Values{x, w}, Values{y}, Values{g});
  CHECK(grads[0].node->op() == Op::dot);
  CHECK(grads[1].node->op() == Op::dot);
  const Value a = of({2, 4, 3}), b = of({2, 3, 5}), c = matmul(a, b), gc = of({2, 4, 5});
  for (const Value& v : row(Op::dot).vjp.rule(*c.node, Values{a, b}, Values{c}, Values{gc}))
    CHECK(v.node->op() == Op::dot);
}
