#pragma once
// How the elements of a tile are distributed over the threads of a program.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace weft::target::cuda {

/// What a thread holds of a tile: chunks of its elements in their order; fragments of accumulators, as mma.sync makes
/// them; what belongs to the rows, or to the columns, of such fragments; what a wider flat tile repeats: what belongs
/// to its chunks, or to the lanes of its chunks; or what a tile of fragments repeats along its lines: parts of each
/// row, or of all rows alike.
enum class Held : uint8_t { flat, fragments, rows, columns, chunks, lanes, row_parts, line_parts };

/// Flat: element e = (chunk · threads + thread) · vec + lane lies in register chunk · vec + lane of its thread. A tile
/// with fewer elements than threads is held several times: thread t holds element t mod size.
///
/// Fragments: row_warps x column_warps warps cover a tile [rows, columns]; each holds a grid of fragments of 16 x 8. Of
/// a fragment a lane holds four elements: those of row lane / 4 and of the row 8 further, columns 2 (lane % 4) and the
/// next one. A tile [rows] or [columns] is held by every thread whose fragments have such rows or columns. The rows of
/// a warp follow each other; interleaved, as warpgroups multiply, 16 rows of each warp in turn do.
///
/// Chunks: a wider flat tile repeats each element in `each` of its chunks that follow each other, and a thread holds
/// one for each of its chunks. Lanes: a wider flat tile repeats the whole tile, and a thread holds the `vec` elements
/// that all of its chunks have.
///
/// Row parts: a tile of fragments repeats each element in `each` columns of a row that follow each other; a thread
/// holds those of its fragments, the rows one after the other. Line parts: all lines of the fragments repeat the tile;
/// a thread holds the elements of its columns.
struct Layout {
  int64_t size = 1;
  int threads = 32;
  int vec = 1;
  // A thread holds squares of a rank-2 tile (render_transposed.cpp); positions depend on its registers only.
  bool register_tiles = false;
  Held held = Held::flat;
  int64_t rows = 0, columns = 0;  // of the tile of fragments; 0 where they do not matter
  int row_warps = 1, column_warps = 1;
  bool interleaved = false;
  int64_t each = 0;  // of what belongs to chunks, or to parts of rows: those, or the columns, that share an element
  int registers() const;
  bool flat() const { return held == Held::flat; }
  bool repeated() const { return flat() && size < threads; }
  /// Returns whether some registers hold no element.
  bool ragged() const { return flat() && !repeated() && static_cast<int64_t>(registers()) * threads != size; }
  /// Returns the text of the index of the element in register `r` of thread `t`.
  std::string element(const std::string& r) const;
  /// The same, for operations on bits: what a register adds to a row or column has bits of its own, and is joined by
  /// `|`. The compiler then sees that positions which differ in one bit are equal where that one is set or cleared.
  std::string position(const std::string& r) const;
  /// Return the text of the row and of the column of the element in register `r`, of fragments or their rows or
  /// columns.
  std::string row(const std::string& r, char join = '+') const;
  std::string column(const std::string& r, char join = '+') const;
  /// Return the text of the first row of a warp's fragments `i`, and of the first column of its fragments.
  std::string first_row(const std::string& i) const;
  std::string first_column() const;
  /// Returns the fragments along the rows, and along the columns, of a warp.
  int64_t row_fragments() const { return rows / row_warps / 16; }
  int64_t column_fragments() const { return columns / column_warps / 8; }
  /// Returns the elements of a row that a thread holds, of what belongs to parts of rows.
  int64_t parts_of_row() const { return columns / std::max<int64_t>(each, 8); }
  /// Returns the text of the condition that no other thread answers for the element in register `r`; empty where none
  /// ever does.
  std::string owner(const std::string& r) const;
  /// The same, and the last element for registers that hold none.
  std::string inside(const std::string& r) const;
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// Returns a layout with chunks of `vec`, or narrower ones where not every thread would have a chunk.
Layout make_layout(int64_t size, int threads, int vec);

/// Returns fragments of a tile over a grid of warps, and what belongs to their rows or columns.
Layout fragments_of(int64_t rows, int64_t columns, int row_warps, int column_warps, bool interleaved = false);
Layout rows_of(const Layout& fragments);
Layout columns_of(const Layout& fragments);

/// Return how the threads hold a tile of `size` elements that a flat tile repeats, so that each thread has what its
/// chunks need: each element in `times` elements that follow each other, or the tile as a whole. Nothing where a chunk
/// would need elements of several threads.
std::optional<Layout> repeated_elements(const Layout& flat, int64_t size, int64_t times);
std::optional<Layout> repeated_tile(const Layout& flat, int64_t size);

/// Return the same of a tile of `size` elements that whole lines of fragments repeat: each element in `times` columns,
/// loaded in words of `vec` elements at most; or the tile as a whole in each line.
std::optional<Layout> parts_of_rows(const Layout& fragments, int64_t size, int64_t times, int vec);
std::optional<Layout> parts_of_lines(const Layout& fragments, int64_t size);

}  // namespace weft::target::cuda
