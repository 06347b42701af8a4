#pragma once
// What the class for attention of one query needs of its plan: parameters, matrices in memory, and the number of a
// program's head.
#include "compiler/lower/emit.h"

namespace weft::compiler {

/// A matrix in memory: element (i, j) at base + i·row + j·column.
struct Matrix {
  kernel::Ref ref = -1;
  kernel::Value base = kernel::no_value;
  int64_t row = 0, column = 0;
};

class AttentionTiles {
 protected:
  AttentionTiles(const LowerContext& cx, Group& group, const char* name);

  /// Declares a parameter on its first call. Declare results before operands.
  kernel::Ref declare(const AttentionOperand& x, bool written) {
    return x.node < 0 ? -1 : emit_.param(x.node, written);
  }
  Matrix matrix(const AttentionOperand& x, kernel::Value batch);
  kernel::Value batch_index(int64_t blocks, kernel::Value& block);  // head of the program, and its block
  int64_t batches() const;

  const LowerContext& cx_;
  const AttentionPlan& plan_;
  Emitter emit_;
  kernel::Builder& b_;
};

}  // namespace weft::compiler
