#pragma once
// Groups become tile kernels. A group goes through one of the kernel classes:
//   map     no reductions; lanes run along the trailing axes of the domain
//   row     reductions with lanes along the inner domain, one program a row (softmax, norms, losses)
//   column  reductions with lanes along the rows' trailing axes, a serial loop over the inner domain (bias and norm
//           gradients)
//   transposed  maps that read across: tiles transposed in registers
//   dot     own matmul, for what no library takes
//   attention softmax attention, forward and backward
//   cumulative  an axis reduced up to each of its elements, one program a row, or a panel of rows that lie across
//   scatter updates in order onto a copy of the operand, programs split along the slice
// Each class is a function of the group and of what its loads look like; the schedule is chosen from the strides alone,
// so that it is the same everywhere.
#include <optional>
#include <vector>

#include "compiler/ir/grouping.h"
#include "compiler/schedule/rows.h"
#include "kernel/tile.h"
#include "target/target.h"

namespace weft::compiler {

/// A run-time argument of a kernel: a number, or a symbol's value.
struct SymbolArgument {
  int64_t value = 0;
  const Symbol* symbol = nullptr;
};

struct Lowered {
  kernel::Kernel kernel;
  std::vector<int> params;  // for each kernel parameter, the node whose buffer it is
  std::vector<SymbolArgument> symbols;
  int64_t grid = 0;
  double work = 0;    // basic operations and bytes, for the decision to use more than one thread
  int64_t block = 0;  // of maps of any length, whose only number among the symbols is the length: elements of a program
  int64_t reduction_order =
      0;  // of rows groups: where it is equal, so are the bits of every result; 0 without reductions
};

/// `buffer_owner[node]`: the node in whose buffer a root lies (itself, or the input that it updates in place).
/// `has_buffer[node]`: somebody beside its own group reads a root, so that it needs memory. `streamed[node]`: it is
/// stored with streaming stores.
struct LowerContext {
  const Ir& ir;
  const Grouping& grouping;
  const std::vector<int>& buffer_owner;
  const std::vector<bool>& has_buffer;
  const std::vector<bool>& streamed;
  target::Target& target;
};

/// Lowers a rows group. Returns nothing where it has no such variant; it always has the heuristic's.
std::optional<Lowered> lower_rows(const LowerContext& cx, const Group& group, Variant variant = Variant::heuristic);
Lowered lower_cumulative(const LowerContext& cx, const Group& group);
Lowered lower_dot(const LowerContext& cx, const Group& group);
/// Lowers attention: forward, or backward where the region is the derivative.
Lowered lower_attention(const LowerContext& cx, const Group& group);
/// Lowers a scatter. Its operand must be in the result's buffer already.
Lowered lower_scatter(const LowerContext& cx, const Group& group);

// Parts of the above: `group` is a copy that belongs to the lowering, which adds index expressions to it.

/// Lowers maps that read an operand across its rows through transposed tiles. Returns nothing for other groups.
std::optional<Lowered> lower_transposed(const LowerContext& cx, Group& group);
/// Lowers attention of one query (decode), for GPUs.
Lowered lower_attention_row(const LowerContext& cx, Group& group);
Lowered lower_attention_vjp(const LowerContext& cx, Group& group);

}  // namespace weft::compiler
