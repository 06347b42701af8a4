// compile(): how often functions are traced and programs built, what becomes of state, and what is refused.
#include <thread>

#include "graph/build.h"
#include "runtime/trace.h"
#include "support.h"
#include "weft/compile.h"

using namespace weft;
using namespace weft::testing;

namespace {

int64_t traces() { return runtime::counters().traces; }
int64_t built() { return runtime::counters().programs_built; }

const void* address(const array& a) { return a.raw_data(); }

}  // namespace

TEST_CASE("traced once for each signature") {
  int calls = 0;
  const auto f = compile([&](const Arrays& a) {
    ++calls;
    return Arrays{a[0] * 2.0f + a[1], sum(a[0])};
  });
  const int64_t start = traces();
  const Arrays first = f({array({1.0f, 2.0f}), array(1.0f)});
  CHECK(first[0].to_vector<float>() == Floats{3, 5});
  CHECK(first[1].item<float>() == 3);
  const int64_t programs = built();
  CHECK(f({array({3.0f, 4.0f}), array(2.0f)})[0].to_vector<float>() == Floats{8, 10});
  CHECK(calls == 1);
  CHECK(traces() == start + 1);
  CHECK(built() == programs);
  CHECK(f({array({3.0f, 4.0f, 5.0f}), array(2.0f)})[0].shape() == Shape{3});
  CHECK(calls == 2);
  CHECK(f({array({3, 4}), array(2)})[0].dtype() == float32);
  CHECK(calls == 3);
  CHECK(f({array({3.0f, 4.0f}), array(2.0f)})[1].item<float>() == 7);
  CHECK(calls == 3);
}

TEST_CASE("a changed number in eager code builds no new program") {
  const array x = {1.0f, 2.0f, 3.0f};
  CHECK((x * 2.5f + 1.5f).to_vector<float>() == Floats{4, 6.5f, 9});
  const int64_t programs = built();
  CHECK((x * 3.0f + 0.25f).to_vector<float>() == Floats{3.25f, 6.25f, 9.25f});
  CHECK(built() == programs);
  CHECK((x * 4 + 7).to_vector<float>() == Floats{11, 15, 19});  // integers are converted when the graph is built
  const int64_t after = built();
  CHECK((x * 9 + 3).to_vector<float>() == Floats{12, 21, 30});
  CHECK(built() == after);
}

TEST_CASE("a result may be a view of state that the same call overwrites") {
  array w = array({1.0f, 2.0f, 3.0f, 4.0f}) + 0.0f;
  const auto step = compile(
      [&](const Arrays&) {
        const array seen = transpose(reshape(w, {2, 2}));
        w = w * 2.0f;
        return Arrays{seen, reshape(w, {2, 2})};
      },
      {.state = {&w}});
  const Arrays first = step({}), second = step({});
  CHECK(first[0].to_vector<float>() == Floats{1, 3, 2, 4});
  CHECK(first[1].to_vector<float>() == Floats{2, 4, 6, 8});
  CHECK(second[0].to_vector<float>() == Floats{2, 6, 4, 8});
  CHECK(second[1].to_vector<float>() == Floats{4, 8, 12, 16});
  CHECK(w.to_vector<float>() == Floats{4, 8, 12, 16});
}

TEST_CASE("state is read and updated, in place where no other handle shares it") {
  array w = array({1.0f, 2.0f}) + 0.0f;
  const auto step = compile(
      [&](const Arrays& a) {
        w = w - 0.5f * a[0];
        return Arrays{w * 2.0f};
      },
      {.state = {&w}});
  CHECK(step({array({2.0f, 2.0f})})[0].to_vector<float>() == Floats{0, 2});
  CHECK(w.to_vector<float>() == Floats{0, 1});
  const void* home = address(w);
  const int64_t copies = runtime::counters().copies;
  CHECK(step({array({2.0f, 0.0f})})[0].to_vector<float>() == Floats{-2, 2});
  CHECK(address(w) == home);
  CHECK(runtime::counters().copies == copies);
  CHECK(w.to_vector<float>() == Floats{-1, 1});
}

