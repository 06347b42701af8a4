// Discrete Fourier transforms as calls, along the last axis and without a factor. A complex number is a pair of float32
// or float64 along one more axis.
//
// fft z     integers: 1 for the inverse. z [b…, n, 2] → [b…, n, 2]: Σ_j z_j e^(∓2πijk/n).
// rfft x    x [b…, n] → [b…, n/2 + 1, 2]: the first half of its transform, which determines the other half.
// irfft z   integers: n. z [b…, n/2 + 1, 2] → [b…, n]: the inverse of all n coefficients, whose other half is the
//           conjugate of this one. Imaginary parts that must be zero (of the first, and with even n of the last
//           coefficient) are ignored.
#include <array>
#include <cmath>
#include <complex>
#include <numbers>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/calls/call_rules.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

/// v as arrays of one transform each: throws where the axes are not what the call takes.
int64_t checked(const char* name, const Type& v, bool pairs) {
  const size_t axes = pairs ? 2 : 1;
  if ((v.dtype != float32 && v.dtype != float64) || v.shape.size() < axes || (pairs && v.shape.back() != 2))
    throw_invalid(name, fmt::format("needs {} of float32 or float64 along the last axis, got {}",
                                    pairs ? "pairs [..., n, 2]" : "numbers [..., n]", to_string(v)));
  const Dim n = v.shape[v.shape.size() - axes];
  if (!n.is_static())
    throw_invalid(name, "the axis of " + to_string(v) + " is symbolic: transform along an axis of fixed length");
  if (n.bound() < 1) throw_invalid(name, "there is no transform of no elements, got " + to_string(v));
  return n.bound();
}

std::vector<Type> fft_types(const Attrs&, TypeSpan in) {
  checked("fft", in[0], true);
  return {in[0]};
}

std::vector<Type> rfft_types(const Attrs&, TypeSpan in) {
  Type out = in[0];
  out.shape.back() = checked("rfft", in[0], false) / 2 + 1;
  out.shape.push_back(2);
  return {out};
}

std::vector<Type> irfft_types(const Attrs& attrs, TypeSpan in) {
  const int64_t half = checked("irfft", in[0], true), n = attrs.integers[0];
  if (n < 1 || n / 2 + 1 != half)
    throw_invalid("irfft",
                  fmt::format("{} numbers come from {} of {}, not from {}", n, n / 2 + 1, to_string(in[0]), half));
  Type out = in[0];
  out.shape.pop_back();
  out.shape.back() = n;
  return {out};
}

/// Returns factors [n/2 + 1, 2]: `once` for coefficients that occur once among all n (the first, and with even n the
/// last), `twice` for the others.
Value weighted(const Value& z, int64_t n, double once, double twice) {
  const int64_t half = n / 2 + 1;
  const Value position = iota({half, 2}, 0, int32);
  Value single = binary(Op::eq, position, full({half, 2}, int32, Number::of_int(0)));
  if (n % 2 == 0)
    single = binary(Op::bit_or, single, binary(Op::eq, position, full({half, 2}, int32, Number::of_int(half - 1))));
  const auto number = [&](double v) { return full({half, 2}, z.dtype(), Number::of_real(v)); };
  return z * broadcast(select(single, number(once), number(twice)), z.shape());
}

/// Transposes of linear maps of real numbers: cotangents of pairs are pairs.
Values fft_vjp(const Node& node, ValueSpan, ValueSpan, ValueSpan g) {
  return call("fft", {g[0]}, {1 - node.attrs().integers[0]});
}
Values rfft_vjp(const Node&, ValueSpan x, ValueSpan, ValueSpan g) {
  const int64_t n = x[0].shape().back().bound();
  return call("irfft", {weighted(g[0], n, 1, 0.5)}, {n});
}
Values irfft_vjp(const Node& node, ValueSpan, ValueSpan, ValueSpan g) {
  return {weighted(call("rfft", {g[0]})[0], node.attrs().integers[0], 1, 2)};
}

Values linear_jvp(const Node& node, ValueSpan, ValueSpan, ValueSpan t) {
  return t[0] ? call(node.attrs().call, {t[0]}, node.attrs().integers) : Values{Value{}};
}
Values any_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  return call(node.attrs().call, {to_front(x[0], axes[0])}, node.attrs().integers);
}

