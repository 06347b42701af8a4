#pragma once
// Chooses the schedule of a rows group: the axes that lanes run along, the part of the domain that one program
// computes, and the width of a tile. The choice depends on the strides of the group's loads and stores alone.
#include <span>
#include <string>
#include <vector>

#include "compiler/schedule/access.h"
#include "compiler/schedule/invariant.h"
#include "compiler/schedule/schedule.h"
#include "target/target.h"

namespace weft::compiler {

constexpr int64_t few_elements = int64_t{1} << 18;  // that fit into the L2
constexpr int64_t rows_of_panel = 8;  // of a panel of columns, whose sums are loaded and stored once for all of them
constexpr int64_t row_in_registers = 8192;  // elements of a row that a block of a GPU holds

/// Axes along which the lanes of a kernel may run.
struct LaneAxes {
  RowClass kind;
  int axes;  // map, column: of the last row axes so many; row: all inner axes
  std::vector<DomainVariable> vars;
  double cost = 0;  // of a point's loads and stores
};
/// Returns the possible axes for lanes with their costs by strides, cheapest first. Equal costs keep the order of
/// generation. `rows`, `inner`: the group's domain; `lanes`: as many as are worth filling; `simt`: for a GPU.
std::vector<LaneAxes> rank_lane_axes(const Ir& ir, const AccessAnalysis& analysis, std::span<const DomainVariable> rows,
                                     std::span<const DomainVariable> inner, int64_t lanes, bool simt);

/// Returns whether the group's reductions are GEMVs and everything else is computed from them.
bool gemv_only(const Ir& ir, const Group& group);

/// How warps share columns: the width of a tile in elements, and the number of parts of the reduced axis. `parts` is 1
/// if they do not share them.
struct ColumnParts {
  int64_t width = 1, parts = 1;
};
/// Returns how warps share `columns` adjacent columns of `length` elements each, all of which are reduced, of each of
/// `matrices`.
ColumnParts parts_of_columns(int64_t length, int64_t columns, int64_t matrices, const target::Target& target);

/// Splits axes of a map's domain where reads divide them. Returns whether there were any.
bool split_where_divided(const Ir& ir, const Grouping& grouping, Group& group);
/// Does so on a CPU if whole vectors of lanes then touch adjacent elements: heads that are merged, patches that are cut
/// from images. A GPU's lanes compute their addresses, each its own.
void split_at_reads(const Ir& ir, const Grouping& grouping, Group& group, const target::Target& target);

/// Chooses the schedule of a group, which is the caller's own copy: it may cut the group's domain (concat_parts.h). Its
/// axes are split by `split_at_reads` before.
Schedule schedule_rows(const Ir& ir, const Grouping& grouping, Group& group, target::Target& target);

/// Returns legal schedules of the group: the one that the rules choose, its neighbours, and the rules' second choice of
/// axes if its strides do not make it too expensive to be worth measuring.
std::vector<Schedule> schedules_of(const Ir& ir, const Grouping& grouping, const Group& group, target::Target& target);

/// Returns legal schedules of the group that repeated moves to neighbours reach from those of schedules_of, nearest
/// first, at most so many.
std::vector<Schedule> reachable_schedules(const Ir& ir, const Grouping& grouping, const Group& group,
                                          target::Target& target, size_t most);

/// Cuts the group's domain, whose axes `split_at_reads` has split before, as the schedule says and fills in what its
/// text does not hold. Returns why the group cannot have the schedule on the target; empty if it can.
std::string apply(Schedule& schedule, const Ir& ir, const Grouping& grouping, Group& group, target::Target& target);

/// Returns how many tiles of a long row should be combined with a reducer's state at once. Where bringing a state to a
/// new frame costs much (an exponential), several tiles share that of the state.
int64_t tiles_of_step(kernel::Reducer reducer);

/// Returns the bytes of shared memory that a block may use for values that it reuses: at most what lets two such blocks
/// fit on a large SM, and at most what a block may ask for less what its threads exchange.
int64_t most_kept_bytes(const target::Target& target);

/// Returns the pass that computes each root of a rows group. The value of a reduction is available from the next pass
/// on.
std::vector<int> root_passes(const Ir& ir, const Grouping& grouping, const Group& group);

}  // namespace weft::compiler
