#include "compiler/schedule/rows.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "base/error.h"
#include "compiler/ir/split_axes.h"
#include "compiler/schedule/concat_parts.h"
#include "graph/table.h"
#include "target/target.h"

namespace weft::compiler {

using graph::Op;
using ix::Expr;

namespace {

constexpr int64_t most_part_bytes = 128 << 10;  // of partial results of all parts of columns
// Of states of several components: each block has memory for those of all parts, and two blocks fit on an SM, where an
// SM gets two.
constexpr int64_t most_state_bytes = 64 << 10;
constexpr int64_t warps_of_column_block = 16;  // that share columns; twice as many where blocks are few

/// The numbers of a schedule, before they are divisions.
struct Sizes {
  RowClass kind = RowClass::map;
  int lane_axes = 0;        // map, column: trailing row axes that the lanes run over; row: all inner axes
  int64_t lane_extent = 1;  // product of those axes' extents, symbols at their bounds; of a map in halves, of a half
  int64_t width = 1;        // lanes of a tile
  int64_t block = 1;        // map, column: lanes of one program
  int64_t sharers = 1;      // row: blocks of a cluster; column: warps
  int64_t tiles = 1;        // row: tiles of a step
  int64_t gemv_rows = 0;    // GEMV: rows of the matrix that a program computes at once
  int64_t halves = 1;       // 2: a program computes a row (a tile of a map) and the one half the domain after it
  int cut = -1;             // map: position in the domain of the axis of which a program computes all positions
  bool dynamic = false;
  MapLoop loop;
  double flops = 0;  // per point of the domain
};

int64_t divided(int64_t n, int64_t by) { return (n + by - 1) / by; }

int64_t power_of_two_at_least(int64_t n) {
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

/// Sizes tiles for a block of threads: about four elements a thread, a whole row in registers if it fits, and enough
/// programs to fill a GPU. A lane of a cut map computes an element of each of the `parts`.
void size_for_blocks(Sizes& s, int64_t total, int64_t rows, int64_t parts) {
  constexpr int64_t programs_wanted = 1024;
  const int64_t extent = power_of_two_at_least(std::max<int64_t>(1, s.lane_extent));
  int64_t widest = 1024;
  // Longer rows are read in several passes: fewer of them run at a time, so that the L2 keeps them between passes.
  if (s.kind == RowClass::row)
    widest = extent <= row_in_registers ? row_in_registers : row_in_registers / std::max<int64_t>(2, s.tiles);
  if (s.kind == RowClass::map && s.flops > 24) widest = 512;
  if (s.kind != RowClass::row) {
    const int64_t points = s.kind == RowClass::map ? total : rows;
    if (s.kind == RowClass::column) widest = 128;
    const int64_t narrowest = s.kind == RowClass::map ? std::max<int64_t>(32, 128 / parts) : 32;
    while (widest > narrowest && points / widest < programs_wanted) widest /= 2;
  }
  s.width = s.dynamic ? widest : std::min(widest, extent);
  s.block = s.width;
  if (s.kind == RowClass::map && total / s.width > 16 * programs_wanted) s.block = 4 * s.width;
}

/// Returns how many blocks of a cluster share a row: enough to keep the device busy if rows are few, and enough that
/// several blocks fit on an SM if a row does not fit into one block's shared memory.
int64_t blocks_of_row(const Sizes& s, int64_t rows, int64_t bytes, const target::Target& target) {
  constexpr int64_t least_part = 4096, programs_wanted = 256, good_bytes = 36 << 10;
  if (s.kind != RowClass::row || s.lane_extent <= s.width) return 1;
  const int64_t most = target.machine().max_cluster, usual = std::min(most, target.machine().cluster);
  const int64_t most_bytes = most_kept_bytes(target);
  const auto fits = [&](int64_t blocks) {
    return s.lane_extent * bytes / blocks <= (blocks == 1 ? most_bytes : good_bytes);
  };
  const auto may_double = [&](int64_t blocks, int64_t limit) {
    return 2 * blocks <= limit && s.lane_extent / (2 * blocks) >= least_part;
  };
  int64_t blocks = 1;
  while (may_double(blocks, usual) && (rows * blocks < programs_wanted || !fits(blocks))) blocks *= 2;
  while (may_double(blocks, most) && (2 * rows * blocks <= programs_wanted / 2 || !fits(blocks))) blocks *= 2;
  return blocks;
}

/// Returns whether a pass after the first reduces or stores elements, not only results of rows.
bool reads_again(const Group& group, const std::vector<int>& passes) {
  for (size_t k = 0; k < passes.size(); ++k)
    if (group.roots[k].kind != RootKind::row && passes[k] > 0) return true;
  return false;
}

/// Returns the bytes of a column's states.
int64_t state_bytes(const Ir& ir, const Group& group) {
  std::set<std::pair<kernel::Reducer, std::vector<NodeId>>> states;  // the results of a state have these in common
  int64_t bytes = 0;
  for (const Root& r : group.roots) {
    const IrNode& n = ir[r.node];
    if (r.kind != RootKind::reduce || !states.insert({n.attrs->reducer, {n.inputs.begin(), n.inputs.end()}}).second)
      continue;
    for (const NodeId component : n.inputs) bytes += std::max<int64_t>(sizeof(float), ir[component].type.dtype.size());
  }
  return bytes;
}

/// Lets the warps of a block, or of a cluster's blocks, share columns, so that one launch reduces them. Returns false,
/// and changes nothing, if that does not pay or a later pass needs the reductions of whole columns. `matrices`: of
/// which each has such columns.
bool share_columns(Sizes& s, const Ir& ir, const Grouping& grouping, const Group& group, int64_t length,
                   int64_t matrices, const target::Target& target) {
  const int64_t bytes = state_bytes(ir, group);
  if (reads_again(group, root_passes(ir, grouping, group))) return false;
  ColumnParts shared = parts_of_columns(length, s.lane_extent, matrices, target);
  const bool states = std::any_of(group.roots.begin(), group.roots.end(),
                                  [&](const Root& r) { return r.kind == RootKind::reduce && has_results(ir[r.node]); });
  const int64_t panels = matrices * divided(s.lane_extent, shared.width);
  const bool several = panels * (shared.parts / warps_of_column_block) > target.machine().processors;
  const int64_t most = states && several ? most_state_bytes : most_part_bytes;
  while (shared.parts > 1 && shared.parts * shared.width * bytes > most) shared.parts /= 2;
  if (shared.parts == 1) return false;
  s.sharers = shared.parts;
  s.width = s.block = shared.width;
  return true;
}

/// Sizes a GEMV: a warp computes a few rows of the matrix in tiles of one word a lane. More rows read the vector less
/// often, but every SM needs some warps first. Vectors of one matrix share what its elements take.
void for_gemv(Sizes& s, int64_t rows, int64_t reductions, bool one_matrix, bool normed) {
  const int64_t most_sums = one_matrix ? 8 : 4;
  const int64_t programs_wanted = normed ? 512 : 2048;  // each program computes the norm of the row
  s.width = std::min<int64_t>(256, power_of_two_at_least(std::max<int64_t>(1, s.lane_extent)));
  s.block = s.width;
  s.gemv_rows = 1;
  while (2 * s.gemv_rows * reductions <= most_sums && rows / (2 * s.gemv_rows) >= programs_wanted) s.gemv_rows *= 2;
}

/// Returns how the warps of a block share few and short columns, as of the parts of a reduction: one warp would wait
/// for one load after another.
ColumnParts parts_of_short_columns(int64_t length, int64_t columns) {
  constexpr int64_t width = 32, most_warps = 16, most_length = 256, least_rows = 4;
  if (length > most_length || length < 2 * least_rows || columns < 2 * width) return {};
  return {width,
          std::min(most_warps, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(length / least_rows))))};
}

}  // namespace

