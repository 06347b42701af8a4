// Convolutions against loops in double precision, their derivatives against central differences, and the library's
// answers against the generated ones.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>

#include "device.h"
#include "runtime/trace.h"
#include "target/target.h"
#include "thinning.h"
#include "weft/compile.h"
#include "weft/ops.h"
#include "weft/transforms.h"

using namespace weft;

namespace {

array waves(const Shape& shape, double phase, Dtype dtype = float32) {
  std::vector<float> values;
  for (int64_t i = 0; i < num_elements(shape); ++i)
    values.push_back(static_cast<float>(std::sin(0.7 * static_cast<double>(i) + phase)));
  return astype(array::from_data(values.data(), shape, float32), dtype);
}

struct Case {
  Shape x, w;
  std::vector<int> stride, low, high, dilation, input_dilation;
  int groups = 1;
  bool flip = false;
};

array run(const Case& c, const array& x, const array& w) {
  return conv_general(x, w, c.stride, c.low, c.high, c.dilation, c.input_dilation, c.groups, c.flip);
}

/// One number for each axis.
std::vector<int64_t> each(const std::vector<int>& v, size_t space, int64_t otherwise) {
  std::vector<int64_t> out(space, v.empty() ? otherwise : v[0]);
  if (v.size() > 1) out.assign(v.begin(), v.end());
  return out;
}

/// The definition, for up to three axes of space (missing ones have extent 1).
std::vector<double> by_loops(const Case& c, const std::vector<double>& x, const std::vector<double>& w, Shape& shape) {
  const size_t space = c.x.size() - 2;
  int64_t n[3] = {1, 1, 1}, k[3] = {1, 1, 1}, o[3] = {1, 1, 1}, s[3] = {1, 1, 1}, lo[3] = {0, 0, 0}, d[3] = {1, 1, 1},
          id[3] = {1, 1, 1};
  const auto stride = each(c.stride, space, 1), low = each(c.low, space, 0), high = each(c.high, space, 0),
             dil = each(c.dilation, space, 1), idil = each(c.input_dilation, space, 1);
  shape = {c.x[0]};
  for (size_t a = 0; a < space; ++a) {
    n[a] = c.x[a + 1].bound(), k[a] = c.w[a + 1].bound(), s[a] = stride[a], lo[a] = low[a], d[a] = dil[a],
    id[a] = idil[a];
    o[a] = ((n[a] - 1) * id[a] + 1 + low[a] + high[a] - (k[a] - 1) * d[a] - 1) / s[a] + 1;
    shape.push_back(o[a]);
  }
  const int64_t batch = c.x[0].bound(), in = c.x.back().bound(), out = c.w[0].bound(), each_in = in / c.groups,
                each_out = out / c.groups;
  shape.push_back(out);
  std::vector<double> y;
  const auto position = [&](int a, int64_t oa, int64_t ka) {  // the element of x, or -1
    const int64_t p = oa * s[a] + ka * d[a] - lo[a];
    return p >= 0 && p % id[a] == 0 && p / id[a] < n[a] ? p / id[a] : int64_t{-1};
  };
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < o[0] * o[1] * o[2]; ++i)
      for (int64_t q = 0; q < out; ++q) {
        double total = 0;
        for (int64_t j = 0; j < k[0] * k[1] * k[2]; ++j) {
          const int64_t oi[3] = {i / (o[1] * o[2]), i / o[2] % o[1], i % o[2]};
          const int64_t ki[3] = {j / (k[1] * k[2]), j / k[2] % k[1], j % k[2]};
          int64_t at = b, flipped = 0;
          bool inside = true;
          for (int a = 0; a < 3; ++a) {
            const int64_t p = position(a, oi[a], ki[a]);
            inside = inside && p >= 0;
            at = at * n[a] + p;
            flipped = flipped * k[a] + (c.flip ? k[a] - 1 - ki[a] : ki[a]);
          }
          if (!inside) continue;
          for (int64_t e = 0; e < each_in; ++e)
            total += x[static_cast<size_t>(at * in + q / each_out * each_in + e)] *
                     w[static_cast<size_t>((q * k[0] * k[1] * k[2] + flipped) * each_in + e)];
        }
        y.push_back(total);
      }
  return y;
}