TEST_CASE("a state that is overwritten in place keeps its node: a step over many states makes none") {
  std::vector<array> states;
  for (int k = 0; k < 40; ++k) states.push_back(array({1.0f, static_cast<float>(k)}));
  std::vector<array*> handles;
  for (array& s : states) handles.push_back(&s);
  const auto step = compile(
      [&](const Arrays& a) {
        for (array& s : states) s = s + a[0];
        return Arrays{};
      },
      {.state = handles});
  const array one = {1.0f, 1.0f};
  step({one});  // traced; what shared storage gets its own
  const auto next_node = [] { return graph::constant(float32, Number::of_real(0)).node->id(); };
  const graph::Node* node = states[7].value().node.get();
  const uint64_t before = next_node();
  for (int k = 0; k < 3; ++k) step({one});
  CHECK(next_node() == before + 1);
  CHECK(states[7].value().node.get() == node);
  CHECK(states[7].to_vector<float>() == Floats{5, 11});
}

TEST_CASE("a state that was a number or one of several results gets a node of its own") {
  array count(3.0f), half = split(array({1.0f, 2.0f, 3.0f, 4.0f}) * 2.0f, 2)[1];
  const auto step = compile(
      [&](const Arrays&) {
        count = count + 1.0f;
        half = half * 2.0f;
        return Arrays{count};
      },
      {.state = {&count, &half}});
  for (int k = 1; k <= 3; ++k) CHECK(step({})[0].item<float>() == 3 + k);
  CHECK(count.item<float>() == 6);
  CHECK(half.to_vector<float>() == Floats{48, 64});
  const array kept = step({})[0];  // the same array as the state's: the next step leaves it alone
  step({});
  CHECK(kept.item<float>() == 7);
  CHECK(count.item<float>() == 8);
}

TEST_CASE("a handle kept before a step keeps its value") {
  array w = {1.0f, 2.0f};
  const auto step = compile(
      [&](const Arrays&) {
        w = w * 2.0f;
        return Arrays{};
      },
      {.state = {&w}});
  const array before = w;
  step({});
  CHECK(before.to_vector<float>() == Floats{1, 2});
  CHECK(w.to_vector<float>() == Floats{2, 4});
  const array between = w;
  const array derived = w + 1.0f;  // pending: needs the old value later
  step({});
  step({});
  CHECK(between.to_vector<float>() == Floats{2, 4});
  CHECK(derived.to_vector<float>() == Floats{3, 5});
  CHECK(w.to_vector<float>() == Floats{8, 16});
  // Passed as an argument as well: the argument is the old value.
  array v = {1.0f, 1.0f};
  const auto both = compile(
      [&](const Arrays& a) {
        v = v + a[0];
        return Arrays{v * a[0]};
      },
      {.state = {&v}});
  CHECK(both({v})[0].to_vector<float>() == Floats{2, 2});
  CHECK(both({v})[0].to_vector<float>() == Floats{8, 8});
}

TEST_CASE("tied, swapped, constant and unchanged state") {
  array a = {1.0f}, b = a, c = {5.0f};
  const auto step = compile(
      [&](const Arrays&) {
        const array old = a;
        a = b;
        b = old + 10.0f;
        return Arrays{old, c};
      },
      {.state = {&a, &b, &c, &a}});
  const Arrays first = step({});
  CHECK(first[0].item<float>() == 1);
  CHECK(first[1].item<float>() == 5);
  CHECK(a.item<float>() == 1);
  CHECK(b.item<float>() == 11);
  step({});
  CHECK(a.item<float>() == 11);
  CHECK(b.item<float>() == 11);
  const Arrays third = step({});
  CHECK(third[0].item<float>() == 11);
  CHECK(a.item<float>() == 11);
  CHECK(b.item<float>() == 21);
  CHECK(c.item<float>() == 5);
  CHECK(first[0].item<float>() == 1);

  array counter(0);
  const auto reset = compile(
      [&](const Arrays&) {
        counter = array(7);
        return Arrays{};
      },
      {.state = {&counter}});
  reset({});
  CHECK(counter.item<int>() == 7);
}

TEST_CASE("two states set to one value stay apart afterwards") {
  array a = {1.0f}, b = {2.0f};
  const auto merge = compile(
      [&](const Arrays& x) {
        a = b = a + b + x[0];
        return Arrays{a};
      },
      {.state = {&a, &b}});
  const Arrays r = merge({array({0.0f})});
  CHECK(a.item<float>() == 3);
  CHECK(b.item<float>() == 3);
  merge({array({1.0f})});
  CHECK(a.item<float>() == 7);
  CHECK(b.item<float>() == 7);
  CHECK(r[0].item<float>() == 3);
}

