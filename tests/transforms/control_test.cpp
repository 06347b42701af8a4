// cond, while_loop and scan: values against loops on the host, derivatives against unrolled functions and differences,
// batches against loops, nested in each other and in every transform.
#include "support.h"

#include "runtime/trace.h"
#include "weft/compile.h"
#include "weft/control.h"

using namespace weft;
using namespace weft::testing;

namespace {

array f64(double v) { return array(v, float64); }

// A recurrent net: h' = tanh(x w + h u), y = h' * x[0].
struct Cell {
  array w = noise({3, 4}, 11, 0.5), u = noise({4, 4}, 12, 0.5);
  std::pair<Arrays, Arrays> operator()(const Arrays& c, const Arrays& x) const {
    const array h = tanh(matmul(x[0], w) + matmul(c[0], u));
    return {{h}, {softmax(h, -1), sum(h)}};
  }
};

Arrays unrolled(const ScanFunction& f, Arrays carry, const Arrays& xs, int length, bool reverse) {
  std::vector<Arrays> rows(static_cast<size_t>(length));
  for (int n = 0; n < length; ++n) {
    const int at = reverse ? length - 1 - n : n;
    Arrays x;
    for (const array& a : xs) x.push_back(take(a, array(at), 0));
    auto [next, given] = f(carry, x);
    carry = next;
    rows[static_cast<size_t>(at)] = given;
  }
  Arrays out = carry;
  for (size_t k = 0; k < rows[0].size(); ++k) {
    Arrays column;
    for (const Arrays& r : rows) column.push_back(r[k]);
    out.push_back(stack(column, 0));
  }
  return out;
}

Arrays scanned(const ScanFunction& f, const Arrays& carry, const Arrays& xs, bool reverse = false) {
  auto [last, all] = scan(f, carry, xs, std::nullopt, reverse);
  last.insert(last.end(), all.begin(), all.end());
  return last;
}

array total(const Arrays& results) {
  array sum_of = f64(0);
  for (const array& r : results) sum_of = sum_of + weighted(r);
  return sum_of;
}

// x doubled until its sum passes 10, and how often.
Arrays doubling(const Arrays& in, std::optional<int64_t> max_steps = std::nullopt) {
  return while_loop([](const Arrays& c) { return sum(abs(c[0])) < f64(10); },
                    [&](const Arrays& c) {
                      return Arrays{c[0] * f64(2) + sin(in[1]) * c[0], c[1] + array(1)};
                    },
                    {in[0], array(0)}, max_steps);
}

Arrays doubling_unrolled(const Arrays& in, int steps) {
  array x = in[0];
  for (int k = 0; k < steps; ++k) x = x * f64(2) + sin(in[1]) * x;
  return {x, array(steps)};
}

}  // namespace

TEST_CASE("scan is a loop: values, both directions, without arrays, without steps") {
  const Cell cell;
  const array h0 = noise({2, 4}, 1), xs = noise({5, 2, 3}, 2);
  for (bool reverse : {false, true}) {
    const Arrays expected = unrolled(cell, {h0}, {xs}, 5, reverse), given = scanned(cell, {h0}, {xs}, reverse);
    REQUIRE(given.size() == 3);
    for (size_t k = 0; k < 3; ++k) check_close(given[k], expected[k], 1e-12);
  }
  const auto [last, powers] =
      scan([](const Arrays& c, const Arrays&) { return std::pair(Arrays{c[0] * 2.0f}, Arrays{c[0]}); }, {array(1.0f)},
           {}, 6);
  CHECK(last[0].item<float>() == 64);
  CHECK(powers[0].to_vector<float>() == Floats{1, 2, 4, 8, 16, 32});
  const auto [same, none] =
      scan([](const Arrays& c, const Arrays& x) { return std::pair(Arrays{c[0] + x[0]}, Arrays{x[0]}); }, {array(3.0f)},
           {zeros({0})});
  CHECK(same[0].item<float>() == 3);
  CHECK(none[0].shape() == Shape{0});
  // Carry that is handed through, swapped, or given out; arrays of other dtypes.
  const auto [swapped, seen] = scan(
      [](const Arrays& c, const Arrays& x) {
        return std::pair(Arrays{c[1], c[0], c[2]}, Arrays{c[0], x[0], astype(x[0], float32) * c[2]});
      },
      {array({1.0f, 2.0f}), array({3.0f, 4.0f}), array(0.5f)}, {array({7, 8, 9})});
  CHECK(swapped[0].to_vector<float>() == Floats{3, 4});
  CHECK(swapped[1].to_vector<float>() == Floats{1, 2});
  CHECK(seen[0].to_vector<float>() == Floats{1, 2, 3, 4, 1, 2});
  CHECK(seen[1].to_vector<int>() == std::vector<int>{7, 8, 9});
  CHECK(seen[2].to_vector<float>() == Floats{3.5f, 4, 4.5f});
}

