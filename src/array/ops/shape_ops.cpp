// weft/ops/shape.h. All of these are movement operators, which the compiler turns into index arithmetic of their
// readers.
#include <algorithm>
#include <numeric>

#include "array/op_support.h"
#include "base/error.h"
#include "weft/ops.h"

namespace weft {
namespace {

using detail::describe;

// Returns the size that -1 stands for: the remaining elements, or the remaining symbol.
Dim inferred_size(const array& a, const Shape& shape) {
  const auto refuse = [&] {
    throw_invalid("reshape", "cannot infer -1: " + describe(a) + " does not divide into shape " + to_string(shape));
  };
  std::vector<const Symbol*> left;
  int64_t have = 1, wanted = 1;
  for (const Dim& d : a.shape()) {
    if (d.is_static()) have *= d.bound();
    else left.push_back(d.symbol());
  }
  for (const Dim& d : shape) {
    if (d == -1) continue;
    if (d.is_static()) {
      wanted *= d.bound();
      continue;
    }
    const auto found = std::find(left.begin(), left.end(), d.symbol());
    if (found == left.end()) refuse();
    else left.erase(found);
  }
  if (wanted == 0 || have % wanted != 0) refuse();
  if (left.empty()) return have / wanted;
  if (left.size() > 1 || have != wanted) refuse();
  return left[0];
}

// Returns the size of several neighbouring axes merged into one.
Dim merged_size(const Shape& shape, size_t begin, size_t end) {
  Dim merged = 1;
  for (size_t k = begin; k < end; ++k) {
    if (shape[k] == 1) continue;
    if (merged == 1) merged = shape[k];
    else if (merged.is_static() && shape[k].is_static()) merged = merged.bound() * shape[k].bound();
    else
      throw_invalid("flatten",
                    "an axis of symbolic length cannot be merged with another one, in shape " + to_string(shape));
  }
  return merged;
}

struct Range {
  int64_t start, step;
  Dim size;
};

// Returns NumPy's slice of an axis of n elements.
Range numpy_range(int64_t n, int64_t start, int64_t stop, int64_t step) {
  if (start < 0) start += n;
  if (stop < 0) stop += n;
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, n);
    stop = std::clamp(stop, start, n);
    return {start, step, (stop - start + step - 1) / step};
  }
  start = std::min(start, n - 1);
  stop = std::min(std::max<int64_t>(stop, -1), start);
  const int64_t size = start < 0 ? 0 : (start - stop - step - 1) / -step;
  return {size == 0 ? 0 : start, step, size};
}

Range axis_range(const array& a, size_t axis, const Dim& start, const Dim& stop, const Dim& step) {
  const Dim& n = a.shape()[axis];
  if (step == 0) throw_invalid("slice", "a stride must not be 0");
  if (start == 0 && step == 1 && stop == n) return {0, 1, n};
  if (!stop.is_static()) {
    if (start != 0 || step != 1 || !n.is_static() || stop.bound() > n.bound())
      throw_invalid("slice", "a symbolic stop needs start 0, stride 1 and an axis of at least its bound: axis " +
                                 std::to_string(axis) + " of " + describe(a) + " to " + to_string(Shape{stop}));
    return {0, 1, stop};
  }
  return numpy_range(n, start, stop, step);
}

}  // namespace

array reshape(const array& a, Shape shape, StreamOrDevice s) {
  const detail::OnStream on_stream("reshape", s);
  const auto open = std::count(shape.begin(), shape.end(), -1);
  if (open > 1) throw_invalid("reshape", "only one size may be -1, got shape " + to_string(shape));
  if (open == 1) *std::find(shape.begin(), shape.end(), -1) = inferred_size(a, shape);
  detail::require_shape("reshape", shape);
  return array(graph::reshape(a.value(), shape));
}

