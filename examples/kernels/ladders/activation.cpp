// A polynomial activation, y = x (a + x (b + x c)) within [-2, 2] and its tangents outside, and its derivative: what a
// chain of array operators would do in many kernels, or one rule of the user's in one.
#include "examples/kernels/ladders/ladder.h"

namespace ladders {

namespace {

using Vector = k::In<float, 1>;
using Result = k::Out<float, 1>;

constexpr double a = 0.5, b = 0.25, c = -0.03;
constexpr int64_t block = 4096;

/// Returns the value and the slope of elements.
template <class V>
auto value_and_slope(const V& x) {
  const auto near = k::minimum(k::maximum(x, -2.0), 2.0);
  const auto slope = a + near * (2 * b + near * (3 * c));
  return std::pair{near * (a + near * (b + near * c)) + slope * (x - near), slope};
}

void forward(Vector x, Result y) {
  const auto at = k::ds(k::program_id(0) * block, block);
  y(at) = value_and_slope(x(at).load()).first;
}
/// dx = slope · g: the slope is made again from x, not stored.
void backward(Vector x, Vector g, Result dx) {
  const auto at = k::ds(k::program_id(0) * block, block);
  dx(at) = value_and_slope(x(at).load()).second * g(at);
}
/// Both at once, where nothing stands between them.
void together(Vector x, Vector g, Result y, Result dx) {
  const auto at = k::ds(k::program_id(0) * block, block);
  const auto [value, slope] = value_and_slope(x(at).load());
  y(at) = value;
  dx(at) = slope * g(at);
}

array of_arrays(const array& x) {
  const auto number = [](double v) { return array(static_cast<float>(v)); };
  const array near = weft::clip(weft::stop_gradient(x), number(-2), number(2));
  const array slope = number(a) + near * (number(2 * b) + near * number(3 * c));
  return near * (number(a) + near * (number(b) + near * number(c))) + slope * (x - near);
}

}  // namespace

Ladder activation(Scale scale) {
  const int64_t n = at(scale, 10'007, 1 << 24, 1 << 28);
  Ladder out{.name = "activation", .inputs = {normal({n}, 1) * array(2.0f), normal({n}, 2)}};
  out.library = [](const Arrays& in) {
    const auto [y, dx] = weft::vjp([](const Arrays& x) { return Arrays{of_arrays(x[0])}; }, {in[0]}, {in[1]});
    return Arrays{y[0], dx[0]};
  };
  out.bytes = 16.0 * static_cast<double>(n);
  out.tolerance = 1e-5;
  const auto tiles = [](auto x, auto...) { return k::Grid{k::cdiv(x.dim(0), block)}; };
  const auto value = k::kernel("activation", forward).grid(tiles);
  const auto slope = k::kernel("activation_backward", backward).grid(tiles);
  const auto rule = weft::custom_vjp(
      [value](const Arrays& in) { return Arrays{value(in[0])}; },
      [slope](const Arrays& in, const Arrays& g, const Arrays&) { return Arrays{slope(in[0], g[0])}; });
  out.rungs = {
      loop({{n}, {n}},
           [n](auto in, auto to) {
             for (int64_t i = 0; i < n; ++i) {
               const float x = in[0][i], near = std::min(std::max(x, -2.0f), 2.0f);
               const auto p = static_cast<float>(a), q = static_cast<float>(b), r = static_cast<float>(c);
               const float slope_here = p + near * (2 * q + near * 3 * r);
               to[0][i] = near * (p + near * (q + near * r)) + slope_here * (x - near);
               to[1][i] = slope_here * in[1][i];
             }
           }),
      rung("kernels as a rule of vjp",
           [rule](const Arrays& in) {
             const auto [y, dx] = weft::vjp(rule, {in[0]}, {in[1]});
             return Arrays{y[0], dx[0]};
           }),
      rung("both in one kernel", k::kernel("activation_together", together).grid(tiles),
           "on a CPU four streams of one loop; on a GPU the fewest bytes"),
  };
  return out;
}

}  // namespace ladders
