// Kernels differentiated by their bodies: under grad, vmap, compile and checkpoint, to second order.
#include "runtime/trace.h"
#include "support.h"
#include "weft/compile.h"
#include "weft/kernel_function.h"

using namespace weft;
using namespace weft::testing;

namespace {

template <class T>
auto softmax_rows() {
  return k::kernel("softmax",
                   [](k::In<T, 2> x, k::Out<T, 2> y) {
                     const auto row = k::program_id(0);
                     const auto v = k::cast<float>(x(row, k::all).load());
                     const auto e = k::exp(v - k::max(v, 0));
                     y(row, k::all) = k::cast<T>(e / k::sum(e, 0));
                   })
      .grid([](auto x, auto) { return k::Grid{x.dim(0)}; });
}

/// Rows of a layer norm in float64: the weights are read by every program.
auto norm_rows() {
  return k::kernel("norm",
                   [](k::In<double, 2> x, k::In<double, 1> w, k::Out<double, 2> y) {
                     const auto row = k::program_id(0);
                     const auto n = static_cast<double>(x.dim(1));
                     const auto v = x(row, k::all).load();
                     const auto d = v - k::sum(v, 0) / n;
                     y(row, k::all) = d * k::rsqrt(k::sum(d * d, 0) / n + 1e-5) * w(k::all).load();
                   })
      .grid([](auto x, auto, auto) { return k::Grid{x.dim(0)}; });
}

array norm_of(const array& x, const array& w) {
  const array d = x - mean(x, -1, true);
  return d * rsqrt(mean(d * d, -1, true) + array(1e-5, float64)) * w;
}

/// Tiles of a product in bfloat16 that sums in float32.
auto product() {
  return k::kernel("product",
                   [](k::In<k::bf16, 2> a, k::In<k::bf16, 2> b, k::Out<float, 2> c) {
                     const auto rows = k::ds(k::program_id(0) * 16, 16), columns = k::ds(k::program_id(1) * 16, 16);
                     k::Mut sum = k::zeros<float>({16, 16});
                     k::loop(0, a.dim(1), 16, [&](k::Index i) {
                       const auto depth = k::ds(i, 16);
                       sum = k::dot(a(rows, depth), b(depth, columns), sum.get());
                     });
                     c(rows, columns) = sum.get();
                   })
      .grid([](auto a, auto b, auto) {
        return k::Grid{k::cdiv(a.dim(0), 16), k::cdiv(b.dim(1), 16)};
      })
      .outputs([](const array& a, const array& b) {
        return Shape{a.shape(0), b.shape(1)};
      });
}

array normal(const Shape& shape, uint64_t seed) { return random::normal(shape, float32, 0, 1, random::key(seed)); }

}  // namespace

TEST_CASE("gradients of a kernel follow from its body") {
  const auto f = softmax_rows<float>();
  const array x = normal({5, 11}, 1), w = normal({5, 11}, 2);
  const UnaryFunction loss = [&](const array& a) { return sum(f(a) * w); };
  const array expected = grad([&](const array& a) { return sum(softmax(a, -1) * w); })(x);
  check_close(grad(loss)(x), expected, 1e-5);
  const auto [y, t] = jvp(UnaryFunction([&](const array& a) { return f(a); }), x, w);
  const auto [plain, tangent] = jvp(UnaryFunction([&](const array& a) { return softmax(a, -1); }), x, w);
  check_close(y, plain, 1e-5);
  check_close(t, tangent, 1e-5);
  const ArrayFunction compiled = compile(ArrayFunction([&](const Arrays& a) { return Arrays{grad(loss)(a[0])}; }));
  check_close(compiled({x})[0], expected, 1e-5);
  const ArrayFunction again = checkpoint(ArrayFunction([&](const Arrays& a) { return Arrays{f(a[0])}; }));
  check_close(grad([&](const array& a) { return sum(again({a})[0] * w); })(x), expected, 1e-5);
}

TEST_CASE("a parameter that all programs read: the parts are summed in order") {
  const auto f = norm_rows();
  const array x = noise({300, 7}, 1), w = noise({7}, 2);
  const auto loss = [&](const Arrays& a) { return Arrays{weighted(f(a[0], a[1]))}; };
  const auto plain = [&](const Arrays& a) { return Arrays{weighted(norm_of(a[0], a[1]))}; };
  const Arrays got = vjp(loss, {x, w}, {array(1.0, float64)}).second,
               expected = vjp(plain, {x, w}, {array(1.0, float64)}).second;
  check_close(got[0], expected[0], 1e-11);
  check_close(got[1], expected[1], 1e-11);
  const UnaryFunction by_x = [&](const array& a) { return weighted(f(a, w)); };
  check_close(sum(got[0] * noise({300, 7}, 5)), difference(by_x, x, noise({300, 7}, 5)), 1e-7);
}