TEST_CASE("a loop of any length is one small program") {
  const auto run = [](int n) {
    const int64_t before = runtime::counters().programs_built;
    const auto r =
        scan([](const Arrays& c, const Arrays& x) { return std::pair(Arrays{c[0] * 0.5f + x[0]}, Arrays{c[0]}); },
             {zeros({8})}, {ones({n, 8})});
    r.first[0].eval();
    return runtime::counters().programs_built - before;
  };
  run(3);
  CHECK(run(1000) <= 3);
}

TEST_CASE("derivatives of scan") {
  const Cell cell;
  const array h0 = noise({2, 4}, 1), xs = noise({4, 2, 3}, 2), t = noise({4, 2, 3}, 3);
  for (bool reverse : {false, true}) {
    CAPTURE(reverse);
    const auto loop = [&](const array& w, const array& u, const array& h, const array& x) {
      return total(scanned(Cell{w, u}, {h}, {x}, reverse));
    };
    const auto flat = [&](const array& w, const array& u, const array& h, const array& x) {
      return total(unrolled(Cell{w, u}, {h}, {x}, 4, reverse));
    };
    const ScalarFunction f = [&](const Arrays&a) { return loop(a[0], a[1], a[2], a[3]); },
                         g = [&](const Arrays&a) { return flat(a[0], a[1], a[2], a[3]); };
    const Arrays at{cell.w, cell.u, h0, xs};
    const Arrays given = grad(f, {0, 1, 2, 3})(at), expected = grad(g, {0, 1, 2, 3})(at);
    for (size_t k = 0; k < 4; ++k) check_close(given[k], expected[k], 1e-10);
    const UnaryFunction of_x = [&](const array&x) { return loop(cell.w, cell.u, h0, x); },
                        flat_x = [&](const array&x) { return flat(cell.w, cell.u, h0, x); };
    check_close(jvp(of_x, xs, t).second, jvp(flat_x, xs, t).second, 1e-10);
    check_close(jvp(grad(of_x), xs, t).second, jvp(grad(flat_x), xs, t).second, 1e-9);
    check_close(vjp(grad(of_x), xs, t).second, jvp(grad(flat_x), xs, t).second, 1e-9);
    const UnaryFunction along = [&](const array& x) { return sum(square(jvp(grad(of_x), x, t).second)); };
    check_close(jvp(along, xs, t).second, sum(grad(along)(xs) * t), 1e-8);
    check_close(sum(grad(along)(xs) * t), difference(along, xs, t), 1e-5);  // third
  }
}

TEST_CASE("scans under vmap, compile and in each other") {
  const Cell cell;
  const array h0 = noise({2, 4}, 1), xs = noise({4, 2, 3}, 2), batch = noise({3, 4, 2, 3}, 3),
              starts = noise({2, 3, 4}, 4);
  const auto run = [&](const array& h, const array& x) { return stack(Arrays{total(scanned(cell, {h}, {x}))}, 0); };
  Arrays by_x, by_h;
  for (int k = 0; k < 3; ++k) {
    by_x.push_back(run(h0, take(batch, array(k), 0)));
    by_h.push_back(run(take(starts, array(k), 1), xs));
  }
  check_close(vmap(BinaryFunction(run), -1, 0)(h0, batch), stack(by_x, 0), 1e-11);
  check_close(vmap(BinaryFunction(run), 1, -1)(starts, xs), stack(by_h, 0), 1e-11);
  const UnaryFunction loss = [&](const array& x) { return sum(run(h0, x)); };
  Arrays slopes;
  for (int k = 0; k < 3; ++k) slopes.push_back(grad(loss)(take(batch, array(k), 0)));
  check_close(vmap(grad(loss))(batch), stack(slopes, 0), 1e-11);
  check_close(grad([&](const array& x) { return sum(vmap(loss)(x)); })(batch), stack(slopes, 0), 1e-11);
  const ArrayFunction compiled = compile(ArrayFunction([&](const Arrays& a) {
    return Arrays{loss(a[0]), grad(loss)(a[0])};
  }));
  const Arrays r = compiled({xs});
  check_close(r[0], loss(xs), 1e-12);
  check_close(r[1], grad(loss)(xs), 1e-12);
  check_close(compiled({xs * f64(2)})[1], grad(loss)(xs * f64(2)), 1e-12);
  // A scan whose step scans: cumulative sums of cumulative sums, with the outer carry captured inside.
  const UnaryFunction twice = [](const array& x) {
    const auto [last, rows] = scan(
        [](const Arrays& c, const Arrays& row) {
          const auto [inner, sums] =
              scan([&](const Arrays& s,
                       const Arrays& v) { return std::pair(Arrays{s[0] + v[0] * c[0]}, Arrays{s[0] * v[0]}); },
                   {f64(1)}, {row[0]});
          return std::pair(Arrays{c[0] + sin(inner[0])}, Arrays{sums[0]});
        },
        {f64(0.5)}, {x});
    return stack(Arrays{last[0] + weighted(rows[0])}, 0);
  };
  const array m = noise({3, 4}, 5);
  check_close(sum(jacrev(twice)(m) * m, {1, 2}), difference(twice, m, m), 1e-8);
  check_close(sum(jacfwd(twice)(m) * m, {1, 2}), difference(twice, m, m), 1e-8);
}

