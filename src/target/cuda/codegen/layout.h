#pragma once
// How the elements of a tile are distributed over the threads of a program.
#include <cstdint>
#include <string>

namespace weft::target::cuda {

/// Element e = (chunk · threads + thread) · vec + lane lies in register chunk · vec + lane of its thread. A tile with
/// fewer elements than threads is held several times: thread t holds element t mod size.
struct Layout {
  int64_t size = 1;
  int threads = 32;
  int vec = 1;
  // A thread holds squares of a rank-2 tile (render_transposed.cpp); positions depend on its registers only.
  bool register_tiles = false;
  int registers() const;
  bool repeated() const { return size < threads; }
  /// Returns whether some registers hold no element.
  bool ragged() const { return !repeated() && static_cast<int64_t>(registers()) * threads != size; }
  /// Returns the text of the index of the element in register `r` of thread `t`.
  std::string element(const std::string& r) const;
  /// The same, and the last element for registers that hold none.
  std::string inside(const std::string& r) const;
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// Returns a layout with chunks of `vec`, or narrower ones where not every thread would have a chunk.
Layout make_layout(int64_t size, int threads, int vec);

}  // namespace weft::target::cuda