int64_t tiles_of_step(kernel::Reducer reducer) {
  constexpr double little = 8;  // basic operations
  return kernel::cost_of_frame(reducer) > little ? 4 : 1;
}

int64_t most_kept_bytes(const target::Target& target) {
  constexpr int64_t good = 112 << 10, exchanged = 10 << 10;
  return std::min(good, target.machine().shared_bytes - exchanged);
}

/// A warp's tile is wide enough to be read at full bandwidth. A cluster has enough blocks to give each SM at most one
/// (an SM that gets two of them leaves another idle), and blocks have more warps if there are few of them.
ColumnParts parts_of_columns(int64_t length, int64_t columns, int64_t matrices, const target::Target& target) {
  constexpr int64_t widest = 128, most_blocks = 8, most_warps = 32, warps = warps_of_column_block, least_length = 32,
                    few_of_warp = 8192, most_panels = 1024;
  const int64_t width = std::min(widest, power_of_two_at_least(columns)), panels = matrices * divided(columns, width);
  const int64_t processors = target.machine().processors, few = processors * 6 / 11;  // half of the SMs would idle
  const int64_t most = std::min(most_blocks, target.machine().max_cluster);
  if (most < 2 || columns < (matrices > 1 ? widest / 4 : widest / 2) || panels > most_panels) return {};
  if (matrices * length * columns <= few_elements) return parts_of_short_columns(length, columns);
  int64_t blocks = 1;
  while (2 * blocks <= most && 2 * blocks * panels <= processors) blocks *= 2;
  int64_t parts = blocks * (blocks == most_blocks && blocks * panels <= few ? most_warps
                            : panels >= 2 * processors                      ? warps / 2
                                                                            : warps);
  while (parts > 1 && length / parts < least_length) parts /= 2;
  const bool enough =
      2 * panels * parts >= processors * warps || matrices * length * columns <= panels * parts * few_of_warp;
  return enough && parts > 1 ? ColumnParts{width, parts} : ColumnParts{};
}