void check_near(const std::vector<double>& got, const std::vector<double>& expected, double tolerance) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    INFO("element ", i);
    REQUIRE(std::abs(got[i] - expected[i]) <= tolerance * (1 + std::abs(expected[i])));
  }
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {{2, 7, 3}, {4, 3, 3}, {}, {}, {}, {}, {}},
      {{2, 9, 4}, {6, 3, 2}, {2}, {1}, {2}, {2}, {}, 2},
      {{1, 5, 2}, {3, 2, 2}, {1}, {2}, {1}, {1}, {3}},
      {{2, 6, 5, 3}, {4, 3, 2, 3}, {1, 2}, {1, 0}, {1, 1}, {}, {}},
      {{1, 7, 6, 4}, {4, 3, 3, 1}, {2, 1}, {1, 1}, {1, 1}, {1, 2}, {}, 4, true},
      {{2, 4, 3, 2}, {3, 3, 3, 2}, {1}, {2, 1}, {2, 2}, {}, {2, 2}, 1, true},
      {{1, 6, 6, 2}, {2, 2, 2, 2}, {3}, {-1, 0}, {0, -2}, {}, {}},
      {{1, 4, 5, 3, 2}, {2, 2, 3, 2, 2}, {1, 2, 1}, {1, 1, 0}, {0, 1, 1}, {}, {}},
      // large enough for a library
      {{3, 12, 12, 16}, {24, 3, 3, 16}, {1}, {1}, {1}, {}, {}},
      {{5, 13, 12, 16}, {32, 3, 3, 16}, {2}, {1}, {1}, {}, {}},
      {{4, 40, 16}, {32, 5, 16}, {1}, {2}, {2}, {}, {}},
      {{2, 8, 7, 6, 8}, {16, 3, 3, 3, 8}, {1}, {1}, {1}, {}, {}},
      {{3, 10, 10, 32}, {32, 3, 3, 8}, {1}, {1}, {1}, {}, {}, 4},
      {{6, 28, 28, 1}, {32, 3, 3, 1}, {1}, {1}, {1}, {}, {}},
      // transposed, and with a stride that is larger than the kernel
      {{3, 8, 8, 16}, {16, 4, 4, 16}, {1}, {2}, {2}, {}, {2}},
      {{2, 7, 6, 16}, {24, 3, 3, 8}, {1}, {2}, {3}, {2}, {2}, 2, true},
      {{3, 20, 20, 16}, {32, 1, 1, 16}, {2}, {}, {}, {}, {}},
      {{4, 24, 16}, {32, 8, 16}, {8}, {}, {}, {}, {}},
  };
  return all;
}

/// Generated kernels only, for as long as it lives.
struct WithoutLibraries {
  bool before = target::libraries_enabled();
  WithoutLibraries() { target::set_libraries_enabled(false); }
  ~WithoutLibraries() { target::set_libraries_enabled(before); }
};

}  // namespace

TEST_CASE("conv_general is its definition, through libraries and without") {
  for (const Case& c : cases()) {
    CAPTURE(to_string(c.x));
    CAPTURE(to_string(c.w));
    const array x = waves(c.x, 0.3), w = waves(c.w, 1.1);
    Shape shape;
    const auto expected = by_loops(c, x.to_vector<double>(), w.to_vector<double>(), shape);
    const array y = run(c, x, w);
    CHECK(y.shape() == shape);
    check_near(y.to_vector<double>(), expected, 1e-5);
    const WithoutLibraries off;
    check_near(run(c, x, w).to_vector<double>(), expected, 1e-5);
  }
}

