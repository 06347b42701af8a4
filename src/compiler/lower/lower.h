#pragma once
// Lowers groups to tile kernels. There is one kernel class for each kind of group:
//
//   map         no reductions; lanes run along the trailing axes of the domain
//   row         reductions with lanes along the inner domain, one program a row (softmax, norms, losses)
//   column      reductions with lanes along the rows' trailing axes, a serial loop over the inner domain (bias and
//               norm gradients)
//   transposed  maps that read across rows: tiles are transposed in registers
//   dot         matmuls by generated code, for what no library takes
//   attention   softmax attention by the kernels of src/kernels, those of one query among them
//   cumulative  an axis reduced up to each of its elements; one program a row, or a panel of rows
//   scatter     updates in order onto a copy of the operand; programs divide the slice among them
//   sorted scatter  rows that are added where sorted ids say; programs divide the ids among them
//
// A class sees the group and the addresses of its loads. The schedule depends on the strides alone, so it is the same
// everywhere.
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/grouping.h"
#include "compiler/schedule/rows.h"
#include "kernel/length.h"
#include "kernel/routines/routine.h"
#include "kernel/tile.h"
#include "target/target.h"

namespace weft::compiler {

/// A run-time argument of a kernel: a constant, or a symbol's value.
struct SymbolArgument {
  int64_t value = 0;
  const Symbol* symbol = nullptr;
};

/// How a group runs. Default: as the rules say.
struct Variant {
  std::optional<Schedule> schedule = {};  // of rows, of a product by generated code, of attention by its kernels
  std::string config = {};                // a user's kernel in this configuration
  bool by_rules() const { return !schedule && config.empty(); }
  bool operator==(const Variant&) const = default;
};

struct Lowered {
  kernel::Kernel kernel;
  std::vector<NodeId> params;  // for each kernel parameter, the node whose buffer it is
  std::vector<SymbolArgument> symbols;
  int64_t grid = 0;           // programs, at most
  kernel::Length count = {};  // of programs, where it depends on the kernel's symbols
  double work = 0;            // basic operations plus bytes, to decide whether to use more than one thread
  // For maps of any length (their only symbol is the length): elements of a program.
  int64_t block = 0;
  // For rows groups: results have equal bits if this is equal; 0 without reductions.
  int64_t reduction_order = 0;
};

/// A group as several kernels with scratch between them.
struct LoweredRoutine {
  kernel::Routine routine;
  std::vector<NodeId> operands;        // the nodes whose buffers the routine's operands are
  std::vector<const Symbol*> lengths;  // that it takes
};
/// Returns kernels that run one after the other. Parameters of no node are one buffer of `scratch_bytes`.
LoweredRoutine routine_of(std::vector<Lowered> kernels, int64_t scratch_bytes);

/// What lowering knows about the program around a group. `buffer_owner[node]`: the node whose buffer a root lies in
/// (itself, or the input that it updates in place). `has_buffer[node]`: the root is read outside its own group, so it
/// needs memory. `streamed[node]`: it is stored with streaming stores.
struct LowerContext {
  const Ir& ir;
  const Grouping& grouping;
  const IndexedVector<NodeId, NodeId>& buffer_owner;
  const NodeFlags& has_buffer;
  const NodeFlags& streamed;
  target::Target& target;
};

/// Lowers a rows group, by a schedule or as the rules say. Returns nothing if the group cannot have the schedule.
std::optional<Lowered> lower_rows(const LowerContext& cx, const Group& group,
                                  const std::optional<Schedule>& schedule = {});
Lowered lower_cumulative(const LowerContext& cx, const Group& group);
/// Lowers a product, by a schedule or as the rules say.
Lowered lower_dot(const LowerContext& cx, const Group& group, const std::optional<Schedule>& schedule = {});
/// Returns how a kernel is launched by its schedule.
kernel::LaunchOptions launch_of(const Staging& staging);
/// Lowers attention, by a schedule or as the rules say, or its derivative, to the kernels of src/kernels
/// (takes_tiled_attention).
LoweredRoutine lower_tiled_attention(const LowerContext& cx, const Group& group, const Numerics& numerics,
                                     const std::optional<Schedule>& schedule = {});
/// Lowers a scatter. Its operand must be in the result's buffer already.
Lowered lower_scatter(const LowerContext& cx, const Group& group);
/// Lowers a scatter of rows whose ids are sorted (rewrite/sort_scatter.h). Its operand must be in the result's buffer
/// already, row-major.
LoweredRoutine lower_sorted_scatter(const LowerContext& cx, const Group& group);
/// Lowers a scatter that tables in shared memory take (rewrite/sort_scatter.h). Its operand must be in the result's
/// buffer already, row-major.
LoweredRoutine lower_table_scatter(const LowerContext& cx, const Group& group);

// The functions below are parts of those above. `group` is a copy that the lowering owns, since it adds index
// expressions.

/// Lowers maps that read an operand across its rows, through transposed tiles. Returns nothing for other groups.
std::optional<Lowered> lower_transposed(const LowerContext& cx, Group& group);
/// Lowers attention of one query (decode), for GPUs.
Lowered lower_single_query(const LowerContext& cx, const Group& group);

}  // namespace weft::compiler
