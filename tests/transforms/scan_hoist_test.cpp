// Work that leaves the step of a scan: products are counted on the null target, values and gradients of random steps
// are held against loops on the host.
#include <random>

#include "compiler/program.h"
#include "support.h"
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

int products(const compiler::Program& program) {
  int count = 0;
  for (const compiler::StepInfo& s : program.steps())
    count += (s.name + " " + s.what).find("dot ") != std::string::npos;
  return count;
}

/// The matrix products of the outermost program, and of all bodies of its loops together.
struct Products {
  int outside = 0, inside = 0;
};

Products counted(const ArrayFunction& f, const Arrays& x) {
  for (const array& a : x) a.eval();
  const NullTarget null;
  const compiler::BuildRecord record;
  compile(f)(x);
  Products out;
  for (const auto& program : record.programs()) out.inside += products(*program);
  out.outside = products(*record.programs().back());
  out.inside -= out.outside;
  return out;
}

/// An LSTM's step over (h, c): gates of x w + h u + b.
ScanFunction lstm(const array& w, const array& u, const array& b, int width) {
  return [=](const Arrays& carry, const Arrays& x) {
    const array gates = matmul(x[0], w) + matmul(carry[0], u) + b;
    const auto part = [&](int k) { return slice(gates, {0, k * width}, {gates.shape(0), (k + 1) * width}); };
    const array c = sigmoid(part(0)) * carry[1] + sigmoid(part(1)) * tanh(part(2));
    const array h = sigmoid(part(3)) * tanh(c);
    return std::pair(Arrays{h, c}, Arrays{h});
  };
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

/// A random step over a carry of two matrices, with products of the carry, of x, and of what is captured.
ScanFunction random_step(uint64_t seed, const Arrays& captured) {
  return [=](const Arrays& carry, const Arrays& x) {
    std::mt19937_64 engine(seed);
    const auto below = [&](size_t n) { return static_cast<size_t>(engine() % n); };
    Arrays values{carry[0], carry[1], x[0], captured[0], captured[1]};
    for (int k = 0; k < 7; ++k) {
      const array a = values[below(values.size())], b = values[below(values.size())];
      switch (below(6)) {
        case 0: values.push_back(matmul(a, b) * array(0.5, float64)); break;
        case 1: values.push_back(a + b); break;
        case 2: values.push_back(tanh(a) * b); break;
        case 3: values.push_back(a - sum(b, std::vector<int>{1}, true) * array(0.25, float64)); break;
        case 4: values.push_back(transpose(a)); break;
        default: values.push_back(sin(a)); break;
      }
    }
    const auto some = [&] { return values[below(values.size())]; };
    // The second part of the carry is only added to: its sum may leave the scan.
    return std::pair(Arrays{tanh(values.back() + some()), carry[1] + tanh(some())}, Arrays{some(), some() * some()});
  };
}

}  // namespace

TEST_CASE("an LSTM multiplies its inputs in front of its scan, and its weights' gradients behind it") {
  const int time = 6, batch = 3, width = 4;
  const array x = noise({time, batch, 5}, 1), w = noise({5, 4 * width}, 2), u = noise({width, 4 * width}, 3),
              b = noise({4 * width}, 4);
  const auto run = [&](const Arrays& a) {
    const array zero = zeros({batch, width}, float64);
    return scan(lstm(a[1], a[2], a[3], width), {zero, zero}, {a[0]}).second[0];
  };
  const Products forward = counted([&](const Arrays& a) { return Arrays{run(a)}; }, {x, w, u, b});
  CHECK(forward.outside == 1);  // x w
  CHECK(forward.inside == 1);   // h u
  const auto loss = [&](const Arrays& a) { return weighted(run(a)); };
  const Products both = counted(
      [&](const Arrays& a) {
        return grad(ScalarFunction(loss), {0, 1, 2, 3})(a);
      },
      {x, w, u, b});
  CHECK(both.outside == 4);  // x w, and the gradients of x, w and u
  CHECK(both.inside == 2);   // h u, and the gradient of h
  const auto on_host = [&](const Arrays& a) {
    const array zero = zeros({batch, width}, float64);
    return weighted(unrolled(lstm(a[1], a[2], a[3], width), {zero, zero}, a[0], false)[2]);
  };
  const Arrays slopes = grad(ScalarFunction(loss), {0, 1, 2, 3})({x, w, u, b}),
               wanted = grad(ScalarFunction(on_host), {0, 1, 2, 3})({x, w, u, b});
  for (size_t k = 0; k < slopes.size(); ++k) check_close(slopes[k], wanted[k], 1e-11);
}

TEST_CASE("random steps of scans give the values and gradients of a loop on the host") {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    const int length = 1 + static_cast<int>(seed % 4);
    const bool reverse = seed % 3 == 0;
    const auto s = static_cast<unsigned>(10 * seed);
    const Arrays given{noise({3, 3}, s, 0.5), noise({3, 3}, s + 1, 0.5), noise({length, 3, 3}, s + 2, 0.5),
                       noise({3, 3}, s + 3, 0.5), noise({3, 3}, s + 4, 0.5)};
    const auto all = [&](const Arrays& a, bool host) {
      const ScanFunction f = random_step(seed, {a[3], a[4]});
      if (host) return unrolled(f, {a[0], a[1]}, a[2], reverse);
      auto [last, stacked] = scan(f, {a[0], a[1]}, {a[2]}, std::nullopt, reverse);
      last.insert(last.end(), stacked.begin(), stacked.end());
      return last;
    };
    const Arrays got = compile([&](const Arrays&a) { return all(a, false); })(given), expected = all(given, true);
    REQUIRE(got.size() == expected.size());
    for (size_t k = 0; k < got.size(); ++k) check_close(got[k], expected[k], 1e-11);
    const auto gradients = [&](bool host) {
      const auto loss = [&, host](const Arrays& a) {
        array total = array(0.0, float64);
        for (const array& v : all(a, host)) total = total + weighted(v);
        return total;
      };
      return ArrayFunction([=](const Arrays& a) { return grad(ScalarFunction(loss), {0, 1, 2, 3, 4})(a); });
    };
    const Arrays slopes = compile(gradients(false))(given), wanted = gradients(true)(given);
    for (size_t k = 0; k < slopes.size(); ++k) check_close(slopes[k], wanted[k], 1e-10);
  }
}
