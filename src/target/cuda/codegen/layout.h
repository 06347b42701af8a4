#pragma once
// How the elements of a tile are distributed over the threads of a program.
#include <cstdint>
#include <string>

namespace weft::target::cuda {

/// Element e = (chunk · threads + thread) · vec + lane lies in register chunk · vec + lane of its thread. A tile that
/// is smaller than the threads are many is held several times: by thread t, element t mod size.
struct Layout {
  int64_t size = 1;
  int threads = 32;
  int vec = 1;
  bool register_tiles = false;  // a thread has squares of a tile with two axes (codegen/render_transposed.cpp), and
                                // knows its positions by registers alone
  int registers() const;
  bool repeated() const { return size < threads; }
  /// Are there registers without an element?
  bool ragged() const { return !repeated() && static_cast<int64_t>(registers()) * threads != size; }
  /// The number of the element in register `r` (text) of thread `t`.
  std::string element(const std::string& r) const;
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// Chunks of `vec` where there are enough elements for every thread to have one.
Layout make_layout(int64_t size, int threads, int vec);

}  // namespace weft::target::cuda
