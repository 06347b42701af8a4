// weft/ops/arithmetic.h and comparison.h. Each function is one scalar operator after promotion and broadcasting.
#include <cmath>
#include <limits>

#include "array/op_support.h"
#include "base/error.h"
#include "graph/complex/complex.h"
#include "weft/ops.h"

namespace weft {
namespace {

using detail::describe;
using detail::floating_of;
using graph::Op;

std::vector<graph::Value> promoted(const char* op, const array& a, const array& b, Dtype dtype) {
  return detail::broadcast_together(op, {detail::to_dtype(a.value(), dtype), detail::to_dtype(b.value(), dtype)});
}

array binary(const char* op, Op node, const array& a, const array& b, Dtype dtype, const StreamOrDevice& s) {
  const detail::OnStream on_stream(op, s);
  auto v = promoted(op, a, b, dtype);
  return array(graph::binary(node, std::move(v[0]), std::move(v[1])));
}

array compare(const char* op, Op node, const array& a, const array& b, const StreamOrDevice& s) {
  return binary(op, node, a, b, promote_types(a.dtype(), b.dtype()), s);
}

// Builds a binary operator; on bools it is the operator `logical`, which gives the same for 0 and 1.
array arithmetic(const char* op, Op node, Op logical, const array& a, const array& b, const StreamOrDevice& s) {
  const Dtype dtype = promote_types(a.dtype(), b.dtype());
  return binary(op, dtype == bool_ ? logical : node, a, b, dtype, s);
}

// Throws std::runtime_error for other dtypes than integers and bools, as MLX does.
array bitwise(const char* op, Op node, const array& a, const array& b, const StreamOrDevice& s) {
  const Dtype dtype = promote_types(a.dtype(), b.dtype());
  if (!is_integer(dtype) && dtype != bool_)
    throw_failure(op, "integers or bools are needed, got " + describe(a) + " and " + describe(b));
  return binary(op, node, a, b, dtype, s);
}

// Shifts bools as uint8.
array shifted(const char* op, Op node, const array& a, const array& b, const StreamOrDevice& s) {
  if (promote_types(a.dtype(), b.dtype()) != bool_) return bitwise(op, node, a, b, s);
  return bitwise(op, node, astype(a, uint8, s), astype(b, uint8, s), s);
}

// Builds a function that leaves integers and bools unchanged.
array rounding(const char* op, Op node, const array& a, const StreamOrDevice& s) {
  const detail::OnStream on_stream(op, s);
  if (is_complex(a.dtype()) && node != Op::round)
    throw_invalid(op, "complex numbers have no order to be rounded in, got " + describe(a));
  return array(graph::is_inexact(a.dtype()) ? graph::unary(node, a.value())
                                            : graph::stop_gradient(a.value()));  // no gradient, as for floats
}

array number_function(const char* op, Op node, const array& a, const StreamOrDevice& s) {
  const detail::OnStream on_stream(op, s);
  return a.dtype() == bool_ ? a : array(graph::unary(node, a.value()));
}

array constant_bool(const Shape& shape, bool value) { return array(graph::full(shape, bool_, Number::of_int(value))); }

// Returns a to the power n >= 0 by squaring.
graph::Value integer_power(const graph::Value& a, uint64_t n) {
  graph::Value result, square = a;
  for (; n > 0; n >>= 1) {
    if (n & 1) result = result ? result * square : square;
    if (n > 1) square = graph::square(square);
  }
  return result ? result : graph::full_like(a, 1);
}

// Returns a to the power b for exponents that are not known when the graph is built, by squaring bit by bit. Negative
// exponents give 0.
graph::Value integer_power(const graph::Value& a, const graph::Value& b) {
  const Dtype dtype = b.dtype();
  const int bits = dtype.size() * 8 - (is_signed(dtype) ? 1 : 0);
  const auto number = [&](int64_t v) { return graph::full(b.shape(), dtype, Number::of_int(v)); };
  const graph::Value zero = number(0), one = number(1);
  graph::Value result = one, square = a;
  for (int k = 0; k < bits; ++k) {
    const graph::Value bit = graph::binary(Op::bit_and, b, number(static_cast<int64_t>(uint64_t{1} << k)));
    result = graph::select(graph::binary(Op::ne, bit, zero), result * square, result);
    if (k + 1 < bits) square = graph::square(square);
  }
  return is_signed(dtype) ? graph::select(graph::binary(Op::lt, b, zero), zero, result) : result;
}

}  // namespace

array equal(const array& a, const array& b, StreamOrDevice s) { return compare("equal", Op::eq, a, b, s); }
array not_equal(const array& a, const array& b, StreamOrDevice s) { return compare("not_equal", Op::ne, a, b, s); }
array less(const array& a, const array& b, StreamOrDevice s) { return compare("less", Op::lt, a, b, s); }
array less_equal(const array& a, const array& b, StreamOrDevice s) { return compare("less_equal", Op::le, a, b, s); }
array greater(const array& a, const array& b, StreamOrDevice s) { return compare("greater", Op::lt, b, a, s); }
array greater_equal(const array& a, const array& b, StreamOrDevice s) {
  return compare("greater_equal", Op::le, b, a, s);
}

array array_equal(const array& a, const array& b, bool equal_nan, StreamOrDevice s) {
  const detail::OnStream on_stream("array_equal", s);
  if (a.shape() != b.shape()) return constant_bool({}, false);
  array same = equal(a, b, s);
  if (equal_nan) same = logical_or(same, logical_and(isnan(a, s), isnan(b, s), s), s);
  return all(same, false, s);
}

array isnan(const array& a, StreamOrDevice s) {
  const detail::OnStream on_stream("isnan", s);
  if (is_complex(a.dtype())) return logical_or(isnan(real(a, s), s), isnan(imag(a, s), s), s);
  return is_float(a.dtype()) ? not_equal(a, a, s) : constant_bool(a.shape(), false);
}
array isinf(const array& a, StreamOrDevice s) {
  const detail::OnStream on_stream("isinf", s);
  if (is_complex(a.dtype())) return logical_or(isinf(real(a, s), s), isinf(imag(a, s), s), s);
  if (!is_float(a.dtype())) return constant_bool(a.shape(), false);
  const graph::Value size = graph::unary(Op::abs, a.value());
  return array(graph::binary(Op::eq, size, graph::full_like(size, std::numeric_limits<double>::infinity())));
}
array isfinite(const array& a, StreamOrDevice s) {
  const detail::OnStream on_stream("isfinite", s);
  if (is_complex(a.dtype())) return logical_and(isfinite(real(a, s), s), isfinite(imag(a, s), s), s);
  if (!is_float(a.dtype())) return constant_bool(a.shape(), true);
  const graph::Value size = graph::unary(Op::abs, a.value());
  return array(graph::binary(Op::lt, size, graph::full_like(size, std::numeric_limits<double>::infinity())));
}

array logical_not(const array& a, StreamOrDevice s) {
  const detail::OnStream on_stream("logical_not", s);
  return array(graph::unary(Op::bit_not, detail::to_dtype(a.value(), bool_)));
}
array logical_and(const array& a, const array& b, StreamOrDevice s) {
  return binary("logical_and", Op::bit_and, a, b, bool_, s);
}
array logical_or(const array& a, const array& b, StreamOrDevice s) {
  return binary("logical_or", Op::bit_or, a, b, bool_, s);
}

array add(const array& a, const array& b, StreamOrDevice s) { return arithmetic("add", Op::add, Op::bit_or, a, b, s); }
array subtract(const array& a, const array& b, StreamOrDevice s) {
  return arithmetic("subtract", Op::sub, Op::bit_xor, a, b, s);
}
array multiply(const array& a, const array& b, StreamOrDevice s) {
  return arithmetic("multiply", Op::mul, Op::bit_and, a, b, s);
}
array maximum(const array& a, const array& b, StreamOrDevice s) {
  return arithmetic("maximum", Op::max, Op::bit_or, a, b, s);
}
array minimum(const array& a, const array& b, StreamOrDevice s) {
  return arithmetic("minimum", Op::min, Op::bit_and, a, b, s);
}

array divide(const array& a, const array& b, StreamOrDevice s) {
  return binary("divide", Op::div, a, b, floating_of(promote_types(a.dtype(), b.dtype())), s);
}

// Bools are computed in int32. Complex numbers have no floor: the result is the quotient, as in MLX.
array floor_divide(const array& a, const array& b, StreamOrDevice s) {
  const Dtype dtype = promote_types(a.dtype(), b.dtype());
  if (is_complex(dtype)) return divide(a, b, s);
  return astype(binary("floor_divide", Op::floordiv, a, b, dtype == bool_ ? int32 : dtype, s), dtype, s);
}
array remainder(const array& a, const array& b, StreamOrDevice s) {
  const Dtype dtype = promote_types(a.dtype(), b.dtype());
  return astype(binary("remainder", Op::mod, a, b, dtype == bool_ ? int32 : dtype, s), dtype, s);
}

array power(const array& a, const array& b, StreamOrDevice s) {
  const Dtype dtype = promote_types(a.dtype(), b.dtype());
  const detail::OnStream on_stream("power", s);
  const auto v = promoted("power", a, b, dtype == bool_ ? int32 : dtype);
  if (is_float(dtype) || is_complex(dtype)) return array(graph::binary(Op::pow, v[0], v[1]));
  const graph::Node& exponent = *b.value().node;
  const Number n = exponent.attrs().number;
  const bool small = exponent.op() == Op::constant && (n.i >= 0 || b.dtype() != uint64);
  if (small && n.i < 0) return astype(array(graph::zeros_like(v[0])), dtype, s);
  const graph::Value result = small ? integer_power(v[0], static_cast<uint64_t>(n.i)) : integer_power(v[0], v[1]);
  return astype(array(result), dtype, s);
}

array clip(const array& a, const std::optional<array>& low, const std::optional<array>& high, StreamOrDevice s) {
  if (!low && !high) throw_invalid("clip", "give at least one of low and high");
  array result = low ? maximum(a, *low, s) : a;
  return high ? minimum(result, *high, s) : result;
}

array bitwise_and(const array& a, const array& b, StreamOrDevice s) {
  return bitwise("bitwise_and", Op::bit_and, a, b, s);
}
array bitwise_or(const array& a, const array& b, StreamOrDevice s) {
  return bitwise("bitwise_or", Op::bit_or, a, b, s);
}
array bitwise_xor(const array& a, const array& b, StreamOrDevice s) {
  return bitwise("bitwise_xor", Op::bit_xor, a, b, s);
}
array left_shift(const array& a, const array& b, StreamOrDevice s) { return shifted("left_shift", Op::shl, a, b, s); }
array right_shift(const array& a, const array& b, StreamOrDevice s) { return shifted("right_shift", Op::shr, a, b, s); }

array negative(const array& a, StreamOrDevice s) {
  if (a.dtype() == bool_)
    throw_invalid("negative", "bools have no negative: use logical_not, or astype(a, int32) first");
  return number_function("negative", Op::neg, a, s);
}
array abs(const array& a, StreamOrDevice s) {
  const detail::OnStream on_stream("abs", s);
  if (is_complex(a.dtype())) return array(graph::absolute(a.value()));
  return is_unsigned(a.dtype()) ? a : number_function("abs", Op::abs, a, s);
}
array sign(const array& a, StreamOrDevice s) {
  if (!is_complex(a.dtype())) return number_function("sign", Op::sign, a, s);
  const array size = abs(a, s);  // z / |z|, and 0 for 0
  return where(equal(size, array(0.0f), s), zeros_like(a, s), divide(a, size, s), s);
}
array square(const array& a, StreamOrDevice s) { return number_function("square", Op::square, a, s); }

array floor(const array& a, StreamOrDevice s) { return rounding("floor", Op::floor, a, s); }
array ceil(const array& a, StreamOrDevice s) { return rounding("ceil", Op::ceil, a, s); }
array round(const array& a, StreamOrDevice s) { return rounding("round", Op::round, a, s); }

array operator+(const array& a, const array& b) { return add(a, b); }
array operator-(const array& a, const array& b) { return subtract(a, b); }
array operator*(const array& a, const array& b) { return multiply(a, b); }
array operator/(const array& a, const array& b) { return divide(a, b); }
array operator%(const array& a, const array& b) { return remainder(a, b); }
array operator-(const array& a) { return negative(a); }
array operator==(const array& a, const array& b) { return equal(a, b); }
array operator!=(const array& a, const array& b) { return not_equal(a, b); }
array operator<(const array& a, const array& b) { return less(a, b); }
array operator<=(const array& a, const array& b) { return less_equal(a, b); }
array operator>(const array& a, const array& b) { return greater(a, b); }
array operator>=(const array& a, const array& b) { return greater_equal(a, b); }
array operator&&(const array& a, const array& b) { return logical_and(a, b); }
array operator||(const array& a, const array& b) { return logical_or(a, b); }
array operator&(const array& a, const array& b) { return bitwise_and(a, b); }
array operator|(const array& a, const array& b) { return bitwise_or(a, b); }
array operator^(const array& a, const array& b) { return bitwise_xor(a, b); }

}  // namespace weft
