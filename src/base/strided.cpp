#include "base/strided.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace weft {
namespace {

constexpr int64_t tile = 32;  // rows and columns copied at once, so that both sides stay in the L1 cache

/// A matrix of elements of one width, `T` standing for that many bytes.
template <class T>
void copy_matrix(const std::byte* from, int64_t from_row, int64_t from_column, std::byte* to, int64_t to_row,
                 int64_t to_column, int64_t rows, int64_t columns) {
  constexpr auto width = static_cast<int64_t>(sizeof(T));
  for (int64_t r0 = 0; r0 < rows; r0 += tile)
    for (int64_t c0 = 0; c0 < columns; c0 += tile)
      for (int64_t r = r0; r < std::min(r0 + tile, rows); ++r)
        for (int64_t c = c0; c < std::min(c0 + tile, columns); ++c)
          std::memcpy(to + (r * to_row + c * to_column) * width, from + (r * from_row + c * from_column) * width,
                      sizeof(T));
}

struct Layouts {
  const Strides &from, &to;
  const Shape& shape;
  size_t bytes;
};

void copy_last(const Layouts& l, const std::byte* from, std::byte* to, int64_t rows, int64_t from_row, int64_t to_row) {
  const size_t last = l.shape.size() - 1;
  const int64_t columns = l.shape[last], fc = l.from[last], tc = l.to[last];
  const auto width = static_cast<int64_t>(l.bytes);
  if (fc == 1 && tc == 1) {
    for (int64_t r = 0; r < rows; ++r)
      std::memcpy(to + r * to_row * width, from + r * from_row * width, l.bytes * static_cast<size_t>(columns));
    return;
  }
  switch (l.bytes) {
    case 1: return copy_matrix<uint8_t>(from, from_row, fc, to, to_row, tc, rows, columns);
    case 2: return copy_matrix<uint16_t>(from, from_row, fc, to, to_row, tc, rows, columns);
    case 4: return copy_matrix<uint32_t>(from, from_row, fc, to, to_row, tc, rows, columns);
    case 8: return copy_matrix<uint64_t>(from, from_row, fc, to, to_row, tc, rows, columns);
    default: return copy_matrix<std::array<uint64_t, 2>>(from, from_row, fc, to, to_row, tc, rows, columns);
  }
}

void copy_axis(const Layouts& l, const std::byte* from, std::byte* to, size_t axis) {
  const auto width = static_cast<int64_t>(l.bytes);
  if (axis + 2 >= l.shape.size()) {
    const bool matrix = axis + 2 == l.shape.size();
    return copy_last(l, from, to, matrix ? int64_t{l.shape[axis]} : 1, matrix ? l.from[axis] : 0,
                     matrix ? l.to[axis] : 0);
  }
  const int64_t n = l.shape[axis];
  for (int64_t i = 0; i < n; ++i) copy_axis(l, from + i * l.from[axis] * width, to + i * l.to[axis] * width, axis + 1);
}

}  // namespace

void copy_strided(const void* from, const Strides& from_strides, void* to, const Strides& to_strides,
                  const Shape& shape, size_t bytes) {
  if (num_elements(shape) == 0) return;
  if (shape.empty()) {
    std::memcpy(to, from, bytes);
    return;
  }
  copy_axis({from_strides, to_strides, shape, bytes}, static_cast<const std::byte*>(from), static_cast<std::byte*>(to),
            0);
}

}  // namespace weft
