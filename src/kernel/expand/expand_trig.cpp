// sin, cos and tan in float32, of |x|: the sign of x goes into the result. With the quadrant n, the integer nearest to
// |x| 2/pi, and r = |x| - n pi/2,
//
//   sin r = r + r^3 S(r^2)                degree 7, 3.7e-9 relative
//   cos r = 1 - r^2 / 2 + r^4 C(r^2)      degree 8, 1.2e-10 relative
//
// Below 2^18, n pi/2 is taken from |x| in three float32 parts of pi/2 (Cody and Waite, Software Manual for the
// Elementary Functions, 1980): with fma the first step is exact, and the others round relative to what is left. r
// leaves [-pi/4, pi/4] by 0.01 at most. (From 2^18 on, some r are so small compared with the third part that its
// rounding shows.)
//
// From there on n and r come out of the bits of 2/pi (Payne and Hanek, Radian reduction for trigonometric functions,
// SIGNUM Newsletter 18, 1983). With the mantissa m, |x| = m 2^(e - 23), those bits of 2/pi that make multiples of 4 do
// not matter: of the next 96 bits, times m, the upper two are n, the others the fraction. 62 bits of it are computed.
// No float32 lies within 2^-30 of a multiple of pi/2 (the closest is 16367173 2^72), so that 30 bits at least are right
// of what is left.
//
// Largest errors over all float32 values: sin 1.58, cos 1.75, tan 3.75 ulp. The infinities give NaN.
#include <array>
#include <numbers>

#include "kernel/expand/expand_emit.h"

namespace weft::kernel::expansion {
namespace {

constexpr double reduced_in_parts = 262144;  // 2^18: below, three parts of pi/2 will do

/// The quadrant (int32, its two lowest bits) and what is left of a magnitude.
struct ReducedAngle {
  Expr quadrant, rest;
};

/// 25 zeros, then the bits of 2/pi behind the point: a magnitude of exponent e wants those from the e-th on.
constexpr std::array<uint32_t, 7> two_over_pi{0x00000051, 0x7CC1B727, 0x220A94FE, 0x13ABE8FA,
                                              0x9A6EE06D, 0xB14ACC9E, 0x21C820FF};

Expr constant_like(Expr v, uint32_t number) {
  return {v.emitter, v.emitter->constant(v.emitter->type(v.value), Number::of_int(number))};
}

/// Of `magnitude` from 1 on.
ReducedAngle reduce_by_bits(Expr magnitude) {
  const Expr bits = bitcast(magnitude, uint32), mantissa = (bits & 0x7FFFFF) | 0x800000,
             exponent = (bits >> 23) - 127.0;
  const Expr at_32 = eq(exponent & 32, 0.0), at_64 = eq(exponent & 64, 0.0);
  const auto word = [&](size_t k) {  // k of the four from the exponent's on
    const auto either = [&](size_t at) {
      return select(at_32, constant_like(bits, two_over_pi[at]), constant_like(bits, two_over_pi[at + 1]));
    };
    return select(at_64, either(k), either(k + 2));
  };
  const Expr by = exponent & 31, back = 32.0 - by;
  const auto window = [&](Expr left, Expr right) {
    return apply(ScalarOp::shl, {left, by}) | apply(ScalarOp::shr, {right, back});
  };
  const Expr w[] = {word(0), word(1), word(2), word(3)};
  const Expr high = window(w[0], w[1]), middle = window(w[1], w[2]), low = window(w[2], w[3]);
  const auto upper = [&](Expr part) { return apply(ScalarOp::mulhi, {mantissa, part}); };
  const Expr from_low = upper(low), second = mantissa * middle + from_low;
  const Expr first = mantissa * high + upper(middle) + cast(lt(second, from_low), uint32);
  // As a signed number the fraction is that from the nearest quadrant.
  const Expr fraction = (first << 2) | (second >> 30);
  const Expr quadrant = (first >> 30) + (fraction >> 31);
  const Expr exact = fma(cast(bitcast(fraction, int32), float64), 0x1p-32, cast(second << 2, float64) * 0x1p-64);
  const Expr not_a_number = magnitude - magnitude;  // of infinity
  return {bitcast(quadrant, int32), cast(exact * (std::numbers::pi / 2), float32) + not_a_number};
}

ReducedAngle reduce(Expr magnitude) {
  const Expr shifted = fma(magnitude, 0.6366197723675814, shifter), n = shifted - shifter;
  Expr r = fma(n, -1.570796251296997, magnitude);
  r = fma(n, -7.549789415861596e-08, r);
  r = fma(n, -5.390302529957765e-15, r);
  const std::vector<Expr> out = when(le(reduced_in_parts, magnitude), {bitcast(shifted, int32), r}, [&] {
    const ReducedAngle far = reduce_by_bits(magnitude);
    return std::vector<Expr>{far.quadrant, far.rest};
  });
  return {out[0], out[1]};
}

Expr sine(Expr r, Expr z) {
  return fma(r * z, horner(z, {-0.0001951840822584927, 0.008332190103828907, -0.16666655242443085}), r);
}

Expr cosine(Expr z) {
  const Expr c = horner(z, {2.4432336431345902e-05, -0.0013887309469282627, 0.04166664555668831});
  return fma(z * z, c, fma(z, -0.5, 1.0));
}

/// v with its sign turned where `bits` is negative.
Expr flip_sign(Expr v, Expr bits) { return bitcast(bitcast(v, int32) ^ (bits & -2147483648.0), float32); }

}  // namespace

// Quadrants 0 to 3: s, c, -s, -c.
Expr sin(Expr x) {
  const ReducedAngle to = reduce(abs(x));
  const Expr z = to.rest * to.rest;
  const Expr v = select(eq(to.quadrant & 1, 0.0), sine(to.rest, z), cosine(z));
  return flip_sign(v, (to.quadrant << 30) ^ bitcast(x, int32));
}

// Quadrants 0 to 3: c, -s, -c, s.
Expr cos(Expr x) {
  const ReducedAngle to = reduce(abs(x));
  const Expr z = to.rest * to.rest;
  const Expr v = select(eq(to.quadrant & 1, 0.0), cosine(z), sine(to.rest, z));
  return flip_sign(v, (to.quadrant + 1) << 30);
}

// s / c, and in odd quadrants -c / s.
Expr tan(Expr x) {
  const ReducedAngle to = reduce(abs(x));
  const Expr z = to.rest * to.rest, s = sine(to.rest, z), c = cosine(z);
  const Expr even = eq(to.quadrant & 1, 0.0);
  return flip_sign(select(even, s, c) / select(even, c, s), (to.quadrant << 31) ^ bitcast(x, int32));
}

}  // namespace weft::kernel::expansion
