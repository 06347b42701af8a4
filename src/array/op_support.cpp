#include "array/op_support.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace weft::detail {

std::string describe(const array& a) { return std::string(dtype_name(a.dtype())) + " " + to_string(a.shape()); }

Dtype floating_of(Dtype t) { return is_float(t) || is_complex(t) ? t : float32; }
Dtype accumulator(Dtype t) { return is_low_float(t) ? float32 : t; }

graph::Value to_dtype(const graph::Value& v, Dtype dtype) {
  if (v.dtype() == dtype) return v;
  const graph::Node& node = *v.node;
  if (node.op() != graph::Op::constant || is_float(v.dtype()) || is_complex(v.dtype()) || is_complex(dtype))
    return graph::cast(v, dtype);
  graph::Attrs attrs = node.attrs();
  attrs.number = kernel::reference_cast(attrs.number, attrs.dtype, dtype);
  attrs.dtype = dtype;
  return graph::make(graph::Op::constant, {}, std::move(attrs));
}

std::vector<graph::Value> broadcast_together(const char* op, std::vector<graph::Value> values) {
  const auto same = [&](const graph::Value& v) { return v.shape() == values.front().shape(); };
  if (std::all_of(values.begin(), values.end(), same)) return values;
  for (const size_t k : {0, 1})  // a number beside an array
    if (values.size() == 2 && values[k].type().rank() == 0) {
      values[k] = graph::broadcast(values[k], values[1 - k].shape());
      return values;
    }
  Shape shape = values.front().shape();
  for (const graph::Value& v : values) {
    try {
      shape = broadcast_shapes(shape, v.shape());
    } catch (const std::invalid_argument&) {
      std::string text = "shapes";
      for (const graph::Value& each : values) text += " " + to_string(each.shape());
      throw_invalid(op, text + " cannot be broadcast together: sizes must be equal or 1, counted from the last axis");
    }
  }
  for (graph::Value& v : values) v = graph::broadcast(v, shape);
  return values;
}

int64_t one_axis(const char* op, int axis, size_t ndim) { return normalize_axis(op, axis, static_cast<int>(ndim)); }

std::vector<int64_t> sorted_axes(const char* op, const std::vector<int>& axes, size_t ndim) {
  std::vector<int64_t> result;
  for (int axis : axes) result.push_back(one_axis(op, axis, ndim));
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) throw_invalid(op, "an axis is named twice");
  return result;
}

std::vector<int> all_axes(const array& a) {
  std::vector<int> axes(a.ndim());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

void require_shape(const char* op, const Shape& shape) {
  for (const Dim& d : shape)
    if (d.bound() < 0) throw_invalid(op, "negative sizes are not allowed, got shape " + to_string(shape));
}

void require_integer(const char* op, const char* what, const array& a) {
  if (!is_integer(a.dtype())) throw_invalid(op, std::string(what) + " must be integers, got " + describe(a));
}

}  // namespace weft::detail