array flatten(const array& a, int start_axis, int end_axis, StreamOrDevice s) {
  const detail::OnStream on_stream("flatten", s);
  if (a.ndim() == 0) return reshape(a, {1}, s);
  const int64_t n = static_cast<int64_t>(a.ndim());
  const int64_t first = std::max<int64_t>(start_axis < 0 ? start_axis + n : start_axis, 0);
  const int64_t last = std::min<int64_t>(end_axis < 0 ? end_axis + n : end_axis, n - 1);
  if (last < first || last < 0 || first >= n)
    throw_invalid("flatten", "axes " + std::to_string(start_axis) + " to " + std::to_string(end_axis) +
                                 " are not a range of axes of " + describe(a));
  Shape shape(a.shape().begin(), a.shape().begin() + first);
  shape.push_back(merged_size(a.shape(), static_cast<size_t>(first), static_cast<size_t>(last) + 1));
  shape.insert(shape.end(), a.shape().begin() + last + 1, a.shape().end());
  return reshape(a, shape, s);
}
array flatten(const array& a, StreamOrDevice s) { return flatten(a, 0, -1, s); }

array unflatten(const array& a, int axis, Shape shape, StreamOrDevice s) {
  const detail::OnStream on_stream("unflatten", s);
  if (shape.empty()) throw_invalid("unflatten", "the new shape of an axis must not be empty");
  const int64_t at = detail::one_axis("unflatten", axis, a.ndim());
  const auto open = std::find(shape.begin(), shape.end(), -1);
  if (open != shape.end()) {
    *open = 1;
    const int64_t rest = num_elements(shape), n = a.shape()[static_cast<size_t>(at)];
    if (rest == 0 || n % rest != 0)
      throw_invalid("unflatten", "cannot infer -1: axis " + std::to_string(axis) + " of " + describe(a) +
                                     " does not divide by " + std::to_string(rest));
    *open = n / rest;
  }
  Shape result(a.shape().begin(), a.shape().begin() + at);
  result.insert(result.end(), shape.begin(), shape.end());
  result.insert(result.end(), a.shape().begin() + at + 1, a.shape().end());
  return reshape(a, result, s);
}

array squeeze(const array& a, const std::vector<int>& axes, StreamOrDevice s) {
  const detail::OnStream on_stream("squeeze", s);
  const std::vector<int64_t> sorted = detail::sorted_axes("squeeze", axes, a.ndim());
  for (int64_t axis : sorted)
    if (a.shape()[static_cast<size_t>(axis)] != 1)
      throw_invalid("squeeze", "axis " + std::to_string(axis) + " of " + describe(a) + " is not of size 1");
  return array(graph::squeeze(a.value(), sorted));
}
array squeeze(const array& a, int axis, StreamOrDevice s) { return squeeze(a, std::vector<int>{axis}, s); }
array squeeze(const array& a, StreamOrDevice s) {
  std::vector<int> axes;
  for (size_t k = 0; k < a.ndim(); ++k)
    if (a.shape()[k] == 1) axes.push_back(static_cast<int>(k));
  return squeeze(a, axes, s);
}

array expand_dims(const array& a, const std::vector<int>& axes, StreamOrDevice s) {
  const detail::OnStream on_stream("expand_dims", s);
  return array(graph::expand_dims(a.value(), detail::sorted_axes("expand_dims", axes, a.ndim() + axes.size())));
}
array expand_dims(const array& a, int axis, StreamOrDevice s) { return expand_dims(a, std::vector<int>{axis}, s); }

array transpose(const array& a, std::vector<int> axes, StreamOrDevice s) {
  const detail::OnStream on_stream("transpose", s);
  if (axes.size() != a.ndim())
    throw_invalid("transpose",
                  std::to_string(axes.size()) + " axes given for " + describe(a) + ": every axis must be named once");
  detail::sorted_axes("transpose", axes, a.ndim());
  std::vector<int64_t> order;
  for (int axis : axes) order.push_back(detail::one_axis("transpose", axis, a.ndim()));
  return array(graph::permute(a.value(), order));
}
array transpose(const array& a, StreamOrDevice s) {
  std::vector<int> axes = detail::all_axes(a);
  std::reverse(axes.begin(), axes.end());
  return transpose(a, std::move(axes), s);
}

