#include "base/strided.h"

#include <cstring>

namespace weft {
namespace {

void copy_axis(const std::byte* from, const Strides& fs, std::byte* to, const Strides& ts, const Shape& shape, size_t bytes, size_t axis) {
  if (axis == shape.size()) {
    std::memcpy(to, from, bytes);
    return;
  }
  const auto width = static_cast<int64_t>(bytes);
  const int64_t n = shape[axis];
  if (axis + 1 == shape.size() && fs[axis] == 1 && ts[axis] == 1) {
    std::memcpy(to, from, bytes * static_cast<size_t>(n));
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    copy_axis(from + i * fs[axis] * width, fs, to + i * ts[axis] * width, ts, shape, bytes, axis + 1);
}

}  // namespace

void copy_strided(const void* from, const Strides& from_strides, void* to, const Strides& to_strides, const Shape& shape, size_t bytes) {
  copy_axis(static_cast<const std::byte*>(from), from_strides, static_cast<std::byte*>(to), to_strides, shape, bytes, 0);
}

}  // namespace weft
