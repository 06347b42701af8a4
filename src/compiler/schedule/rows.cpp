#include "compiler/schedule/rows.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "compiler/schedule/concat_parts.h"
#include "graph/table.h"
#include "target/target.h"

namespace weft::compiler {

using graph::Op;
using ix::Expr;

namespace {

/// Returns the cost of one address for one lane if the lanes run over `vars` (outermost first) as one flat index: 1 for
/// contiguous elements, less for one element shared by all lanes, more for a stride or a computed index.
double lane_cost(const AccessAnalysis& analysis, const Touch& touch, std::span<const DomainVariable> vars) {
  std::vector<Expr> lanes;
  for (const DomainVariable& v : vars) lanes.push_back(v.var);
  if (analysis.gathered_on(touch.offset, lanes)) return 12;
  auto form = ix::affine(touch.offset, lanes);
  if (!form) return 12;
  int64_t inner = form->coefficients.back(), expected = inner;
  bool flat = true, all_zero = true;
  for (size_t k = vars.size(); k-- > 0;) {
    flat = flat && form->coefficients[k] == expected;
    all_zero = all_zero && form->coefficients[k] == 0;
    expected *= vars[k].extent.bound();
  }
  if (all_zero) return 0.1;
  if (!flat) return 12;
  return inner == 1 ? 1 : 8;
}

/// Returns in what share of the domain's points an address is touched: what is loaded or stored once a row (a sum, the
/// state of an optimizer that reads it) counts as little beside a long row's elements as it costs.
double share_of_points(const Touch& touch, std::span<const DomainVariable> inner) {
  double share = 1;
  for (const DomainVariable& v : inner) {
    if (ix::depends_on(touch.offset, v.var)) return 1;
    share /= static_cast<double>(std::max<int64_t>(1, v.extent.bound()));
  }
  return share;
}

constexpr int64_t few_elements = int64_t{1} << 18;  // elements that fit into the L2
constexpr int64_t most_part_bytes = 128 << 10;      // of partial results of all parts of columns
constexpr int64_t many_lines = 1 << 14;             // more lines than warps run at once

struct Candidate {
  RowClass kind;
  int axes;
  std::vector<DomainVariable> vars;
  double cost = 0;
};

int64_t power_of_two_at_least(int64_t n) {
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

int64_t extent_of(std::span<const DomainVariable> vars) {
  int64_t n = 1;
  for (const DomainVariable& v : vars) n *= v.extent.bound();
  return n;
}

bool all_static(std::span<const DomainVariable> vars) {
  return std::all_of(vars.begin(), vars.end(), [](const auto& v) { return v.extent.is_static(); });
}

/// Sizes tiles for a block of threads: about four elements a thread, a whole row in registers if it fits, and enough
/// programs to fill a GPU. A lane of a cut map computes an element of each of the `parts`.
void size_for_blocks(RowSchedule& s, int64_t total, int64_t rows, int64_t parts) {
  constexpr int64_t row_in_registers = 8192, programs_wanted = 1024;
  const int64_t extent = power_of_two_at_least(std::max<int64_t>(1, s.lane_extent));
  int64_t widest = 1024;
  // Longer rows are read in several passes: fewer of them run at a time, so that the L2 keeps them between passes.
  if (s.kind == RowClass::row) widest = extent <= row_in_registers ? row_in_registers : row_in_registers / 2;
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
int64_t blocks_of_row(const RowSchedule& s, int64_t rows, int64_t bytes, const target::Target& target) {
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

/// Lets the warps of a block, or of a cluster's blocks, share columns, so that one launch reduces them. Returns false,
/// and changes nothing, if that does not pay or a later pass needs the reductions of whole columns.
bool share_columns(RowSchedule& s, const Ir& ir, const Grouping& grouping, const Group& group, int64_t length,
                   const target::Target& target) {
  int64_t bytes = 0;  // of all reductions of a column
  for (const Root& r : group.roots)
    if (r.kind == RootKind::reduce)
      for (const NodeId component : ir[r.node].inputs)
        bytes += std::max<int64_t>(sizeof(float), ir[component].type.dtype.size());
  const std::vector<int> passes = root_passes(ir, grouping, group);
  for (size_t k = 0; k < passes.size(); ++k)
    if (group.roots[k].kind != RootKind::row && passes[k] > 0) return false;  // a later pass needs whole columns
  ColumnParts shared = parts_of_columns(length, s.lane_extent, target);
  while (shared.parts > 1 && shared.parts * shared.width * bytes > most_part_bytes) shared.parts /= 2;
  if (shared.parts == 1) return false;
  s.cluster = shared.parts;
  s.width = s.block = shared.width;
  return true;
}

/// Sizes a GEMV: a warp computes a few rows of the matrix in tiles of one word a lane. More rows read the vector less
/// often, but every SM needs some warps first.
void for_gemv(RowSchedule& s, int64_t rows, int64_t reductions, bool normed) {
  constexpr int64_t most_sums = 4;
  const int64_t programs_wanted = normed ? 512 : 2048;  // each program computes the norm of the row
  s.width = std::min<int64_t>(256, power_of_two_at_least(std::max<int64_t>(1, s.lane_extent)));
  s.block = s.width;
  s.rows = 1;
  while (2 * s.rows * reductions <= most_sums && rows / (2 * s.rows) >= programs_wanted) s.rows *= 2;
}

}  // namespace

int64_t most_kept_bytes(const target::Target& target) {
  constexpr int64_t good = 112 << 10, exchanged = 10 << 10;
  return std::min(good, target.machine().shared_bytes - exchanged);
}

/// A warp's tile is wide enough to be read at full bandwidth. A cluster has enough blocks to give each SM at most one
/// (an SM that gets two of them leaves another idle), and blocks have more warps if there are few of them.
ColumnParts parts_of_columns(int64_t length, int64_t columns, const target::Target& target) {
  constexpr int64_t width = 128, most_blocks = 8, most_warps = 32, warps = 16, least_length = 32, few_of_warp = 8192,
                    most_panels = 1024;
  const int64_t processors = target.machine().processors, few = processors * 6 / 11;  // half of the SMs would idle
  const int64_t most = std::min(most_blocks, target.machine().max_cluster), panels = (columns + width - 1) / width;
  if (most < 2 || length * columns <= few_elements || columns < width / 2 || panels > most_panels) return {};
  int64_t blocks = 1;
  while (2 * blocks <= most && 2 * blocks * panels <= processors) blocks *= 2;
  int64_t parts = blocks * (blocks == most_blocks && blocks * panels <= few ? most_warps
                            : panels >= 2 * processors                      ? warps / 2
                                                                            : warps);
  while (parts > 1 && length / parts < least_length) parts /= 2;
  const bool enough = 2 * panels * parts >= processors * warps || length * columns <= panels * parts * few_of_warp;
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

const char* name(Variant variant) {
  static constexpr const char* names[] = {"heuristic", "wider", "narrower", "second", "straight", "own"};
  return names[static_cast<int>(variant)];
}

namespace {

/// Returns the possible axes for lanes with their costs by strides, cheapest first. Equal costs keep the order of
/// generation.
std::vector<Candidate> candidates_of(const AccessAnalysis& analysis, const std::vector<DomainVariable>& rows,
                                     const std::vector<DomainVariable>& inner, int64_t total, int64_t lanes,
                                     bool many) {
  std::vector<Candidate> candidates;
  if (!inner.empty()) candidates.push_back({RowClass::row, static_cast<int>(inner.size()), inner});
  for (size_t t = rows.size(); t > 0; --t) {
    std::vector<DomainVariable> vars(rows.end() - static_cast<std::ptrdiff_t>(t), rows.end());
    if (t == 1 || all_static(vars))
      candidates.push_back({inner.empty() ? RowClass::map : RowClass::column, static_cast<int>(t), vars});
  }
  if (candidates.empty()) candidates.push_back({RowClass::map, 0, {}});
  const int64_t enough_programs = many ? 512 : 4;
  for (Candidate& candidate : candidates) {
    double cost = 0.25;
    for (const Touch& touch : analysis.touches)
      cost += share_of_points(touch, inner) * (candidate.vars.empty() ? 1 : lane_cost(analysis, touch, candidate.vars));
    int64_t extent = extent_of(candidate.vars);
    const int64_t padded = (extent + lanes - 1) / lanes * lanes;
    double filled = static_cast<double>(extent) / static_cast<double>(padded);
    cost /= filled;
    // Too few programs leave threads idle, which matters if there is enough work for them.
    int64_t programs = candidate.kind == RowClass::row      ? total / std::max<int64_t>(1, extent)
                       : candidate.kind == RowClass::column ? extent_of(rows) / std::max<int64_t>(1, lanes)
                                                            : 1 << 20;
    if (programs < enough_programs && total > 4096 * enough_programs) cost *= 2;
    // A few warps that walk down long columns wait for one load after another; a block for each column has all loads in
    // flight.
    const int64_t column = total / std::max<int64_t>(1, extent_of(rows));
    if (many && candidate.kind == RowClass::column && column >= 64 && column <= 8192 && total <= few_elements &&
        extent_of(rows) <= 1024 && analysis.flops <= 8)
      cost *= 32;
    // A warp for each short row has one load in flight. Threads that compute the positions of several elements by
    // division finish sooner.
    if (many && candidate.kind == RowClass::map && extent < lanes && total / extent > many_lines)
      cost *= 256.0 / static_cast<double>(extent);
    candidate.cost = cost;
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.cost < b.cost; });
  return candidates;
}

/// Lets the blocks of a cluster share long rows.
void share_row(RowSchedule& s, const AccessAnalysis& analysis, const Ir& ir, const Grouping& grouping,
               const Group& group, int64_t rows, const target::Target& target) {
  int64_t bytes = 1;
  for (const Touch& touch : analysis.touches)
    if (const graph::Type& t = ir[touch.node].type; volume(t.shape) >= rows * s.lane_extent)
      bytes = std::max<int64_t>(bytes, t.dtype.size());
  const std::vector<int> passes = root_passes(ir, grouping, group);
  if (*std::max_element(passes.begin(), passes.end()) == 0) return;  // one pass: one block is as fast
  s.cluster = blocks_of_row(s, rows, bytes, target);
  if (s.cluster == 1) return;
  // About an eighth of a part: the remainder after the last whole tile costs as much as a tile.
  const int64_t part = s.lane_extent / s.cluster;
  s.width = std::clamp<int64_t>(power_of_two_at_least(part) / 8, 2048, 4096);
  s.block = s.width;
}

/// Changes the width of tiles to a variant's; returns false if registers or the number of lanes do not allow it.
bool change_width(RowSchedule& s, Variant variant, const target::Target& target, int64_t lanes) {
  if (target.machine().simt) {
    s.width = variant == Variant::wider ? 2 * s.width : s.width / 2;
    s.block = std::max(s.block, s.width);
    return s.width >= lanes && s.width <= 4096 && (s.dynamic || s.width <= power_of_two_at_least(s.lane_extent));
  }
  if (variant == Variant::wider) {
    if (target.machine().vector_registers < 32 || s.width >= 16 * lanes || (!s.dynamic && s.width >= s.lane_extent))
      return false;
    s.width *= 2;
  } else {
    if (s.width < 2 * lanes) return false;
    s.width /= 2;
  }
  return true;
}

/// Lets each program compute both halves of the domain where words are drawn by position in the domain (RowSchedule).
RowSchedule with_halves(RowSchedule s, const AccessAnalysis& analysis, Group& group) {
  const std::vector<DomainVariable>& domain = group.domain;
  const auto rows_first = [](const DomainVariable& a, const DomainVariable& b) { return !a.inner && b.inner; };
  if (analysis.drawn.empty() || group.has_columns() || !all_static(domain) || s.cluster > 1 || s.rows > 0 ||
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
RowSchedule with_loop(RowSchedule s, const Ir& ir, const Grouping& grouping, Group& group,
                      std::span<const DomainVariable> rows, int64_t lanes) {
  if (s.kind != RowClass::map || s.lane_axes == 0 || s.dynamic || s.halves > 1 || s.parts >= 0 ||
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
void lengthen_lanes(RowSchedule& s, std::span<const DomainVariable> rows) {
  constexpr int64_t enough = 256, word = 4;
  while (s.lane_axes > 0 && static_cast<size_t>(s.lane_axes) < rows.size() && s.lane_extent < enough &&
         s.lane_extent % word == 0) {
    s.lane_axes += 1;
    s.lane_extent *= rows[rows.size() - static_cast<size_t>(s.lane_axes)].extent.bound();
  }
}

/// Chooses the schedule of the group's domain as it is. `parts`: the axis of which a program computes all positions
/// (RowSchedule).
std::optional<RowSchedule> schedule_domain(const Ir& ir, const Grouping& grouping, Group& group, target::Target& target,
                                           Variant variant, int parts) {
  constexpr double hopeless = 3;  // times the cost of the cheapest
  AccessAnalysis analysis(ir, grouping, group);
  std::vector<DomainVariable> rows, inner;
  for (size_t k = 0; k < group.domain.size(); ++k)
    if (static_cast<int>(k) != parts) (group.domain[k].inner ? inner : rows).push_back(group.domain[k]);
  const bool many = target.machine().simt;
  const int64_t lanes = many ? 32 : target.machine().lanes(4);  // lanes worth filling
  const int64_t total = extent_of(rows) * extent_of(inner);
  const std::vector<Candidate> candidates = candidates_of(analysis, rows, inner, total, lanes, many);
  const Candidate* best = &candidates[0];
  if (group.has_columns()) {  // each program computes a part of the rows
    if (variant != Variant::heuristic) return {};
    best = &*std::find_if(candidates.begin(), candidates.end(),
                          [](const Candidate& c) { return c.kind == RowClass::row; });
  }
  if (variant == Variant::second) {
    if (candidates.size() < 2 || candidates[1].cost > hopeless * candidates[0].cost) return {};
    best = &candidates[1];
  }

  RowSchedule s;
  s.kind = best->kind;
  s.lane_axes = best->axes;
  s.lane_extent = extent_of(best->vars);
  s.flops = analysis.flops;
  s.loads = static_cast<double>(analysis.touches.size());
  s.parts = parts;
  s.dynamic = s.kind == RowClass::map && s.lane_axes > 0 && s.lane_axes == static_cast<int>(rows.size()) &&
              all_static(best->vars) && parts < 0;
  if (many) {
    if (parts >= 0) lengthen_lanes(s, rows);
    size_for_blocks(s, total, extent_of(rows), extent_of(group.domain) / std::max<int64_t>(1, total));
    if (s.kind == RowClass::row && gemv_only(ir, group))
      for_gemv(s, extent_of(rows),
               std::count_if(group.roots.begin(), group.roots.end(),
                             [&](const Root& r) {
                               if (r.kind != RootKind::reduce || !ir[r.node].gemv) return false;
                               const std::vector<NodeId>& factors = ir[ir[r.node].inputs[0]].inputs;
                               return factors[0] != factors[1];
                             }),
               std::any_of(group.roots.begin(), group.roots.end(),
                           [&](const Root& r) { return r.kind == RootKind::reduce && !ir[r.node].gemv; }));
    else if (s.kind == RowClass::row && all_static(group.domain))
      share_row(s, analysis, ir, grouping, group, extent_of(rows), target);
    if (s.kind == RowClass::column && s.lane_axes == static_cast<int>(rows.size()) && all_static(group.domain) &&
        share_columns(s, ir, grouping, group, extent_of(inner), target)) {
      if (variant == Variant::wider || variant == Variant::narrower) return {};
      return s;
    }
    if ((variant == Variant::wider || variant == Variant::narrower) && !change_width(s, variant, target, lanes))
      return {};
    return with_halves(s, analysis, group);
  }
  int64_t widest = 4 * lanes;
  // Long expressions get narrower tiles, since fewer values may be live at once. Over few arrays they are chains with
  // few live values, and several chains side by side hide their latencies.
  const bool chains = analysis.touches.size() <= 3 && target.machine().vector_registers >= 32;
  if (s.kind == RowClass::map && analysis.flops > (chains ? 60 : 24)) widest = 2 * lanes;
  if (s.kind == RowClass::row && s.lane_extent <= 8 * lanes) widest = 8 * lanes;  // a row stays in registers
  if (s.kind == RowClass::column) {
    // Narrow enough for several programs, wide enough to read whole cache lines.
    while (widest > lanes && extent_of(rows) / widest < 2) widest /= 2;
  }
  s.width = s.dynamic ? widest : std::min(widest, power_of_two_at_least(std::max<int64_t>(1, s.lane_extent)));
  if ((variant == Variant::wider || variant == Variant::narrower) && !change_width(s, variant, target, lanes))
    return {};
  s.block = s.kind == RowClass::map ? s.width * std::max<int64_t>(1, 4096 / s.width) : s.width;
  return with_loop(with_halves(s, analysis, group), ir, grouping, group, rows, lanes);
}

}  // namespace

std::optional<RowSchedule> schedule_rows(const Ir& ir, const Grouping& grouping, Group& group, target::Target& target,
                                         Variant variant) {
  std::optional<RowSchedule> whole = schedule_domain(ir, grouping, group, target, variant, -1);
  if (!whole || whole->kind != RowClass::map || whole->halves > 1 || !whole->loop.axes.empty()) return whole;
  const int parts = cut_at_concats(ir, grouping, group, target.machine());
  return parts < 0 ? whole : schedule_domain(ir, grouping, group, target, variant, parts);
}

}  // namespace weft::compiler