namespace {

/// Holds both derivatives of a convolution in float64 against central differences, at every `every`-th element.
void check_derivatives(const Case& c, size_t every) {
  const array x = waves(c.x, 0.3, float64), w = waves(c.w, 1.1, float64);
  const auto scalar = [&](const std::vector<array>& in) {
    const array y = run(c, in[0], in[1]);
    return sum(y * waves(y.shape(), 0.4, float64));
  };
  const auto slopes = grad(scalar, {0, 1})({x, w});
  for (size_t which = 0; which < 2; ++which) {
    const auto slope = slopes[which].to_vector<double>();
    std::vector<array> in{x, w};
    std::vector<double> values = in[which].to_vector<double>();
    const Shape shape = in[which].shape();
    for (size_t i = 0; i < values.size(); i += every) {
      const double h = 1e-4, kept = values[i];
      values[i] = kept + h;
      in[which] = array::from_data(values.data(), shape, float64);
      const double up = scalar(in).item<double>();
      values[i] = kept - h;
      in[which] = array::from_data(values.data(), shape, float64);
      const double down = scalar(in).item<double>();
      values[i] = kept;
      INFO("element ", i, " of ", which);
      CHECK(std::abs((up - down) / (2 * h) - slope[i]) < 1e-7 * (1 + std::abs(slope[i])));
    }
  }
}

std::string to_text(const Case& c) {
  std::string text = to_string(c.x) + " " + to_string(c.w) + " groups " + std::to_string(c.groups);
  for (const auto* list : {&c.stride, &c.low, &c.high, &c.dilation, &c.input_dilation}) {
    text += ";";
    for (const int v : *list) text += " " + std::to_string(v);
  }
  return text;
}

/// Draws a convolution with any strides, dilations, paddings, which may cut, and groups, whose kernel fits.
Case random_case(std::mt19937_64& engine) {
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(engine() % static_cast<uint64_t>(high - low + 1));
  };
  Case c;
  const int space = between(1, 3), in = between(1, 3), out = between(1, 3);
  c.groups = between(1, 3);
  c.x = {between(1, 2)}, c.w = {out * c.groups};
  c.flip = between(0, 1) == 0;
  for (int k = 0; k < space; ++k) {
    const int extent = between(1, space == 3 ? 5 : 9), kernel = between(1, 4), stride = between(1, 3),
              dilation = between(1, 3), input_dilation = between(1, 4), span = (kernel - 1) * dilation + 1;
    const int whole = (extent - 1) * input_dilation + 1;
    const int low = between(-std::min(2, whole - 1), 3);
    const int least = span - whole - low;  // high padding with which the kernel fits
    const int high = std::max(least, between(-std::min(2, whole - 1 + std::min(low, 0)), 3));
    c.x.push_back(extent), c.w.push_back(kernel);
    c.stride.push_back(stride), c.dilation.push_back(dilation), c.input_dilation.push_back(input_dilation);
    c.low.push_back(low), c.high.push_back(high);
  }
  c.x.push_back(in * c.groups), c.w.push_back(in);
  return c;
}

}  // namespace

TEST_CASE("convolutions: derivatives against central differences in float64") {
  for (size_t k = 0; k < 8; ++k) {
    CAPTURE(k);
    check_derivatives(cases()[k], 3);
  }
}

TEST_CASE("random convolutions are their definition, and so are their derivatives") {
  std::mt19937_64 engine(23);
  for (int64_t round = 0; round < weft::test::some_of(80); ++round) {
    const Case c = random_case(engine);
    CAPTURE(to_text(c));
    const array x = waves(c.x, 0.3), w = waves(c.w, 1.1);
    Shape shape;
    const auto expected = by_loops(c, x.to_vector<double>(), w.to_vector<double>(), shape);
    const array y = run(c, x, w);
    CHECK(y.shape() == shape);
    check_near(y.to_vector<double>(), expected, 1e-5);
    if (round % 4 == 0) check_derivatives(c, 5);
  }
}

TEST_CASE("convolutions: derivatives by libraries are those by generated kernels, of second order too") {
  for (size_t k = 8; k < cases().size(); ++k) {
    const Case& c = cases()[k];
    CAPTURE(k);
    const array x = waves(c.x, 0.3), w = waves(c.w, 1.1);
    const auto scalar = [&](const std::vector<array>& in) {
      const array y = run(c, in[0], in[1]);
      return sum(y * y * waves(y.shape(), 0.4, y.dtype()));
    };
    const auto twice = [&](const std::vector<array>& in) {
      const auto first = grad(scalar, {0, 1})(in);
      return sum(first[0] * waves(c.x, 0.9, in[0].dtype())) + sum(first[1] * waves(c.w, 0.2, in[0].dtype()));
    };
    for (const auto& f : {ScalarFunction(scalar), ScalarFunction(twice)}) {
      const auto fast = grad(f, {0, 1})({x, w});
      const auto exact = grad(f, {0, 1})({astype(x, float64), astype(w, float64)});
      for (size_t i = 0; i < 2; ++i) {
        const auto got = fast[i].to_vector<double>(), expected = exact[i].to_vector<double>();
        double scale = 0;
        for (const double v : expected) scale = std::max(scale, std::abs(v));
        const double bound = test::on_gpu() ? 1e-4 : 2e-5;  // the fastest algorithm there may be Winograd's
        for (size_t j = 0; j < got.size(); ++j) REQUIRE(std::abs(got[j] - expected[j]) < bound * scale);
      }
    }
  }
}

