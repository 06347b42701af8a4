// weft/ops/creation.h and astype.
#include <cmath>

#include "array/op_support.h"
#include "base/error.h"
#include "weft/ops.h"

namespace weft {
namespace {

Number number_of(double value, Dtype dtype) { return kernel::reference_cast(Number::of_real(value), float64, dtype); }

array filled(const char* op, const Shape& shape, double value, Dtype dtype, const StreamOrDevice& s) {
  const detail::OnStream on_stream(op, s);
  detail::require_shape(op, shape);
  return array(graph::full(shape, dtype, number_of(value, real_of(dtype))));
}

// Returns the row and column indices of a matrix.
std::pair<graph::Value, graph::Value> coordinates(const char* op, Dim n, Dim m) {
  const Shape shape{n, m};
  detail::require_shape(op, shape);
  return {graph::iota(shape, 0, int32), graph::iota(shape, 1, int32)};
}

graph::Value shifted_rows(const graph::Value& rows, int k) {
  return k == 0 ? rows : graph::binary(graph::Op::add, rows, graph::constant(int32, Number::of_int(k)));
}

array triangle(const char* op, const array& x, int k, bool lower) {
  if (x.ndim() < 2) throw_invalid(op, "the array must have at least two dimensions, got " + detail::describe(x));
  const auto [rows, columns] = coordinates(op, x.shape(-2), x.shape(-1));
  const graph::Value inside = lower ? graph::binary(graph::Op::le, columns, shifted_rows(rows, k))
                                    : graph::binary(graph::Op::le, shifted_rows(rows, k), columns);
  return array(graph::select(graph::broadcast(inside, x.shape()), x.value(), graph::zeros_like(x.value())));
}

}  // namespace

array arange(double start, double stop, double step, Dtype dtype, StreamOrDevice s) {
  const detail::OnStream on_stream("arange", s);
  if (dtype == bool_) throw_invalid("arange", std::string("dtype ") + dtype_name(dtype) + " is not supported");
  if (!std::isfinite(start) || !std::isfinite(stop) || std::isnan(step))
    throw_invalid("arange", "start, stop and step must be finite numbers");
  if (step == 0) throw_invalid("arange", "step must not be 0");
  const double count = std::max(std::ceil((stop - start) / step), 0.0);
  if (count >= 0x1p62) throw_invalid("arange", "the range has too many elements");
  const auto n = static_cast<int64_t>(count);
  if (is_integer(dtype)) {  // the step is the difference of converted values, as if each had been converted
    const int64_t first = number_of(start, dtype).i, stride = number_of(start + step, dtype).i - first;
    const array index(graph::iota({n}, 0, dtype));
    const array scaled = stride == 1 ? index : multiply(index, array(stride, dtype), s);
    return first == 0 ? scaled : add(scaled, array(first, dtype), s);
  }
  const Dtype wide = detail::accumulator(real_of(dtype));
  const array index(graph::iota({n}, 0, wide));
  const array scaled = step == 1 ? index : multiply(index, array(step, wide), s);
  return astype(start == 0 ? scaled : add(scaled, array(start, wide), s), dtype, s);
}

array arange(double start, double stop, double step, StreamOrDevice s) { return arange(start, stop, step, float32, s); }
array arange(double start, double stop, Dtype dtype, StreamOrDevice s) { return arange(start, stop, 1.0, dtype, s); }
array arange(double start, double stop, StreamOrDevice s) { return arange(start, stop, 1.0, float32, s); }
array arange(double stop, Dtype dtype, StreamOrDevice s) { return arange(0.0, stop, 1.0, dtype, s); }
array arange(double stop, StreamOrDevice s) { return arange(0.0, stop, 1.0, float32, s); }
array arange(int start, int stop, int step, StreamOrDevice s) {
  return arange(static_cast<double>(start), static_cast<double>(stop), static_cast<double>(step), int32, s);
}
array arange(int start, int stop, StreamOrDevice s) { return arange(start, stop, 1, s); }
array arange(int stop, StreamOrDevice s) { return arange(0, stop, 1, s); }

array full(Shape shape, array value, Dtype dtype, StreamOrDevice s) {
  const detail::OnStream on_stream("full", s);
  detail::require_shape("full", shape);
  return broadcast_to(astype(std::move(value), dtype, s), shape, s);
}
array full(Shape shape, array value, StreamOrDevice s) {
  const Dtype dtype = value.dtype();
  return full(std::move(shape), std::move(value), dtype, s);
}
array full_like(const array& a, array value, Dtype dtype, StreamOrDevice s) {
  return full(a.shape(), std::move(value), dtype, s);
}
array zeros(const Shape& shape, Dtype dtype, StreamOrDevice s) { return filled("zeros", shape, 0, dtype, s); }
array zeros(const Shape& shape, StreamOrDevice s) { return zeros(shape, float32, s); }
array zeros_like(const array& a, StreamOrDevice s) { return filled("zeros_like", a.shape(), 0, a.dtype(), s); }
array ones(const Shape& shape, Dtype dtype, StreamOrDevice s) { return filled("ones", shape, 1, dtype, s); }
array ones(const Shape& shape, StreamOrDevice s) { return ones(shape, float32, s); }
array ones_like(const array& a, StreamOrDevice s) { return filled("ones_like", a.shape(), 1, a.dtype(), s); }

array eye(int n, int m, int k, Dtype dtype, StreamOrDevice s) {
  const detail::OnStream on_stream("eye", s);
  const auto [rows, columns] = coordinates("eye", n, m);
  return astype(array(graph::binary(graph::Op::eq, columns, shifted_rows(rows, k))), dtype, s);
}
array eye(int n, StreamOrDevice s) { return eye(n, n, 0, float32, s); }

array tri(int n, int m, int k, Dtype dtype, StreamOrDevice s) {
  const detail::OnStream on_stream("tri", s);
  const auto [rows, columns] = coordinates("tri", n, m);
  return astype(array(graph::binary(graph::Op::le, columns, shifted_rows(rows, k))), dtype, s);
}
array tril(array x, int k, StreamOrDevice s) {
  const detail::OnStream on_stream("tril", s);
  return triangle("tril", x, k, true);
}
array triu(array x, int k, StreamOrDevice s) {
  const detail::OnStream on_stream("triu", s);
  return triangle("triu", x, k, false);
}

array astype(array a, Dtype dtype, StreamOrDevice s) {
  const detail::OnStream on_stream("astype", s);
  if (a.dtype() == dtype) return a;
  return array(detail::to_dtype(a.value(), dtype));
}

}  // namespace weft