TEST_CASE("while_loop: values, bounds, derivatives") {
  const array x = noise({3}, 1, 0.3), a = noise({3}, 2, 0.5), t = noise({3}, 3);
  const int steps = doubling({x, a})[1].item<int>();
  REQUIRE(steps > 1);
  check_close(doubling({x, a})[0], doubling_unrolled({x, a}, steps)[0], 1e-12);
  CHECK(doubling({x, a}, 1)[1].item<int>() == 1);
  CHECK(doubling({x, a}, 0)[1].item<int>() == 0);
  CHECK(doubling({x * f64(100), a})[1].item<int>() == 0);
  for (std::optional<int64_t> bound :
       {std::optional<int64_t>(), std::optional<int64_t>(steps + 3), std::optional<int64_t>(2)}) {
    const int taken = bound && *bound < steps ? 2 : steps;
    CAPTURE(taken);
    const ScalarFunction f = [&](const Arrays& in) { return weighted(doubling(in, bound)[0]); };
    const ScalarFunction g = [&](const Arrays& in) { return weighted(doubling_unrolled(in, taken)[0]); };
    const Arrays given = grad(f, {0, 1})({x, a}), expected = grad(g, {0, 1})({x, a});
    for (size_t k = 0; k < 2; ++k) check_close(given[k], expected[k], 1e-10);
    const UnaryFunction of_a =
                            [&](const array&v) {
                              return f({x, v});
                            },
                        flat = [&](const array&v) {
                          return g({x, v});
                        };
    check_close(jvp(of_a, a, t).second, jvp(flat, a, t).second, 1e-10);
    check_close(jvp(grad(of_a), a, t).second, jvp(grad(flat), a, t).second, 1e-9);
    check_close(vjp(grad(of_a), a, t).second, jvp(grad(flat), a, t).second, 1e-9);
  }
}

TEST_CASE("a while loop without a bound is taken back in n log n steps") {
  // Values that depend on their order, so that a carry from a wrong step shows.
  const auto loop = [](const Arrays& in, int steps, std::optional<int64_t> bound) {
    return while_loop(
        [&](const Arrays& c) { return c[1] < array(steps); },
        [&](const Arrays& c) {
          return Arrays{sin(c[0] * f64(1.5)) + in[1] * astype(c[1], float64) * f64(0.01), c[1] + array(1)};
        },
        {in[0], array(0)}, bound)[0];
  };
  const auto gradient = [&](int steps, std::optional<int64_t> bound) {
    return grad([&](const Arrays& in) { return weighted(loop(in, steps, bound)); },
                {0, 1})({noise({3}, 1), noise({3}, 2)});
  };
  for (int steps : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33, 100}) {
    CAPTURE(steps);
    const Arrays given = gradient(steps, std::nullopt), expected = gradient(steps, steps);
    for (size_t k = 0; k < 2; ++k) check_close(given[k], expected[k], 1e-12);
  }
  const auto launches = [&](int steps) {
    eval(gradient(steps, std::nullopt));  // built
    const int64_t before = runtime::counters().kernel_launches;
    eval(gradient(steps, std::nullopt));
    return static_cast<double>(runtime::counters().kernel_launches - before);
  };
  const double few = launches(64), many = launches(1024);
  CHECK(many / few > 16);
  CHECK(many / few < 16 * 10.0 / 6);  // n log n; n² would be 256
}

