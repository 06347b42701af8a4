// weft/ops/matmul.h: matrix products. Each becomes one dot node: no operand is reshaped, transposed or repeated unless
// leading axes require it.
#include <numeric>

#include "array/op_support.h"
#include "base/error.h"
#include "weft/ops.h"

namespace weft {
namespace {

using detail::describe;

Dtype matmul_dtype(const char* op, const array& a, const array& b) {
  const Dtype dtype = promote_types(a.dtype(), b.dtype());
  if (!is_float(dtype) && !is_complex(dtype))
    throw_invalid(op, "only floating types are supported, got " + describe(a) + " and " + describe(b) +
                          ": convert them with astype");
  return dtype;
}

std::vector<int64_t> first_axes(size_t n) {
  std::vector<int64_t> axes(n);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

// Multiplies a [m, k] by b [..., k, n]. The result of dot is [m, ..., n]; m moves after the leading axes.
graph::Value shared_left(const graph::Value& a, const graph::Value& b, int64_t k_of_b) {
  const graph::Value product = graph::dot(a, b, {a.type().rank() - 1}, {k_of_b});
  if (a.type().rank() == 1) return product;
  std::vector<int64_t> order = first_axes(product.shape().size());
  order.erase(order.begin());
  order.insert(order.end() - 1, 0);
  return graph::permute(product, order);
}

}  // namespace

array matmul(const array& a, const array& b, StreamOrDevice s) {
  const detail::OnStream on_stream("matmul", s);
  if (a.ndim() == 0 || b.ndim() == 0)
    throw_invalid("matmul",
                  "scalars have no matrix product, got " + describe(a) + " and " + describe(b) + ": use multiply");
  const Dtype dtype = matmul_dtype("matmul", a, b);
  const int64_t k_of_a = static_cast<int64_t>(a.ndim()) - 1,
                k_of_b = b.ndim() == 1 ? 0 : static_cast<int64_t>(b.ndim()) - 2;
  if (a.shape()[static_cast<size_t>(k_of_a)] != b.shape()[static_cast<size_t>(k_of_b)])
    throw_invalid("matmul", "the last size of the first array must be the last but one of the second, got " +
                                describe(a) + " and " + describe(b));
  const graph::Value x = detail::to_dtype(a.value(), dtype), y = detail::to_dtype(b.value(), dtype);
  if (b.ndim() <= 2) return array(graph::dot(x, y, {k_of_a}, {k_of_b}));  // one matrix for all leading axes of a
  if (a.ndim() <= 2) return array(shared_left(x, y, k_of_b));
  const Shape lead_a(a.shape().begin(), a.shape().end() - 2), lead_b(b.shape().begin(), b.shape().end() - 2);
  Shape lead;
  try {
    lead = broadcast_shapes(lead_a, lead_b);
  } catch (const std::invalid_argument&) {
    throw_invalid("matmul", "the leading sizes cannot be broadcast together: " + describe(a) + " and " + describe(b));
  }
  const auto repeated = [&](const graph::Value& v) {
    Shape shape = lead;
    shape.insert(shape.end(), v.shape().end() - 2, v.shape().end());
    return graph::broadcast(v, shape);
  };
  const graph::Value left = repeated(x), right = repeated(y);
  const int64_t rank = left.type().rank();
  return array(graph::dot(left, right, {rank - 1}, {rank - 2}, first_axes(lead.size()), first_axes(lead.size())));
}

array addmm(array c, array a, array b, const float& alpha, const float& beta, StreamOrDevice s) {
  const detail::OnStream on_stream("addmm", s);
  array product = matmul(a, b, s);
  const Dtype dtype = promote_types(c.dtype(), product.dtype());
  product = astype(product, dtype, s);
  c = astype(c, dtype, s);
  if (alpha != 1) product = multiply(product, array(alpha, dtype), s);
  if (beta != 1) c = multiply(c, array(beta, dtype), s);
  if (broadcast_shapes(c.shape(), product.shape()) != product.shape())
    throw_invalid("addmm",
                  "the array to add, " + describe(c) + ", does not broadcast to the product " + describe(product));
  return add(c, product, s);
}

array outer(const array& a, const array& b, StreamOrDevice s) {
  return multiply(reshape(a, {-1, 1}, s), flatten(b, s), s);
}

array inner(const array& a, const array& b, StreamOrDevice s) {
  const detail::OnStream on_stream("inner", s);
  if (a.ndim() == 0 || b.ndim() == 0) return multiply(a, b, s);
  const Dtype dtype = matmul_dtype("inner", a, b);
  if (a.shape().back() != b.shape().back())
    throw_invalid("inner", "the last sizes must be equal, got " + describe(a) + " and " + describe(b));
  return array(graph::dot(detail::to_dtype(a.value(), dtype), detail::to_dtype(b.value(), dtype),
                          {static_cast<int64_t>(a.ndim()) - 1}, {static_cast<int64_t>(b.ndim()) - 1}));
}

}  // namespace weft