array swapaxes(const array& a, int axis1, int axis2, StreamOrDevice s) {
  const auto first = static_cast<size_t>(detail::one_axis("swapaxes", axis1, a.ndim()));
  const auto second = static_cast<size_t>(detail::one_axis("swapaxes", axis2, a.ndim()));
  std::vector<int> axes = detail::all_axes(a);
  std::swap(axes[first], axes[second]);
  return transpose(a, std::move(axes), s);
}

array moveaxis(const array& a, int source, int destination, StreamOrDevice s) {
  const auto from = detail::one_axis("moveaxis", source, a.ndim());
  const auto to = detail::one_axis("moveaxis", destination, a.ndim());
  std::vector<int> axes = detail::all_axes(a);
  axes.erase(axes.begin() + from);
  axes.insert(axes.begin() + to, static_cast<int>(from));
  return transpose(a, std::move(axes), s);
}

array broadcast_to(const array& a, const Shape& shape, StreamOrDevice s) {
  const detail::OnStream on_stream("broadcast_to", s);
  detail::require_shape("broadcast_to", shape);
  bool fits = a.ndim() <= shape.size();
  for (size_t k = 0; fits && k < a.ndim(); ++k) {
    const Dim& size = a.shape()[a.ndim() - 1 - k];
    fits = size == 1 || size == shape[shape.size() - 1 - k];
  }
  if (!fits) throw_invalid("broadcast_to", describe(a) + " cannot be broadcast to shape " + to_string(shape));
  return array(graph::broadcast(a.value(), shape));
}

std::vector<array> broadcast_arrays(const std::vector<array>& inputs, StreamOrDevice s) {
  const detail::OnStream on_stream("broadcast_arrays", s);
  std::vector<array> result;
  if (inputs.empty()) return result;
  graph::Values values;
  for (const array& a : inputs) values.push_back(a.value());
  for (graph::Value& v : detail::broadcast_together("broadcast_arrays", std::move(values)))
    result.emplace_back(std::move(v));
  return result;
}

array concatenate(std::vector<array> arrays, int axis, StreamOrDevice s) {
  const detail::OnStream on_stream("concatenate", s);
  if (arrays.empty()) throw_invalid("concatenate", "no arrays given");
  const array& first = arrays.front();
  if (arrays.size() == 1) return first;  // whatever the axis, as in MLX
  const int64_t at = detail::one_axis("concatenate", axis, first.ndim());
  Dtype dtype = first.dtype();
  for (const array& a : arrays) {
    bool fits = a.ndim() == first.ndim();
    for (size_t k = 0; fits && k < a.ndim(); ++k)
      fits = static_cast<int64_t>(k) == at || a.shape()[k] == first.shape()[k];
    if (!fits)
      throw_invalid("concatenate", "all sizes but those of axis " + std::to_string(at) + " must be equal, got " +
                                       describe(first) + " and " + describe(a));
    dtype = promote_types(dtype, a.dtype());
  }
  graph::Values values;
  for (const array& a : arrays) values.push_back(detail::to_dtype(a.value(), dtype));
  return array(graph::concat(values, static_cast<int>(at)));
}
array concatenate(std::vector<array> arrays, StreamOrDevice s) { return concatenate(std::move(arrays), 0, s); }

array stack(const std::vector<array>& arrays, int axis, StreamOrDevice s) {
  if (arrays.empty()) throw_invalid("stack", "no arrays given");
  std::vector<array> expanded;
  for (const array& a : arrays) {
    if (a.shape() != arrays.front().shape())
      throw_invalid("stack",
                    "all arrays must have the same shape, got " + describe(arrays.front()) + " and " + describe(a));
    expanded.push_back(expand_dims(a, axis, s));
  }
  return concatenate(std::move(expanded), axis, s);
}
array stack(const std::vector<array>& arrays, StreamOrDevice s) { return stack(arrays, 0, s); }