TEST_CASE("a loop works on captured state in the memory of the state") {
  array state = noise({1000}, 1);
  const ArrayFunction f = compile(
      [&](const Arrays&) {
        state = while_loop([](const Arrays& c) { return c[1] < array(3); },
                           [](const Arrays& c) {
                             return Arrays{c[0] * f64(2), c[1] + array(1)};
                           },
                           {state, array(0)})[0];
        return Arrays{};
      },
      {.state = {&state}});
  const Doubles before = state.to_vector<double>();
  f({});
  const int64_t copies = runtime::counters().copies;
  const void* memory = state.raw_data();
  f({});
  CHECK(runtime::counters().copies == copies);
  CHECK(state.raw_data() == memory);
  CHECK(state.to_vector<double>()[7] == 64 * before[7]);
}

TEST_CASE("while_loop under vmap: each element stops when it is done") {
  const array xs = noise({5, 3}, 1, 0.4), a = noise({3}, 2, 0.5);
  const ArrayFunction f = [&](const Arrays& in) { return doubling({in[0], a}); };
  const Arrays together = vmap(f)({xs});
  bool differ = false;
  for (int k = 0; k < 5; ++k) {
    const Arrays alone = f({take(xs, array(k), 0)});
    check_close(take(together[0], array(k), 0), alone[0], 1e-12);
    CHECK(take(together[1], array(k), 0).item<int>() == alone[1].item<int>());
    differ = differ || alone[1].item<int>() != f({take(xs, array(0), 0)})[1].item<int>();
  }
  CHECK(differ);
  const UnaryFunction slope = grad([&](const array& v) { return weighted(doubling({v, a}, 20)[0]); });
  Arrays parts;
  for (int k = 0; k < 5; ++k) parts.push_back(slope(take(xs, array(k), 0)));
  check_close(vmap(slope)(xs), stack(parts, 0), 1e-10);
  // The condition is the same for all: one count of steps.
  const UnaryFunction counted = [&](const array& v) {
    return while_loop([](const Arrays& c) { return c[1] < array(3); },
                      [&](const Arrays& c) {
                        return Arrays{sin(c[0]) + v, c[1] + array(1)};
                      },
                      {v, array(0)})[0];
  };
  check_close(vmap(counted)(xs), counted(xs), 1e-12);
}

TEST_CASE("cond: the branch that is taken, and its derivatives") {
  const array x = noise({3}, 1), y = noise({3}, 2), t = noise({3}, 3);
  const auto pick = [&](const array& pred, const array& v) {
    return cond(
        pred,
        [&](const Arrays& a) {
          return Arrays{sin(a[0]) * y, sum(a[0])};
        },
        [&](const Arrays& a) {
          return Arrays{a[0] * a[0], f64(3)};
        },
        {v});
  };
  for (bool taken : {true, false}) {
    const UnaryFunction f = [&](const array& v) {
      return weighted(pick(array(taken), v)[0]) * pick(array(taken), v)[1];
    };
    const UnaryFunction g = [&](const array& v) {
      return taken ? weighted(sin(v) * y) * sum(v) : weighted(v * v) * f64(3);
    };
    check_close(f(x), g(x), 1e-12);
    check_close(grad(f)(x), grad(g)(x), 1e-10);
    check_close(jvp(f, x, t).second, jvp(g, x, t).second, 1e-10);
    check_close(hessian(f)(x), hessian(g)(x), 1e-10);
    check_close(gradients(f(x), {y})[0], gradients(g(x), {y})[0], 1e-10);
  }
  // A condition that depends on the argument, mapped and not.
  const UnaryFunction f = [&](const array& v) { return pick(sum(v) > f64(0), v)[0]; };
  const array batch = noise({4, 3}, 4);
  Arrays rows, slopes;
  for (int k = 0; k < 4; ++k) {
    rows.push_back(f(take(batch, array(k), 0)));
    slopes.push_back(grad([&](const array& v) { return weighted(f(v)); })(take(batch, array(k), 0)));
  }
  check_close(vmap(f)(batch), stack(rows, 0), 1e-12);
  check_close(vmap(grad([&](const array& v) { return weighted(f(v)); }))(batch), stack(slopes, 0), 1e-12);
  const UnaryFunction shared = vmap(UnaryFunction([&](const array& v) { return pick(sum(x) > f64(0), v)[0]; }));
  check_close(shared(batch), sum(x).item<double>() > 0 ? sin(batch) * y : batch * batch, 1e-12);
  const ArrayFunction compiled = compile(ArrayFunction([&](const Arrays& a) { return Arrays{f(a[0])}; }));
  check_close(compiled({x})[0], f(x), 1e-12);
  check_close(compiled({x * f64(-1)})[0], f(x * f64(-1)), 1e-12);
}

