// Exponentials in float32: exp, exp2, expm1, tanh, sigmoid. Polynomials are minimax (Lawson's iteration on Chebyshev
// nodes, coefficients rounded to float32 one by one from the lowest).
//
//   exp      degree 6 on |r| <= ln 2 / 2,  3.1e-9 relative
//   exp2     degree 6 on |r| <= 1/2,       3.0e-9 relative
//            degree 4, for 11 bits,        2.8e-6
//            degree 3, for 8 bits,         1.0e-4
//   expm1    degree 7 on |r| <= ln 2 / 2,  4.3e-10 relative
//
// Largest errors, over a sixteenth of all float32 values or more: exp 0.87 ulp, exp2 0.86, expm1 1.44, tanh 2.50, sinh
// 1.61, cosh 1.33, sigmoid 2.45.
//
// Rounding to an integer n is the addition of 1.5 * 2^23: the low bits of the sum are then n. The polynomial is scaled
// by 2^n in one operation that rounds once (`scaled`), so that subnormal results, 0 and infinity come out by
// themselves.
#include "kernel/expand/expand_emit.h"

namespace weft::kernel::expansion {
namespace {

constexpr double log2_e = 1.4426950408889634;
constexpr double log2_e_high = 1.4426950216293335,
                 log2_e_low = 1.9259629911266175e-08;  // log2 e in float32, and the rest
constexpr double ln2 = 0.6931471805599453;

/// 2^n e^r = e^x as `scaled` takes it.
struct ReducedExponent {
  Expr p, shifted;
};

/// The sign and a factor of e^(sign x): both are in the coefficients.
struct Form {
  double sign = 1, factor = 1;
};

// The polynomial is in sign r. With fewer bits ln 2 needs no second part.
ReducedExponent reduced_exp(Expr x, Precision precision = Precision::bits24, Form form = {}) {
  const double even = form.factor, odd = form.factor * form.sign;
  const Expr shifted = fma(x, form.sign * log2_e, shifter), n = shifted - shifter,
             first = fma(n, -form.sign * ln2_high, x);
  if (precision == Precision::bits8)
    return {horner(first, {0.16517721116542816 * odd, 0.5041385889053345 * even, 1.0001965761184692 * odd, even}),
            shifted};
  if (precision == Precision::bits11)
    return {horner(first, {0.04151500016450882 * even, 0.16787736117839813 * odd, 0.5000301003456116 * even,
                           0.9999666810035706 * odd, even}),
            shifted};
  const Expr r = fma(n, -form.sign * ln2_low, first);
  return {horner(r, {0.0013820079620927572 * even, 0.008368683978915215 * odd, 0.04166827350854874 * even,
                     0.1666652113199234 * odd, 0.4999999403953552 * even, odd, even}),
          shifted};
}

// exp(x) / 2 for x >= 0.
Expr half_exp(Expr x) {
  const ReducedExponent e = reduced_exp(apply(ScalarOp::min, {x, 90.0}));
  return scaled(e.p, e.shifted - 1.0);
}

// expm1(r) for |r| <= ln 2 / 2.
Expr expm1_reduced(Expr r) {
  const Expr q = horner(r, {0.00019761735165957361, 0.0013932323781773448, 0.008333546109497547, 0.04166649281978607,
                            0.1666666567325592, 0.5});
  return fma(r * r, q, r);
}

/// e^(sign x) where exp2 is an instruction. Rounding x log2 e loses |x| units in the last place at most; for 24 bits a
/// factor makes it good, and x is clamped so that the factor is close to 1.
Expr exp_by_exp2(Expr x, Precision precision, double sign = 1) {
  if (precision != Precision::bits24) return apply(ScalarOp::exp2, {x * (sign * log2_e)});
  const Expr c = sign > 0 ? clamp(x, -104, 89) : clamp(x, -89, 104);
  const Expr t = c * (sign * log2_e_high);
  const Expr excess = fma(c, -sign * log2_e_low, fma(c, -sign * log2_e_high, t));
  return apply(ScalarOp::exp2, {t}) * fma(excess, -ln2, 1.0);
}

}  // namespace

// Below the smallest subnormal the result is 0. Such lanes (masked scores are -inf) go around the arithmetic, because a
// result that underflows costs some processors more than a hundred cycles. An argument that is known to be small (that
// of a softmax is at most 0) needs no limit above, and is scaled in fewer operations: the same bits.
Expr exp(Expr x, Precision precision) {
  if (is_double(x)) return apply(ScalarOp::exp, {x});
  if (x.emitter->has().special_functions) return exp_by_exp2(x, precision);
  constexpr double small = 69;  // 2^100 and less
  const bool limited = x.emitter->is_at_most(x.value, small);
  const Expr gone = lt(x, -104.0), kept = select(gone, 0.0, x);
  const ReducedExponent e = reduced_exp(limited ? kept : apply(ScalarOp::min, {kept, 89.0}), precision);
  return select(gone, 0.0, limited ? scaled(e.p, e.shifted, 100) : scaled(e.p, e.shifted));
}

Expr exp2(Expr x) {
  if (x.emitter->has().special_functions) return apply(ScalarOp::exp2, {x});
  constexpr double small = 100;
  const bool limited = x.emitter->is_at_most(x.value, small);
  const Expr gone = lt(x, -150.0), kept = select(gone, 0.0, x);
  const Expr c = limited ? kept : apply(ScalarOp::min, {kept, 129.0});
  const Expr shifted = c + shifter;
  const Expr r = c - (shifted - shifter);  // exact
  const Expr p = horner(r, {0.0001532646274426952, 0.0013390806270763278, 0.009618505835533142, 0.05550359934568405,
                            0.24022647738456726, 0.6931471824645996, 1});
  return select(gone, 0.0, limited ? scaled(p, shifted, 100) : scaled(p, shifted));
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

// exp(|x|) / 2 does not overflow before the result does. Close to 0 the difference would cancel: x + x^3 P(x^2), P of
// degree 3 on |x| <= 1, 5.6e-11.
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
// For few bits, where exp2 and the reciprocal are instructions: 1 - 2 / (e^2|x| + 1), and x itself where x² / 3 is less
// than they are seen with.
Expr tanh(Expr x, Precision precision) {
  if (precision <= Precision::bits11 && x.emitter->has().special_functions) {
    const Expr a = abs(x);
    const Expr below = apply(ScalarOp::recip, {exp_by_exp2(a + a, precision) + 1.0});
    return select(lt(a, 0x1p-6), x, with_sign(fma(below, -2.0, 1.0), x));
  }
  const Expr c = clamp(x, -9.1, 9.1);
  const Expr twice = c + c;
  const Expr shifted = fma(twice, log2_e, shifter);
  const Expr e = expm1_reduced(fma(shifted - shifter, -ln2_high, twice));
  const Expr scale = power_of_two(shifted, one_bits);
  const Expr t = fma(scale, e, scale - 1.0);
  return with_sign(t / (t + 2.0), x);  // for -0
}

// 1 / (1 + exp(-x)), both sides of the quotient times 2^-24: exp(-x) stays finite as far as the quotient is not 0, and
// small results keep their digits. (The processor divides beside the other operations: a reciprocal by Newton's method,
// in six of them, takes longer.)
Expr sigmoid(Expr x, Precision precision) {
  if (is_double(x)) {
    const Expr z = exp(-abs(x));
    return select(lt(x, 0.0), z, 1.0) / (z + 1.0);
  }
  if (x.emitter->has().special_functions) {
    const Expr sum = exp_by_exp2(x, precision, -1) + 1.0;
    return precision == Precision::bits24 ? 1.0 / sum : apply(ScalarOp::recip, {sum});
  }
  constexpr double small = 0x1p-24, small_bits = one_bits - (24 << 23);
  const Expr c = clamp(x, -104, 40);
  if (x.emitter->has().ldexp) {
    const ReducedExponent e = reduced_exp(c, precision, {-1, small});
    return small / (scaled(e.p, e.shifted) + small);
  }
  const ReducedExponent e = reduced_exp(c, precision, {-1, 1});  // the product with 2^(n - 24) is exact for every n
  return small / fma(e.p, power_of_two(e.shifted, small_bits), small);
}

}  // namespace weft::kernel::expansion
