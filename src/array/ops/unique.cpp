// weft/ops/ordering.h: different elements.
#include "array/op_support.h"
#include "base/error.h"
#include "weft/ops.h"

namespace weft {

std::vector<array> unique(const array& a, int size, bool return_index, bool return_inverse, bool return_counts,
                          const std::optional<array>& fill_value, StreamOrDevice s) {
  const detail::OnStream on_stream("unique", s);
  if (size < 0) throw_invalid("unique", "the size is " + std::to_string(size) + ": it must not be negative");
  if (fill_value && fill_value->size() != 1)
    throw_invalid("unique", "the fill value is one element, got " + detail::describe(*fill_value));
  if (a.size() == 0 && size > 0 && !fill_value)
    throw_invalid("unique", "an array without elements has no first one: give a fill value");
  const auto scalar = [](int v, Dtype t) { return array(v, t); };
  const std::optional<array> filler =
      fill_value ? std::optional(astype(reshape(*fill_value, {}, s), a.dtype(), s)) : fill_value;
  if (a.size() == 0) {
    std::vector<array> out{full({size}, filler ? *filler : zeros({}, a.dtype(), s), s)};
    if (return_index) out.push_back(zeros({size}, uint32, s));
    if (return_inverse) out.push_back(zeros(a.shape(), uint32, s));
    if (return_counts) out.push_back(zeros({size}, int32, s));
    return out;
  }
  const array flat = reshape(a, {-1}, s), order = argsort(flat, s), sorted = take(flat, order, 0, s);
  const int64_t n = static_cast<int64_t>(flat.size());
  const array begins = concatenate(
      {ones({1}, bool_, s), not_equal(slice(sorted, {1}, {n}, s), slice(sorted, {0}, {n - 1}, s), s)}, 0, s);
  // The index of each element's value, in the order of the elements; it never falls.
  const array value = subtract(cumsum(astype(begins, int32, s), false, true, s), scalar(1, int32), s);
  const array wanted = arange(size, int32, s);
  const array first = searchsorted(value, wanted, "left", s), end = searchsorted(value, wanted, "right", s);
  const array exists = less(first, scalar(static_cast<int>(n), uint32), s);
  const auto of_first = [&](const array& v, const array& other) {
    return where(exists, take(v, minimum(first, scalar(static_cast<int>(n) - 1, uint32), s), 0, s), other, s);
  };
  const auto leading = [&](const array& v) { return reshape(slice(v, {0}, {1}, s), {}, s); };
  std::vector<array> out{of_first(sorted, filler ? *filler : leading(sorted))};
  if (return_index) out.push_back(astype(of_first(order, leading(order)), uint32, s));
  if (return_inverse) {
    const array kept = minimum(value, scalar(std::max(size - 1, 0), int32), s);
    out.push_back(reshape(astype(take(kept, argsort(order, s), 0, s), uint32, s), a.shape(), s));
  }
  if (return_counts) out.push_back(astype(subtract(end, first, s), int32, s));
  return out;
}

}  // namespace weft
