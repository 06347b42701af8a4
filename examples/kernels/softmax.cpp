// Softmax along rows with its derivative, a kernel each. The ladder of softmax has other ways to it.
#include "check.h"
#include "weft/kernel_function.h"

using namespace weft;

int main() {
  const int64_t rows = 65, columns = 1003;
  const array x = check::normal({rows, columns}, 1), wanted = softmax(x, -1);
  const auto rows_of = [](auto a, auto) { return k::Grid{a.dim(0)}; };

  const auto whole = k::kernel("softmax", [](k::In<float, 2> a, k::Out<float, 2> b) {
                       const auto row = k::program_id(0);
                       const auto v = a(row, k::all).load();
                       const auto e = k::exp(v - k::max(v, 0));
                       b(row, k::all) = e / k::sum(e, 0);
                     }).grid(rows_of);
  check::near("a row as one tile", whole(x), wanted, 1e-6);

  // Its derivative follows from the body. Here the same by a rule, in a kernel of its own: dx = y (g - sum of g y).
  const array weights = check::normal({rows, columns}, 2);
  const auto loss = [&](const auto& f) {
    return [&](const std::vector<array>& in) { return std::vector{sum(f(in)[0] * weights)}; };
  };
  const auto slope = [&](const auto& f) { return vjp(loss(f), {x}, {array(1.0f)}).second[0]; };
  const array expected = slope([](const std::vector<array>& in) { return std::vector{softmax(in[0], -1)}; });
  check::near("its derivative, from its body", slope(whole), expected, 1e-6);

  const auto backward = k::kernel("softmax_backward", [](k::In<float, 2> y, k::In<float, 2> g, k::Out<float, 2> dx) {
                          const auto row = k::program_id(0);
                          const auto out = y(row, k::all).load(), cotangent = g(row, k::all).load();
                          dx(row, k::all) = out * (cotangent - k::sum(out * cotangent, 0));
                        }).grid([](auto y, auto, auto) { return k::Grid{y.dim(0)}; });
  const auto f = custom_vjp([&](const std::vector<array>& in) { return std::vector{whole(in[0])}; },
                            [&](const std::vector<array>&, const std::vector<array>& g, const std::vector<array>& out) {
                              return std::vector<array>{backward(out[0], g[0])};
                            });
  check::near("its derivative, by a rule", slope(f), expected, 1e-6);
}
