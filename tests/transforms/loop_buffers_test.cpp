// Where a loop's carry lies: copies are counted on the null target, values are held against loops on the host. The
// carries here are of each kind: stacked after or before each step, overwritten by the step, or in two buffers.
#include "support.h"

#include "compiler/program.h"
#include "target/target.h"
#include "weft/compile.h"
#include "weft/control.h"

using namespace weft;
using namespace weft::testing;

namespace {

/// Compiles on the null target while it lives.
class NullTarget {
 public:
  NullTarget() : before_(compiler::default_target()) { compiler::set_default_target(target::null()); }
  ~NullTarget() { compiler::set_default_target(before_); }

 private:
  target::Target& before_;
};

/// What the programs of a function take, bodies of loops once.
struct Counted {
  int loops = 0, copies = 0, launches = 0;  // of the outermost program
};

Counted counted(const ArrayFunction& f, const Arrays& x) {
  for (const array& a : x) a.eval();
  const NullTarget null;
  const compiler::BuildRecord record;
  compile(f)(x);
  Counted c;
  const compiler::Program& program = *record.programs().back();
  INFO(program.print("plan"));
  for (const compiler::StepInfo& s : program.steps()) c.loops += std::string(s.kind) == "nested";
  c.copies = program.stats().copies;
  c.launches = program.stats().count();
  return c;
}

array weight() { return noise({4, 4}, 3, 0.5); }

/// h' = h w: a step that reads all of the carry for each of its elements.
ScanFunction powers(bool after, bool before) {
  return [=](const Arrays& c, const Arrays& x) {
    const array h = matmul(c[0], weight()) + x[0];
    Arrays given;
    if (after) given.push_back(h);
    if (before) given.push_back(c[0]);
    return std::pair(Arrays{h}, given);
  };
}

/// Cumulative sums of cumulative sums, each element by itself.
std::pair<Arrays, Arrays> sums(const Arrays& c, const Arrays& x) {
  const array s = c[0] + x[0];
  return {{s, c[1] + s}, {s * s}};
}

Arrays scanned(const ScanFunction& f, const Arrays& carry, const Arrays& xs, bool reverse) {
  auto [last, all] = scan(f, carry, xs, std::nullopt, reverse);
  last.insert(last.end(), all.begin(), all.end());
  return last;
}

Arrays unrolled(const ScanFunction& f, Arrays carry, const array& xs, bool reverse) {
  const int length = static_cast<int>(xs.shape(0).bound());
  std::vector<Arrays> rows(static_cast<size_t>(length));
  for (int n = 0; n < length; ++n) {
    const int at = reverse ? length - 1 - n : n;
    auto [next, given] = f(carry, {take(xs, array(at), 0)});
    carry = next;
    rows[static_cast<size_t>(at)] = given;
  }
  for (size_t k = 0; k < rows[0].size(); ++k) {
    Arrays column;
    for (const Arrays& r : rows) column.push_back(r[k]);
    carry.push_back(stack(column, 0));
  }
  return carry;
}

}  // namespace

TEST_CASE("no step of a loop copies its carry") {
  const array h = noise({2, 4}, 1), x = noise({6, 2, 4}, 2);
  for (const auto& [after, before] : {std::pair(false, false), {true, false}, {false, true}}) {
    CAPTURE(after);
    CAPTURE(before);
    const ScanFunction f = powers(after, before);
    CHECK(counted([&](const Arrays& a) { return scanned(f, {a[0]}, {a[1]}, false); }, {h, x}).copies == 0);
  }
  CHECK(counted([&](const Arrays& a) { return scanned(sums, {a[0], a[0]}, {a[1]}, true); }, {h, x}).copies == 0);
  const auto loop = [](const Arrays& a) {
    return while_loop([](const Arrays& c) { return c[1] < array(5); },
                      [](const Arrays& c) {
                        return Arrays{matmul(c[0], weight()), c[1] + array(1)};
                      },
                      {a[0], array(0)});
  };
  CHECK(counted(loop, {h}).copies == 0);
}

TEST_CASE("the carry of a scan is right wherever it lies, after any number of steps") {
  for (const int length : {1, 2, 3, 4}) {
    for (const bool reverse : {false, true}) {
      CAPTURE(length);
      CAPTURE(reverse);
      const array h = noise({2, 4}, 1), x = noise({length, 2, 4}, 2);
      for (const auto& [after, before] : {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
        CAPTURE(after);
        CAPTURE(before);
        const ScanFunction f = powers(after, before);
        const Arrays given = scanned(f, {h}, {x}, reverse), expected = unrolled(f, {h}, x, reverse);
        REQUIRE(given.size() == expected.size());
        for (size_t k = 0; k < given.size(); ++k) check_close(given[k], expected[k], 1e-12);
      }
      const Arrays given = scanned(sums, {h, h}, {x}, reverse), expected = unrolled(sums, {h, h}, x, reverse);
      for (size_t k = 0; k < given.size(); ++k) check_close(given[k], expected[k], 1e-12);
    }
  }
}

TEST_CASE("a carry that takes over captured state alternates, whatever the number of steps") {
  for (const int length : {0, 1, 2, 3}) {
    CAPTURE(length);
    const array start = noise({2, 4}, 1);
    array state = start * array(1.0, float64);
    const ArrayFunction f = compile(
        [&](const Arrays&) {
          state =
              scan([](const Arrays& c, const Arrays&) { return std::pair(Arrays{matmul(c[0], weight())}, Arrays{}); },
                   {state}, {}, length)
                  .first[0];
          return Arrays{};
        },
        {.state = {&state}});
    array expected = start;
    for (int run = 0; run < 2; ++run) {
      f({});
      for (int k = 0; k < length; ++k) expected = matmul(expected, weight());
    }
    check_close(state, expected, 1e-12);
  }
}

TEST_CASE("a while loop's carry alternates, whatever the number of steps") {
  for (const int steps : {0, 1, 2, 3}) {
    CAPTURE(steps);
    const array h = noise({2, 4}, 1);
    const Arrays given = while_loop([&](const Arrays& c) { return c[1] < array(steps); },
                                    [](const Arrays& c) {
                                      return Arrays{matmul(c[0], weight()), c[1] + array(1)};
                                    },
                                    {h, array(0)});
    array expected = h;
    for (int k = 0; k < steps; ++k) expected = matmul(expected, weight());
    check_close(given[0], expected, 1e-12);
  }
}

TEST_CASE("scans behind each other run once each way") {
  const auto two = [](const Arrays& a) {
    const ScanFunction cell = [&](const Arrays& c, const Arrays& x) {
      const array h = tanh(x[0] + matmul(c[0], a[1]));
      return std::pair(Arrays{h}, Arrays{h});
    };
    const array first = scan(cell, {zeros({2, 4}, float64)}, {a[0]}).second[0];
    return weighted(scan(cell, {zeros({2, 4}, float64)}, {sin(first)}).second[0]);
  };
  const ArrayFunction gradient = [&](const Arrays& a) { return grad(ScalarFunction(two), {0, 1})(a); };
  CHECK(counted(gradient, {noise({6, 2, 4}, 1), weight()}).loops == 4);
}