std::vector<int> root_passes(const Ir& ir, const Grouping& grouping, const Group& group) {
  std::map<NodeId, int> after;  // root → first pass in which its value may be used
  std::vector<int> passes;
  for (const Root& root : group.roots) {
    int pass = 0;
    std::set<NodeId> seen;
    std::vector<NodeId> pending(ir[root.node].inputs.begin(), ir[root.node].inputs.end());
    while (!pending.empty()) {
      NodeId id = pending.back();
      pending.pop_back();
      if (!seen.insert(id).second) continue;
      if (auto it = after.find(id); it != after.end()) pass = std::max(pass, it->second);
      if (is_leaf(ir, id) || grouping.is_root[id]) continue;
      pending.insert(pending.end(), ir[id].inputs.begin(), ir[id].inputs.end());
    }
    after[root.node] = root.kind == RootKind::reduce ? pass + 1 : pass;
    passes.push_back(pass);
  }
  return passes;
}

namespace {

/// Lets the blocks of a cluster share long rows.
void share_row(Sizes& s, const AccessAnalysis& analysis, const Ir& ir, const Grouping& grouping, const Group& group,
               int64_t rows, const target::Target& target) {
  int64_t bytes = 1;
  for (const Touch& touch : analysis.touches)
    if (const graph::Type& t = ir[touch.node].type; volume(t.shape) >= rows * s.lane_extent)
      bytes = std::max<int64_t>(bytes, t.dtype.size());
  const std::vector<int> passes = root_passes(ir, grouping, group);
  if (*std::max_element(passes.begin(), passes.end()) == 0) return;  // one pass: one block is as fast
  if (!reads_again(group, passes)) bytes = 0;                        // nothing is kept
  s.sharers = blocks_of_row(s, rows, bytes, target);
  if (s.sharers == 1) return;
  // About an eighth of a part: the remainder after the last whole tile costs as much as a tile.
  const int64_t part = s.lane_extent / s.sharers;
  s.width = std::min(std::clamp<int64_t>(power_of_two_at_least(part) / 8, 2048, 4096), row_in_registers / s.tiles);
  s.block = s.width;
}

/// Lets each program compute both halves of the domain where words are drawn by position in the domain.
Sizes with_halves(Sizes s, const AccessAnalysis& analysis, Group& group) {
  const std::vector<DomainVariable>& domain = group.domain;
  const auto rows_first = [](const DomainVariable& a, const DomainVariable& b) { return !a.inner && b.inner; };
  if (analysis.drawn.empty() || group.has_columns() || !all_static(domain) || s.sharers > 1 || s.gemv_rows > 0 ||
      !std::is_sorted(domain.begin(), domain.end(), rows_first))
    return s;
  std::vector<Expr> vars;
  Shape extents;
  int64_t rows = 1;
  for (const DomainVariable& v : domain) {
    vars.push_back(v.var), extents.push_back(v.extent);
    if (!v.inner) rows *= v.extent.bound();
  }
  const bool whole_rows = s.kind == RowClass::row && s.lane_extent <= s.width && rows % 2 == 0;
  const bool whole_map = s.kind == RowClass::map && static_cast<size_t>(s.lane_axes) == domain.size() &&
                         s.lane_extent % (2 * s.width) == 0;
  const Expr position = ix::linear(*group.cx, vars, row_major_strides(extents));
  const bool in_place = std::any_of(analysis.drawn.begin(), analysis.drawn.end(), [&](const auto& drawn) {
    return drawn.position == position && drawn.words == extent_of(domain);
  });
  if (!in_place || !(whole_rows || whole_map)) return s;
  s.halves = 2;
  s.dynamic = false;
  if (whole_map) s.lane_extent /= 2;
  return s;
}

/// Lets each program of a map loop over axes along which much of its work repeats. Its lanes are then whole tiles of
/// one block. Needs static lengths.
Sizes with_loop(Sizes s, const Ir& ir, const Grouping& grouping, Group& group, std::span<const DomainVariable> rows,
                int64_t lanes) {
  if (s.kind != RowClass::map || s.lane_axes == 0 || s.dynamic || s.halves > 1 || s.cut >= 0 ||
      !all_static(group.domain))
    return s;
  const auto cut = rows.size() - static_cast<size_t>(s.lane_axes);
  s.loop =
      choose_map_loop(ir, grouping, group, rows.first(cut), rows.subspan(cut), {std::min(lanes, s.width), s.width});
  if (s.loop.axes.empty()) return s;
  s.width = s.loop.width;
  s.block = s.width * s.loop.tiles;
  return s;
}

/// Lets lanes of a cut map run along further axes until a block's threads have words of several elements. What is not
/// one in memory then has runs as long as the last axis.
void lengthen_lanes(Sizes& s, std::span<const DomainVariable> rows) {
  constexpr int64_t enough = 256, word = 4;
  while (s.lane_axes > 0 && static_cast<size_t>(s.lane_axes) < rows.size() && s.lane_extent < enough &&
         s.lane_extent % word == 0) {
    s.lane_axes += 1;
    s.lane_extent *= rows[rows.size() - static_cast<size_t>(s.lane_axes)].extent.bound();
  }
}

/// Returns the columns of a panel (lower/loops/columns.cpp), or 0 if single tiles of columns are as good: the data fits
/// into a cache, or the group does more than reduce.
int64_t width_of_panels(const Sizes& s, const Ir& ir, const Grouping& grouping, const Group& group, int64_t columns,
                        int64_t length, const target::Target& target) {
  constexpr int64_t widest = 2048;                // columns: two pages of each row
  constexpr int64_t enough_programs = 8;          // to read at the speed of memory
  constexpr int64_t most_panel_bytes = 16 << 10;  // of a panel's sums: they stay in the L1 cache
  constexpr int64_t least_elements = int64_t{1} << 19;
  if (s.kind != RowClass::column || !all_static(group.domain)) return 0;
  if (s.lane_extent * length < least_elements || length < 4 * rows_of_panel) return 0;
  const std::vector<int> passes = root_passes(ir, grouping, group);
  if (*std::max_element(passes.begin(), passes.end()) > 0) return 0;
  if (std::any_of(group.roots.begin(), group.roots.end(), [](const Root& r) { return r.kind == RootKind::full; }))
    return 0;
  const int64_t bytes = state_bytes(ir, group), programs = std::min(enough_programs, target.machine().processors);
  int64_t width = widest;
  while (width > s.width && (columns < programs * width || width * bytes > most_panel_bytes)) width /= 2;
  return width > s.width ? width : 0;
}

/// What the rules know of a group's domain.
struct DomainView {
  std::vector<DomainVariable> rows, inner;  // without an axis that is cut
  std::vector<int> row_axes, inner_axes;    // their positions in the domain
};

DomainView view_of(const Group& group, int cut) {
  DomainView view;
  for (size_t k = 0; k < group.domain.size(); ++k) {
    if (static_cast<int>(k) == cut) continue;
    const bool inner = group.domain[k].inner;
    (inner ? view.inner : view.rows).push_back(group.domain[k]);
    (inner ? view.inner_axes : view.row_axes).push_back(static_cast<int>(k));
  }
  return view;
}

/// Makes divisions of the numbers.
Schedule schedule_of(const Sizes& s, const DomainView& view, const Group& group) {
  Schedule out;
  out.kind = s.kind;
  std::vector<int> rows = view.row_axes;
  const auto set = [&](AxisDivision& d, std::vector<int> axes, std::vector<AxisPart> parts) {
    d.axes = std::move(axes);
    for (const int axis : d.axes) d.extent *= group.domain[static_cast<size_t>(axis)].extent.bound();
    d.parts = std::move(parts);
  };
  const int64_t tiles = divided(s.lane_extent, s.width), blocks = divided(s.lane_extent, s.block);
  std::vector<AxisPart> lanes{{Level::grid, blocks}, {Level::serial, s.block / s.width}, {Level::lanes, s.width}};
  if (s.kind == RowClass::row) {
    const int64_t at_once = tiles > 1 ? s.tiles : 1;
    lanes = {
        {Level::cluster, s.sharers}, {Level::serial, divided(tiles, s.sharers * at_once)}, {Level::lanes, s.width}};
    if (at_once > 1) lanes.insert(lanes.end() - 1, {Level::unroll, at_once});
    set(out.lanes, view.inner_axes, lanes);
  } else {
    std::vector<int> lane_axes(rows.end() - s.lane_axes, rows.end());
    rows.resize(rows.size() - lane_axes.size());
    if (!s.loop.axes.empty()) lanes[1].level = Level::unroll;
    if (s.halves > 1 && rows.empty()) lanes.insert(lanes.begin(), {Level::unroll, s.halves});
    set(out.lanes, std::move(lane_axes), std::move(lanes));
  }
  if (s.kind == RowClass::column) {
    const int64_t length = extent_of(view.inner);
    std::vector<AxisPart> loop{{Level::warps, s.sharers}, {Level::serial, divided(length, s.sharers)}};
    if (s.block > s.width) loop = {{Level::serial, divided(length, rows_of_panel)}, {Level::unroll, rows_of_panel}};
    set(out.loop, view.inner_axes, std::move(loop));
  } else if (!s.loop.axes.empty()) {
    std::vector<int> axes;
    for (auto at = s.loop.axes.rbegin(); at != s.loop.axes.rend(); ++at) {
      axes.insert(axes.begin(), rows[static_cast<size_t>(*at)]);
      rows.erase(rows.begin() + *at);
    }
    set(out.loop, std::move(axes), {{Level::grid, 1}, {Level::serial, s.loop.iterations}});
    out.loop.parts[0].count = out.loop.extent / s.loop.iterations;
  }
  if (s.cut >= 0) set(out.cut, {s.cut}, {{Level::unroll, group.domain[static_cast<size_t>(s.cut)].extent.bound()}});
  set(out.programs, std::move(rows), {});
  const int64_t programs = out.programs.extent;
  if (s.gemv_rows > 0)
    out.programs.parts = {{Level::grid, divided(programs, s.gemv_rows)}, {Level::unroll, s.gemv_rows}};
  else if (s.halves > 1 && !out.programs.axes.empty())
    out.programs.parts = {{Level::unroll, s.halves}, {Level::grid, programs / s.halves}};
  else out.programs.parts = {{Level::grid, programs}};
  out.any_length = s.dynamic;
  return out;
}

/// Sizes a schedule for a GPU.
Sizes sized_for_gpu(Sizes s, const AccessAnalysis& analysis, const Ir& ir, const Grouping& grouping, Group& group,
                    const DomainView& view, const target::Target& target) {
  const int64_t rows = extent_of(view.rows), total = rows * extent_of(view.inner);
  if (s.cut >= 0) lengthen_lanes(s, view.rows);
  size_for_blocks(s, total, rows, extent_of(group.domain) / std::max<int64_t>(1, total));
  if (s.kind == RowClass::row && gemv_only(ir, group)) {
    const auto multiplies = [&](const Root& r) {
      if (r.kind != RootKind::reduce || !ir[r.node].gemv) return false;
      const std::vector<NodeId>& factors = ir[ir[r.node].inputs[0]].inputs;
      return factors[0] != factors[1];
    };
    std::set<NodeId> matrices;
    for (const Root& r : group.roots)
      if (multiplies(r)) matrices.insert(ir[ir[r.node].inputs[0]].inputs[1]);
    const auto sums = std::count_if(group.roots.begin(), group.roots.end(), multiplies);
    const auto norms = [&](const Root& r) { return r.kind == RootKind::reduce && !ir[r.node].gemv; };
    for_gemv(s, rows, sums, sums > 1 && matrices.size() == 1,
             std::any_of(group.roots.begin(), group.roots.end(), norms));
  } else if (s.kind == RowClass::row && all_static(group.domain)) {
    share_row(s, analysis, ir, grouping, group, rows, target);
  }
  if (s.kind == RowClass::column && s.lane_axes > 0 && all_static(group.domain) &&
      share_columns(s, ir, grouping, group, extent_of(view.inner), rows / std::max<int64_t>(1, s.lane_extent), target))
    return s;
  return with_halves(s, analysis, group);
}

/// Sizes a schedule for the vectors and caches of a CPU.
Sizes sized_for_cpu(Sizes s, const AccessAnalysis& analysis, const Ir& ir, const Grouping& grouping, Group& group,
                    const DomainView& view, const target::Target& target) {
  const int64_t lanes = target.machine().lanes(4), rows = extent_of(view.rows);
  int64_t widest = 4 * lanes;
  // Long expressions get narrower tiles, since fewer values may be live at once. Over few arrays they are chains with
  // few live values, and several chains side by side hide their latencies.
  const bool chains = analysis.touches.size() <= 3;
  if (s.kind == RowClass::map && analysis.flops > (chains ? 60 : 24)) widest = 2 * lanes;
  if (s.kind == RowClass::row && s.lane_extent <= 8 * lanes) widest = 8 * lanes;  // a row stays in registers
  if (s.kind == RowClass::column) {
    // Narrow enough for several programs, wide enough to read whole cache lines.
    while (widest > lanes && rows / widest < 2) widest /= 2;
  }
  s.width = s.dynamic ? widest : std::min(widest, power_of_two_at_least(std::max<int64_t>(1, s.lane_extent)));
  s.block = s.kind == RowClass::map ? s.width * std::max<int64_t>(1, 4096 / s.width) : s.width;
  if (const int64_t panel = width_of_panels(s, ir, grouping, group, rows, extent_of(view.inner), target); panel > 0)
    s.block = panel;
  return with_loop(with_halves(s, analysis, group), ir, grouping, group, view.rows, lanes);
}

/// Returns the rough cost of a point of the domain.
double rough_operations(const AccessAnalysis& analysis) {
  return analysis.flops + 4 * static_cast<double>(analysis.touches.size());
}

/// Chooses the schedule of the group's domain as it is. `cut`: the axis of which a program computes all positions.
/// `second`: the second choice of axes; nothing if there is none.
std::optional<Schedule> schedule_domain(const Ir& ir, const Grouping& grouping, Group& group, target::Target& target,
                                        int cut, bool second) {
  constexpr double hopeless = 3;           // times the cost of the cheapest
  constexpr double long_arithmetic = 100;  // operations an element: random numbers take about two hundred
  const AccessAnalysis analysis(ir, grouping, group);
  const DomainView view = view_of(group, cut);
  const bool simt = target.machine().simt;
  const int64_t lanes = simt ? 32 : target.machine().lanes(4);  // lanes worth filling
  const std::vector<LaneAxes> candidates = rank_lane_axes(ir, analysis, view.rows, view.inner, lanes, simt);
  const LaneAxes* best = &candidates[0];
  if (second) {
    if (group.has_columns() || candidates.size() < 2 || candidates[1].cost > hopeless * candidates[0].cost) return {};
    best = &candidates[1];
  } else if (group.has_columns()) {  // each program computes a part of the rows
    best =
        &*std::find_if(candidates.begin(), candidates.end(), [](const LaneAxes& c) { return c.kind == RowClass::row; });
  }
  Sizes s;
  s.kind = best->kind;
  s.lane_axes = best->axes;
  s.lane_extent = extent_of(best->vars);
  s.flops = analysis.flops;
  for (const Root& root : group.roots)
    if (s.kind == RowClass::row && root.kind == RootKind::reduce)
      s.tiles = std::max(s.tiles, tiles_of_step(ir[root.node].attrs->reducer));
  s.cut = cut;
  s.dynamic = s.kind == RowClass::map && s.lane_axes > 0 && s.lane_axes == static_cast<int>(view.rows.size()) &&
              all_static(best->vars) && cut < 0;
  const auto size = simt ? sized_for_gpu : sized_for_cpu;
  Schedule schedule = schedule_of(size(s, analysis, ir, grouping, group, view, target), view, group);
  schedule.operations = rough_operations(analysis);
  schedule.guarded_tiles =
      target.machine().wants_loads_in_flight() && s.kind == RowClass::map && analysis.flops > long_arithmetic;
  return schedule;
}

}  // namespace

