// Exponentials in float32: exp, exp2, expm1, tanh, sigmoid. Polynomials are minimax (Lawson's iteration on Chebyshev
// nodes, coefficients rounded to float32 one by one from the lowest).
//
//   exp     degree 7 on |r| <= ln 2,      1.5e-8 relative
//   exp2    degree 7 on |r| <= 1,         1.3e-8 relative
//   expm1   degree 7 on |r| <= ln 2 / 2,  4.3e-10 relative
//
// Largest errors: exp 1.62 ulp and tanh 2.50 ulp, over all float32 values; exp2 1.17, expm1 1.44, sigmoid 3.18, over a
// sixteenth of them or more.
//
// exp and exp2 reduce by an even power of two, x = 2 h ln 2 + r, so that the scaling is two products with one factor 2^h:
// the first is exact, the second rounds once, and subnormal results, 0 and infinity come out by themselves. That costs
// two steps of the polynomial and saves four integer operations. Rounding to an integer is the addition of 1.5 * 2^23:
// the low bits of the sum are then h, and shifted left by 23 they are the exponent (the constant's own bits leave the
// word).
#include "kernel/expand_emit.h"

namespace weft::kernel::expansion {
namespace {

constexpr double log2_e = 1.4426950408889634;
constexpr double ln2_high = 0.6931471824645996;    // ln 2 in float32, and the rest
constexpr double ln2_low = -1.9046542121259336e-09;

struct Scaled {
  Expr p, scale;  // exp is p · scale²
};

Scaled exp_scaled(Expr x) {
  const Expr shifted = fma(x, log2_e / 2, shifter);
  const Expr h = shifted - shifter;
  const Expr r = fma(h, -2 * ln2_low, fma(h, -2 * ln2_high, x));
  const Expr p = horner(r, {0.0001962839305633679, 0.0014105343725532293, 0.00833597406744957, 0.041661202907562256, 0.1666661649942398,
                            0.5000003576278687, 1, 1});
  return {p, power_of_two(shifted, one_bits)};
}

// exp of values in [-104, 89]; smaller and larger ones would only saturate further.
Expr exp_in_range(Expr x) {
  const Scaled s = exp_scaled(x);
  return s.p * s.scale * s.scale;
}

// exp(x) / 2 for x >= 0.
Expr half_exp(Expr x) {
  const Scaled s = exp_scaled(apply(ScalarOp::min, {x, 90.0}));
  return s.p * s.scale * (s.scale * 0.5);
}

// expm1(r) for |r| <= ln 2 / 2.
Expr expm1_reduced(Expr r) {
  const Expr q = horner(r, {0.00019761735165957361, 0.0013932323781773448, 0.008333546109497547, 0.04166649281978607, 0.1666666567325592, 0.5});
  return fma(r * r, q, r);
}

}  // namespace

// Below the smallest subnormal the result is 0. Such lanes (masked scores are -inf) go around the arithmetic, because a product that comes out
// subnormal costs some processors more than a hundred cycles.
Expr exp(Expr x) {
  const Expr gone = lt(x, -104.0);
  const Expr y = exp_in_range(apply(ScalarOp::min, {select(gone, 0.0, x), 89.0}));
  return select(gone, 0.0, y);
}

Expr exp2(Expr x) {
  x = clamp(x, -151, 129);
  const Expr shifted = fma(x, 0.5, shifter);
  const Expr h = shifted - shifter;
  const Expr r = fma(h, -2.0, x);  // exact
  const Expr p = horner(r, {1.4927842130418867e-05, 0.0001564579433761537, 0.00133415381424129, 0.009616839699447155, 0.055503666400909424,
                            0.24022668600082397, 0.6931472420692444, 1});
  const Expr scale = power_of_two(shifted, one_bits);
  return p * scale * scale;
}

// With x = n ln 2 + r: expm1(x) = 2^n expm1(r) + (2^n - 1), halved until the last step so that n = 128 is in range.
Expr expm1(Expr x) {
  const Expr c = clamp(x, -18, 89);
  const Expr shifted = fma(c, log2_e, shifter);
  const Expr n = shifted - shifter;
  const Expr r = fma(n, -ln2_low, fma(n, -ln2_high, c));
  const Expr e = expm1_reduced(r);
  const Expr scale = power_of_two(shifted, half_bits);
  const Expr y = fma(scale, e, scale - 0.5) * 2.0;
  return select(lt(abs(x), 0x1p-40), x, y);  // keeps -0 and the last bit of subnormals
}

// exp(|x|) / 2 does not overflow before the result does. Close to 0 the difference would cancel: x + x^3 P(x^2), P of degree 3 on |x| <= 1, 5.6e-11.
Expr sinh(Expr x) {
  const Expr a = abs(x), z = a * a;
  const Expr e = half_exp(a);
  const Expr p = horner(z, {2.7839255380968098e-06, 0.00019842635083477944, 0.008333311416208744, 0.1666666716337204});
  return with_sign(select(lt(a, 1.0), fma(a * z, p, a), e - 0.25 / e), x);
}

Expr cosh(Expr x) {
  const Expr e = half_exp(abs(x));
  return e + 0.25 / e;
}

// t / (t + 2) with t = expm1(2x), from one side to the other without a branch: 1 comes out exactly, and nothing larger.
// ln 2 needs no second part: the reduction is exact where t is small, and where it is large the quotient hardly
// depends on it.
Expr tanh(Expr x) {
  const Expr c = clamp(x, -9.1, 9.1);
  const Expr twice = c + c;
  const Expr shifted = fma(twice, log2_e, shifter);
  const Expr e = expm1_reduced(fma(shifted - shifter, -ln2_high, twice));
  const Expr scale = power_of_two(shifted, one_bits);
  const Expr t = fma(scale, e, scale - 1.0);
  return with_sign(t / (t + 2.0), x);  // for -0
}

// From exp(-|x|), which cannot overflow: small results keep their digits.
Expr sigmoid(Expr x) {
  if (x.emitter->type(x.value).dtype == float64) {
    const Expr z = apply(ScalarOp::exp, {-abs(x)});
    return select(lt(x, 0.0), z, 1.0) / (z + 1.0);
  }
  const Expr z = exp_in_range(apply(ScalarOp::max, {-abs(x), -104.0}));
  return select(lt(x, 0.0), z, 1.0) / (z + 1.0);
}

}  // namespace weft::kernel::expansion
