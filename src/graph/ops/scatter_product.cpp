// The value is the product of all non-zero factors divided by the element's own. A quotient has the wrong derivatives
// at zeros, so these use a second form without division. Elements are sorted by destination; products of the elements
// before and after each one with the same destination are computed by doubling, in log2(n) elementwise steps.
#include "graph/ops/scatter_product.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "graph/build.h"
#include "graph/calls/call.h"
#include "graph/derive/derive.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

using Axes = std::vector<int64_t>;

/// The region's inputs, in order.
struct Operands {
  Value v;
  Values indices;
  Value kept, updates;

  explicit Operands(ValueSpan in)
      : v(in.front()), indices(in.begin() + 1, in.end() - 2), kept(in[in.size() - 2]),
        updates(select(kept, in.back(), full_like(in.back(), 1))) {}
  Shape lead() const { return indices.empty() ? Shape{} : indices[0].shape(); }
  Shape sizes() const {
    return Shape(updates.shape().begin() + static_cast<std::ptrdiff_t>(lead().size()), updates.shape().end());
  }
};

Value by_division(const Operands& f, const Axes& axes) {
  const Value none = zeros_like(f.updates), one = full_like(f.updates, 1);
  const Value is_zero = binary(Op::eq, f.updates, none), rest = select(is_zero, one, f.updates);
  const Value zeros = scatter(ScatterMode::add, zeros_like(f.v), f.indices, cast(is_zero, f.updates.dtype()), axes);
  const Value product = gather(scatter(ScatterMode::prod, f.v, f.indices, rest, axes), f.indices, axes, f.sizes());
  const Value alone =
      binary(Op::eq, gather(zeros, f.indices, axes, f.sizes()) - cast(is_zero, f.updates.dtype()), none);
  return select(binary(Op::bit_and, alone, f.kept), product / rest, none);
}

/// Returns the destination of each element of the updates, as a row-major position in v.
Value positions(const Operands& f, const Axes& axes) {
  const Shape& shape = f.updates.shape();
  const Shape lead = f.lead();
  const Dtype t = num_elements(f.v.shape()) <= INT32_MAX ? int32 : int64;
  const Strides strides = row_major_strides(f.v.shape());
  const auto times = [&](const Value& v, size_t axis) { return v * full(shape, t, Number::of_int(strides[axis])); };
  Value position = full(shape, t, Number::of_int(0));
  for (size_t k = 0; k < f.v.shape().size(); ++k)
    position = position + times(iota(shape, static_cast<int>(lead.size() + k), t), k);
  Shape column = lead;
  column.resize(shape.size(), Dim(1));
  for (size_t k = 0; k < f.indices.size(); ++k)
    position = position + times(broadcast(reshape(cast(f.indices[k], t), column), shape), static_cast<size_t>(axes[k]));
  return position;
}

/// Returns for each element of a row the product of the elements before it (or after it) with the same key; equal keys
/// are adjacent.
Value product_beside(const Value& factors, const Value& keys, bool behind) {
  const int64_t n = factors.shape()[0].bound();
  const auto part = [](const Value& v, int64_t start, int64_t size) { return slice_axis(v, 0, start, size); };
  const auto neighbours =
      [&](const Value& v,
          int64_t far) {  // of elements that have one: the element `far` away, or 1 if its run is another
        const Value same = binary(Op::eq, part(keys, 0, n - far), part(keys, far, n - far));
        const Value other = part(v, behind ? far : 0, n - far);
        return select(same, other, full_like(other, 1));
      };
  const auto combined = [&](const Value& without, const Value& with) {
    return behind ? concat({with, without}, 0) : concat({without, with}, 0);
  };
  Value product = factors;
  for (int64_t far = 1; far < n; far *= 2) {
    const Value own = part(product, behind ? 0 : far, n - far), alone = part(product, behind ? n - far : 0, far);
    product = combined(alone, own * neighbours(product, far));
  }
  return combined(full({1}, factors.dtype(), Number::of_real(1)), neighbours(product, 1));
}

Value without_division(const Operands& f, const Axes& axes) {
  const int64_t n = num_elements(f.updates.shape());
  for (const Dim& d : f.updates.shape())
    if (!d.is_static())
      throw_invalid("scatter", "the second derivative of a product of a symbolic number of updates is not supported: " +
                                   to_string(f.updates.type()));
  if (n == 0) return f.updates;
  const Sorted sorted = sort(reshape(positions(f, axes), {n}), 0);
  const Value factors = take(reshape(f.updates, {n}), sorted.order, 0);
  const Value beside = product_beside(factors, sorted.values, false) * product_beside(factors, sorted.values, true);
  const Value back = reshape(take(beside, sort(sorted.order, 0).order, 0), f.updates.shape());
  return select(f.kept, back * gather(f.v, f.indices, axes, f.sizes()), zeros_like(back));
}

}  // namespace

Value others_of_product(const Value& v, const Values& indices, const Value& kept, const Value& updates,
                        const std::vector<int64_t>& axes) {
  Composite region;
  region.name = "others_of_product";
  region.key = fmt::format("axes({})", fmt::join(axes, ","));
  region.body = [axes](ValueSpan in) -> Values { return {by_division(Operands(in), axes)}; };
  region.vjp = [axes](ValueSpan in, ValueSpan, ValueSpan g) -> Values {
    const Values floats{alias(in.front()), alias(in.back())};
    Values inputs(in.begin(), in.end());
    inputs.front() = floats[0], inputs.back() = floats[1];
    const Values flowing = pull_back(Values{without_division(Operands(inputs), axes)}, g, floats);
    Values out(in.size());
    out.front() = flowing[0], out.back() = flowing[1];
    return out;
  };
  region.jvp = [axes](ValueSpan in, ValueSpan, ValueSpan t) -> Values {
    const Values floats{alias(in.front()), alias(in.back())};
    Values inputs(in.begin(), in.end());
    inputs.front() = floats[0], inputs.back() = floats[1];
    return push_forward(Values{without_division(Operands(inputs), axes)}, floats, Values{t.front(), t.back()});
  };
  Values inputs{v};
  inputs.insert(inputs.end(), indices.begin(), indices.end());
  inputs.push_back(kept);
  inputs.push_back(updates);
  return composite(std::make_shared<Composite>(std::move(region)), std::move(inputs))[0];
}

}  // namespace weft::graph
