#pragma once
// What the kernels of attention share: their parameters, tiles of their arrays, and scores.
#include <span>
#include <string>
#include <vector>

#include "base/number.h"
#include "kernels/attention/attention.h"

namespace weft::kernels {

constexpr double log2_e = 1.4426950408889634;

/// Returns columns as tiles have them: tensor cores multiply 16 at a time.
inline int64_t padded_width(int64_t width) { return (width + 15) / 16 * 16; }

/// Returns the axis of a grid along which programs have a block of rows each, among those of the batch: the last one,
/// or before the last ones with several heads.
int axis_of_blocks(const Attention& a, const AttentionBlocks& blocks);
/// Returns the index of the program along each batch axis.
std::vector<k::Index> batch_ids(const Attention& a, int axis_of_blocks);
/// Returns the number of the program's block of rows, which `reversed` counts from the last one.
k::Index number_of_block(int axis, bool reversed, bool persistent);
/// Returns the grid of programs with a block of queries each; and the first query of a program. Of causal attention the
/// long rows come first.
k::Grid grid_of_queries(const Attention& a, const AttentionBlocks& blocks);
k::Index first_query(const Attention& a, const AttentionBlocks& blocks);

/// The parameters of a kernel: the buffers of the arrays that it reads and writes, each once.
class AttentionParams {
 public:
  struct Use {
    const AttentionArray* array;
    Dim rows;
    int64_t columns;  // 0: an entry a row
    bool written = false;
  };
  AttentionParams(const Attention& a, const std::vector<Use>& uses);
  const std::vector<k::Param>& params() const { return params_; }
  const std::vector<int>& buffers() const { return buffers_; }
  /// Returns the parameter of an array.
  size_t of(const AttentionArray& array) const;

 private:
  std::vector<k::Param> params_;
  std::vector<int> buffers_;
};

/// Returns a kernel that is launched as its blocks say.
AttentionKernel launched(const k::Program& program, const AttentionParams& params, const AttentionBlocks& blocks);

/// A program: tiles of the matrices of one batch index.
class AttentionFrame {
 public:
  /// `batch`: the index along each batch axis.
  AttentionFrame(const Attention& attention, const AttentionParams& params, std::span<const k::AnyRef> refs,
                 std::vector<k::Index> index)
      : a(attention), batch(std::move(index)), params_(params), refs_(refs) {}

  /// Returns `count` rows from `first` on; zeros where there are none.
  template <class T>
  k::Tile<T, 2> rows(const AttentionArray& x, const k::Index& first, int64_t count, const Dim& total,
                     int64_t columns) const {
    return k::Tile<T, 2>(
        k::cast(k::load(view(x, total, columns), spans(first, count, columns)), k::detail::dtype_of<T>()));
  }
  void store(const AttentionArray& x, const k::Index& first, const Dim& total, int64_t columns,
             const k::Tile<float, 2>& tile) const {
    k::store(view(x, total, columns), spans(first, tile.dim(0), columns), k::cast(tile.any(), x.dtype));
  }
  /// Returns entries of rows, `other` where there are none.
  k::Tile<float, 1> entries(const AttentionArray& x, const k::Index& first, int64_t count, const Dim& total,
                            double other) const;
  void store_entries(const AttentionArray& x, const k::Index& first, const Dim& total,
                     const k::Tile<float, 1>& values) const;
  /// Returns the view of an array; columns 0: of entries.
  k::AnyRef view(const AttentionArray& x, const Dim& rows, int64_t columns) const;
  /// Returns both words of the key of dropout, the second one above the first.
  k::Tile<k::u64, 0> dropout_key() const;
  /// Returns the subscripts of the batch axes.
  std::vector<k::Span> batch_spans() const;

  const Attention& a;
  std::vector<k::Index> batch;