bool split_where_divided(const Ir& ir, const Grouping& grouping, Group& group) {
  constexpr int most_splits = 4;
  if (!is_static_map(group) || reads_concat(ir, grouping, group)) return false;
  int splits = 0;
  for (; splits < most_splits; ++splits) {
    const AccessAnalysis analysis(ir, grouping, group);
    if (!analysis.drawn.empty()) return false;  // words are drawn by position in the domain
    if (std::none_of(analysis.touches.begin(), analysis.touches.end(),
                     [&](const Touch& touch) { return split_divided(group, touch.offset); }))
      break;
  }
  return splits > 0;
}

void split_at_reads(const Ir& ir, const Grouping& grouping, Group& group, const target::Target& target) {
  if (target.machine().simt) return;
  const int64_t lanes = target.machine().lanes(4);
  const auto best = [&](Group& of) {
    const DomainView view = view_of(of, -1);
    return rank_lane_axes(ir, AccessAnalysis(ir, grouping, of), view.rows, view.inner, lanes, false)[0];
  };
  Group split = group.copy();
  if (!split_where_divided(ir, grouping, split)) return;
  const LaneAxes axes = best(split);
  if (axes.cost < best(group).cost && extent_of(axes.vars) >= lanes) group = std::move(split);
}

Schedule schedule_rows(const Ir& ir, const Grouping& grouping, Group& group, target::Target& target) {
  Schedule whole = *schedule_domain(ir, grouping, group, target, -1, false);
  const bool plain = whole.kind == RowClass::map && whole.loop.axes.empty() && whole.programs.copies_apart() == 1 &&
                     whole.lanes.copies_apart() == 1;
  const int cut = plain ? cut_at_concats(ir, grouping, group, target.machine()) : -1;
  return cut < 0 ? whole : *schedule_domain(ir, grouping, group, target, cut, false);
}

