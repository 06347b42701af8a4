#pragma once
#include <optional>
#include <vector>

#include "weft/array.h"

/// Computes functions of each element. Part of weft/ops.h, whose head has the dtypes of results. Two operands are
/// promoted and broadcast.
namespace weft {

// Arithmetic of two operands
/// Returns a + b. Integers wrap; bools: a or b.
WEFT_API array add(const array& a, const array& b, StreamOrDevice s = {});
/// Returns a - b. Integers wrap; bools: a xor b.
WEFT_API array subtract(const array& a, const array& b, StreamOrDevice s = {});
/// Returns a · b. Integers wrap; bools: a and b.
WEFT_API array multiply(const array& a, const array& b, StreamOrDevice s = {});
/// Returns a / b; integers and bools are converted to float32 first.
WEFT_API array divide(const array& a, const array& b, StreamOrDevice s = {});
/// Returns ⌊a / b⌋, integers too. Of complex numbers: the quotient. Integers divided by 0 are 0.
WEFT_API array floor_divide(const array& a, const array& b, StreamOrDevice s = {});
/// Returns a - b ⌊a / b⌋, which has the sign of b. Integers by 0 are 0.
WEFT_API array remainder(const array& a, const array& b, StreamOrDevice s = {});
/// Returns {floor_divide(a, b), remainder(a, b)}.
WEFT_API std::vector<array> divmod(const array& a, const array& b, StreamOrDevice s = {});
/// Returns the larger of a and b, NaN where either is NaN. Bools: a or b.
WEFT_API array maximum(const array& a, const array& b, StreamOrDevice s = {});
/// Returns the smaller of a and b, NaN where either is NaN. Bools: a and b.
WEFT_API array minimum(const array& a, const array& b, StreamOrDevice s = {});
/// Returns a to the power b. Integers are multiplied in their own dtype and wrap; negative exponents of integers give
/// 0.
WEFT_API array power(const array& a, const array& b, StreamOrDevice s = {});
/// Returns the angle of the point (b, a) in (-π, π]: arctan(a / b) in the right quadrant. Throws std::invalid_argument
/// for complex numbers.
WEFT_API array arctan2(const array& a, const array& b, StreamOrDevice s = {});
/// Returns log(exp(a) + exp(b)) without overflow.
WEFT_API array logaddexp(const array& a, const array& b, StreamOrDevice s = {});
/// Returns a·log(b), and 0 where a is 0 (whatever b is, unless it is NaN). The dtype is as of divide.
WEFT_API array xlogy(const array& a, const array& b, StreamOrDevice s = {});
/// Returns a limited to [low, high], in the promoted dtype; either limit may be missing (std::invalid_argument for
/// both).
WEFT_API array clip(const array& a, const std::optional<array>& low = std::nullopt,
                    const std::optional<array>& high = std::nullopt, StreamOrDevice s = {});

// Bits: integers and bools. Other dtypes throw std::runtime_error; bitwise_invert throws std::invalid_argument.
/// Returns the bits that are set in both.
WEFT_API array bitwise_and(const array& a, const array& b, StreamOrDevice s = {});
/// Returns the bits that are set in either.
WEFT_API array bitwise_or(const array& a, const array& b, StreamOrDevice s = {});
/// Returns the bits that are set in exactly one.
WEFT_API array bitwise_xor(const array& a, const array& b, StreamOrDevice s = {});
/// Returns a · 2ᵇ, without the bits that are shifted out; 0 for b < 0 or b of the width and more. Bools become uint8.
WEFT_API array left_shift(const array& a, const array& b, StreamOrDevice s = {});
/// Returns ⌊a / 2ᵇ⌋; every bit is shifted out for b < 0 or b of the width and more. Bools become uint8.
WEFT_API array right_shift(const array& a, const array& b, StreamOrDevice s = {});
/// Returns the complement of each bit; of bools: not a.
WEFT_API array bitwise_invert(const array& a, StreamOrDevice s = {});

// Signs, roundings and parts
/// Returns a.
inline array positive(const array& a, StreamOrDevice = {}) { return a; }
/// Returns -a. Throws std::invalid_argument for bools.
WEFT_API array negative(const array& a, StreamOrDevice s = {});
/// Returns |a|; of complex numbers float32.
WEFT_API array abs(const array& a, StreamOrDevice s = {});
/// Returns -1, 0 or 1 by the sign of a; of a complex number z / |z|, or 0.
WEFT_API array sign(const array& a, StreamOrDevice s = {});
/// Returns the largest integer not above a. As ceil, trunc and round it leaves integers as they are; complex numbers
/// throw std::invalid_argument in all of them but round.
WEFT_API array floor(const array& a, StreamOrDevice s = {});
/// Returns the smallest integer not below a.
WEFT_API array ceil(const array& a, StreamOrDevice s = {});
/// Returns a without its fraction: rounded toward 0.
WEFT_API array trunc(const array& a, StreamOrDevice s = {});
/// Returns a rounded to the nearest integer, halves to the even one; with `decimals` to that many digits after the
/// point (negative: to tens, hundreds, …).
WEFT_API array round(const array& a, StreamOrDevice s = {});
WEFT_API array round(const array& a, int decimals, StreamOrDevice s = {});
/// Returns a with NaN replaced by `nan`, +∞ by `posinf` and -∞ by `neginf` (by default the largest finite numbers of
/// the dtype). Other dtypes than floats are returned as they are.
WEFT_API array nan_to_num(const array& a, float nan = 0, const std::optional<float>& posinf = std::nullopt,
                          const std::optional<float>& neginf = std::nullopt, StreamOrDevice s = {});
/// Returns the real part, float32 of complex64 and float64 of complex128; of real numbers: a.
WEFT_API array real(const array& a, StreamOrDevice s = {});
/// Returns the imaginary part, of the same dtypes; of real numbers: zeros. Gradients of complex numbers are those of
/// MLX and PyTorch: of a real function f of z = x + iy it is ∂f/∂x + i ∂f/∂y.
WEFT_API array imag(const array& a, StreamOrDevice s = {});
/// Returns the complex conjugate; of real numbers: a.
WEFT_API array conjugate(const array& a, StreamOrDevice s = {});
/// Returns a rounded to float8_e4m3, saturating at ±448, as its bits in uint8. Throws std::invalid_argument unless a is
/// floating.
WEFT_API array to_fp8(const array& a, StreamOrDevice s = {});
/// Returns the numbers whose float8_e4m3 bits are a (uint8, or float8_e4m3 as it is), in `dtype`.
WEFT_API array from_fp8(const array& a, Dtype dtype = bfloat16, StreamOrDevice s = {});

// Functions of one operand: integers and bools are converted to float32
/// Returns a²; integers keep their dtype and wrap.
WEFT_API array square(const array& a, StreamOrDevice s = {});
/// Returns 1 / a.
WEFT_API array reciprocal(const array& a, StreamOrDevice s = {});
/// Returns √a; NaN for a < 0.
WEFT_API array sqrt(const array& a, StreamOrDevice s = {});
/// Returns 1 / √a.
WEFT_API array rsqrt(const array& a, StreamOrDevice s = {});
/// Returns eᵃ.
WEFT_API array exp(const array& a, StreamOrDevice s = {});
/// Returns eᵃ - 1, precise near 0.
WEFT_API array expm1(const array& a, StreamOrDevice s = {});
/// Returns the natural logarithm.
WEFT_API array log(const array& a, StreamOrDevice s = {});
/// Returns the logarithm to base 2.
WEFT_API array log2(const array& a, StreamOrDevice s = {});
/// Returns the logarithm to base 10.
WEFT_API array log10(const array& a, StreamOrDevice s = {});
/// Returns log(1 + a), precise near 0.
WEFT_API array log1p(const array& a, StreamOrDevice s = {});
/// Returns the sine of an angle in radians.
WEFT_API array sin(const array& a, StreamOrDevice s = {});
/// Returns the cosine of an angle in radians.
WEFT_API array cos(const array& a, StreamOrDevice s = {});
/// Returns the tangent of an angle in radians.
WEFT_API array tan(const array& a, StreamOrDevice s = {});
/// Returns the inverse sine, in [-π/2, π/2]; NaN beyond ±1.
WEFT_API array arcsin(const array& a, StreamOrDevice s = {});
/// Returns the inverse cosine, in [0, π]; NaN beyond ±1.
WEFT_API array arccos(const array& a, StreamOrDevice s = {});
/// Returns the inverse tangent, in (-π/2, π/2).
WEFT_API array arctan(const array& a, StreamOrDevice s = {});
/// Returns the hyperbolic sine.
WEFT_API array sinh(const array& a, StreamOrDevice s = {});
/// Returns the hyperbolic cosine.
WEFT_API array cosh(const array& a, StreamOrDevice s = {});
/// Returns the hyperbolic tangent.
WEFT_API array tanh(const array& a, StreamOrDevice s = {});
/// Returns the inverse hyperbolic sine.
WEFT_API array arcsinh(const array& a, StreamOrDevice s = {});
/// Returns the inverse hyperbolic cosine; NaN for a < 1.
WEFT_API array arccosh(const array& a, StreamOrDevice s = {});
/// Returns the inverse hyperbolic tangent; NaN beyond ±1.
WEFT_API array arctanh(const array& a, StreamOrDevice s = {});
/// Returns the error function 2/√π ∫₀ᵃ exp(-t²) dt.
WEFT_API array erf(const array& a, StreamOrDevice s = {});
/// Returns the inverse of erf, for a in [-1, 1].
WEFT_API array erfinv(const array& a, StreamOrDevice s = {});
/// Returns the logarithm of the standard normal distribution function at a, accurate in both tails.
WEFT_API array log_ndtr(const array& a, StreamOrDevice s = {});
/// Returns I₀(a)·exp(-|a|), the modified Bessel function of order 0 scaled so that it does not overflow.
WEFT_API array i0e(const array& a, StreamOrDevice s = {});
/// Returns I₁(a)·exp(-|a|), the modified Bessel function of order 1 scaled so that it does not overflow.
WEFT_API array i1e(const array& a, StreamOrDevice s = {});
/// Returns 1 / (1 + exp(-a)).
WEFT_API array sigmoid(const array& a, StreamOrDevice s = {});
/// Returns an angle in radians converted to degrees.
WEFT_API array degrees(const array& a, StreamOrDevice s = {});
/// Returns an angle in degrees converted to radians.
WEFT_API array radians(const array& a, StreamOrDevice s = {});

// Operators: on the calling thread's default stream
/// Returns add, subtract, multiply, divide and remainder of a and b.
WEFT_API array operator+(const array& a, const array& b);
WEFT_API array operator-(const array& a, const array& b);
WEFT_API array operator*(const array& a, const array& b);
WEFT_API array operator/(const array& a, const array& b);
WEFT_API array operator%(const array& a, const array& b);
/// Returns negative(a).
WEFT_API array operator-(const array& a);
/// Returns the comparison of each element, bool. `a == b` is an array: see array_equal for one truth value.
WEFT_API array operator==(const array& a, const array& b);
WEFT_API array operator!=(const array& a, const array& b);
WEFT_API array operator<(const array& a, const array& b);
WEFT_API array operator<=(const array& a, const array& b);
WEFT_API array operator>(const array& a, const array& b);
WEFT_API array operator>=(const array& a, const array& b);
/// Returns logical_and and logical_or of a and b. Both operands are built.
WEFT_API array operator&&(const array& a, const array& b);
WEFT_API array operator||(const array& a, const array& b);
/// Returns bitwise_and, bitwise_or, bitwise_xor, left_shift and right_shift of a and b.
WEFT_API array operator&(const array& a, const array& b);
WEFT_API array operator|(const array& a, const array& b);
WEFT_API array operator^(const array& a, const array& b);
WEFT_API array operator<<(const array& a, const array& b);
WEFT_API array operator>>(const array& a, const array& b);
/// Returns bitwise_invert(a).
WEFT_API array operator~(const array& a);

}  // namespace weft
