#include <algorithm>
#include <cstdlib>
#include <set>

#include "compiler/schedule/rows.h"

namespace weft::compiler {

using ix::Expr;

namespace {

constexpr int64_t many_lines = 1 << 14;  // more lines than warps run at once
constexpr int64_t warp_bytes = 512;      // a word of 16 bytes for each lane of a warp

/// Returns the bytes of the sectors that the lanes of a warp touch, by those that contiguous lanes would. The lanes run
/// from the middle of `vars` on, as one flat index; all other variables are 0.
double sectors_of_lanes(const Touch& touch, int64_t element, std::span<const DomainVariable> vars) {
  constexpr int64_t lanes = 32, sector = 32;  // of a warp; bytes of a sector of a GPU's L2
  const int64_t extent = extent_of(vars), count = std::min(lanes, extent), first = (extent - count) / 2 / lanes * lanes;
  int64_t most = 0;
  ix::variables(touch.offset, [&](Expr v) { most = std::max(most, v->value); });
  for (const DomainVariable& v : vars) most = std::max(most, v.var->value);
  std::vector<int64_t> values(static_cast<size_t>(most) + 1);
  std::set<int64_t> sectors;
  for (int64_t lane = first; lane < first + count; ++lane) {
    int64_t flat = lane;
    for (size_t k = vars.size(); k-- > 0; flat /= vars[k].extent.bound())
      values[static_cast<size_t>(vars[k].var->value)] = flat % vars[k].extent.bound();
    sectors.insert(ix::evaluate(touch.offset, values) * element / sector);
  }
  return static_cast<double>(sectors.size() * sector) / static_cast<double>(count * element);
}

/// Returns the cost of an address that is loaded from memory for each of the first `vars` (outermost first), and runs
/// on along the others: that of the sectors of the lanes that share it. `computed` where each lane has its own.
double gathered_cost(const AccessAnalysis& analysis, const Touch& touch, std::span<const DomainVariable> vars,
                     int64_t element, double index, double computed) {
  constexpr int64_t lanes = 32, sector = 32;
  int64_t run = 1;
  std::vector<Expr> shared;
  for (size_t k = vars.size(); k-- > 0; run *= vars[k].extent.bound()) {
    shared.insert(shared.begin(), vars[k].var);
    const auto form = ix::affine(touch.offset, shared);
    if (!form || form->coefficients[0] != run || analysis.gathered_on(touch.offset, shared)) break;
  }
  if (run == 1) return computed;
  const int64_t bytes = std::min(run, lanes) * element;
  return std::min(computed, index + static_cast<double>(std::max(bytes, sector)) / static_cast<double>(bytes));
}

/// Returns the cost of one address for one lane if the lanes run over `vars` (outermost first) as one flat index: 1 for
/// contiguous elements, less for one element shared by all lanes, more for a stride or a computed index. A GPU reads by
/// sectors: there a stride or an index costs what its lanes touch, if that is less.
double lane_cost(const AccessAnalysis& analysis, const Touch& touch, std::span<const DomainVariable> vars,
                 int64_t element, bool simt) {
  constexpr double computed = 12, strided = 8, index = 1;
  const bool by_sectors = simt && all_static(vars) && extent_of(vars) > 0;
  std::vector<Expr> lanes;
  for (const DomainVariable& v : vars) lanes.push_back(v.var);
  if (analysis.gathered_on(touch.offset, lanes))
    return by_sectors ? gathered_cost(analysis, touch, vars, element, index, computed) : computed;
  auto form = ix::affine(touch.offset, lanes);
  const auto counted = [&] { return std::min(computed, index + sectors_of_lanes(touch, element, vars)); };
  if (!form) return by_sectors ? counted() : computed;
  int64_t inner = form->coefficients.back(), expected = inner;
  bool flat = true, all_zero = true;
  for (size_t k = vars.size(); k-- > 0;) {
    flat = flat && form->coefficients[k] == expected;
    all_zero = all_zero && form->coefficients[k] == 0;
    expected *= vars[k].extent.bound();
  }
  if (all_zero) return 0.1;
  if (flat && inner == 1) return 1;
  if (flat) return simt ? std::min(strided, static_cast<double>(std::abs(inner))) : strided;
  return by_sectors ? counted() : computed;
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

}  // namespace

std::vector<LaneAxes> rank_lane_axes(const Ir& ir, const AccessAnalysis& analysis, std::span<const DomainVariable> rows,
                                     std::span<const DomainVariable> inner, int64_t lanes, bool simt) {
  std::vector<LaneAxes> candidates;
  const int64_t total = extent_of(rows) * extent_of(inner);
  if (!inner.empty())
    candidates.push_back({RowClass::row, static_cast<int>(inner.size()), {inner.begin(), inner.end()}});
  for (size_t t = rows.size(); t > 0; --t) {
    std::vector<DomainVariable> vars(rows.end() - static_cast<std::ptrdiff_t>(t), rows.end());
    if (t == 1 || all_static(vars))
      candidates.push_back({inner.empty() ? RowClass::map : RowClass::column, static_cast<int>(t), vars});
  }
  if (candidates.empty()) candidates.push_back({RowClass::map, 0, {}});
  const int64_t enough_programs = simt ? 512 : 4;
  int64_t element = 1;  // of the widest array, in bytes
  for (const Touch& touch : analysis.touches) element = std::max<int64_t>(element, ir[touch.node].type.dtype.size());
  for (LaneAxes& candidate : candidates) {
    double cost = 0.25;
    for (const Touch& touch : analysis.touches)
      cost +=
          share_of_points(touch, inner) *
          (candidate.vars.empty() ? 1
                                  : lane_cost(analysis, touch, candidate.vars, ir[touch.node].type.dtype.size(), simt));
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
    if (simt && candidate.kind == RowClass::column && column >= 64 && column <= 8192 && total <= few_elements &&
        extent_of(rows) <= 1024 && analysis.flops <= 8)
      cost *= 32;
    // A warp for each short row has one load in flight, of less than a word a lane. Threads that compute the positions
    // of several elements by division finish sooner.
    if (simt && candidate.kind == RowClass::map && extent * element < warp_bytes && total / extent > many_lines)
      cost *= 2 * static_cast<double>(warp_bytes) / static_cast<double>(extent * element);
    candidate.cost = cost;
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const LaneAxes& a, const LaneAxes& b) { return a.cost < b.cost; });
  return candidates;
}

}  // namespace weft::compiler
