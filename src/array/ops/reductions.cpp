// weft/ops/reductions.h. Sums of 16-bit floats accumulate in float32 and are rounded once.
#include <algorithm>
#include <string>

#include "array/op_support.h"
#include "base/error.h"
#include "graph/regions/composites.h"
#include "weft/ops.h"

namespace weft {
namespace {

using detail::describe;
using kernel::Reducer;

// Returns the dtype of sums: integers and bools have at least 32 bits and keep their signedness.
Dtype sum_dtype(Dtype t) {
  if (t == bool_ || (is_signed(t) && t.size() < 4)) return int32;
  return is_unsigned(t) && t.size() < 4 ? uint32 : t;
}

array reduced(const char* op, Reducer reducer, const array& a, Dtype dtype, const std::vector<int>& axes, bool keepdims,
              const StreamOrDevice& s) {
  const detail::OnStream on_stream(op, s);
  const std::vector<int64_t> over = detail::sorted_axes(op, axes, a.ndim());
  return array(graph::reduce(reducer, detail::to_dtype(a.value(), dtype), over, keepdims));
}

array total(const char* op, Reducer reducer, const array& a, const std::vector<int>& axes, bool keepdims,
            const StreamOrDevice& s) {
  const Dtype dtype = sum_dtype(a.dtype());
  return astype(reduced(op, reducer, a, detail::accumulator(dtype), axes, keepdims, s), dtype, s);
}

void refuse_empty(const char* op, const array& a, const std::vector<int64_t>& axes) {
  for (int64_t axis : axes)
    if (a.shape()[static_cast<size_t>(axis)] == 0)
      throw_invalid(op,
                    "there is no extreme value along the empty axis " + std::to_string(axis) + " of " + describe(a));
}

array extreme(const char* op, Reducer reducer, const array& a, const std::vector<int>& axes, bool keepdims,
              const StreamOrDevice& s) {
  refuse_empty(op, a, detail::sorted_axes(op, axes, a.ndim()));
  if (a.dtype() == bool_) reducer = reducer == Reducer::max ? Reducer::any : Reducer::all;
  return reduced(op, reducer, a, a.dtype(), axes, keepdims, s);
}

// Returns the first position of an extreme value, or of a NaN, as max and min.
array extreme_position(const char* op, Reducer reducer, const array& a, int axis, bool keepdims,
                       const StreamOrDevice& s) {
  const detail::OnStream on_stream(op, s);
  const int64_t at = detail::one_axis(op, axis, a.ndim());
  refuse_empty(op, a, {at});
  graph::Value x = detail::to_dtype(a.value(), a.dtype() == bool_ ? uint8 : a.dtype());
  // Complex numbers are ordered by both parts: the first element that equals the extreme counts as the largest.
  if (is_complex(x.dtype())) {
    const Reducer extreme = reducer == Reducer::argmax ? Reducer::max : Reducer::min;
    const graph::Value best = graph::broadcast(graph::reduce(extreme, x, {at}, true), x.shape());
    const graph::Value hit = graph::binary(graph::Op::eq, x, best), nan = graph::binary(graph::Op::ne, x, x);
    x = graph::cast(graph::binary(graph::Op::bit_or, hit, nan), uint8);
    reducer = Reducer::argmax;
  }
  return array(graph::extreme_index(reducer, x, static_cast<int>(at), keepdims));
}

// An array in the dtype that means accumulate in, the axes counted from the front, and the dtype of the result.
struct Moments {
  graph::Value x;
  std::vector<int64_t> axes;
  Dtype result;
};

Moments moments(const char* op, const array& a, const std::vector<int>& axes) {
  const Dtype result = detail::floating_of(a.dtype());
  return {detail::to_dtype(a.value(), detail::accumulator(result)), detail::sorted_axes(op, axes, a.ndim()), result};
}

// Returns |v|², real also for complex numbers.
graph::Value squared_size(const graph::Value& v) {
  if (!is_complex(v.dtype())) return graph::square(v);
  return graph::square(graph::unary(graph::Op::real, v)) + graph::square(graph::unary(graph::Op::imag, v));
}

// Returns max(n - ddof, 0) in the type of `like`, n being the number of elements along the axes.
graph::Value degrees_of_freedom(const graph::Value& like, const Shape& shape, const std::vector<int64_t>& axes,
                                int ddof) {
  const auto is_open = [&](int64_t axis) { return !shape[static_cast<size_t>(axis)].is_static(); };
  if (std::any_of(axes.begin(), axes.end(), is_open)) {
    const graph::Value left = graph::number_of_elements(shape, axes, like.dtype()) - static_cast<double>(ddof);
    return graph::broadcast(graph::binary(graph::Op::max, left, graph::zeros_like(left)), like.shape());
  }
  int64_t count = 1;
  for (const int64_t axis : axes) count *= int64_t{shape[static_cast<size_t>(axis)]};
  return graph::full_like(like, static_cast<double>(std::max<int64_t>(count - ddof, 0)));
}

// The arguments of a composite: a floating array, which the composite widens itself, and axes counted from the front.
struct Region {
  graph::Value x;
  std::vector<int64_t> axes;
};

Region region(const char* op, const array& a, const std::vector<int>& axes) {
  return {detail::to_dtype(a.value(), detail::floating_of(a.dtype())), detail::sorted_axes(op, axes, a.ndim())};
}

}  // namespace

array detail::reduce(const char* op, const char* reducer, const array& a, const std::optional<std::vector<int>>& axes,
                     bool keepdims, const StreamOrDevice& s) {
  const auto row = std::find_if(kernel::reducers.begin(), kernel::reducers.end(),
                                [&](const kernel::ReducerInfo& r) { return r.name == reducer; });
  if (row == kernel::reducers.end()) throw_internal(op, std::string("there is no reducer ") + reducer);
  return reduced(op, row->reducer, a, a.dtype(), axes ? *axes : all_axes(a), keepdims, s);
}

array all(const array& a, const std::vector<int>& axes, bool keepdims, StreamOrDevice s) {
  return detail::reduce("all", "all", astype(a, bool_, s), axes, keepdims, s);
}
array all(const array& a, int axis, bool keepdims, StreamOrDevice s) {
  return all(a, std::vector<int>{axis}, keepdims, s);
}
array all(const array& a, bool keepdims, StreamOrDevice s) { return all(a, detail::all_axes(a), keepdims, s); }
array any(const array& a, const std::vector<int>& axes, bool keepdims, StreamOrDevice s) {
  return detail::reduce("any", "any", astype(a, bool_, s), axes, keepdims, s);
}
array any(const array& a, int axis, bool keepdims, StreamOrDevice s) {
  return any(a, std::vector<int>{axis}, keepdims, s);
}
array any(const array& a, bool keepdims, StreamOrDevice s) { return any(a, detail::all_axes(a), keepdims, s); }

array count_nonzero(const array& a, const std::vector<int>& axes, bool keepdims, StreamOrDevice s) {
  return sum(astype(a, bool_, s), axes, keepdims, s);
}
array count_nonzero(const array& a, int axis, bool keepdims, StreamOrDevice s) {
  return count_nonzero(a, std::vector<int>{axis}, keepdims, s);
}
array count_nonzero(const array& a, bool keepdims, StreamOrDevice s) {
  return count_nonzero(a, detail::all_axes(a), keepdims, s);
}

array sum(const array& a, const std::vector<int>& axes, bool keepdims, StreamOrDevice s) {
  return total("sum", Reducer::sum, a, axes, keepdims, s);
}
array sum(const array& a, int axis, bool keepdims, StreamOrDevice s) {
  return sum(a, std::vector<int>{axis}, keepdims, s);
}
array sum(const array& a, bool keepdims, StreamOrDevice s) { return sum(a, detail::all_axes(a), keepdims, s); }
array prod(const array& a, const std::vector<int>& axes, bool keepdims, StreamOrDevice s) {
  return total("prod", Reducer::prod, a, axes, keepdims, s);
}
array prod(const array& a, int axis, bool keepdims, StreamOrDevice s) {
  return prod(a, std::vector<int>{axis}, keepdims, s);
}
array prod(const array& a, bool keepdims, StreamOrDevice s) { return prod(a, detail::all_axes(a), keepdims, s); }

array mean(const array& a, const std::vector<int>& axes, bool keepdims, StreamOrDevice s) {
  const detail::OnStream on_stream("mean", s);
  const Moments m = moments("mean", a, axes);
  return array(graph::cast(graph::mean(m.x, m.axes, keepdims), m.result));
}
array mean(const array& a, int axis, bool keepdims, StreamOrDevice s) {
  return mean(a, std::vector<int>{axis}, keepdims, s);
}
array mean(const array& a, bool keepdims, StreamOrDevice s) { return mean(a, detail::all_axes(a), keepdims, s); }

array var(const array& a, const std::vector<int>& axes, bool keepdims, int ddof, StreamOrDevice s) {
  const detail::OnStream on_stream("var", s);
  const Moments m = moments("var", a, axes);
  const graph::Value centred = m.x - graph::broadcast(graph::mean(m.x, m.axes, true), m.x.shape());
  const graph::Value squares = graph::sum(squared_size(centred), m.axes, keepdims);
  return array(graph::cast(squares / degrees_of_freedom(squares, a.shape(), m.axes, ddof), real_of(m.result)));
}
array var(const array& a, int axis, bool keepdims, int ddof, StreamOrDevice s) {
  return var(a, std::vector<int>{axis}, keepdims, ddof, s);
}
array var(const array& a, bool keepdims, int ddof, StreamOrDevice s) {
  return var(a, detail::all_axes(a), keepdims, ddof, s);
}

array std(const array& a, const std::vector<int>& axes, bool keepdims, int ddof, StreamOrDevice s) {
  return sqrt(var(a, axes, keepdims, ddof, s), s);
}
array std(const array& a, int axis, bool keepdims, int ddof, StreamOrDevice s) {
  return std(a, std::vector<int>{axis}, keepdims, ddof, s);
}
array std(const array& a, bool keepdims, int ddof, StreamOrDevice s) {
  return std(a, detail::all_axes(a), keepdims, ddof, s);
}

array max(const array& a, const std::vector<int>& axes, bool keepdims, StreamOrDevice s) {
  return extreme("max", Reducer::max, a, axes, keepdims, s);
}
array max(const array& a, int axis, bool keepdims, StreamOrDevice s) {
  return max(a, std::vector<int>{axis}, keepdims, s);
}
array max(const array& a, bool keepdims, StreamOrDevice s) { return max(a, detail::all_axes(a), keepdims, s); }
array min(const array& a, const std::vector<int>& axes, bool keepdims, StreamOrDevice s) {
  return extreme("min", Reducer::min, a, axes, keepdims, s);
}
array min(const array& a, int axis, bool keepdims, StreamOrDevice s) {
  return min(a, std::vector<int>{axis}, keepdims, s);
}
array min(const array& a, bool keepdims, StreamOrDevice s) { return min(a, detail::all_axes(a), keepdims, s); }

array argmax(const array& a, int axis, bool keepdims, StreamOrDevice s) {
  return extreme_position("argmax", Reducer::argmax, a, axis, keepdims, s);
}
array argmin(const array& a, int axis, bool keepdims, StreamOrDevice s) {
  return extreme_position("argmin", Reducer::argmin, a, axis, keepdims, s);
}
array argmax(const array& a, bool keepdims, StreamOrDevice s) {
  const array position = argmax(flatten(a, s), 0, false, s);
  return keepdims ? reshape(position, Shape(a.ndim(), Dim(1)), s) : position;
}
array argmin(const array& a, bool keepdims, StreamOrDevice s) {
  const array position = argmin(flatten(a, s), 0, false, s);
  return keepdims ? reshape(position, Shape(a.ndim(), Dim(1)), s) : position;
}

array logsumexp(const array& a, const std::vector<int>& axes, bool keepdims, StreamOrDevice s) {
  const detail::OnStream on_stream("logsumexp", s);
  const Region r = region("logsumexp", a, axes);
  refuse_empty("logsumexp", a, r.axes);
  return array(graph::logsumexp(r.x, r.axes, keepdims));
}
array logsumexp(const array& a, int axis, bool keepdims, StreamOrDevice s) {
  return logsumexp(a, std::vector<int>{axis}, keepdims, s);
}
array logsumexp(const array& a, bool keepdims, StreamOrDevice s) {
  return logsumexp(a, detail::all_axes(a), keepdims, s);
}

// 16-bit floats accumulate in float32 in any case, so `precise` changes nothing.
array softmax(const array& a, const std::vector<int>& axes, bool, StreamOrDevice s) {
  const detail::OnStream on_stream("softmax", s);
  if (a.ndim() == 0 && !axes.empty())
    throw_invalid("softmax", "a scalar has no axes; name none");  // MLX throws no std::out_of_range here
  const Region r = region("softmax", a, axes);
  return array(num_elements(a.shape()) == 0 ? r.x : graph::softmax(r.x, r.axes));
}
array softmax(const array& a, int axis, bool precise, StreamOrDevice s) {
  return softmax(a, std::vector<int>{axis}, precise, s);
}
array softmax(const array& a, bool precise, StreamOrDevice s) { return softmax(a, detail::all_axes(a), precise, s); }

}  // namespace weft