TEST_CASE("a convolution and its gradients are library calls where there is a library") {
  if (!target::cpu().call({"convolution",
                           {{float32, {3, 12, 12, 16}}, {float32, {24, 3, 3, 16}}},
                           {{float32, {3, 12, 12, 24}}},
                           {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}})) {
    MESSAGE("built without a library for convolutions");
    return;
  }
  const Case& c = cases()[8];
  const array x = waves(c.x, 0.3), w = waves(c.w, 1.1);
  const auto slopes = compile(
      [&](const std::vector<array>& in) {
        return grad([&](const std::vector<array>& v) { return sum(square(run(c, v[0], v[1]))); }, {0, 1})(in);
      },
      {});
  eval(slopes({x, w}));
  const int64_t before = runtime::counters().library_calls;
  eval(slopes({x, w}));
  CHECK(runtime::counters().library_calls - before == 3);
}

TEST_CASE("conv1d, conv2d, conv3d and their transposes") {
  const array x1 = waves({2, 9, 3}, 0.1), w1 = waves({4, 3, 3}, 0.2);
  const auto same = [](const array& a, const array& b) { return array_equal(a, b, false).item<bool>(); };
  CHECK(same(conv1d(x1, w1, 2, 1, 2), conv_general(x1, w1, {2}, {1}, {2})));
  const array x2 = waves({2, 6, 7, 4}, 0.1), w2 = waves({4, 3, 2, 2}, 0.2);
  CHECK(same(conv2d(x2, w2, {2, 1}, {1, 0}, {1, 2}, 2), conv_general(x2, w2, {2, 1}, {1, 0}, {1, 2}, {}, 2)));
  const array x3 = waves({1, 4, 5, 3, 2}, 0.1), w3 = waves({3, 2, 2, 2, 2}, 0.2);
  CHECK(same(conv3d(x3, w3, {1, 2, 1}, {1, 0, 1}), conv_general(x3, w3, {1, 2, 1}, {1, 0, 1})));

  // The transpose is the input's gradient: Σ g · conv(x, w) has it as its slope, for the weight with its channels
  // exchanged.
  const array g = waves({2, 3, 4, 4}, 0.8), w = waves({4, 3, 2, 5}, 0.3);
  const array slope = grad([&](const array& v) {
    return sum(conv2d(v, w, {2, 3}, {1, 1}, {1, 2}) * g);
  })(zeros({2, 5, 11, 5}));
  const array transposed = conv_transpose2d(g, transpose(w, {3, 1, 2, 0}), {2, 3}, {1, 1}, {1, 2}, {0, 1});
  REQUIRE(transposed.shape() == Shape{2, 5, 11, 5});
  CHECK(allclose(slope, transposed, 1e-5, 1e-5).item<bool>());
  CHECK(conv_transpose1d(x1, w1, 2, 1, 1, 1).shape() == Shape{2, 18, 4});
  CHECK(conv_transpose3d(x3, w3, {2, 1, 1}).shape() == Shape{1, 8, 6, 4, 3});
}

TEST_CASE("convolutions: dtypes, and mistakes by name") {
  const array x = waves({2, 6, 6, 4}, 0.1), w = waves({8, 3, 3, 4}, 0.2);
  CHECK(conv2d(astype(x, bfloat16), astype(w, bfloat16)).dtype() == bfloat16);
  CHECK(conv2d(astype(x, bfloat16), w).dtype() == float32);
  CHECK(
      allclose(astype(conv2d(astype(x, float16), astype(w, float16)), float32), conv2d(x, w), 2e-2, 2e-2).item<bool>());
  CHECK_THROWS_AS(conv2d(astype(x, int32), astype(w, int32)), std::invalid_argument);
  CHECK_THROWS_AS(conv2d(x, waves({8, 3, 3, 3}, 0)), std::invalid_argument);
  CHECK_THROWS_AS(conv2d(x, waves({8, 7, 3, 4}, 0)), std::invalid_argument);
  CHECK_THROWS_AS(conv2d(x, w, {0, 1}), std::invalid_argument);
  CHECK_THROWS_AS(conv2d(x, w, {1, 1}, {0, 0}, {1, 1}, 3), std::invalid_argument);
  CHECK_THROWS_AS(conv1d(x, w), std::invalid_argument);
  CHECK_THROWS_AS(conv_general(x, w, {1, 2, 3}), std::invalid_argument);
}
