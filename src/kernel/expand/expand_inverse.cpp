// Inverse trigonometric and hyperbolic functions in float32. Minimax polynomials, with their errors relative to the
// whole:
//
//   arctan  t + t^3 P(t^2), P of degree 10, on t <= 1, 1.1e-10; larger arguments by arctan(x) = pi/2 - arctan(1/x)
//   arcsin  s + s^3 P(s^2), P of degree 5, on s <= 1/2, 2.9e-10; larger arguments by arcsin(x) = pi/2 - 2
//           arcsin(sqrt((1-x) / 2))
//
// The hyperbolic ones are logarithms: arcsinh x = log1p(x + x^2 / (1 + sqrt(1 + x^2))), arccosh x = log1p(t + sqrt(t (t
// + 2))) with t = x - 1, arctanh x = log1p(2x / (1 - x)) / 2. Squares that would overflow belong to arguments so large
// that the function is log(2x).
#include <limits>

#include "kernel/expand/expand_emit.h"

namespace weft::kernel::expansion {
namespace {

constexpr double half_pi_high = 1.5707963705062866, half_pi_low = -4.371139000186241e-08;
constexpr double pi_high = 3.1415927410125732, pi_low = -8.742278000372482e-08;
constexpr double large = 0x1p30;

// arctan of t in [0, 1].
Expr arctan_unit(Expr t) {
  const Expr z = t * t;
  const Expr p = horner(z, {-0.0005555165698751807, 0.004163831472396851, -0.014541948214173317, 0.03219498693943024,
                            -0.0526861809194088, 0.07165692001581192, -0.08954838663339615, 0.11088348925113678,
                            -0.1428345888853073, 0.1999988704919815, -0.3333333134651184});
  return fma(t * z, p, t);
}

struct ArcsinePart {
  Expr far;  // |x| > 1/2
  Expr p;    // arcsin of |x|, or of sqrt((1 - |x|) / 2) where far
};

ArcsinePart arcsine_part(Expr x) {
  const Expr a = abs(x);
  const Expr far = lt(0.5, a);
  const Expr z = select(far, (1.0 - a) * 0.5, a * a);
  const Expr s = select(far, sqrt(z), a);  // beyond 1: the root of a negative number
  const Expr p = horner(z, {0.03761693835258484, 0.014362824149429798, 0.03182906657457352, 0.044514212757349014,
                            0.0750051960349083, 0.16666659712791443});
  return {far, fma(s * z, p, s)};
}

}  // namespace

Expr arctan(Expr x) {
  const Expr a = abs(x);
  const Expr p = arctan_unit(apply(ScalarOp::min, {a, 1.0}) / apply(ScalarOp::max, {a, 1.0}));
  return with_sign(select(lt(1.0, a), half_pi_high - p + half_pi_low, p), x);
}

// The quotient of the smaller by the larger; 0/0 counts as 0 and inf/inf as 1. Zeros have signs, in x as well.
Expr arctan2(Expr y, Expr x) {
  const Expr a = abs(y), b = abs(x);
  const Expr smaller = apply(ScalarOp::min, {a, b}), larger = apply(ScalarOp::max, {a, b});
  const Expr quotient = select(eq(larger, 0.0), 0.0, select(eq(smaller, infinity), 1.0, smaller / larger));
  const Expr p = arctan_unit(quotient);
  const Expr q = select(lt(b, a), half_pi_high - p + half_pi_low, p);
  const Expr left = lt(bitcast(x, int32), 0.0);
  return with_sign(select(left, pi_high - q + pi_low, q), y);
}

Expr arcsin(Expr x) {
  const ArcsinePart part = arcsine_part(x);
  return with_sign(select(part.far, fma(part.p, -2.0, half_pi_high) + half_pi_low, part.p), x);
}

Expr arccos(Expr x) {
  const ArcsinePart part = arcsine_part(x);
  const Expr negative = lt(x, 0.0), twice = part.p * 2.0;
  const Expr far = select(negative, pi_high - twice + pi_low, twice);
  const Expr near = half_pi_high - (select(negative, -part.p, part.p) - half_pi_low);
  return select(part.far, far, near);
}

Expr arcsinh(Expr x) {
  const Expr a = abs(x), square = a * a, huge = lt(large, a);
  const Expr r = a + square / (sqrt(square + 1.0) + 1.0);
  const Expr y = log1p(select(huge, a, r));
  return with_sign(select(huge, y + 0.6931471824645996, y), x);
}

Expr arccosh(Expr x) {
  const Expr t = x - 1.0, huge = lt(large, x);
  const Expr y = log1p(select(huge, x, t + sqrt(t * (t + 2.0))));
  return select(lt(x, 1.0), std::numeric_limits<double>::quiet_NaN(), select(huge, y + 0.6931471824645996, y));
}

Expr arctanh(Expr x) {
  const Expr a = abs(x);
  return with_sign(log1p((a + a) / (1.0 - a)) * 0.5, x);
}

}  // namespace weft::kernel::expansion
