#pragma once
// Chooses how a rows group runs: where the lanes lie, what a program is, how wide a tile is. The choice is made from
// the strides of its loads and stores alone.
#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/ir/grouping.h"
#include "target/target.h"

namespace weft::compiler {

enum class RowClass : uint8_t { map, row, column };

/// The schedules of a rows group: the heuristic's first, then what the tuner holds against it. The numbers are kept in
/// caches and checkpoints.
enum class Variant : uint8_t {
  heuristic = 0,
  wider = 1,     // tiles of twice the lanes
  narrower = 2,  // of half of them
  second = 3,    // lanes where the heuristic liked them next best
  straight = 4,  // a map that reads across its lines, without transposing tiles in registers
  own = 5,       // not a schedule: a product by generated code where the heuristic calls a library
};
constexpr int variant_count = 6;
const char* name(Variant variant);

struct RowSchedule {
  RowClass kind = RowClass::map;
  int lane_axes = 0;        // map, column: trailing row axes that the lanes run over; row: all inner axes
  int64_t lane_extent = 1;  // of those axes together, symbols at their bounds
  int64_t width = 1;        // lanes of a tile
  int64_t block = 1;        // map: lane elements of one program
  int64_t cluster = 1;      // row: blocks of threads that take a part of the row each; column: warps, of one or several
                            // such blocks, that take a part of what is reduced each
  int64_t rows = 0;         // row, of GEMVs: rows of the matrix that a program goes through side by side
  bool dynamic =
      false;  // map over one flat axis: its length is an argument of the kernel, so that one kernel serves all lengths
  double flops = 0;  // per point of the domain
  double loads = 0;
};

/// An address that a group loads from or stores to at a point of its domain.
struct Touch {
  int node;
  ix::Expr offset;
  bool gathered;  // through an index that was itself loaded
};

/// Are the reductions of the group GEMVs, and is all else computed from them?
bool gemv_only(const Ir& ir, const Group& group);

/// How warps share columns: elements of a tile, and the parts of what is reduced. One part where they do not.
struct ColumnParts {
  int64_t width = 1, parts = 1;
};
ColumnParts parts_of_columns(int64_t length, int64_t columns, const target::Target& target);

/// Nothing where the group, the caller's own copy, has no such variant, or where it costs so much by its strides that
/// it is not worth a try.
std::optional<RowSchedule> schedule_rows(const Ir& ir, const Grouping& grouping, Group& group, target::Target& target,
                                         Variant variant = Variant::heuristic);

/// Bytes that a block of a device of many threads keeps in the memory that its threads share: two such blocks on a
/// SM that has much of it, and never more than a block may ask for beside what its threads exchange.
int64_t most_kept_bytes(const target::Target& target);

/// What may_overwrite has looked at: copies of groups that it adds index expressions to, and, of maps, what they touch.
/// An optimizer's are asked about for each of their states.
struct TouchedGroup {
  Group group;
  std::vector<Touch> touches;
};
using TouchedGroups = std::unordered_map<const Group*, TouchedGroup>;

/// May the group store `output` over `input`? In a map, if `input` is read at no other place than where `output` is
/// stored. In a group with reductions `output` must be a map over the rows, and beside that position nobody but
/// `output` itself may read `input`: programs and passes do not run in step.
bool may_overwrite(const Ir& ir, const Grouping& grouping, const Group& group, int input, int output,
                   TouchedGroups& known);
/// Returns by root of a rows group the pass that computes it. A reduction's value is available from the next pass on.
std::vector<int> root_passes(const Ir& ir, const Grouping& grouping, const Group& group);

/// Returns the index of a reduction root's operand at the group's point, with the inner variables at the reduced axes.
std::vector<ix::Expr> reduction_operand_index(const Ir& ir, Group& group, const Root& root);

}  // namespace weft::compiler
