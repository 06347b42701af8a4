#pragma once
// What the passes over loops whose iterations follow each other (rows of a matrix) have in common: where values are
// made, what depends on the loop's variable, and copies of instructions for another iteration.
#include <functional>
#include <map>
#include <vector>

#include "kernel/tile.h"

namespace weft::kernel {

/// The instructions that make a kernel's values. It refers to the kernel.
class Definitions {
 public:
  explicit Definitions(const Kernel& kernel);
  /// Returns the instruction; null: a block's argument.
  const Inst* of(Value v) const { return by_value_[static_cast<size_t>(v)]; }
  /// Returns whether two values are equal: computed in the same way from the same values, `b` with `replaced` in place
  /// of some.
  bool equal(Value a, Value b, const std::map<Value, Value>& replaced = {}) const;
  /// Returns whether a value is computed from a loop's variable by operators of integers alone.
  bool is_index_of(Value v, Value variable) const;
  /// Returns whether a value depends on a loop's variable.
  bool depends(Value v, Value variable) const;

 private:
  std::vector<const Inst*> by_value_;
};

/// Copies instructions to the end of a list, with other values in place of some.
class InstCopier {
 public:
  /// Appends new values to `types`.
  InstCopier(std::vector<Type>& types, std::map<Value, Value> replaced) : types_(types), now_(std::move(replaced)) {}
  Value now(Value v) const {
    const auto found = now_.find(v);
    return found == now_.end() ? v : found->second;
  }
  void replace(Value v, Value by) { now_[v] = by; }
  Inst copy(const Inst& inst);
  Block copy(const Block& block);
  /// Copies what a value is computed from by operators of integers, as far as a replaced value is in it.
  Value copy_index(const Definitions& made, Value v, Value variable, std::vector<Inst>& to);

 private:
  std::vector<Type>& types_;
  std::map<Value, Value> now_;
};

/// Calls visit(inst) for all instructions of a block, also of inner ones.
void walk(const Block& block, const std::function<void(const Inst&)>& visit);
/// Returns whether a loop carries nothing and has no results.
bool is_plain_loop(const Inst& inst);
/// Appends a scalar operator of two indices.
Value append_index(std::vector<Type>& types, std::vector<Inst>& to, ScalarOp op, Value a, Value b);

/// Returns the kernel with prefetches in its loops over rows: where an iteration reads a row for the last time, the
/// next one's is asked for. The same bits.
Kernel with_prefetches(const Kernel& kernel);

/// Returns the kernel with the iterations of its loops over rows overlapped: the last inner loop of an iteration, which
/// has streaming stores alone, runs within an inner loop of the next one, which computes. Streaming stores are
/// then in flight while others compute; a loop of its own would wait for each of them. The same bits.
Kernel with_overlapped_stores(const Kernel& kernel);

}  // namespace weft::kernel