TEST_CASE("captured arrays are inputs by reference; pending ones are computed once, before") {
  const array table = {1.0f, 2.0f, 3.0f};
  const array pending = exp(table);
  const auto f = compile([&](const Arrays& a) { return Arrays{table * a[0] + pending, table}; });
  const Arrays r = f({array(2.0f)});
  CHECK(r[0].to_vector<float>()[0] == doctest::Approx(2 + std::exp(1.0)));
  CHECK(pending.is_available());
  CHECK(address(r[1]) == address(table));
  CHECK(f({array(0.0f)})[0].to_vector<float>()[1] == doctest::Approx(std::exp(2.0)));
}

TEST_CASE("a whole training step: loss, gradients and state in one program") {
  array w = {0.0f, 0.0f}, m = zeros({2}), rate(0.1f);
  const array target = {3.0f, -2.0f};
  const auto step = compile(
      [&](const Arrays& x) {
        const auto [loss, g] =
            value_and_grad([&](const Arrays& p) { return sum(square(p[0] * x[0] - target)); }, {0})({w});
        m = 0.9f * m + g[0];
        w = w - rate * m;
        return Arrays{loss};
      },
      {.state = {&w, &m, &rate}});
  const array x = ones({2});
  const float first = step({x})[0].item<float>();
  CHECK(first == 13);
  CHECK(w.to_vector<float>() == Floats{0.6f, -0.4f});
  const int64_t t = traces(), p = built(), runs = runtime::counters().programs_run;
  float last = 0;
  for (int k = 0; k < 100; ++k) {
    rate = array(0.1f / static_cast<float>(k + 1));  // a new number is data: nothing is traced again
    last = step({x})[0].item<float>();
  }
  CHECK(traces() == t);
  CHECK(built() == p);
  CHECK(runtime::counters().programs_run == runs + 100);
  CHECK(last < 0.5f);
}

TEST_CASE("inside another trace a compiled function is part of it") {
  const auto square_plus = compile([](const Arrays& a) { return Arrays{a[0] * a[0] + 1.0f}; });
  const array g = grad([&](const array& x) { return square_plus({x})[0]; })(array(3.0f));
  CHECK(g.item<float>() == 6);
  const auto outer = compile([&](const Arrays& a) { return Arrays{square_plus({a[0] + 1.0f})[0]}; });
  const int64_t t = traces();
  CHECK(outer({array(1.0f)})[0].item<float>() == 5);
  CHECK(traces() == t + 1);

  array n(0.0f);
  const auto count = compile(
      [&](const Arrays&) {
        n = n + 1.0f;
        return Arrays{n};
      },
      {.state = {&n}});
  const auto careless = compile([&](const Arrays& a) { return Arrays{count({})[0] + a[0]}; });
  CHECK(contains(message([&] { careless({array(1.0f)}); }),
                 "[compile] a compiled function that is called while another one is traced"));
  CHECK(n.item<float>() == 0);
  const auto careful = compile([&](const Arrays& a) { return Arrays{count({})[0] + a[0]}; }, {.state = {&n}});
  CHECK(careful({array(1.0f)})[0].item<float>() == 2);
  CHECK(careful({array(1.0f)})[0].item<float>() == 3);
  CHECK(n.item<float>() == 2);
}

TEST_CASE("random draws differ on every call, and repeat with the seed") {
  const auto draw = compile([](const Arrays& a) { return Arrays{random::uniform({4}) + a[0]}; });
  random::seed(5);
  const Floats first = draw({array(0.0f)})[0].to_vector<float>(), second = draw({array(0.0f)})[0].to_vector<float>();
  CHECK(first != second);
  random::seed(5);
  CHECK(random::uniform({4}).to_vector<float>() == first);
  CHECK(draw({array(0.0f)})[0].to_vector<float>() == second);
  const auto named =
      compile([](const Arrays&) { return Arrays{random::uniform({4})}; }, {.state = {&random::default_key()}});
  random::seed(5);
  CHECK(named({})[0].to_vector<float>() == first);
  CHECK(named({})[0].to_vector<float>() == second);
  random::seed(5);
  const auto quiet = compile([](const Arrays& a) { return Arrays{a[0] + 1.0f}; });
  quiet({array(1.0f)});
  CHECK(random::uniform({4}).to_vector<float>() == first);
}

