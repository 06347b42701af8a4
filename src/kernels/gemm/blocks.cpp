// Large products, after Goto and van de Geijn ("Anatomy of high-performance matrix multiplication", 2008). A program
// has a block of the result and walks through the contracted axis in slices: it packs its columns of the right operand,
// then its rows of the left operand panel by panel, and for each panel computes tiles whose sums fill the vector
// registers. Sums are kept in scratch between slices.
#include <algorithm>
#include <bit>
#include <optional>

#include "kernels/gemm/cpu.h"

namespace weft::kernels {

using k::Index;

namespace {

constexpr int64_t most_depth = 256;  // steps of a slice: a panel of either operand fits into the L1 cache
// Extents of a block: packed columns and sums fit into the L2.
constexpr int64_t most_rows = 240, most_columns = 512;
constexpr int64_t unroll = 4;  // steps in the innermost loop

struct BlockSizes {
  int64_t height, width;         // of a tile: its sums take 2 · height registers
  int64_t pitch;                 // rows of a packed panel of the left operand, of which `height` are used
  int64_t rows, columns, depth;  // of a block, and of a slice
  bool one_slice;
};

int64_t round_up(int64_t n, int64_t to) { return k::cdiv(n, to) * to; }

/// Returns the length of equal parts of `extent`: at most `most`, rounded up to a multiple of `grain`.
int64_t equal_parts(int64_t extent, int64_t most, int64_t grain) {
  return round_up(k::cdiv(extent, k::cdiv(extent, most)), grain);
}

/// Chooses the extents of a block and of a slice, so that there are programs for several threads.
BlockSizes sizes_of(const CpuGemmShape& s) {
  const int64_t rows = s.rows.bound(), columns = s.columns.bound();
  BlockSizes z{};
  z.height = s.registers >= 32 ? 12 : 6, z.width = 2 * s.lanes;
  z.pitch = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(z.height)));
  z.rows = equal_parts(rows, most_rows, z.height), z.columns = equal_parts(columns, most_columns, z.width);
  const auto programs = [&] { return s.batches * k::cdiv(rows, z.rows) * k::cdiv(columns, z.columns); };
  while (programs() < 8 && z.columns > 4 * z.width) z.columns = round_up(z.columns / 2, z.width);
  while (programs() < 8 && z.rows > 6 * z.height) z.rows = round_up(z.rows / 2, z.height);
  z.depth = equal_parts(s.depth.bound(), most_depth, unroll);
  z.one_slice = z.depth >= s.depth.bound();
  return z;
}

/// The block of a program, with its buffers.
template <class T>
class Block {
 public:
  Block(const CpuGemm& g, const GemmOrigin& at)
      : g_(g), z_(sizes_of(g.shape)), at_(at), rows_(k::minimum(g.rows - at.row, z_.rows)),
        columns_(k::minimum(g.columns - at.column, z_.columns)), panels_(k::cdiv(columns_, z_.width)),
        right_(k::scratch<T>({z_.columns / z_.width, z_.depth, z_.width})), left_(k::scratch<T>({z_.depth, z_.pitch})) {
    if (!z_.one_slice) sums_ = k::scratch<T>({z_.rows, z_.columns});
  }

  void run() {
    if (z_.one_slice) return slice(0, g_.depth, true);
    k::loop(0, rows_, z_.height, [&](const Index& i) {
      k::loop(panels_, [&](const Index& panel) { sums(i, panel) = k::zeros<T>({z_.height, z_.width}); });
    });
    const Index last = k::floordiv(g_.depth - 1, z_.depth) * z_.depth;
    k::loop(0, last, z_.depth, [&](const Index& from) { slice(from, z_.depth, false); });
    slice(last, k::mod(g_.depth - 1, z_.depth) + 1, true);
  }

 private:
  auto sums(const Index& i, const Index& panel) {
    return (*sums_)(k::ds(i, z_.height), k::ds(panel * z_.width, z_.width));
  }
  GemmLimit columns_from(const Index& j) { return limit_of(g_.shape.columns, z_.width, columns_, j); }

