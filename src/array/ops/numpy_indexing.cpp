// weft/indexing.h: NumPy's rules, written with slices, gathers and scatters.
#include <algorithm>
#include <numeric>

#include "array/host.h"
#include "array/op_support.h"
#include "base/error.h"
#include "weft/indexing.h"
#include "weft/ops.h"

namespace weft {
namespace {

using detail::describe;

struct Entry {
  enum class Kind { range, index, gather, fresh } kind;
  int64_t start = 0, step = 1, size = 0;          // range, index
  std::optional<array> positions = std::nullopt;  // gather
  bool all = false;                               // range: the whole axis, whose length may be symbolic
};

// One entry for each axis of the array, in order, with new axes in between.
struct Plan {
  std::vector<Entry> entries;
  bool advanced = false;  // there is an array of indices: integers then count as arrays of one element
};

Entry whole(const Dim& n) {
  Entry entry{Entry::Kind::range, 0, 1, n.bound()};
  entry.all = true;
  return entry;
}

int64_t clamped(const Slice::Bound& bound, int64_t fallback, int64_t low, int64_t high, int64_t n) {
  return bound ? std::clamp(*bound < 0 ? *bound + n : *bound, low, high) : fallback;
}

Entry range_of(const Slice& s, const Dim& length) {
  const int64_t step = s.stride().value_or(1);
  if (!s.start() && !s.stop() && step == 1) return whole(length);
  const int64_t n = length;
  if (step == 0) throw_invalid("index", "the step of a slice must not be 0");
  const bool up = step > 0;
  const int64_t low = up ? 0 : -1, high = up ? n : n - 1;
  const int64_t start = clamped(s.start(), up ? 0 : n - 1, low, high, n),
                stop = clamped(s.stop(), up ? n : -1, low, high, n);
  const int64_t size = std::max<int64_t>(up ? (stop - start + step - 1) / step : (start - stop - step - 1) / -step, 0);
  return {Entry::Kind::range, size == 0 ? 0 : start, step, size};
}

Entry index_of(int64_t i, int64_t n, const array& a, size_t axis) {
  if (i < -n || i >= n)
    throw std::out_of_range("[index] index " + std::to_string(i) + " is out of range for axis " + std::to_string(axis) +
                            " of " + describe(a));
  return {Entry::Kind::index, i < 0 ? i + n : i, 1, 1};
}

size_t consumed(const Index& i) {
  if (std::holds_alternative<Ellipsis>(i.entry()) || std::holds_alternative<NewAxis>(i.entry())) return 0;
  const auto* a = std::get_if<array>(&i.entry());
  return a && a->dtype() == bool_ ? a->ndim() : 1;
}

void append_array(Plan& plan, const array& a, const array& given, size_t axis) {
  plan.advanced = true;
  if (given.dtype() != bool_) {
    detail::require_integer("index", "indices", given);
    plan.entries.push_back({Entry::Kind::gather, 0, 1, 0, given});
    return;
  }
  for (size_t k = 0; k < given.ndim(); ++k)
    if (given.shape()[k] != a.shape()[axis + k])
      throw_invalid("index", "the mask " + describe(given) + " does not fit axes " + std::to_string(axis) + " … of " +
                                 describe(a));
  if (given.ndim() == 0) throw_invalid("index", "a mask needs at least one axis");
  for (array& positions : nonzero(given)) plan.entries.push_back({Entry::Kind::gather, 0, 1, 0, std::move(positions)});
}

Plan plan_of(const array& a, const std::vector<Index>& indices) {
  size_t used = 0, dots = 0;
  for (const Index& i : indices) {
    used += consumed(i);
    dots += std::holds_alternative<Ellipsis>(i.entry());
  }
  if (dots > 1) throw_invalid("index", "only one ellipsis is possible");
  if (used > a.ndim())
    throw_invalid("index", std::to_string(used) + " axes are indexed, but the array is " + describe(a));
  Plan plan;
  size_t axis = 0;
  const auto rest = [&](size_t upto) {
    for (; axis < upto; ++axis) plan.entries.push_back(whole(a.shape()[axis]));
  };
  for (const Index& i : indices) {
    if (const auto* n = std::get_if<int64_t>(&i.entry()))
      plan.entries.push_back(index_of(*n, a.shape()[axis], a, axis));
    if (const auto* s = std::get_if<Slice>(&i.entry())) plan.entries.push_back(range_of(*s, a.shape()[axis]));
    if (std::holds_alternative<NewAxis>(i.entry())) plan.entries.push_back({Entry::Kind::fresh});
    if (const auto* p = std::get_if<array>(&i.entry())) append_array(plan, a, *p, axis);
    axis += consumed(i);
    used -= consumed(i);
    if (std::holds_alternative<Ellipsis>(i.entry())) rest(a.ndim() - used);
  }
  rest(a.ndim());
  return plan;
}

// Applies slices, integers and new axes, which only move elements.
array basic(const array& a, const Plan& plan) {
  std::vector<int64_t> start, step;
  Shape sizes, shape;
  for (const Entry& e : plan.entries) {
    if (e.kind == Entry::Kind::fresh) {
      shape.emplace_back(1);
      continue;
    }
    const bool cut = !e.all && (e.kind == Entry::Kind::range || e.kind == Entry::Kind::index);
    start.push_back(cut ? e.start : 0);
    step.push_back(cut ? e.step : 1);
    sizes.push_back(cut ? Dim(e.size) : a.shape()[sizes.size()]);
    if (e.kind != Entry::Kind::index || plan.advanced) shape.push_back(sizes.back());
  }
  return array(graph::reshape(graph::slice(a.value(), start, sizes, step), shape));
}

array gathered(const array& a, const Plan& plan, const StreamOrDevice& s) {
  const array cut = basic(a, plan);  // integers leave axes of length 1
  std::vector<array> positions;
  std::vector<int> axes;
  bool adjacent = true;
  for (size_t k = 0; k < plan.entries.size(); ++k) {
    const Entry& e = plan.entries[k];
    if (e.kind != Entry::Kind::gather && e.kind != Entry::Kind::index) continue;
    if (!axes.empty() && axes.back() != static_cast<int>(k) - 1) adjacent = false;
    axes.push_back(static_cast<int>(k));
    positions.push_back(e.positions ? *e.positions : array(0));
    if (e.positions && cut.shape()[k] == 0 && num_elements(e.positions->shape()) > 0)
      throw std::out_of_range("[index] nothing can be taken from an empty axis of " + describe(a));
  }
  positions = broadcast_arrays(positions, s);
  Shape sizes = cut.shape();
  for (int axis : axes) sizes[static_cast<size_t>(axis)] = 1;
  if (num_elements(positions[0].shape()) == 0) {  // nothing is selected
    Shape none = positions[0].shape();
    for (size_t k = 0; k < sizes.size(); ++k)
      if (std::find(axes.begin(), axes.end(), static_cast<int>(k)) == axes.end()) none.push_back(sizes[k]);
    return zeros(none, a.dtype(), s);
  }
  const array taken = gather(cut, positions, axes, sizes, s);
  const auto lead = static_cast<int64_t>(positions[0].ndim());
  std::vector<int64_t> ones;
  for (int axis : axes) ones.push_back(lead + axis);
  const graph::Value front = graph::squeeze(taken.value(), ones);
  if (!adjacent) return array(front);
  std::vector<int64_t> order;  // moves the gathered axes back between the axes before and after them
  for (int64_t k = 0; k < axes[0]; ++k) order.push_back(lead + k);
  for (int64_t k = 0; k < lead; ++k) order.push_back(k);
  for (int64_t k = lead + axes[0]; k < front.type().rank(); ++k) order.push_back(k);
  return array(graph::permute(front, order));
}

array selected(const array& a, const Plan& plan, const StreamOrDevice& s) {
  return plan.advanced ? gathered(a, plan, s) : basic(a, plan);
}

// Returns the mask of an index that is one mask over the first axes with one value: then the number of selected
// elements is not needed.
const array* lone_mask(const std::vector<Index>& indices, const array& a, const array& values) {
  if (indices.size() != 1 || values.ndim() != 0) return nullptr;
  const auto* mask = std::get_if<array>(&indices[0].entry());
  const bool fits = mask && mask->dtype() == bool_ && mask->ndim() >= 1 && mask->ndim() <= a.ndim() &&
                    std::equal(mask->shape().begin(), mask->shape().end(), a.shape().begin());
  return fits ? mask : nullptr;
}

// Scatters the values into the flattened array. The flat positions of the selected elements are the numbers 0, 1, …,
// indexed like the array.
template <class Scatter>
array scattered_by_plan(const array& a, const Plan& plan, const array& values, Scatter&& scatter_with) {
  const auto n = static_cast<int64_t>(a.size());
  const array indices_of_all(graph::reshape(graph::iota({n}, 0, n <= INT32_MAX ? int32 : int64), a.shape()));
  const array positions = selected(indices_of_all, plan, {});
  const array updates = broadcast_to(astype(values, a.dtype()), positions.shape());
  if (updates.size() == 0) return a;
  return reshape(scatter_with(reshape(a, {n}), reshape(positions, {-1}), reshape(updates, {-1, 1})), a.shape());
}

bool plain_block(const Plan& plan) {
  return !plan.advanced && std::all_of(plan.entries.begin(), plan.entries.end(),
                                       [](const Entry& e) { return e.kind != Entry::Kind::fresh && e.step == 1; });
}

// Sets a block of consecutive elements.
array set_block(const array& a, const Plan& plan, const array& values) {
  Shape start, stop, shape;
  for (const Entry& e : plan.entries) {
    start.emplace_back(e.start);
    stop.emplace_back(e.start + e.size);
    if (e.kind != Entry::Kind::index) shape.emplace_back(e.size);
  }
  Shape full;
  for (const Entry& e : plan.entries) full.emplace_back(e.size);
  if (num_elements(full) == 0) return a;
  return slice_update(a, reshape(broadcast_to(values, shape), full), start, stop);
}

array set_planned(const array& a, const Plan& plan, const array& values) {
  if (plain_block(plan)) return set_block(a, plan, values);
  return scattered_by_plan(a, plan, values, [](const array& flat, const array& positions, const array& updates) {
    return scatter(flat, positions, updates, 0);
  });
}

// Where elements may be selected several times, a scatter combines each of them; else the result of the operation is
// put back.
using Combine = array (*)(const array&, const array&, StreamOrDevice);
using Scatter = array (*)(const array&, const std::vector<array>&, const array&, const std::vector<int>&,
                          StreamOrDevice);

array combined(const array& a, const std::vector<Index>& indices, const array& values, Combine op,
               Scatter scatter_with) {
  const Plan plan = plan_of(a, indices);
  if (!plan.advanced) return set_planned(a, plan, op(selected(a, plan, {}), astype(values, a.dtype()), {}));
  return scattered_by_plan(a, plan, values, [&](const array& flat, const array& positions, const array& updates) {
    return scatter_with(flat, {positions}, updates, {0}, {});
  });
}

}  // namespace

array index(const array& a, const std::vector<Index>& indices, StreamOrDevice s) {
  const detail::OnStream on_stream("index", s);
  return selected(a, plan_of(a, indices), s);
}

array IndexedArray::get() const { return index(array_, indices_); }

array IndexedArray::set(const array& values) const {
  if (const array* mask = lone_mask(indices_, array_, values)) {
    Shape shape = mask->shape();
    shape.resize(array_.ndim(), Dim(1));
    return where(reshape(*mask, shape), astype(values, array_.dtype()), array_);
  }
  return set_planned(array_, plan_of(array_, indices_), values);
}

array IndexedArray::add(const array& values) const {
  return combined(array_, indices_, values, weft::add, scatter_add);
}
array IndexedArray::subtract(const array& values) const {
  return combined(array_, indices_, negative(astype(values, array_.dtype())), weft::add, scatter_add);
}
array IndexedArray::multiply(const array& values) const {
  return combined(array_, indices_, values, weft::multiply, scatter_prod);
}
array IndexedArray::divide(const array& values) const {
  if (!is_float(array_.dtype()))
    throw_invalid("divide", "only elements of floating types are divided in place, got " + describe(array_));
  return combined(array_, indices_, reciprocal(astype(values, array_.dtype())), weft::multiply, scatter_prod);
}
array IndexedArray::maximum(const array& values) const {
  return combined(array_, indices_, values, weft::maximum, scatter_max);
}
array IndexedArray::minimum(const array& values) const {
  return combined(array_, indices_, values, weft::minimum, scatter_min);
}

std::vector<array> nonzero(const array& a) {
  const size_t rank = std::max<size_t>(a.ndim(), 1);
  const Shape shape = a.ndim() == 0 ? Shape{1} : a.shape();
  const array flags = astype(a, bool_);
  const auto* data = static_cast<const uint8_t*>(flags.raw_data());
  const Strides strides = row_major_strides(shape);
  std::vector<std::vector<int64_t>> positions(rank);
  const auto n = static_cast<int64_t>(flags.size());
  for (int64_t i = 0; i < n; ++i) {
    if (data[i] == 0) continue;
    for (size_t k = 0; k < rank; ++k) positions[k].push_back(i / strides[k] % int64_t{shape[k]});
  }
  std::vector<array> result;
  for (const auto& p : positions) result.push_back(array::from_data(p.data(), {static_cast<int64_t>(p.size())}, int64));
  return result;
}

}  // namespace weft
