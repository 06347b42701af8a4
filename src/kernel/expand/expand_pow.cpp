// pow in float32. 2^(y log2|x|) multiplies the error of the logarithm by up to 150, so log2|x| = e + log2(m) is carried
// as a sum of two floats: with s = (m - 1) / (m + 1), also in two floats,
//
//   log2 m = (2 / ln 2) s + s^3 P(s^2)    P of degree 2, 8.3e-10 relative to the whole
//
// and only the cubic part, below a hundredth of the first, is rounded to one float. The largest error met in 2e7 random
// pairs is 7.0 ulp. The rules for 0, 1, infinities and negative bases are IEEE 754's.
#include <limits>

#include "kernel/expand/expand_emit.h"

namespace weft::kernel::expansion {
namespace {

struct Pair {
  Expr high, low;
};

// a is positive; 0, infinity and NaN are replaced by the caller.
Pair log2_in_two(Expr a) {
  const Expr tiny = lt(a, 0x1p-126);
  const Expr bits = bitcast(select(tiny, a * 0x1p23, a), int32);
  const Expr above = bits - double(0x3F3504F3);
  const Expr m = bitcast(bits - (above & -8388608.0), float32);
  const Expr raw = cast(above >> 23, float32);
  const Expr e = select(tiny, raw - 23.0, raw);

  const Expr f = m - 1.0;  // exact
  const Expr d = m + 1.0;
  const Expr d_low = m - (d - 1.0);  // exact: what the sum lost
  const Expr r = 1.0 / d;
  const Expr s = f * r;
  const Expr s_low = fma(-s, d_low, fma(-s, d, f)) * r;

  constexpr double c_high = 2.885390043258667, c_low = 3.851926067000022e-08;  // 2 / ln 2
  const Expr z = s * s;
  const Expr cubic = s * z * horner(z, {0.43104609847068787, 0.5767503976821899, 0.9617983102798462});
  const Expr p = s * c_high;
  const Expr p_low = fma(s, c_high, -p) + fma(s, c_low, fma(s_low, c_high, cubic));
  const Expr sum = e + p;
  const Expr rest = (e - sum) + p + p_low;  // e is 0 or larger than p: the difference is what the sum lost
  const Expr high = sum + rest;
  return {high, (sum - high) + rest};
}

// 2^(high + low), saturating.
Expr exp2_of_sum(Expr high, Expr low) {
  const Expr c = clamp(high, -160, 130);
  const Expr n = round(c);
  const Expr r = (c - n) + low;
  const Expr p = horner(r, {0.00015328907466027886, 0.0013390976237133145, 0.009618500247597694, 0.05550359562039375,
                            0.24022647738456726, 0.6931471824645996, 1});
  const Expr i = cast(n, int32);
  const Expr half = i >> 1;
  auto power = [](Expr k) { return bitcast((k + 127.0) << 23, float32); };
  return p * power(half) * power(i - half);
}

}  // namespace

Expr pow(Expr x, Expr y) {
  const Expr a = abs(x);
  const Pair l = log2_in_two(a);
  Expr log_high = select(lt(a, infinity), l.high, a);
  log_high = select(eq(a, 0.0), -infinity, log_high);
  const Expr high = y * log_high;
  // The low part is meaningless, perhaps NaN, where the high one saturates.
  const Expr low = select(lt(abs(high), 256.0), fma(y, log_high, -high) + y * l.low, 0.0);
  Expr size = exp2_of_sum(high, low);
  size = select(eq(a, 1.0), 1.0, size);  // y = inf made it NaN
  size = select(eq(y, y), size, y);      // 1 to the NaN is 1 only for x = 1, below

  const Expr half = y * 0.5;
  const Expr whole = eq(floor(y), y), even = eq(floor(half), half);
  const Expr sign = select(even, 0.0, bitcast(x, int32) & -2147483648.0);
  const Expr negative = apply(ScalarOp::bit_and, {lt(x, 0.0), lt(-infinity, x)});
  const Expr signed_size = select(whole, bitcast(bitcast(size, int32) ^ sign, float32), size);
  const Expr undefined = apply(ScalarOp::bit_and, {negative, apply(ScalarOp::bit_not, {whole})});
  const Expr result = select(undefined, std::numeric_limits<double>::quiet_NaN(), signed_size);
  return select(apply(ScalarOp::bit_or, {eq(y, 0.0), eq(x, 1.0)}), 1.0, result);
}

}  // namespace weft::kernel::expansion