  /// Adds `steps` of the contracted axis from `from` on; with `last` the block is finished.
  void slice(const Index& from, const Index& steps, bool last) {
    pack_right(from, steps);
    k::loop(0, rows_, z_.height, [&](const Index& i) {
      pack_left(i, from, steps);
      k::loop(panels_, [&](const Index& panel) { tile(i, panel, steps, last); });
    });
  }

  /// Packs the right operand in panels of `width` columns. Where it lies along the contracted axis, a square of it is
  /// turned at a time.
  void pack_right(const Index& from, const Index& steps) {
    const int64_t at_once = g_.shape.right_along_depth ? g_.shape.lanes : 1;
    k::loop(0, steps, at_once, [&](const Index& depth) {
      k::loop(panels_, [&](const Index& panel) {
        const Index j = panel * z_.width;
        right_(panel, k::ds(depth, at_once), k::all) =
            k::Tile<T, 2>(g_.right({at_.column + j, from + depth, z_.width, at_once, true, columns_from(j),
                                    at_once > 1 ? GemmLimit(steps - depth) : GemmLimit()}));
      });
    });
  }

  /// Packs a panel of the left operand. Of the rows behind `height`, which are the next panel's, none are loaded.
  void pack_left(const Index& i, const Index& from, const Index& steps) {
    const int64_t at_once = g_.shape.left_along_depth ? g_.shape.lanes : 1;
    const bool even = g_.shape.rows.is_static() && g_.shape.rows.bound() % z_.height == 0;
    const Index exist = even ? Index(z_.height) : Index(k::minimum(rows_ - i, z_.height));
    k::loop(0, steps, at_once, [&](const Index& depth) {
      left_(k::ds(depth, at_once), k::all) =
          k::Tile<T, 2>(g_.left({at_.row + i, from + depth, z_.pitch, at_once, true, exist,
                                 at_once > 1 ? GemmLimit(steps - depth) : GemmLimit()}));
    });
  }

  /// Adds a slice to a tile of sums.
  void tile(const Index& i, const Index& panel, const Index& steps, bool last) {
    k::Mut<T, 2> c = z_.one_slice ? k::zeros<T>({z_.height, z_.width}) : sums(i, panel).load();
    const auto left = left_.permute({1, 0});
    const auto add = [&](const Index& begin, const Index& end, int64_t step) {
      k::loop(begin, end, step, [&](const Index& depth) {
        const auto now = k::ds(depth, step);
        const k::Tile<T, 2> a = left(k::ds(0, z_.height), now).load(), b = right_(panel, now, k::all).load();
        c = k::dot(a, b, c.get());
      });
    };
    const Index whole = k::floordiv(steps, unroll) * unroll;
    add(0, whole, unroll);
    add(whole, steps, 1);
    if (!last) {
      sums(i, panel) = c;
      return;
    }
    const Index j = panel * z_.width;
    g_.finish({at_.row + i, at_.column + j, limit_of(g_.shape.rows, z_.height, rows_, i), columns_from(j)},
              c.get().any());
  }

  const CpuGemm& g_;
  const BlockSizes z_;
  const GemmOrigin at_;
  const Index rows_, columns_, panels_;  // that exist
  const k::Ref<T, 3> right_;             // packed: [panel, step, column]
  const k::Ref<T, 2> left_;              // packed: [step, row]
  std::optional<k::Ref<T, 2>> sums_;     // between slices
};

}  // namespace

GemmPart blocks_part(const CpuGemmShape& shape) {
  const BlockSizes z = sizes_of(shape);
  return {z.rows, z.columns};
}

void gemm_by_blocks(const CpuGemm& g, const GemmOrigin& at) {
  with_sums(g.shape.sums, [&]<class T>() { Block<T>(g, at).run(); });
}

}  // namespace weft::kernels
