// Complex functions by real ones, on the principal branch. Where a formula would cancel or overflow, its comment gives
// the remedy.
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "base/error.h"
#include "graph/complex/complex.h"
#include "graph/complex/complex_math.h"

namespace weft::graph {

Value is_zero(const Value& v) { return binary(Op::eq, v, zeros_like(v)); }
Value larger(const Value& a, const Value& b) { return binary(Op::max, a, b); }
Value smaller(const Value& a, const Value& b) { return binary(Op::min, a, b); }
Value magnitude_of(const Value& v) { return unary(Op::abs, v); }

namespace {

/// Whether the sign bit is set: -0 counts.
Value is_negative(const Value& v) {
  Attrs attrs;
  attrs.dtype = v.dtype() == float64 ? int64 : int32;
  const Value bits = make(Op::bitcast, {v}, std::move(attrs));
  return binary(Op::lt, bits, zeros_like(bits));
}
}  // namespace

Value with_sign_of(const Value& size, const Value& sign) { return select(is_negative(sign), -size, size); }
Value is_nan(const Value& v) { return binary(Op::ne, v, v); }
Parts choose(const Value& condition, const Parts& a, const Parts& b) {
  return {select(condition, a.re, b.re), select(condition, a.im, b.im)};
}

namespace {

Value either(const Value& a, const Value& b) { return binary(Op::bit_or, a, b); }
Value both(const Value& a, const Value& b) { return binary(Op::bit_and, a, b); }
Value equal(const Value& a, const Value& b) { return binary(Op::eq, a, b); }
Value less(const Value& a, const Value& b) { return binary(Op::lt, a, b); }

Parts scaled(const Parts& z, double k) { return {z.re * k, z.im * k}; }
Parts real(const Value& v) { return {v, zeros_like(v)}; }

/// Numerator and denominator are divided by the larger part of the denominator first, so that its square does not
/// overflow. As in C an infinite denominator leaves 0, and one of 0 is on the real axis.
Parts divide(const Parts& a, const Parts& b) {
  const Value s = larger(magnitude_of(b.re), magnitude_of(b.im)), zero = zeros_like(s), one = full_like(s, 1);
  const Value infinite = equal(s, full_like(s, infinity)), end = either(infinite, is_zero(s));
  const auto scaled_part = [&](const Value& part, const Value& counts) {
    return select(end, with_sign_of(select(both(counts, equal(magnitude_of(part), s)), one, zero), part), part / s);
  };
  const Value c = scaled_part(b.re, end), d = scaled_part(b.im, infinite), norm = square(c) + square(d);
  return {(a.re * c + a.im * d) / norm / s, (a.im * c - a.re * d) / norm / s};
}

/// exp(a) (cos b + i sin b). Of large a, e^64 (of float64 e^512) is multiplied last, where exp(a) alone would overflow.
/// As in C: on the real axis the imaginary part stays 0; of an infinite a, an angle that is infinite or NaN leaves the
/// size, 0 or ∞.
Parts exponential(const Parts& z) {
  const double last = z.re.dtype() == float64 ? 512 : 64;
  const Value large = less(full_like(z.re, last), z.re), zero = zeros_like(z.re);
  const Value size = exp(select(large, z.re - last, z.re)),
              rest = select(large, full_like(z.re, std::exp(last)), full_like(z.re, 1));
  const Value ends = equal(magnitude_of(z.re), full_like(z.re, infinity)),
              angle = less(magnitude_of(z.im), full_like(z.im, infinity));
  const Value lost = both(ends, unary(Op::bit_not, angle)), nothing = both(lost, less(z.re, zero));
  return {select(lost, size, size * unary(Op::cos, z.im) * rest),
          select(is_zero(z.im), z.im, select(nothing, zero, size * unary(Op::sin, z.im) * rest))};
}

/// log|z| + i arg z. Near |z| = 1 the logarithm is log1p((m - 1)(m + 1) + n²) / 2, m and n being the larger and the
/// smaller part.
Parts logarithm(const Parts& z) {
  const Value a = magnitude_of(z.re), b = magnitude_of(z.im), m = larger(a, b), n = smaller(a, b);
  const Value near = binary(Op::bit_and, binary(Op::lt, full_like(m, 0.5), m), binary(Op::lt, m, full_like(m, 2)));
  const Value one = full_like(m, 1);
  const Value close =
      unary(Op::log1p, (select(near, m, one) - 1) * (m + 1) + square(select(near, n, zeros_like(n)))) * 0.5;
  return {select(near, close, log(magnitude(z))), binary(Op::arctan2, z.im, z.re)};
}

/// t = √((|z| + |a|) / 2) is the part that does not cancel; the other is b / 2t.
Parts root(const Parts& z) {
  const Value size = magnitude_of(z.im), infinite = equal(size, full_like(size, infinity));
  const Value t = select(infinite, size, unary(Op::sqrt, magnitude(z) * 0.5 + magnitude_of(z.re) * 0.5)),
              zero = is_zero(t);
  const Value other = select(either(zero, infinite), size, size / (select(zero, full_like(t, 1), t) * 2));
  const Value left = binary(Op::lt, z.re, zeros_like(z.re));
  return {select(left, other, t), with_sign_of(select(left, t, other), z.im)};
}

/// exp(w log z); 0^w is 0, and 1 for w = 0.
Parts power(const Parts& z, const Parts& w) {
  const Parts p = exponential(multiply(w, logarithm(z)));
  const Value origin = binary(Op::bit_and, is_zero(z.re), is_zero(z.im)),
              none = binary(Op::bit_and, is_zero(w.re), is_zero(w.im));
  const Value one = full_like(p.re, 1), zero = zeros_like(p.re);
  return {select(none, one, select(origin, zero, p.re)), select(binary(Op::bit_or, none, origin), zero, p.im)};
}

/// log(1 + z): near 0 the real part is log1p(x (2 + x) + y²) / 2.
Parts logarithm_of_one_plus(const Parts& z) {
  const Parts moved{z.re + 1, z.im};
  const Value near = less(magnitude(z), full_like(z.re, 0.5)), zero = zeros_like(z.re);
  const Value x = select(near, z.re, zero), y = select(near, z.im, zero);
  const Value r = x * (x + 2) + square(y), close = select(is_zero(r), x, unary(Op::log1p, r) * 0.5);
  return {select(near, close, log(magnitude(moved))), binary(Op::arctan2, z.im, moved.re)};
}

/// Returns a b, or 0 if one of them is 0 and the other infinite or NaN.
Value product(const Value& a, const Value& b) {
  const Value p = a * b, nothing = with_sign_of(with_sign_of(zeros_like(a), a), b);
  return select(both(is_nan(p), either(is_zero(a), is_zero(b))), nothing, p);
}
Parts sine(const Parts& z) {
  return {product(unary(Op::sin, z.re), unary(Op::cosh, z.im)), product(unary(Op::cos, z.re), unary(Op::sinh, z.im))};
}
Parts cosine(const Parts& z) {
  return {product(unary(Op::cos, z.re), unary(Op::cosh, z.im)), -product(unary(Op::sin, z.re), unary(Op::sinh, z.im))};
}
/// With h = tanh a and t = tan b, tanh(a + ib) = (h (1 + t²) + i t / cosh² a) / (1 + h² t²); ±1 where a is infinite.
Parts hyperbolic_tangent(const Parts& z) {
  const Value h = tanh(z.re), t = unary(Op::tan, z.im), norm = square(h * t) + 1,
              end = equal(magnitude_of(z.re), full_like(h, infinity));
  return choose(end, {h, with_sign_of(zeros_like(h), z.im)},
                {h * (square(t) + 1) / norm, t / square(unary(Op::cosh, z.re)) / norm});
}
Parts times_i(const Parts& z) { return {-z.im, z.re}; }  // i z
Parts over_i(const Parts& z) { return {z.im, -z.re}; }   // -i z

/// Returns whether a precedes b: by real parts, equal ones by imaginary parts.
Value before(const Parts& a, const Parts& b, Op imaginary) {
  return either(less(a.re, b.re), both(equal(a.re, b.re), binary(imaginary, a.im, b.im)));
}

/// Returns the first that has a NaN, else the one that is last (or first) in the order; of equals the second.
Parts extreme(const Parts& a, const Parts& b, bool greatest) {
  const Value nan_a = either(is_nan(a.re), is_nan(a.im)), nan_b = either(is_nan(b.re), is_nan(b.im));
  const Value wins = greatest ? before(b, a, Op::lt) : before(a, b, Op::lt);
  return choose(either(nan_a, both(wins, unary(Op::bit_not, nan_b))), a, b);
}

/// Computes log(exp(a) + exp(b)) with the greater argument outside of the logarithm; infinities stay as they are.
Parts logarithm_of_sum(const Parts& a, const Parts& b) {
  const Parts high = extreme(a, b, true), low = extreme(a, b, false);
  const Value end = either(equal(low.re, full_like(low.re, -infinity)), equal(high.re, full_like(high.re, infinity)));
  const Parts rest = logarithm_of_one_plus(exponential({low.re - high.re, low.im - high.im}));
  return choose(end, high, {high.re + rest.re, high.im + rest.im});
}

}  // namespace

Parts multiply(const Parts& a, const Parts& b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

Value magnitude(const Parts& z) {
  const Value a = magnitude_of(z.re), b = magnitude_of(z.im), m = larger(a, b), zero = is_zero(m);
  const Value quotient = smaller(a, b) / select(zero, full_like(m, 1), m);
  const Value size = m * unary(Op::sqrt, square(quotient) + 1), infinite = full_like(m, infinity);
  return select(either(equal(a, infinite), equal(b, infinite)), infinite, size);  // whatever the other part is
}

namespace {

/// Returns v / |z|, and 0 for 0.
Value direction(const Value& v, const Value& size) { return v / select(is_zero(size), full_like(size, 1), size); }

using In = std::span<const Value>;

Values absolute_vjp(In in, In out, In g) {
  if (!g[0]) return {Value{}, Value{}};
  return {g[0] * direction(in[0], out[0]), g[0] * direction(in[1], out[0])};
}

Values absolute_jvp(In in, In out, In t) {
  Value total;
  for (size_t k = 0; k < 2; ++k) {
    if (!t[k]) continue;
    const Value term = t[k] * direction(in[k], out[0]);
    total = total ? total + term : term;
  }
  return {total};
}

}  // namespace

/// The derivative of what magnitude computes would be as exact, but the second one is lost where a part is 0: there it
/// compares |x| with 0.
Value absolute(const Value& z) {
  static const auto region = std::make_shared<Composite>(Composite{"magnitude",
                                                                   "",
                                                                   [](In in) {
                                                                     return Values{magnitude({in[0], in[1]})};
                                                                   },
                                                                   absolute_vjp,
                                                                   absolute_jvp,
                                                                   {}});
  return composite(region, {unary(Op::real, z), unary(Op::imag, z)})[0];
}

namespace {

using Rule = Parts (*)(const Parts& a, const Parts& b);

/// Returns the rule of an operator on complex numbers (b: the second argument); null if it is not defined on them. neg,
/// add and sub act on the parts (acts_on_parts).
Rule rule_of(Op op) {
  switch (op) {
    case Op::neg: return [](const Parts& a, const Parts&) -> Parts { return {-a.re, -a.im}; };
    case Op::add: return [](const Parts& a, const Parts& b) -> Parts { return {a.re + b.re, a.im + b.im}; };
    case Op::sub: return [](const Parts& a, const Parts& b) -> Parts { return {a.re - b.re, a.im - b.im}; };
    case Op::square: return [](const Parts& a, const Parts&) { return multiply(a, a); };
    case Op::recip: return [](const Parts& a, const Parts&) { return divide(real(full_like(a.re, 1)), a); };
    case Op::sqrt: return [](const Parts& a, const Parts&) { return root(a); };
    case Op::rsqrt: return [](const Parts& a, const Parts&) { return divide(real(full_like(a.re, 1)), root(a)); };
    case Op::exp: return [](const Parts& a, const Parts&) { return exponential(a); };
    case Op::exp2: return [](const Parts& a, const Parts&) { return exponential(scaled(a, std::numbers::ln2)); };
    case Op::log: return [](const Parts& a, const Parts&) { return logarithm(a); };
    case Op::log2: return [](const Parts& a, const Parts&) { return scaled(logarithm(a), std::numbers::log2e); };
    case Op::log10: return [](const Parts& a, const Parts&) { return scaled(logarithm(a), std::numbers::log10e); };
    case Op::sin: return [](const Parts& a, const Parts&) { return sine(a); };
    case Op::cos: return [](const Parts& a, const Parts&) { return cosine(a); };
    case Op::tan: return [](const Parts& a, const Parts&) { return over_i(hyperbolic_tangent(times_i(a))); };
    case Op::sinh: return [](const Parts& a, const Parts&) { return over_i(sine(times_i(a))); };
    case Op::cosh: return [](const Parts& a, const Parts&) { return cosine(times_i(a)); };
    case Op::tanh: return [](const Parts& a, const Parts&) { return hyperbolic_tangent(a); };
    case Op::mul: return [](const Parts& a, const Parts& b) { return multiply(a, b); };
    case Op::div: return [](const Parts& a, const Parts& b) { return divide(a, b); };
    case Op::pow: return [](const Parts& a, const Parts& b) { return power(a, b); };
    case Op::eq:
      return [](const Parts& a, const Parts& b) -> Parts {
        return {binary(Op::bit_and, binary(Op::eq, a.re, b.re), binary(Op::eq, a.im, b.im)), {}};
      };
    case Op::ne:
      return [](const Parts& a, const Parts& b) -> Parts {
        return {binary(Op::bit_or, binary(Op::ne, a.re, b.re), binary(Op::ne, a.im, b.im)), {}};
      };
    case Op::lt: return [](const Parts& a, const Parts& b) -> Parts { return {before(a, b, Op::lt), {}}; };
    case Op::le: return [](const Parts& a, const Parts& b) -> Parts { return {before(a, b, Op::le), {}}; };
    case Op::max: return [](const Parts& a, const Parts& b) { return extreme(a, b, true); };
    case Op::min: return [](const Parts& a, const Parts& b) { return extreme(a, b, false); };
    case Op::logaddexp: return [](const Parts& a, const Parts& b) { return logarithm_of_sum(a, b); };
    case Op::log1p: return [](const Parts& a, const Parts&) { return logarithm_of_one_plus(a); };
    case Op::round:
      return [](const Parts& a, const Parts&) -> Parts { return {unary(Op::round, a.re), unary(Op::round, a.im)}; };
    case Op::arcsin: return [](const Parts& a, const Parts&) { return arcsine(a); };
    case Op::arccos: return [](const Parts& a, const Parts&) { return arccosine(a); };
    case Op::arctan: return [](const Parts& a, const Parts&) { return over_i(hyperbolic_arctangent(times_i(a))); };
    case Op::arcsinh: return [](const Parts& a, const Parts&) { return over_i(arcsine(times_i(a))); };
    case Op::arccosh: return [](const Parts& a, const Parts&) { return hyperbolic_arccosine(a); };
    case Op::arctanh: return [](const Parts& a, const Parts&) { return hyperbolic_arctangent(a); };
    default: return nullptr;
  }
}

}  // namespace

bool takes_complex(Op op) { return rule_of(op) != nullptr; }

Parts complex_elementwise(Op op, const std::vector<Parts>& x) {
  const Rule rule = rule_of(op);
  if (!rule) throw_internal("complex", std::string(row(op).name) + " is not defined on complex numbers");
  return rule(x[0], x.back());
}

}  // namespace weft::graph