/// All axes before the transformed one are batch axes.
Factors fft_factors(const Attrs& attrs, TypeSpan in, TypeSpan out) {
  const int batch = in[0].rank() - (attrs.call == "rfft" ? 1 : 2);
  const auto of = [batch](int rank) {
    std::vector<int> f(static_cast<size_t>(rank), -1);
    for (int k = 0; k < batch; ++k) f[static_cast<size_t>(k)] = k;
    return f;
  };
  return {{of(in[0].rank())}, {of(out[0].rank())}};
}

/// Computes the transform by its definition, in float64: [batch, n] complex numbers.
std::vector<std::complex<double>> transform(const std::vector<std::complex<double>>& x, int64_t n, bool inverse) {
  std::vector<std::complex<double>> out(x.size());
  for (size_t row = 0; row < x.size(); row += static_cast<size_t>(n))
    for (int64_t k = 0; k < n; ++k)
      for (int64_t j = 0; j < n; ++j)
        out[row + static_cast<size_t>(k)] +=
            x[row + static_cast<size_t>(j)] *
            std::polar(1.0,
                       (inverse ? 2 : -2) * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n));
  return out;
}

std::vector<std::complex<double>> complex_pairs(const HostTensor& t) {
  std::vector<std::complex<double>> out;
  for (size_t k = 0; k + 1 < t.data.size(); k += 2) out.emplace_back(t.data[k].real(), t.data[k + 1].real());
  return out;
}

std::vector<HostTensor> fft_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan out) {
  HostTensor result{out[0], {}};
  const Shape& shape = in[0].type.shape;
  for (const auto& z : transform(complex_pairs(in[0]), shape[shape.size() - 2].bound(), attrs.integers[0] != 0))
    for (const double part : {z.real(), z.imag()})
      result.data.push_back(kernel::round_to(Number::of_real(part), out[0].dtype));
  return {result};
}

std::vector<HostTensor> rfft_reference(const Attrs&, std::span<const HostTensor> in, TypeSpan out) {
  HostTensor result{out[0], {}};
  const int64_t n = in[0].type.shape.back().bound();
  std::vector<std::complex<double>> x;
  for (const Number& v : in[0].data) x.emplace_back(v.real());
  const auto all = transform(x, n, false);
  for (size_t k = 0; k < all.size(); ++k)
    if (static_cast<int64_t>(k) % n <= n / 2)
      for (const double part : {all[k].real(), all[k].imag()})
        result.data.push_back(kernel::round_to(Number::of_real(part), out[0].dtype));
  return {result};
}

std::vector<HostTensor> irfft_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan out) {
  HostTensor result{out[0], {}};
  const int64_t n = attrs.integers[0], half = n / 2 + 1;
  const auto z = complex_pairs(in[0]);
  std::vector<std::complex<double>> all;
  for (size_t row = 0; row < z.size(); row += static_cast<size_t>(half))
    for (int64_t k = 0; k < n; ++k) {
      const std::complex<double> v = z[row + static_cast<size_t>(k < half ? k : n - k)];
      all.push_back(k == 0 || 2 * k == n ? v.real() : k < half ? v : std::conj(v));
    }
  for (const auto& v : transform(all, n, true))
    result.data.push_back(kernel::round_to(Number::of_real(v.real()), out[0].dtype));
  return {result};
}

constexpr auto fft_rules = std::to_array<CallRule>({
    {"fft", 1, 1, 1, fft_types, None::unbounded, fft_vjp, linear_jvp, any_vmap, fft_factors, fft_reference, 4},
    {"rfft", 1, 1, 0, rfft_types, None::unbounded, rfft_vjp, linear_jvp, any_vmap, fft_factors, rfft_reference, 4},
    {"irfft", 1, 1, 1, irfft_types, None::unbounded, irfft_vjp, linear_jvp, any_vmap, fft_factors, irfft_reference, 4},
});
static_assert(complete_calls(fft_rules));

}  // namespace

std::span<const CallRule> fft_calls() { return fft_rules; }

}  // namespace weft::graph
