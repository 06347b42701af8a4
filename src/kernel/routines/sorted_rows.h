#pragma once
// Adds up rows that are sorted by the row that they are added to. Rows of one key follow each other in the list: a run.
// Each program adds up the runs in a chunk of the list, in registers. A run within a chunk is finished there. Partial
// sums of longer runs are stored, and a second kernel adds them up in order, one program a run. The sums are the same
// in every run of the program, whatever the number of duplicates.
#include <functional>
#include <span>
#include <vector>

#include "kernel/tile.h"

namespace weft::kernel {

/// The sizes of one such sum: `count` rows of the list are added to `rows` rows of `width` elements of `dtype`.
struct SortedRows {
  int64_t count, rows, width;
  Dtype dtype;
  int64_t lanes;  // the widest tile of a program, a power of two

  Dtype sum() const { return is_low_float(dtype) ? float32 : dtype; }
  int64_t panel() const;  // columns of a program
  int64_t panels() const { return (width + panel() - 1) / panel(); }
  int64_t chunks() const;
  int64_t grid() const { return chunks() * panels(); }  // of both kernels
  /// Returns the elements of the partial sums: a row that a chunk begins with, and one that it ends with.
  int64_t parts() const { return chunks() * 2 * width; }
};

/// Emits a program of one of the two kernels.
class SortedRowsProgram {
 public:
  /// Returns the key of an element of the list as int64; from `rows` on nothing is added.
  using Key = std::function<Value(Value at)>;
  /// Returns the panels of rows of the list, in the dtype of the sums: tiles from column() on.
  using Load = std::function<std::vector<Value>(std::span<const Value> at)>;

  SortedRowsProgram(Builder& b, const SortedRows& sizes, Key key);
  Value column() const { return column_; }
  Value left() const { return left_; }  // columns from there on; no_value where every panel is full

  void add_chunk(Ref result, Ref parts, const Load& load);
  /// Adds up a run that begins in the program's chunk and extends past it.
  void add_run(Ref result, Ref parts);

 private:
  Value both(Value x, Value y) { return b_.scalar(ScalarOp::bit_and, {x, y}); }
  Value none(Value x) { return b_.scalar(ScalarOp::bit_not, {x}); }
  Value equal(Value x, Value y) { return b_.scalar(ScalarOp::eq, {x, y}); }
  Value key(Value at) { return key_(b_.max(b_.index(0), b_.min(at, b_.index(sizes_.count - 1)))); }
  Value begins_before();
  Value part_offset(Value chunk, int64_t which);
  void add_to_row(Ref result, Value key, Value sum);
  void store(Ref ref, Value value, Value offset) { b_.store(ref, value, offset, {1}, {left_}); }
  Value load(Ref ref, Value offset) { return b_.load(ref, offset, {panel_}, {1}, {left_}); }

  Builder& b_;
  const SortedRows& sizes_;
  const int64_t panel_;
  Key key_;
  Value chunk_, start_, end_, column_, left_;
};

}  // namespace weft::kernel