TEST_CASE("one program for all lengths of a dynamic axis") {
  int calls = 0;
  const auto f = compile(
      [&](const Arrays& a) {
        ++calls;
        return Arrays{sum(a[0] * a[1], 0), a[0] + a[1]};
      },
      {.dynamic = {{0, 0, "n", 6}, {1, 0, "n", 6}}});
  for (int n : {3, 6, 1, 5}) {
    const array x = reshape(astype(arange(2 * n), float32), {n, 2});
    const Arrays r = f({x, ones({n, 2})});
    CHECK(r[0].to_vector<float>() == Floats{static_cast<float>(n * (n - 1)), static_cast<float>(n * n)});
    CHECK(r[1].shape() == Shape{n, 2});
    CHECK(array_equal(r[1], x + 1.0f, false).item<bool>());
  }
  CHECK(calls == 1);
  CHECK(contains(message([&] {
                   f({ones({7, 2}), ones({7, 2})});
                 }),
                 "has length 7 in argument 0, but lengths are 1 to 6"));
  CHECK(contains(message([&] { f({ones({2, 2}), ones({3, 2})}); }), "lengths 2 and 3 in one call"));
  CHECK(contains(message([&] { f({ones({2, 2})}); }), "is of argument 1, but the function was called with 1"));
}

TEST_CASE("what is refused, and what is left behind") {
  array w = {1.0f, 2.0f};
  const auto grows = compile(
      [&](const Arrays&) {
        w = concatenate({w, w});
        return Arrays{};
      },
      {.state = {&w}});
  const std::string text = message([&] { grows({}); });
  CHECK(contains(text, "[compile] state 0 was f32(2) and became f32(4)"));
  CHECK(w.to_vector<float>() == Floats{1, 2});

  const auto fails = compile(
      [&](const Arrays& a) {
        w = w + a[0];
        return Arrays{matmul(a[0], array(1.0f))};
      },
      {.state = {&w}});
  CHECK_THROWS_AS(fails({array(1.0f)}), std::invalid_argument);
  CHECK(w.to_vector<float>() == Floats{1, 2});

  const auto looks = compile([](const Arrays& a) { return Arrays{a[0] * a[0].item<float>()}; });
  CHECK(contains(message([&] { looks({array(1.0f)}); }), "is not known while the function is traced"));
  const auto prints = compile([](const Arrays& a) {
    (a[0] + 1.0f).eval();
    return a;
  });
  CHECK(contains(message([&] { prints({array(1.0f)}); }), "[eval]"));
  CHECK_THROWS_AS(compile([](const Arrays& a) { return a; }, {.state = {nullptr}}), std::invalid_argument);
  CHECK_THROWS_WITH_AS(compile(nullptr), doctest::Contains("no function"), std::invalid_argument);
  std::vector<array> (*none)(const std::vector<array>&) = nullptr;
  CHECK_THROWS_AS(compile(none), std::invalid_argument);
}

TEST_CASE("results that need no program") {
  const auto identity = compile([](const Arrays& a) { return Arrays{a[1], a[0], a[1]}; });
  const array x = {1.0f}, y = {2.0f};
  const Arrays r = identity({x, y});
  CHECK(r[0].value() == y.value());
  CHECK(r[1].value() == x.value());
  CHECK(compile([](const Arrays&) { return Arrays{}; })({}).empty());
  CHECK(compile([](const Arrays&) {
          return Arrays{full({2}, array(3.0f)), array(4)};
        })({})[0]
            .to_vector<float>() == Floats{3, 3});
}

TEST_CASE("threads share a compiled function without state") {
  const auto f = compile([](const Arrays& a) { return Arrays{sum(exp(a[0]) * a[1])}; });
  Floats results(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < results.size(); ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < 20; ++k)
        results[t] = f({zeros({8}), full({8}, array(static_cast<float>(t)))})[0].item<float>();
    });
  for (std::thread& t : threads) t.join();
  for (size_t t = 0; t < results.size(); ++t) CHECK(results[t] == 8 * static_cast<float>(t));
}