TEST_CASE("only the branch that is taken runs") {
  const auto loops = [](const array& pred) {
    return cond(
        pred, [](const Arrays& a) { return a; },
        [](const Arrays& a) {
          return while_loop([](const Arrays&) { return array(true); }, [](const Arrays& c) { return c; }, a);
        },
        {array(1.0f)})[0];
  };
  CHECK(loops(array(true)).item<float>() == 1);  // the other one never ends
}

TEST_CASE("control flow in control flow") {
  // Newton's method for a cube root in a while_loop, chosen by a cond, in a scan.
  const UnaryFunction roots = [](const array& v) {
    const auto [last, out] = scan(
        [](const Arrays& c, const Arrays& x) {
          const array root = cond(
              x[0] > f64(0),
              [](const Arrays& a) {
                return while_loop([&](const Arrays& s) { return abs(s[0] * s[0] * s[0] - a[0]) > f64(1e-13); },
                                  [&](const Arrays& s) {
                                    return Arrays{s[0] - (s[0] * s[0] * s[0] - a[0]) / (f64(3) * s[0] * s[0])};
                                  },
                                  {a[0] + f64(1)}, 60);
              },
              [](const Arrays& a) { return Arrays{f64(0) * a[0]}; }, {x[0]})[0];
          return std::pair(Arrays{c[0] + root}, Arrays{root});
        },
        {f64(0)}, {v});
    return concatenate({out[0], reshape(last[0], {1})}, 0);
  };
  const array v = array({8.0f, -1.0f, 27.0f}, float64);
  check_close(roots(v), array({2.0f, 0.0f, 3.0f, 5.0f}, float64), 1e-9);
  const Doubles slope = grad([&](const array& a) { return take(roots(a), array(3), 0); })(v).to_vector<double>();
  CHECK(slope[0] == doctest::Approx(1.0 / 12));
  CHECK(slope[1] == 0);
  CHECK(slope[2] == doctest::Approx(1.0 / 27));
  check_close(vmap(roots)(stack(Arrays{v, v * f64(2)}, 0)), stack(Arrays{roots(v), roots(v * f64(2))}, 0), 1e-9);
}

TEST_CASE("random numbers in a scan differ from step to step") {
  random::seed(2);
  const auto draw = [] {
    return scan([](const Arrays& c, const Arrays&) { return std::pair(c, Arrays{random::uniform({4})}); },
                {array(0.0f)}, {}, 5)
        .second[0];
  };
  const Floats values = draw().to_vector<float>();
  for (size_t i = 0; i < values.size(); ++i)
    for (size_t j = 0; j < i; ++j) CHECK(values[i] != values[j]);
  random::seed(2);
  CHECK(draw().to_vector<float>() == values);
}

TEST_CASE("loops over symbolic lengths") {
  const ArrayFunction f = compile(
      [](const Arrays& a) {
        return Arrays{scan([](const Arrays& c,
                              const Arrays& x) { return std::pair(Arrays{c[0] * 0.5f + x[0]}, Arrays{sum(c[0])}); },
                           {a[0]}, {array({1.0f, 2.0f, 3.0f})})
                          .first[0]};
      },
      {.dynamic = {{0, 0, "n", 9}}});
  for (int n : {2, 9, 1}) {
    array h = ones({n});
    for (float x : {1.0f, 2.0f, 3.0f}) h = h * 0.5f + x;
    CHECK(f({ones({n})})[0].to_vector<float>() == h.to_vector<float>());
  }
}

