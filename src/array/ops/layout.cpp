// weft/ops/layout.h: dtype, memory layout and graph dependencies of an array, without a change of its elements.
#include <mutex>
#include <numeric>
#include <shared_mutex>

#include "array/host.h"
#include "array/op_support.h"
#include "array/realise.h"
#include "base/error.h"
#include "compiler/layout/view.h"
#include "weft/ops.h"

namespace weft {
namespace {

using detail::describe;

Dtype unsigned_of(int bytes) { return bytes == 1 ? uint8 : bytes == 2 ? uint16 : bytes == 4 ? uint32 : uint64; }

graph::Value bitcast(const graph::Value& v, Dtype dtype) {
  if (v.dtype() == dtype) return v;
  graph::Attrs attrs;
  attrs.dtype = dtype;
  return graph::make(graph::Op::bitcast, {v}, std::move(attrs));
}

// Returns by how many bits each neighbour of `bytes` bytes is shifted within a word (little-endian). Same dtype and
// rank as `like`.
graph::Value shifts(const graph::Value& like, int bytes) {
  const graph::Value index = graph::iota(like.shape(), like.type().rank() - 1, like.dtype());
  return index * graph::full(like.shape(), like.dtype(), Number::of_int(8 * bytes));
}

// Splits each word of the last axis into its parts, the lowest bytes first.
graph::Value narrowed(const graph::Value& v, int to) {
  const int from = v.dtype().size();
  Shape shape = v.shape(), repeated = v.shape();
  shape.back() = int64_t{shape.back()} * (from / to);
  repeated.emplace_back(from / to);
  const graph::Value words = graph::broadcast(graph::expand_dims(v, {v.type().rank()}), repeated);
  return graph::reshape(graph::cast(graph::binary(graph::Op::shr, words, shifts(words, to)), unsigned_of(to)), shape);
}

// Joins neighbours along the last axis to one word.
graph::Value widened(const graph::Value& v, int to) {
  const int from = v.dtype().size();
  Shape parts = v.shape();
  parts.back() = int64_t{parts.back()} / (to / from);
  parts.emplace_back(to / from);
  const graph::Value wide = graph::cast(graph::reshape(v, parts), to < 4 ? uint32 : unsigned_of(to));
  const graph::Value word =
      graph::sum(graph::binary(graph::Op::shl, wide, shifts(wide, from)), {wide.type().rank() - 1});
  return graph::cast(word, unsigned_of(to));
}

}  // namespace

array view(const array& a, const Dtype& dtype, StreamOrDevice s) {
  const detail::OnStream on_stream("view", s);
  if (a.dtype() == dtype) return a;
  const int from = a.dtype().size(), to = dtype.size();
  if (from != to && a.ndim() == 0)
    throw_invalid("view",
                  "a scalar has no axis that could take up another width: " + describe(a) + " as " + dtype_name(dtype));
  if (from < to && int64_t{a.shape().back()} % (to / from) != 0)
    throw_invalid("view", "the last axis of " + describe(a) + " does not divide into elements of " + dtype_name(dtype));
  // A complex number is a pair of its parts along the last axis.
  if (is_complex(a.dtype())) {
    const array parts = stack({real(a, s), imag(a, s)}, -1, s);
    return a.ndim() == 0 ? reshape(view(parts, dtype, s), {}, s) : view(flatten(parts, -2, -1, s), dtype, s);
  }
  if (is_complex(dtype)) {
    const array parts = view(a.ndim() == 0 ? reshape(a, {1}, s) : a, real_of(dtype), s);
    Shape shape = a.shape();
    if (from < to) shape.back() = int64_t{shape.back()} / (to / from);
    const array pairs = unflatten(parts, -1, {-1, 2}, s);
    return array(graph::complex(reshape(take(pairs, 0, -1, s), shape, s).value(),
                                reshape(take(pairs, 1, -1, s), shape, s).value()));
  }
  graph::Value bits = a.dtype() == bool_ ? graph::cast(a.value(), uint8) : bitcast(a.value(), unsigned_of(from));
  if (from > to) bits = narrowed(bits, to);
  if (from < to) bits = widened(bits, to);
  return array(dtype == bool_ ? graph::cast(bits, bool_) : bitcast(bits, dtype));
}

// Arrays are values: a copy is the array itself.
array copy(array a, StreamOrDevice s) {
  const detail::OnStream on_stream("copy", s);
  return a;
}

array stop_gradient(const array& a, StreamOrDevice s) {
  const detail::OnStream on_stream("stop_gradient", s);
  return array(graph::stop_gradient(a.value()));
}

namespace {

/// Returns whether `a` is column-major, or will be once it is computed.
bool is_column_major(const array& a) {
  if (!is_static(a.shape())) return false;
  std::shared_lock lock(graph::structure());
  const std::optional<Strides> strides = compiler::strides_once_computed(a.value());
  const Shape reversed(a.shape().rbegin(), a.shape().rend());
  return strides && detail::is_row_major(reversed, Strides(strides->rbegin(), strides->rend()));
}

graph::Value packed(const graph::Value& v) {
  graph::Attrs attrs;
  attrs.shape = v.shape();
  attrs.packed = true;
  return graph::make(graph::Op::reshape, {v}, std::move(attrs));
}

graph::Value axes_reversed(const graph::Value& v) {
  std::vector<int64_t> order(v.shape().size());
  for (size_t k = 0; k < order.size(); ++k) order[k] = static_cast<int64_t>(order.size() - 1 - k);
  return graph::permute(v, order);
}

}  // namespace

array contiguous(const array& a, bool allow_col_major, StreamOrDevice s) {
  const detail::OnStream on_stream("contiguous", s);
  if (!allow_col_major || a.ndim() == 0 || !is_column_major(a)) return array(packed(a.value()));
  if (detail::has_data(a.value())) return a;
  return array(axes_reversed(packed(axes_reversed(a.value()))));
}

array as_strided(const array& a, Shape shape, Strides strides, size_t offset, StreamOrDevice s) {
  const detail::OnStream on_stream("as_strided", s);
  detail::require_shape("as_strided", shape);
  if (shape.size() > strides.size())
    throw_invalid("as_strided",
                  "shape " + to_string(shape) + " needs as many strides, got " + std::to_string(strides.size()));
  auto first = static_cast<int64_t>(offset), last = first;
  for (size_t k = 0; k < shape.size(); ++k) (strides[k] < 0 ? first : last) += (int64_t{shape[k]} - 1) * strides[k];
  if (num_elements(shape) > 0 && (first < 0 || last >= static_cast<int64_t>(a.size())))
    throw_invalid("as_strided",
                  "positions " + std::to_string(first) + " to " + std::to_string(last) + " leave " + describe(a));
  const Dtype t = last <= INT32_MAX ? int32 : int64;
  graph::Value index = graph::full(shape, t, Number::of_int(static_cast<int64_t>(offset)));
  for (size_t k = 0; k < shape.size(); ++k)
    if (strides[k] != 0)
      index = index + graph::iota(shape, static_cast<int>(k), t) * graph::full(shape, t, Number::of_int(strides[k]));
  if (num_elements(shape) == 0) return zeros(shape, a.dtype(), s);
  return take(a, array(index), s);
}

std::vector<array> depends(const std::vector<array>& inputs, const std::vector<array>& dependencies) {
  graph::Values all;
  for (const auto* list : {&inputs, &dependencies})
    for (const array& a : *list) all.push_back(a.value());
  auto region = std::make_shared<graph::Composite>();
  region->name = "depends";
  region->key = std::to_string(inputs.size());
  region->body = [n = inputs.size()](std::span<const graph::Value> in) {
    return graph::Values(in.begin(), in.begin() + static_cast<int64_t>(n));
  };
  std::vector<array> results;
  if (inputs.empty()) return results;
  for (graph::Value& v : graph::composite(std::move(region), std::move(all))) results.emplace_back(std::move(v));
  return results;
}

array number_of_elements(const array& a, std::vector<int> axes, bool inverted, Dtype dtype, StreamOrDevice s) {
  const detail::OnStream on_stream("number_of_elements", s);
  Shape sizes;
  for (int64_t axis : detail::sorted_axes("number_of_elements", axes, a.ndim()))
    sizes.push_back(a.shape()[static_cast<size_t>(axis)]);
  array count(num_elements(sizes), dtype);
  if (!is_static(sizes))
    count = array(graph::number_of_elements(a.shape(), detail::sorted_axes("number_of_elements", axes, a.ndim()),
                                            dtype == float64 ? float64 : float32));  // of each call
  return astype(inverted ? reciprocal(count, s) : count, dtype, s);
}

}  // namespace weft
