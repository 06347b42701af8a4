// sin and cos in float32. The quadrant n is x * 2/pi rounded; x - n pi/2 takes pi/2 in three positive float32 parts (Cody
// and Waite): with fma the first step is exact and the others round relative to what is left. On |r| <= pi/4
//
//   sin r = r (1 + r^2 S(r^2))            degree 7, 3.7e-9 relative
//   cos r = 1 - r^2 / 2 + r^4 C(r^2)      degree 8, 1.2e-10 relative
//
// Largest errors over a sixteenth of all values: 1.95 ulp for |x| <= 1e4, 2.4 ulp for |x| <= 1e6. Beyond, the product n
// loses its fraction and r leaves the interval: the error stays below 1e-4 absolute up to 1e7. Past that the argument
// itself says little, and results only stay within [-1, 1]. The infinities give NaN.
#include "kernel/expand_emit.h"

namespace weft::kernel::expansion {
namespace {

struct Quadrant {
  Expr n, sine, cosine;
};

Quadrant reduce_quadrant(Expr x) {
  const Expr n = round(x * 0.6366197723675814) + 0.0;  // n = -0, or a negative part below, would lose the sign of x = -0
  Expr r = fma(n, -1.570796251296997, x);
  r = fma(n, -7.549789415861596e-08, r);
  r = fma(n, -5.390302529957765e-15, r);
  r = clamp(r, -1.6, 1.6);
  const Expr z = r * r;
  const Expr sine = r * fma(z, horner(z, {-0.0001951840822584927, 0.008332190103828907, -0.16666655242443085}), 1.0);
  const Expr c = horner(z, {2.4432336431345902e-05, -0.0013887309469282627, 0.04166664555668831});
  const Expr cosine = fma(z * z, c, fma(z, -0.5, 1.0));
  return {cast(n, int32), sine, cosine};
}

// Quadrants 0 to 3 of the sine: s, c, -s, -c.
Expr in_quadrant(Expr n, Expr sine, Expr cosine) {
  const Expr v = select(eq(n & 1.0, 0.0), sine, cosine);
  return bitcast(bitcast(v, int32) ^ ((n & 2.0) << 30), float32);
}

}  // namespace

Expr sin(Expr x) {
  const Quadrant q = reduce_quadrant(x);
  return in_quadrant(q.n, q.sine, q.cosine);
}

Expr cos(Expr x) {
  const Quadrant q = reduce_quadrant(x);
  return in_quadrant(q.n + 1.0, q.sine, q.cosine);
}

// s / c, and in odd quadrants -c / s.
Expr tan(Expr x) {
  const Quadrant q = reduce_quadrant(x);
  const Expr even = eq(q.n & 1.0, 0.0);
  return select(even, q.sine, -q.cosine) / select(even, q.cosine, q.sine);
}

}  // namespace weft::kernel::expansion