TEST_CASE("gradients of kernels under vmap, and of mapped kernels") {
  const auto f = norm_rows();
  const array x = noise({3, 4, 6}, 1), w = noise({6}, 2);
  const ArrayFunction one = [&](const Arrays& a) { return Arrays{weighted(f(a[0], a[1]))}; };
  const ArrayFunction plain = [&](const Arrays& a) { return Arrays{weighted(norm_of(a[0], a[1]))}; };
  const auto gradients = [](const ArrayFunction& g) {
    return ArrayFunction([g](const Arrays& a) { return vjp(g, a, {array(1.0, float64)}).second; });
  };
  // Of each element of a batch, whose weights are shared.
  const Arrays got = vmap(gradients(one), {0, -1}, {0, 0})({x, w}),
               expected = vmap(gradients(plain), {0, -1}, {0, 0})({x, w});
  check_close(got[0], expected[0], 1e-10);
  check_close(got[1], expected[1], 1e-10);
  // Of the sum over a batch: the shared weights get the sum.
  const auto total = [](const ArrayFunction& g) {
    return ArrayFunction([g](const Arrays& a) { return Arrays{sum(vmap(g, {0, -1}, {0})(a)[0])}; });
  };
  const Arrays sums = gradients(total(one))({x, w}), all = gradients(total(plain))({x, w});
  check_close(sums[0], all[0], 1e-10);
  check_close(sums[1], all[1], 1e-10);
}

TEST_CASE("second derivatives: the derivative of a kernel is a kernel") {
  const auto f = norm_rows();
  const array x = noise({3, 5}, 1), w = noise({5}, 2), v = noise({3, 5}, 3);
  const auto hvp = [&](const UnaryFunction& g) { return grad([&](const array& a) { return sum(grad(g)(a) * v); })(x); };
  const UnaryFunction by_kernel = [&](const array& a) { return weighted(square(f(a, w))); };
  const UnaryFunction plain = [&](const array& a) { return weighted(square(norm_of(a, w))); };
  check_close(hvp(by_kernel), hvp(plain), 1e-9);
  // Forward over reverse.
  const auto along = [&](const UnaryFunction& g) { return jvp(UnaryFunction(grad(g)), x, v).second; };
  check_close(along(by_kernel), along(plain), 1e-9);
}

TEST_CASE("products and 16 bits: cotangents that add up are summed in float32") {
  const auto f = product();
  const array a = astype(normal({40, 24}, 1), bfloat16), b = astype(normal({24, 35}, 2), bfloat16);
  const array w = normal({40, 35}, 3);
  const auto loss = [&](const Arrays& x) { return Arrays{sum(f(x[0], x[1]) * w)}; };
  const Arrays got = vjp(loss, {a, b}, {array(1.0f)}).second;
  CHECK(got[0].dtype() == bfloat16);
  // The cotangent is rounded to the operands' dtype.
  const array g = astype(astype(w, bfloat16), float32);
  check_close(got[0], astype(matmul(g, transpose(astype(b, float32))), bfloat16), 1e-2);
  check_close(got[1], astype(matmul(transpose(astype(a, float32)), g), bfloat16), 1e-2);
  const auto rows = softmax_rows<k::bf16>();
  const array x = astype(normal({5, 11}, 4), bfloat16), weights = normal({5, 11}, 5);
  const array mine = grad([&](const array& v) { return sum(astype(rows(v), float32) * weights); })(x);
  const array plain = grad([&](const array& v) { return sum(softmax(v, -1) * weights); })(astype(x, float32));
  check_close(mine, plain, 2e-2);
}

TEST_CASE("gradients of in-out arrays and of what is added up by atomics") {
  const auto f = k::kernel("segments", [](k::In<double, 1> x, k::In<int, 1> to, k::InOut<double, 1> sums) {
                   const auto at = k::ds(k::program_id(0) * 4, 4);
                   k::atomic("add", sums, k::exp(x(at).load()), to(at).load());
                 }).grid([](auto x, auto, auto) { return k::Grid{k::cdiv(x.dim(0), 4)}; });
  const Numerics before = numerics();
  set_numerics({.deterministic = false});  // sums of floats in no order are refused otherwise
  const array x = noise({10}, 1), begin = noise({3}, 2);
  const array to = astype(arange(10), int32) % array(3);
  const auto loss = [&](const Arrays& a) { return Arrays{weighted(f(a[0], to, a[1]))}; };
  const Arrays got = vjp(loss, {x, begin}, {array(1.0, float64)}).second;
  const array weights = cos(astype(arange(3), float64));
  check_close(got[0], exp(x) * take(weights, to), 1e-12);
  check_close(got[1], weights, 1e-12);
  set_numerics(before);
}

TEST_CASE("a body that cannot be reversed is refused by name and line, and takes a rule") {
  const auto f = k::kernel("until", [](k::In<float, 1> x, k::Out<float, 1> y) {
                   k::Mut v = x(0).load();
                   k::while_([&] { return v.get() < 5.0f; }, [&] { v = v.get() * 2.0f; });
                   y(0) = v.get();
                 }).grid({1});
  const array x = array({0.7f});
  const std::string refused = message([&] { grad(UnaryFunction([&](const array& a) { return sum(f(a)); }))(x); });
  CHECK(contains(refused, "[kernel until] "));
  CHECK(contains(refused, "kernel_derivative_test.cpp:"));
  CHECK(contains(refused, "custom_function"));
  // Forward mode follows the iterations.
  check_close(jvp(UnaryFunction([&](const array& a) { return f(a); }), x, array({1.0f})).second, array({8.0f}), 0);
}