std::string apply(Schedule& schedule, const Ir& ir, const Grouping& grouping, Group& group, target::Target& target) {
  if (!schedule.cut.axes.empty() && schedule.cut.axes[0] != cut_at_concats(ir, grouping, group, target.machine()))
    return "the group is not cut along this axis";
  if (!set_extents(schedule, group)) return "the domain lacks an axis";
  const std::vector<int> passes = root_passes(ir, grouping, group);
  const int last = *std::max_element(passes.begin(), passes.end());
  if (schedule.panels() && last > 0)
    return "panels of columns are walked once, and a later pass needs their reductions";
  if (schedule.loop.count(Level::warps) > 1 && reads_again(group, passes))
    return "warps share columns where no later pass reads their elements again";
  if (schedule.operations == 0) {
    const AccessAnalysis analysis(ir, grouping, group);
    schedule.operations = rough_operations(analysis);
  }
  return why_illegal(schedule, group, target.machine());
}

std::vector<Schedule> schedules_of(const Ir& ir, const Grouping& grouping, const Group& group, target::Target& target) {
  Group split = group.copy();
  split_at_reads(ir, grouping, split, target);
  Group cut = split.copy(), uncut = split.copy();
  std::vector<Schedule> all{schedule_rows(ir, grouping, cut, target)}, legal;
  for (Schedule& schedule : neighbours(all[0])) all.push_back(std::move(schedule));
  if (std::optional<Schedule> second = schedule_domain(ir, grouping, uncut, target, -1, true))
    all.push_back(std::move(*second));
  for (Schedule& schedule : all) {
    Group own = split.copy();
    if (apply(schedule, ir, grouping, own, target).empty()) legal.push_back(std::move(schedule));
  }
  return legal;
}

std::vector<Schedule> reachable_schedules(const Ir& ir, const Grouping& grouping, const Group& group,
                                          target::Target& target, size_t most) {
  std::vector<Schedule> found = schedules_of(ir, grouping, group, target);
  Group split = group.copy();
  split_at_reads(ir, grouping, split, target);
  std::set<std::string> known;
  for (const Schedule& schedule : found) known.insert(compiler::to_string(schedule));
  for (size_t k = 0; k < found.size() && found.size() < most; ++k)
    for (Schedule& next : neighbours(found[k])) {
      Group own = split.copy();
      if (found.size() < most && known.insert(compiler::to_string(next)).second &&
          apply(next, ir, grouping, own, target).empty())
        found.push_back(std::move(next));
    }
  if (found.size() > most) found.resize(most);
  return found;
}

}  // namespace weft::compiler