 private:
  std::vector<k::Span> spans(const k::Index& first, int64_t count, int64_t columns) const;
  const AttentionParams& params_;
  std::span<const k::AnyRef> refs_;
};

/// A tile of scores: of queries and keys from some on. `keys_first`: it is [keys, queries]. `bounded`: keys behind the
/// last one, or outside of what queries see, may be in it.
struct ScoreBlock {
  k::Index query, key;
  AttentionBlocks size;
  bool keys_first = false, bounded = false;
};

/// Returns a number such that exp2(logits · exponent) = exp(t): where nothing but the scale changes scores, it is left
/// to the exponent.
double exponent_of(const Attention& a);
/// Returns which scores a block has.
ScoreIndex scores_at(const AttentionFrame& frame, const ScoreBlock& block);
/// Returns logits of products q kᵀ; hidden ones are -inf.
k::Tile<float, 2> logits_of(const AttentionFrame& frame, const k::Tile<float, 2>& products, const ScoreBlock& block);
/// Returns the cotangent of scale · q kᵀ from that of the logits.
k::Tile<float, 2> cotangent_of(const AttentionFrame& frame, const k::Tile<float, 2>& products,
                               const k::Tile<float, 2>& cotangent, const ScoreBlock& block);
/// Returns a tile with 0 in place of what dropout leaves out; the rest still lacks the factor dropout_share.
k::Tile<float, 2> dropped(const AttentionFrame& frame, const k::Tile<float, 2>& tile, const ScoreBlock& block);
/// Returns 1 / (1 - rate).
inline double dropout_share(const Attention& a) { return 1 / (1 - a.dropout); }
/// Returns whether the last block of rows may have fewer.
bool ends_within(const Dim& rows, int64_t block);
/// Returns whether a query may see no key, or none in the first blocks.
bool may_hide_rows(const Attention& a);

/// Returns a·b + c; without c the sum begins at 0.
template <class T>
k::Tile<float, 2> multiplied(const Attention& a, const k::Tile<T, 2>& x, const k::Tile<T, 2>& y,
                             const k::Tile<float, 2>& c = {}) {
  return k::Tile<float, 2>(k::dot(x.any(), y.any(), c.any(), a.tf32 ? k::Precision::tf32 : k::Precision::exact));
}

/// Returns an operand that a loop keeps as products of scores take it: its rows on the left, or turned on the right,
/// where CPUs pack it once.
template <class T>
k::Tile<T, 2> kept_operand(const k::Tile<T, 2>& rows, bool left) {
  return left ? rows : k::trans(rows);
}
/// Returns the products of the rows of what a loop keeps with those of a block: [kept, others], or [others, kept] where
/// it is on the right.
template <class T>
k::Tile<float, 2> row_products(const Attention& a, const k::Tile<T, 2>& kept, const k::Tile<T, 2>& others, bool left) {
  return left ? multiplied<T>(a, kept, k::trans(others)) : multiplied<T>(a, others, kept);
}
/// Returns entries of queries, which broadcast to a tile of scores.
inline k::Tile<float, 2> of_queries(const k::Tile<float, 1>& entries, bool keys_first) {
  return keys_first ? k::row(entries) : k::col(entries);
}

/// Returns the blocks of a CPU's loop where some keys are hidden from some queries, or behind the last one: square ones
/// leave out most of those that are hidden; where none are, one block has the rows that whole ones leave.
AttentionBlocks edge_of_keys(const Attention& a, AttentionBlocks blocks);            // of a loop over keys
AttentionBlocks edge_of_queries(const Attention& a, AttentionBlocks blocks);         // of a loop over queries
AttentionBlocks last_of_queries(const Attention& a, const AttentionBlocks& blocks);  // behind whole blocks of queries

/// The keys that queries `first` to `first + count - 1` see: from `begin` on, all of them up to `whole`, some of them
/// up to `end`. `begin` and `whole` are multiples of `block`.
struct KeyRange {
  k::Index begin, whole, end;
  bool any_whole = false, any_bounded = false;
};
KeyRange keys_seen(const Attention& a, const k::Index& first, const AttentionBlocks& blocks);
/// The queries that see keys `first` to …: some of their keys from `begin` on, all from `whole` on, by whole blocks up
/// to `last`, up to `end`. `begin` is a multiple of the block at the edge.
struct QueryRange {
  k::Index begin, whole, last, end;
  bool any_whole = false, any_bounded = false, any_last = false;
};
QueryRange queries_seeing(const Attention& a, const k::Index& first, const AttentionBlocks& blocks);

/// Calls f<T>() for the C++ type of the operands of products.
template <class F>
auto with_element(const Attention& a, const F& f) {
  if (a.dtype == bfloat16 && !a.widened) return f.template operator()<k::bf16>();
  if (a.dtype == float16 && !a.widened) return f.template operator()<k::f16>();
  return f.template operator()<float>();
}

/// Throws std::invalid_argument where the attention has no kernel.
void check_attention(const Attention& a, const char* what);

}  // namespace weft::kernels
