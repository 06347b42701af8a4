#pragma once
// Chooses the schedule of a rows group: the axes that lanes run along, the part of the domain that one program
// computes, and the width of a tile. The choice depends on the strides of the group's loads and stores alone.
#include <optional>
#include <vector>

#include "compiler/schedule/access.h"
#include "compiler/schedule/invariant.h"
#include "target/target.h"

namespace weft::compiler {

enum class RowClass : uint8_t { map, row, column };

/// The schedules of a rows group: the heuristic's choice, then the alternatives that the tuner compares with it. Caches
/// and checkpoints store the numeric values.
enum class Variant : uint8_t {
  heuristic = 0,
  wider = 1,     // tiles of twice the lanes
  narrower = 2,  // tiles of half the lanes
  second = 3,    // lanes along the heuristic's second choice of axes
  straight = 4,  // a map that reads across rows, without transposing tiles in registers
  own = 5,       // not a schedule: a matmul by generated code where the heuristic calls a library
};
constexpr int variant_count = 6;
const char* name(Variant variant);

struct RowSchedule {
  RowClass kind = RowClass::map;
  int lane_axes = 0;        // map, column: trailing row axes that the lanes run over; row: all inner axes
  int64_t lane_extent = 1;  // product of those axes' extents, symbols at their bounds
  int64_t width = 1;        // lanes of a tile
  int64_t block = 1;        // map: lane elements of one program
  // row: blocks of a cluster that share one row; column: warps, of one block or of a cluster, that share what is
  // reduced.
  int64_t cluster = 1;
  int64_t rows = 0;  // row kernels of GEMVs: rows of the matrix that a program computes at once
  // 2: a program computes a row (a tile of a map) and the one half the domain after it. Threefry's counters pair their
  // elements: both words of each call are used. A map's lane_extent is then half of its axes'.
  int64_t halves = 1;
  // Map over one flat axis whose length is a kernel argument, so that one kernel serves all lengths.
  bool dynamic = false;
  MapLoop loop;      // map: a loop over row axes inside of each program
  int parts = -1;    // map: position in the domain of the axis of which a program computes all positions; -1: none
  double flops = 0;  // per point of the domain
  double loads = 0;
};

/// Returns whether the group's reductions are GEMVs and everything else is computed from them.
bool gemv_only(const Ir& ir, const Group& group);

/// How warps share columns: the width of a tile in elements, and the number of parts of the reduced axis. `parts` is 1
/// if they do not share them.
struct ColumnParts {
  int64_t width = 1, parts = 1;
};
/// Returns how warps share `columns` columns of `length` elements each, all of which are reduced.
ColumnParts parts_of_columns(int64_t length, int64_t columns, const target::Target& target);

/// Chooses the schedule of a group, which is the caller's own copy: it may cut the group's domain (concat_parts.h).
/// Returns nothing if the group has no such variant, or if the variant's strides make it too expensive to be worth
/// measuring.
std::optional<RowSchedule> schedule_rows(const Ir& ir, const Grouping& grouping, Group& group, target::Target& target,
                                         Variant variant = Variant::heuristic);

/// Returns the bytes of shared memory that a block may use for values that it reuses: at most what lets two such blocks
/// fit on a large SM, and at most what a block may ask for less what its threads exchange.
int64_t most_kept_bytes(const target::Target& target);

/// Returns the pass that computes each root of a rows group. The value of a reduction is available from the next pass
/// on.
std::vector<int> root_passes(const Ir& ir, const Grouping& grouping, const Group& group);

}  // namespace weft::compiler