std::vector<array> split(const array& a, const Shape& indices, int axis, StreamOrDevice s) {
  const detail::OnStream on_stream("split", s);
  const auto at = static_cast<size_t>(detail::one_axis("split", axis, a.ndim()));
  const int64_t n = a.shape()[at];
  std::vector<array> parts;
  int64_t begin = 0;
  for (size_t k = 0; k <= indices.size(); ++k) {
    int64_t end = n;
    if (k < indices.size()) end = indices[k] < 0 ? int64_t{indices[k]} + n : int64_t{indices[k]};
    const Range range = numpy_range(n, begin, std::max<int64_t>(end, 0), 1);
    parts.emplace_back(graph::slice_axis(a.value(), static_cast<int>(at), range.start, range.size));
    begin = std::max<int64_t>(end, 0);
  }
  return parts;
}
std::vector<array> split(const array& a, int num_splits, int axis, StreamOrDevice s) {
  const int64_t n = a.shape()[static_cast<size_t>(detail::one_axis("split", axis, a.ndim()))];
  if (num_splits < 1 || n % num_splits != 0)
    throw_invalid("split", "axis " + std::to_string(axis) + " of " + describe(a) + " does not divide into " +
                               std::to_string(num_splits) + " equal parts");
  Shape indices;
  for (int k = 1; k < num_splits; ++k) indices.emplace_back(k * (n / num_splits));
  return split(a, indices, axis, s);
}
std::vector<array> split(const array& a, int num_splits, StreamOrDevice s) { return split(a, num_splits, 0, s); }
std::vector<array> split(const array& a, const Shape& indices, StreamOrDevice s) { return split(a, indices, 0, s); }

array repeat(const array& a, int repeats, int axis, StreamOrDevice s) {
  const detail::OnStream on_stream("repeat", s);
  const int64_t at = detail::one_axis("repeat", axis, a.ndim());
  if (repeats < 0)
    throw_invalid("repeat", "the number of repeats must not be negative, got " + std::to_string(repeats));
  Shape wide = a.shape(), result = a.shape();
  wide.insert(wide.begin() + at + 1, Dim(repeats));
  result[static_cast<size_t>(at)] = static_cast<int64_t>(result[static_cast<size_t>(at)]) * repeats;
  const graph::Value column = graph::expand_dims(a.value(), {at + 1});
  return array(graph::reshape(graph::broadcast(column, wide), result));
}
array repeat(const array& a, int repeats, StreamOrDevice s) { return repeat(flatten(a, s), repeats, 0, s); }

array tile(const array& a, std::vector<int> reps, StreamOrDevice s) {
  const detail::OnStream on_stream("tile", s);
  Shape shape = a.shape();
  if (reps.size() < shape.size()) reps.insert(reps.begin(), shape.size() - reps.size(), 1);
  if (shape.size() < reps.size()) shape.insert(shape.begin(), reps.size() - shape.size(), Dim(1));
  Shape single, wide, result;  // each axis as (1, n), broadcast to (reps, n), merged
  for (size_t k = 0; k < shape.size(); ++k) {
    if (reps[k] < 0) throw_invalid("tile", "repetitions must not be negative");
    single.insert(single.end(), {Dim(1), shape[k]});
    wide.insert(wide.end(), {Dim(reps[k]), shape[k]});
    result.push_back(reps[k] == 1 ? shape[k] : Dim(static_cast<int64_t>(shape[k]) * reps[k]));
  }
  return array(graph::reshape(graph::broadcast(graph::reshape(a.value(), single), wide), result));
}

array slice(const array& a, Shape start, Shape stop, Shape strides, StreamOrDevice s) {
  const detail::OnStream on_stream("slice", s);
  if (start.size() != a.ndim() || stop.size() != a.ndim() || strides.size() != a.ndim())
    throw_invalid("slice", "start, stop and strides need one number for each axis of " + describe(a));
  std::vector<int64_t> first, step;
  Shape sizes;
  for (size_t k = 0; k < a.ndim(); ++k) {
    const Range range = axis_range(a, k, start[k], stop[k], strides[k]);
    first.push_back(range.start);
    step.push_back(range.step);
    sizes.push_back(range.size);
  }
  return array(graph::slice(a.value(), first, sizes, step));
}
array slice(const array& a, Shape start, Shape stop, StreamOrDevice s) {
  return slice(a, std::move(start), std::move(stop), Shape(a.ndim(), Dim(1)), s);
}

}  // namespace weft
