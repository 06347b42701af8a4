#pragma once
// Index expressions: where the element that another tile wants lies in a tile, both counted row-major.
#include <cstdint>
#include <string>
#include <vector>

namespace weft::target::cuda {

/// Element (i0, i1, …) of a tile of `dims` is element offset + Σ ik · strides[k] of another one.
struct Strided {
  std::vector<int64_t> dims, strides;
  int64_t offset = 0;

  /// Returns the text of that index; `e` is the text of an element's number in the tile of `dims`.
  std::string text(const std::string& e) const;
  /// Returns whether the elements are all of the other tile's, in their order.
  bool in_order() const;
};

/// Returns the row-major strides of a tile.
std::vector<int64_t> row_major(const std::vector<int64_t>& dims);

/// The lines of a tile along an axis: neighbours of a line lie `step` apart.
struct Lines {
  int64_t extent = 1, step = 1, count = 1;
  Lines(const std::vector<int64_t>& dims, int axis);
  /// Returns the text of where a line begins.
  std::string start(const std::string& line) const;
  /// Returns the text of an element's position in its line, and of the number of its line.
  std::string position(const std::string& e) const;
  std::string line(const std::string& e) const;
};

}  // namespace weft::target::cuda
