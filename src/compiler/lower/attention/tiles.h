#pragma once
// Shared parts of the forward and the backward attention kernel. Lanes run along queries: a tile of scores is [keys,
// queries], computed by rank-1 updates from keys read one by one and queries transposed into local scratch, so that the
// softmax of a row is elementwise over tiles. Everything that a matmul reads is in local scratch in float32, padded
// with zeros to whole tiles: inner loops have no edges, whatever the sizes, strides and dtypes.
#include <functional>

#include "compiler/lower/emit.h"

namespace weft::compiler {

/// A matrix in memory: element (i, j) at base + i·row + j·column.
struct Matrix {
  kernel::Ref ref = -1;
  kernel::Value base = kernel::no_value;
  int64_t row = 0, column = 0;
};

/// A matrix in local scratch, float32, row-major.
struct Scratch {
  kernel::Ref ref = -1;
  int64_t rows = 0, width = 0;
};

class AttentionTiles {
 protected:
  AttentionTiles(const LowerContext& cx, Group& group, const char* name);

  /// Declares a parameter on its first call. Declare results before operands.
  kernel::Ref declare(const AttentionOperand& x, bool written) {
    return x.node < 0 ? -1 : emit_.param(x.node, written);
  }
  Matrix matrix(const AttentionOperand& x, kernel::Value batch);
  Scratch scratch(int64_t rows, int64_t width) { return {b_.local(float32, rows * width), rows, width}; }

  /// Copies `count` rows of `from` from `row` on to scratch rows from `to_row` on, rounded up to whole tiles, with
  /// zeros past the end.
  void stage(const Scratch& to, kernel::Value to_row, const Matrix& from, kernel::Value row, kernel::Value count,
             int64_t columns);
  /// Stages the queries of a block transposed: `to`[j, i] = scale · from[row + i, j], zeros past the last query.
  void stage_transposed(const Scratch& to, const Matrix& from, kernel::Value row, kernel::Value count, int64_t columns,
                        double scale);
  void clear(const Scratch& s, kernel::Value rows);

  kernel::Value load(const Scratch& s, kernel::Value row, int64_t column, int64_t m, int64_t n);
  void store(const Scratch& s, kernel::Value v, kernel::Value row, int64_t column);
  /// Returns initial + Σ_k a[k] · b[k]. a[k] is a column of m elements from a_at + k·a_depth on, `a_row` apart; b[k] is
  /// n lanes of row b_row + k of b.
  kernel::Value matmul(const Scratch& a, kernel::Value a_at, int64_t a_row, int64_t a_depth, const Scratch& b,
                       kernel::Value b_row, int64_t b_column, kernel::Value depth, kernel::Value initial);
  /// Stores a tile of `m` rows to the rows of a result that exist.
  void store_result(const Matrix& to, kernel::Value tile, kernel::Value row, kernel::Value count, int64_t column,
                    int64_t columns);

  /// Returns the scores [key_rows, queries] of a tile of keys: those at row `staged` of `keys`, which begin with key
  /// number `key`. Hidden scores are -inf.
  kernel::Value scores(const Scratch& keys, kernel::Value staged, const Scratch& queries, kernel::Value key,
                       kernel::Value query, const Matrix& mask);
  /// Returns the number of leading keys that some query of the block from `query` on sees.
  kernel::Value visible_keys(kernel::Value query);
  /// Emits for (i = 0; i < count; i += step).
  void each(kernel::Value count, int64_t step, const std::function<void(kernel::Value)>& body);
  kernel::Value at(kernel::Value row, int64_t stride, int64_t column) {
    return b_.add(b_.mul(row, b_.index(stride)), b_.index(column));
  }
  kernel::Value batch_index(int64_t blocks, kernel::Value& block);  // head of the program, and its block of queries
  int64_t batches() const;
  kernel::Value part_of(kernel::Value count, kernel::Value first, int64_t tile);  // min(count - first, tile)
  // count - first, or no_value if tiles are whole.
  kernel::Value rows_left(kernel::Value count, kernel::Value first, int64_t tile);

  const LowerContext& cx_;
  const AttentionPlan& plan_;
  Emitter emit_;
  kernel::Builder& b_;
  kernel::Value tq_, tk_;
  int64_t lanes_;                // of a vector register
  int64_t queries_;              // of a block: lanes of a tile of scores
  int64_t key_rows_;             // rows of a tile of scores
  int64_t query_rows_;           // rows of a tile whose lanes run along a head's width
  int64_t key_block_;            // keys whose scores are in scratch at once
  int64_t part_, value_part_;    // lanes along the widths of a head
  int64_t width_, value_width_;  // padded to whole parts
};

int64_t padded(int64_t n, int64_t to);

}  // namespace weft::compiler