TEST_CASE("scans over a symbolic length: one program for all, with derivatives, batches and random numbers") {
  const array u = astype(noise({4, 4}, 2, 0.5), float32);
  for (bool reverse : {false, true}) {
    const UnaryFunction net = [&](const array& x) {
      const auto [last, rows] = scan(
          [&](const Arrays& c, const Arrays& row) {
            const array h = tanh(row[0] + matmul(c[0], u));
            return std::pair(Arrays{h}, Arrays{h * row[0], sum(h)});
          },
          {zeros({4})}, {x}, std::nullopt, reverse);
      return concatenate({rows[0] * expand_dims(rows[1], 1), broadcast_to(last[0], x.shape())}, 1);
    };
    const UnaryFunction loss = [&](const array& x) { return sum(square(net(x))); };
    const ArrayFunction all = [&](const Arrays& a) {
      const array &x = a[0], t = cos(x);
      const array pair = stack({x, t});
      return Arrays{net(x),
                    grad(loss)(x),
                    jvp(net, x, t).second,
                    jvp(grad(loss), x, t).second,
                    vmap(grad(loss))(pair),
                    vjp(
                        [&](const array& s) {
                          return scan([](const Arrays& c,
                                         const Arrays& e) { return std::pair(Arrays{c[0] * 1.5f + e[0]}, Arrays{}); },
                                      {s}, {sum(x, 1)})
                              .first[0];
                        },
                        array(1.0f), array(2.0f))
                        .second};
    };
    const ArrayFunction one = compile(all, {.dynamic = {{0, 0, "n", 12}}});
    one({ones({5, 4})});
    const int64_t traces = runtime::counters().traces;
    for (int n : {1, 2, 7, 12}) {
      CAPTURE(n);
      const array x = astype(noise({n, 4}, 8), float32);
      const Arrays given = one({x}), expected = all({x});
      REQUIRE(given.size() == expected.size());
      for (size_t k = 0; k < given.size(); ++k) check_close(given[k], expected[k], 3e-5);
    }
    CHECK(runtime::counters().traces == traces);
  }
  random::seed(4);
  const ArrayFunction draws = compile(
      [](const Arrays& a) {
        return scan([](const Arrays& c, const Arrays& x) { return std::pair(c, Arrays{x[0] + random::uniform({3})}); },
                    {}, {a[0]})
            .second;
      },
      {.dynamic = {{0, 0, "n", 12}}});
  const Floats few = draws({zeros({2})})[0].to_vector<float>();
  random::seed(4);
  const Floats more = draws({zeros({5})})[0].to_vector<float>();
  CHECK(std::equal(few.begin(), few.end(), more.begin()));
  for (size_t k = 3; k < more.size(); k += 3) CHECK(more[k] != more[k - 3]);
}

TEST_CASE("control flow: what is refused") {
  const array x = ones({2});
  const auto step = [](const Arrays& c, const Arrays&) { return std::pair(Arrays{sum(c[0])}, Arrays{}); };
  CHECK(contains(message([&] { scan(step, {x}, {x}); }), "[scan] carry 0 was float32 (2) and became float32 ()"));
  CHECK(contains(message([&] { scan(step, {array(0.0f)}, {}); }), "[scan] without arrays to go through"));
  CHECK(contains(message([&] {
                   scan(step, {array(0.0f)}, {x, ones({3})});
                 }),
                 "[scan] array 1, float32 (3), should have 2 elements"));
  CHECK(contains(message([&] { scan(step, {array(0.0f)}, {x}, -1); }),
                 "[scan] the number of steps must not be negative"));
  CHECK(contains(message([&] {
                   compile(ArrayFunction([&](const Arrays& a) {
                             return scan(step, {array(0.0f)}, {a[0], x}).first;
                           }),
                           {.dynamic = {{0, 0, "n", 12}}})({ones({3})});
                 }),
                 "[scan] array 1, float32 (2), should have n elements"));
  CHECK(contains(message([&] {
                   cond(
                       x, [](const Arrays& a) { return a; }, [](const Arrays& a) { return a; }, {x});
                 }),
                 "[cond] the condition must be one bool"));
  CHECK(contains(message([&] {
                   cond(
                       array(true), [](const Arrays& a) { return a; }, [](const Arrays&) { return Arrays{}; }, {x});
                 }),
                 "[cond] both functions must return"));
  CHECK(contains(
      message([&] { while_loop([](const Arrays& c) { return sum(c[0]); }, [](const Arrays& c) { return c; }, {x}); }),
      "[while_loop] the condition must be one bool"));
  CHECK(contains(message([&] {
                   while_loop([](const Arrays&) { return array(false); },
                              [](const Arrays& c) { return Arrays{astype(c[0], int32)}; }, {x});
                 }),
                 "[while_loop] carry 0 was float32 (2) and became int32 (2)"));
  CHECK(contains(message([&] {
                   scan([](const Arrays& c,
                           const Arrays&) { return std::pair(Arrays{c[0] * c[0].item<float>()}, Arrays{}); },
                        {array(1.0f)}, {x});
                 }),
                 "[eval]"));
}
