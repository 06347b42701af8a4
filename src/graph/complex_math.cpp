// Complex functions in real ones, on the principal branch. Where a formula cancels or overflows, the comment says what is done about it.
#include <limits>
#include <numbers>
#include <string>

#include "base/error.h"
#include "graph/build.h"
#include "graph/complex.h"

namespace weft::graph {
namespace {

Value is_zero(const Value& v) { return binary(Op::eq, v, zeros_like(v)); }
Value larger(const Value& a, const Value& b) { return binary(Op::max, a, b); }
Value smaller(const Value& a, const Value& b) { return binary(Op::min, a, b); }
Value magnitude_of(const Value& v) { return unary(Op::abs, v); }
/// Whether the sign bit is set: -0 counts.
Value is_negative(const Value& v) {
  Attrs attrs;
  attrs.dtype = int32;
  const Value bits = make(Op::bitcast, {v}, std::move(attrs));
  return binary(Op::lt, bits, zeros_like(bits));
}
Value with_sign_of(const Value& size, const Value& sign) { return select(is_negative(sign), -size, size); }

Parts scaled(const Parts& z, double k) { return {z.re * k, z.im * k}; }
Parts real(const Value& v) { return {v, zeros_like(v)}; }

/// Numerator and denominator are divided by the larger part of the denominator first, so that its square does not overflow.
Parts divide(const Parts& a, const Parts& b) {
  const Value s = larger(magnitude_of(b.re), magnitude_of(b.im)), c = b.re / s, d = b.im / s, norm = square(c) + square(d);
  return {(a.re * c + a.im * d) / norm / s, (a.im * c - a.re * d) / norm / s};
}

/// exp(a) (cos b + i sin b); on the real axis the imaginary part stays 0 even where exp(a) is infinite.
Parts exponential(const Parts& z) {
  const Value size = exp(z.re);
  return {size * unary(Op::cos, z.im), select(is_zero(z.im), z.im, size * unary(Op::sin, z.im))};
}

/// log|z| + i arg z. Near |z| = 1 the logarithm is log1p((m - 1)(m + 1) + n²) / 2, m and n being the larger and the smaller part.
Parts logarithm(const Parts& z) {
  const Value a = magnitude_of(z.re), b = magnitude_of(z.im), m = larger(a, b), n = smaller(a, b);
  const Value near = binary(Op::bit_and, binary(Op::lt, full_like(m, 0.5), m), binary(Op::lt, m, full_like(m, 2)));
  const Value one = full_like(m, 1);
  const Value close = unary(Op::log1p, (select(near, m, one) - 1) * (m + 1) + square(select(near, n, zeros_like(n)))) * 0.5;
  return {select(near, close, log(magnitude(z))), binary(Op::arctan2, z.im, z.re)};
}

/// t = √((|z| + |a|) / 2) is the part that does not cancel; the other is b / 2t.
Parts root(const Parts& z) {
  const Value t = unary(Op::sqrt, magnitude(z) * 0.5 + magnitude_of(z.re) * 0.5), zero = is_zero(t);
  const Value other = select(zero, zeros_like(t), magnitude_of(z.im) / (select(zero, full_like(t, 1), t) * 2));
  const Value left = binary(Op::lt, z.re, zeros_like(z.re));
  return {select(left, other, t), with_sign_of(select(left, t, other), z.im)};
}

/// exp(w log z); 0^w is 0, and 1 for w = 0.
Parts power(const Parts& z, const Parts& w) {
  const Parts p = exponential(multiply(w, logarithm(z)));
  const Value origin = binary(Op::bit_and, is_zero(z.re), is_zero(z.im)), none = binary(Op::bit_and, is_zero(w.re), is_zero(w.im));
  const Value one = full_like(p.re, 1), zero = zeros_like(p.re);
  return {select(none, one, select(origin, zero, p.re)), select(binary(Op::bit_or, none, origin), zero, p.im)};
}

Parts sine(const Parts& z) {
  return {unary(Op::sin, z.re) * unary(Op::cosh, z.im), unary(Op::cos, z.re) * unary(Op::sinh, z.im)};
}
Parts cosine(const Parts& z) {
  return {unary(Op::cos, z.re) * unary(Op::cosh, z.im), -(unary(Op::sin, z.re) * unary(Op::sinh, z.im))};
}
/// tanh(a + ib) = (tanh a + i tan b) / (1 + i tanh a tan b).
Parts hyperbolic_tangent(const Parts& z) {
  const Value h = tanh(z.re), t = unary(Op::tan, z.im);
  return divide({h, t}, {full_like(h, 1), h * t});
}
Parts turned(const Parts& z) { return {-z.im, z.re}; }      // i z
Parts turned_back(const Parts& z) { return {z.im, -z.re}; }  // -i z

}  // namespace

Parts multiply(const Parts& a, const Parts& b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

Value magnitude(const Parts& z) {
  const Value a = magnitude_of(z.re), b = magnitude_of(z.im), m = larger(a, b), zero = is_zero(m);
  const Value quotient = smaller(a, b) / select(zero, full_like(m, 1), m);
  const Value size = m * unary(Op::sqrt, square(quotient) + 1), infinite = full_like(m, std::numeric_limits<double>::infinity());
  return select(binary(Op::eq, m, infinite), infinite, size);
}

bool takes_complex(Op op) {
  switch (op) {
    case Op::neg: case Op::square: case Op::recip: case Op::sqrt: case Op::rsqrt: case Op::exp: case Op::exp2: case Op::log: case Op::log2: case Op::log10:
    case Op::sin: case Op::cos: case Op::tan: case Op::sinh: case Op::cosh: case Op::tanh: case Op::add: case Op::sub: case Op::mul: case Op::div:
    case Op::pow: case Op::eq: case Op::ne: return true;
    default: return false;
  }
}

Parts complex_elementwise(Op op, const std::vector<Parts>& x) {
  const Parts& a = x[0];
  const Parts& b = x.back();
  switch (op) {
    case Op::neg: return {-a.re, -a.im};
    case Op::square: return multiply(a, a);
    case Op::recip: return divide(real(full_like(a.re, 1)), a);
    case Op::sqrt: return root(a);
    case Op::rsqrt: return divide(real(full_like(a.re, 1)), root(a));
    case Op::exp: return exponential(a);
    case Op::exp2: return exponential(scaled(a, std::numbers::ln2));
    case Op::log: return logarithm(a);
    case Op::log2: return scaled(logarithm(a), std::numbers::log2e);
    case Op::log10: return scaled(logarithm(a), std::numbers::log10e);
    case Op::sin: return sine(a);
    case Op::cos: return cosine(a);
    case Op::tan: return turned_back(hyperbolic_tangent(turned(a)));
    case Op::sinh: return turned_back(sine(turned(a)));
    case Op::cosh: return cosine(turned(a));
    case Op::tanh: return hyperbolic_tangent(a);
    case Op::add: return {a.re + b.re, a.im + b.im};
    case Op::sub: return {a.re - b.re, a.im - b.im};
    case Op::mul: return multiply(a, b);
    case Op::div: return divide(a, b);
    case Op::pow: return power(a, b);
    case Op::eq: return {binary(Op::bit_and, binary(Op::eq, a.re, b.re), binary(Op::eq, a.im, b.im)), {}};
    case Op::ne: return {binary(Op::bit_or, binary(Op::ne, a.re, b.re), binary(Op::ne, a.im, b.im)), {}};
    default: throw_internal("complex", std::string(row(op).name) + " is not defined on complex64");
  }
}

}  // namespace weft::graph
