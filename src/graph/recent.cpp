#include "graph/recent.h"

#include <functional>

namespace weft::graph {
namespace {

/// Attributes that a thread made last, by a hash of what they are made of. Eager code makes nodes like its last ones,
/// whose attributes are then found without being made anew.
class RecentAttrs {
 public:
  /// Returns those in the slot of `hash` if `same` says that they are the ones, else what `make` makes.
  template <class Same, class Make>
  SharedAttrs get(size_t hash, const Same& same, const Make& make) {
    SharedAttrs& slot = slots_[hash % slots_.size()];
    if (!same(*slot)) slot = make();
    return slot;
  }

 private:
  std::array<SharedAttrs, 64> slots_;
};

}  // namespace

SharedAttrs only_shape(const Shape& shape) {
  thread_local RecentAttrs recent;
  size_t at = shape.size();
  for (const Dim& d : shape) at = at * 31 + static_cast<size_t>(d.bound());
  return recent.get(
      at, [&](const Attrs& a) { return a.shape == shape; },
      [&] {
        Attrs attrs;
        attrs.shape = shape;
        return attrs;
      });
}

SharedAttrs only_reduction(kernel::Reducer reducer, const std::vector<int64_t>& axes) {
  thread_local RecentAttrs recent;
  size_t at = static_cast<size_t>(reducer) * 31 + axes.size();
  for (const int64_t axis : axes) at = at * 31 + static_cast<size_t>(axis);
  return recent.get(
      at, [&](const Attrs& a) { return a.reducer == reducer && a.axes == axes; },
      [&] {
        Attrs attrs;
        attrs.axes = axes;
        attrs.reducer = reducer;
        return attrs;
      });
}

SharedAttrs only_number(Dtype dtype, const Number& number, bool literal) {
  thread_local RecentAttrs recent;
  const size_t at = std::hash<double>()(number.real()) * 31 + static_cast<size_t>(dtype.val()) * 2 + (literal ? 1 : 0);
  return recent.get(
      at, [&](const Attrs& a) { return a.dtype == dtype && a.number == number && a.literal == literal; },
      [&] {
        Attrs attrs;
        attrs.dtype = dtype;
        attrs.number = number;
        attrs.literal = literal;
        return attrs;
      });
}

}  // namespace weft::graph
