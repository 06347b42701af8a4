// Functions of the typed layer that are made of others: new axes, joined and split tiles, the largest elements.
#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "kernel/language/trace.h"
#include "weft/kernel.h"

namespace weft::k::detail {

size_t axis_of(std::string_view what, const std::vector<int64_t>& dims, int axis, Line at) {
  const auto rank = static_cast<int>(dims.size());
  const int from_front = axis < 0 ? axis + rank : axis;
  if (from_front >= 0 && from_front < rank) return static_cast<size_t>(from_front);
  const std::string message = fmt::format("{}: [{}] has no axis {}: it has {}", what, fmt::join(dims, ","), axis, rank);
  if (const Trace* t = Trace::of_thread()) t->refuse(at, message);
  throw_invalid("kernel", fmt::format("{}:{}: {}", at.file, at.number, message));
}

void refuse_divisor(int64_t b, Line at) {
  const std::string message = fmt::format("cdiv: the divisor is {}: give 1 or more", b);
  if (const Trace* t = Trace::of_thread()) t->refuse(at, message);
  throw_invalid("kernel", message);
}

Any expanded(const Any& v, int axis, Line at) {
  Trace& t = Trace::current("expand_dims", at);
  std::vector<int64_t> dims = v.dims(at);
  const auto rank = static_cast<int>(dims.size());
  const int before = axis < 0 ? axis + rank + 1 : axis;
  if (before < 0 || before > rank)
    t.refuse(at, fmt::format("expand_dims: {} does not get an axis {}: give one from {} to {}", text(t.type(v, at)),
                             axis, -rank - 1, rank));
  dims.insert(dims.begin() + before, 1);
  return reshape(v, dims, at);
}

Any joined(const Any& a, const Any& b, Line at) {
  Trace& t = Trace::current("join", at);
  if (a.dims(at) != b.dims(at))
    t.refuse(at, fmt::format("join: {} and {} differ in shape: broadcast one of them", text(t.type(a, at)),
                             text(t.type(b, at))));
  return cat(std::array{expanded(a, -1, at), expanded(b, -1, at)}, a.rank(at), at);
}

Any half(const Any& v, int64_t k, Line at) {
  Trace& t = Trace::current("split", at);
  std::vector<int64_t> dims = v.dims(at), starts(dims.size(), 0);
  if (dims.back() != 2)
    t.refuse(at, fmt::format("split: the last axis of {} has not two elements: reshape it", text(t.type(v, at))));
  starts.back() = k;
  dims.back() = 1;
  const Any part = slice(v, starts, dims, {}, at);
  dims.pop_back();
  return reshape(part, dims, at);
}

Any interleaved(const Any& a, const Any& b, Line at) {
  Trace& t = Trace::current("interleave", at);
  std::vector<int64_t> dims = a.dims(at);
  if (dims != b.dims(at))
    t.refuse(at, fmt::format("interleave: {} and {} differ in shape: broadcast one of them", text(t.type(a, at)),
                             text(t.type(b, at))));
  if (dims.size() < kernel::most_axes) {
    dims.back() *= 2;
    return reshape(joined(a, b, at), dims, at);
  }
  // Four axes: the first ones are one for the while.
  const int64_t last = dims.back();
  const std::vector<int64_t> lines{t.type(a, at).size() / last, last};
  dims.back() *= 2;
  return reshape(joined(reshape(a, lines, at), reshape(b, lines, at), at), dims, at);
}

Any flipped(const Any& v, int axis, Line at) {
  Trace::current("flip", at);
  const std::vector<int64_t> dims = v.dims(at);
  const size_t k = axis_of("flip", dims, axis, at);
  std::vector<int64_t> starts(dims.size(), 0), steps(dims.size(), 1);
  starts[k] = dims[k] - 1, steps[k] = -1;
  return slice(v, starts, dims, steps, at);
}

Any largest(const Any& v, int64_t k, Line at) {
  Trace& t = Trace::current("topk", at);
  std::vector<int64_t> dims = v.dims(at);
  if (k < 1 || k > dims.back())
    t.refuse(at, fmt::format("topk: {} of the last axis of {}: give 1 to {}", k, text(t.type(v, at)), dims.back()));
  dims.back() = k;
  const Any sorted = sort(std::array{v}, -1, true, at)[0];
  return slice(sorted, std::vector<int64_t>(dims.size(), 0), dims, {}, at);
}

}  // namespace weft::k::detail
