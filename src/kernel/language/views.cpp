// Views of arrays: other orders of axes, axes that repeat, parts, and ends that are known at run time alone.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "kernel/language/trace.h"
#include "weft/kernel/tile.h"

namespace weft::k {

using kernel::ScalarOp;
using kernel::Type;
using kernel::Value;

using Dims = std::vector<int64_t>;

std::string dims_text(const AnyRef& ref) {
  std::string out;
  for (size_t k = 0; k < ref.dims.size(); ++k)
    out += fmt::format("{}{}{}", k ? "," : "", ref.is_symbolic(k) ? "<=" : "", ref.dims[k]);
  return out;
}

void check_own(const Trace& t, std::string_view what, const AnyRef& ref, Line at) {
  if (ref.trace != t.serial)
    t.refuse(at, fmt::format("{}: an array of another kernel is used: give it to this kernel as a parameter", what));
}

Value origin_of(Trace& t, const AnyRef& ref, Line at) {
  const Value offset = t.index(ref.offset);
  return ref.base ? t.add(t.value(ref.base, at), offset) : offset;
}

int64_t AnyRef::dim(int axis, Line at) const {
  const size_t k = detail::axis_of("dim", dims, axis, at);
  if (is_symbolic(k))
    Trace::current("dim", at).refuse(at, fmt::format("dim: the extent of axis {} of [{}] is known at run time alone: "
                                                     "extent({}) is its value, bound({}) the largest one",
                                                     k, dims_text(*this), k, k));
  return dims[k];
}

int64_t AnyRef::bound(int axis, Line at) const { return dims[detail::axis_of("bound", dims, axis, at)]; }

Any AnyRef::extent(int axis, Line at) const {
  const size_t k = detail::axis_of("extent", dims, axis, at);
  if (is_symbolic(k)) return extents[k];
  Trace& t = Trace::current("extent", at);
  return t.any(t.at(at).index(dims[k]));
}

Any value_of(const Symbol* symbol, Line at) {
  Trace& t = Trace::current("value_of", at);
  if (!symbol) t.refuse(at, "value_of: there is no symbol: make one by symbol(name, bound)");
  t.at(at);
  return t.any(t.symbol(symbol));
}

AnyRef AnyRef::limit(int axis, const Any& end, Line at) const {
  Trace& t = Trace::current("limit", at);
  check_own(t, "limit", *this, at);
  const size_t k = detail::axis_of("limit", dims, axis, at);
  const Value v = t.value(end, at);
  const Known known = t.builder.type(v) == Type{int64, {}} ? t.known(v) : Known{};
  if (known.low < 0 || known.high > dims[k])
    t.refuse(at,
             fmt::format("limit: axis {} of [{}] would end at {}, of which it is not known that it lies in 0 to {}: "
                         "give an int64 scalar, and say so by assume_range",
                         k, dims_text(*this), text(t.builder.type(v)), dims[k]));
  AnyRef out = *this;
  out.extents.resize(dims.size());
  out.extents[k] = is_symbolic(k) ? t.any(t.whole(ScalarOp::min, v, t.value(extents[k], at))) : end;
  return out;
}

AnyRef AnyRef::fixed(std::span<const Any> indices, Line at) const {
  Trace& t = Trace::current("fixed", at);
  check_own(t, "fixed", *this, at);
  if (indices.size() > dims.size())
    t.refuse(at, fmt::format("fixed: {} indices for an array of {} axes, [{}]: give one for each axis that goes",
                             indices.size(), dims.size(), dims_text(*this)));
  t.at(at);
  Value begin = origin_of(t, *this, at);
  for (size_t k = indices.size(); k-- > 0;) {
    const Value i = t.value(indices[k], at);
    const Known known = t.builder.type(i) == Type{int64, {}} ? t.known(i) : Known{};
    const bool below = is_symbolic(k)
                           ? known.below != kernel::no_value && t.at_most(known.below, t.value(extents[k], at))
                           : known.high < dims[k];
    if (known.low < 0 || !below)
      t.refuse(at, fmt::format("fixed: of the index along axis {} of [{}], {}, it is not known that it lies within the "
                               "axis: give an int64 scalar, and say so by assume_range",
                               k, dims_text(*this), text(t.builder.type(i))));
    begin = t.add(begin, t.mul(i, t.index(strides[k])));
  }
  AnyRef out = *this;
  out.offset = 0, out.base = t.any(begin);
  const auto rest = static_cast<std::ptrdiff_t>(indices.size());
  out.dims.erase(out.dims.begin(), out.dims.begin() + rest);
  out.strides.erase(out.strides.begin(), out.strides.begin() + rest);
  if (!extents.empty()) out.extents.erase(out.extents.begin(), out.extents.begin() + rest);
  return out;
}

AnyRef AnyRef::permute(const std::vector<int>& axes, Line at) const {
  Trace& t = Trace::current("permute", at);
  check_own(t, "permute", *this, at);
  AnyRef out = *this;
  std::vector<bool> seen(dims.size(), false);
  bool fits = axes.size() == dims.size();
  for (size_t k = 0; fits && k < axes.size(); ++k) {
    const auto axis = static_cast<size_t>(axes[k]);
    fits = axes[k] >= 0 && axis < dims.size() && !seen[axis];
    if (fits) seen[axis] = true, out.dims[k] = dims[axis], out.strides[k] = strides[axis];
    if (fits && !extents.empty()) out.extents[k] = extents[axis];
  }
  if (!fits)
    t.refuse(at, fmt::format("permute: the axes {} of an array [{}]: name each of them once", fmt::join(axes, ","),
                             fmt::join(dims, ",")));
  return out;
}

AnyRef AnyRef::broadcast(const Dims& shape, Line at) const {
  Trace& t = Trace::current("broadcast", at);
  check_own(t, "broadcast", *this, at);
  AnyRef out = *this;
  out.dims = shape;
  out.strides.assign(shape.size(), 0);
  out.extents.assign(extents.empty() ? 0 : shape.size(), {});
  bool fits = dims.size() <= shape.size();
  for (size_t k = 1; fits && k <= dims.size(); ++k) {
    const int64_t extent = dims[dims.size() - k], wanted = shape[shape.size() - k];
    fits = extent == wanted || (extent == 1 && wanted > 0);
    if (extent == wanted) out.strides[shape.size() - k] = strides[dims.size() - k];
    if (is_symbolic(dims.size() - k)) {
      fits = extent == wanted;  // the axis keeps its extent
      out.extents[shape.size() - k] = extents[dims.size() - k];
    }
  }
  for (const int64_t extent : shape) fits = fits && extent >= 0;
  if (!fits)
    t.refuse(at, fmt::format("broadcast: [{}] does not repeat to [{}]: from the last axis on, extents are equal or 1",
                             fmt::join(dims, ","), fmt::join(shape, ",")));
  return out;
}

AnyRef AnyRef::part(const Dims& starts, const Dims& counts, const Dims& steps, Line at) const {
  Trace& t = Trace::current("part", at);
  check_own(t, "part", *this, at);
  AnyRef out = *this;
  bool fits = starts.size() == dims.size() && counts.size() == dims.size() && steps.size() == dims.size();
  for (size_t k = 0; fits && k < dims.size(); ++k) {
    int64_t reach = 0;
    fits = counts[k] >= 1 && starts[k] >= 0 && starts[k] < dims[k] && steps[k] != 0 &&
           !__builtin_mul_overflow(counts[k] - 1, steps[k], &reach) && reach >= -starts[k] &&
           reach < dims[k] - starts[k];
    if (!fits) break;
    if (is_symbolic(k)) {
      fits = steps[k] > 0;
      if (!fits) break;
      // What is left behind the start, in steps.
      const Value step = t.index(steps[k]), end = t.value(extents[k], at);
      const Value left = t.whole(ScalarOp::floordiv, t.add(end, t.index(steps[k] - 1 - starts[k])), step);
      const Value some = t.whole(ScalarOp::min, t.index(counts[k]), left);
      out.extents[k] = t.any(t.whole(ScalarOp::max, t.index(0), some));
    }
    out.offset += starts[k] * strides[k];
    out.dims[k] = counts[k];
    out.strides[k] = strides[k] * steps[k];
  }
  if (!fits)
    t.refuse(at,
             fmt::format("part: [{}] elements from ({}) on, by steps of ({}), reach outside of [{}]: stay within it",
                         fmt::join(counts, ","), fmt::join(starts, ","), fmt::join(steps, ","), fmt::join(dims, ",")));
  return out;
}

}  // namespace weft::k
