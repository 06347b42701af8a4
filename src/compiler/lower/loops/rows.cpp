// Lowers map, row and column kernels: splits the domain into program, lane and loop axes, and emits the passes.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "base/error.h"
#include "compiler/lower/loops/rows.h"

namespace weft::compiler {

using graph::Op;
using ix::Expr;
using kernel::no_value;
using kernel::ScalarOp;
using kernel::Value;

std::string RowLowering::kernel_name() const {
  const char* names[] = {"map", "row", "column"};
  std::string name = names[static_cast<int>(schedule_.kind)];
  std::set<std::string> ops;
  for (const Root& root : group_.roots)
    if (cx_.ir[root.node].op == Op::reduce) ops.insert(std::string(kernel::name(cx_.ir[root.node].attrs->reducer)));
  for (const std::string& op : ops) name += "_" + op;
  return name + fmt::format("_{}", group_.roots.back().node);
}

/// Assigns statements to passes: a reduction to the pass after the latest reduction that it depends on, a map likewise.
void RowLowering::order_passes() {
  const std::vector<int> passes = root_passes(cx_.ir, cx_.grouping, group_);
  for (size_t k = 0; k < passes.size(); ++k) {
    statements_.push_back({group_.roots[k], {}, passes[k]});
    passes_ = std::max(passes_, passes[k] + 1);
  }
  for (size_t k = 0; k < statements_.size(); ++k) {
    if (statements_[k].root.kind != RootKind::reduce || !has_results(node_of(statements_[k]))) continue;
    const auto same = [&](const Statement& other) {
      const IrNode &n = node_of(statements_[k]), &o = node_of(other);
      return other.root.kind == RootKind::reduce && o.inputs == n.inputs && o.attrs->axes == n.attrs->axes &&
             o.attrs->reducer == n.attrs->reducer;
    };
    const auto first = std::find_if(statements_.begin(), statements_.end(), same);
    if (const auto at = first - statements_.begin(); at < static_cast<std::ptrdiff_t>(k))
      statements_[k].first_result = static_cast<int>(at);
  }
}

void RowLowering::split_domain() {
  const auto variables = [&](const AxisDivision& division) {
    std::vector<DomainVariable> found;
    for (const int axis : division.axes) found.push_back(group_.domain[static_cast<size_t>(axis)]);
    return found;
  };
  outer_ = variables(schedule_.programs);
  lanes_ = variables(schedule_.lanes);
  serial_ = variables(schedule_.loop);
}

/// Returns the domain variables as row-major digits of one flat index.
std::vector<Expr> RowLowering::digits(const std::vector<DomainVariable>& vars, Expr number) {
  std::vector<int64_t> extents, flat{extent_of(vars)};
  for (const DomainVariable& v : vars) extents.push_back(v.extent.bound());
  return ix::reindex_reshape(*group_.cx, std::span<const Expr>(&number, 1), extents, flat);
}

/// Returns the statements with the domain variables in their indices replaced by digits of these numbers.
std::vector<Statement> RowLowering::substituted(Expr program, Expr lane, Expr loop, int64_t part) {
  std::map<int64_t, Expr> by_id;
  for (const int axis : schedule_.cut.axes)
    by_id[group_.domain[static_cast<size_t>(axis)].var->value] = group_.cx->constant(part);
  const auto take_over = [&](const std::vector<DomainVariable>& vars, Expr number) {
    if (vars.empty()) return;
    std::vector<Expr> parts = digits(vars, number);
    for (size_t k = 0; k < vars.size(); ++k) by_id[vars[k].var->value] = parts[k];
  };
  take_over(outer_, program);
  take_over(lanes_, lane);
  take_over(serial_, loop);
  auto replace = [&](int64_t id) {
    auto it = by_id.find(id);
    return it == by_id.end() ? Expr() : it->second;
  };
  std::vector<Statement> out = statements_;
  for (Statement& statement : out) {
    if (statement.reduces()) statement.operand = reduction_operand_index(cx_.ir, group_, statement.root);
    for (Expr& e : statement.operand) e = ix::substitute(e, replace);
    for (Expr& e : statement.root.index) e = ix::substitute(e, replace);
  }
  return out;
}

/// Makes the program, lane and loop variables, and the statements' indices from them.
void RowLowering::substitute_domain() {
  ix::Context& icx = *group_.cx;
  const bool two_rows = schedule_.programs.copies_apart() > 1, two_tiles = schedule_.lanes.copies_apart() > 1;
  const auto variable = [&](const char* name, const std::vector<DomainVariable>& vars, bool half) {
    return icx.variable(name, 0, std::max<int64_t>(0, extent_of(vars) / (half ? 2 : 1) - 1));
  };
  program_ = variable("p", outer_, two_rows);
  lane_ = variable("x", lanes_, two_tiles);
  loop_ = variable("j", serial_, false);
  if (two_rows) other_half_ = substituted(program_ + icx.constant(extent_of(outer_) / 2), lane_, loop_);
  make_parts(two_tiles);
  statements_ = substituted(program_, lane_, loop_);
}

/// Chooses the form of the kernel and emits it.
Lowered RowLowering::run() {
  order_passes();
  split_domain();
  const bool looped_map = schedule_.kind == RowClass::map && !serial_.empty();
  if (!looped_map) substitute_domain();
  for (const Statement& statement : statements_)
    if (cx_.has_buffer[statement.root.node]) {
      emit_.param(statement.root.node, true);
      if (statement.root.kind == RootKind::row) emit_.compute_until_stored(statement.root.node);
    }
  kernel::Builder& b = emit_.builder();

  dynamic_extent_ = schedule_.any_length;
  blocks_ = schedule_.kind == RowClass::row ? 1 : (schedule_.lanes.share() + schedule_.block() - 1) / schedule_.block();
  grid_ = schedule_.programs.share() * blocks_;
  if (looped_map) {
    map_with_loop();
    return finish();
  }
  if (group_.has_columns()) {
    rows_of_parts();
    return finish();
  }
  if (schedule_.sharers() > 1) {
    if (schedule_.kind == RowClass::row) rows_by_cluster();
    else columns_by_warps();
    return finish();
  }
  const bool gemv = side_by_side();
  if (schedule_.kind == RowClass::row && !one_tile() && !gemv) find_reused();
  if (const int64_t rows = rows_of_program(); rows > 0) {
    overlapped_passes(rows);
    return finish();
  }
  if (gemv) {
    gemv_rows();
    return finish();
  }
  bind_programs();

  // A symbolic program axis has programs up to its bound: those past the symbol's value do nothing.
  Value inside = no_value;
  for (size_t k = 0; k < outer_.size(); ++k) {
    if (outer_[k].extent.is_static()) continue;
    Value ok = b.lt(emit_.index_value(digits(outer_, program_)[k]), emit_.extent(outer_[k].extent));
    inside = inside == no_value ? ok : b.scalar(ScalarOp::bit_and, {inside, ok});
  }
  if (inside == no_value) {
    passes();
    if (!other_half_.empty()) {  // values at equal indices are shared
      for (const Statement& statement : statements_) emit_.forget(statement.root.node);
      std::swap(statements_, other_half_);
      passes();
    }
  } else {
    emit_.push_scope();
    b.when(inside, [&] { passes(); });
    emit_.pop_scope();
  }
  return finish();
}

/// Returns the reduction order: results have equal bits if it is equal. The lanes of a row are combined by a tree as
/// wide as a tile, and the tiles of a step have one frame. Columns have an order for each number of warps and of
/// elements that a warp loads at once, and others in panels, for each number of rows that are added up before they join
/// the sums.
int64_t RowLowering::reduction_order() const {
  if (!group_.has_reduction()) return 0;
  const int64_t sharers = schedule_.sharers();
  constexpr int64_t panels = int64_t{1} << 40;  // more than what any parts of columns give
  if (schedule_.kind == RowClass::column)
    return schedule_.panels() ? -panels - schedule_.loop.count(Level::unroll)
                              : -1 - (sharers > 1 ? sharers : 0) - (static_cast<int64_t>(unroll_of_parts_) << 12);
  return schedule_.tile() + ((schedule_.tiles_of_step() - 1) << 16) + ((sharers - 1) << 32);
}

Lowered RowLowering::finish() {
  const double points = static_cast<double>(extent_of(group_.domain));
  Lowered lowered = emit_.finish(grid_, points * schedule_.operations);
  lowered.reduction_order = reduction_order();
  if (dynamic_extent_) lowered.block = schedule_.block();
  return lowered;
}

/// Binds the program id to (row, block of lanes).
void RowLowering::bind_programs() {
  kernel::Builder& b = emit_.builder();
  Value row = b.program_id(), block = b.index(0);
  if (outer_.empty()) {
    block = row;
    row = b.index(0);
  } else if (blocks_ > 1) {
    Value n = b.index(blocks_);
    block = b.scalar(ScalarOp::mod, {row, n});
    row = b.scalar(ScalarOp::floordiv, {row, n});
  }
  if (blocks_ == 1 && !dynamic_extent_) block = b.index(0);
  emit_.bind(program_, row);
  first_lane_ = b.mul(block, b.index(schedule_.block()));
}

/// Returns the number of lanes in all: a constant, a symbol's value, or the argument of a kernel for all lengths.
Value RowLowering::lane_count() {
  if (dynamic_extent_) return emit_.argument("n", {schedule_.lanes.share(), nullptr});
  if (all_static(lanes_)) return emit_.builder().index(schedule_.lanes.share());
  return points_of(lanes_);
}

/// Returns how many numbers the variables have as digits. Of several, only the first one may be symbolic: behind a
/// symbol's value the numbers would have gaps.
Value RowLowering::points_of(const std::vector<DomainVariable>& vars) {
  kernel::Builder& b = emit_.builder();
  Value count = emit_.extent(vars[0].extent);
  for (size_t k = 1; k < vars.size(); ++k) {
    check(vars[k].extent.is_static(), "row lowering", "a symbolic axis stands behind another one");
    count = b.mul(count, b.index(vars[k].extent.bound()));
  }
  return count;
}

void RowLowering::passes() {
  kernel::Builder& b = emit_.builder();
  int64_t width = schedule_.tile();
  bool whole = all_static(lanes_) && schedule_.lanes.share() % width == 0;
  if (schedule_.panels()) return panel_passes();
  if (one_tile()) emit_.bind_lanes(lane_, first_lane_, width, whole ? no_value : b.sub(lane_count(), first_lane_));
  load_early();
  ask_for_row();
  for (int p = 0; p < passes_; ++p) pass(p);
  row_roots(passes_);
}

/// Returns whether the lanes fit into one tile, without a loop over lanes.
bool RowLowering::one_tile() const {
  return !dynamic_extent_ && (schedule_.lanes.share() <= schedule_.tile() || schedule_.kind == RowClass::column);
}

void RowLowering::pass(int p) {
  row_roots(p);
  bool any = std::any_of(statements_.begin(), statements_.end(),
                         [&](const Statement& s) { return s.pass == p && s.root.kind != RootKind::row; });
  if (!any) return;
  if (schedule_.kind == RowClass::column) inner_loop(p);
  else if (one_tile()) finish_reductions(p, step(p, identities(p)));
  else lane_loop(p);
}

/// Emits pass p as a loop over full tiles and a remainder under a limit. Long arithmetic without reductions is emitted
/// once, with the limit on every tile: a second copy would double the compile time, and the check costs little in
/// comparison.
void RowLowering::lane_loop(int p) {
  kernel::Builder& b = emit_.builder();
  int64_t width = schedule_.tile();
  hoist(p, {lane_});
  hoist_parts({lane_});
  if (whole_blocks()) return tiles_of_block();
  Value step_width = b.index(width), lo = first_lane_, hi = lane_count();
  if (blocks_ > 1 || dynamic_extent_) hi = b.min(hi, b.add(lo, b.index(schedule_.block())));
  if (schedule_.guarded_tiles) {
    b.loop(lo, hi, step_width, {}, [&](Value at, const std::vector<Value>&) {
      emit_.push_scope();
      emit_.bind_lanes(lane_, at, width, b.sub(hi, at));
      step(p, {});
      emit_.pop_scope();
      return std::vector<Value>{};
    });
    return;
  }
  Value full = b.add(lo, b.mul(b.scalar(ScalarOp::floordiv, {b.sub(hi, lo), step_width}), step_width));
  std::vector<Value> carried = whole_tiles(p, lo, full);
  int64_t end = 0, begin = 0;
  bool known = b.known(hi, end) && b.known(full, begin);
  if (!known || end > begin) {
    emit_.push_scope();
    Value left = b.sub(hi, full);
    if (carried.empty() && !known) {
      b.when(b.lt(full, hi), [&] {
        emit_.bind_lanes(lane_, full, width, left);
        step(p, {});
      });
    } else {
      emit_.bind_lanes(lane_, full, width, left);
      carried = step(p, carried);
    }
    emit_.pop_scope();
  }
  finish_reductions(p, carried);
}

/// Returns whether the blocks of a map consist of whole tiles, so that none has a remainder.
bool RowLowering::whole_blocks() const {
  return schedule_.kind == RowClass::map && blocks_ > 1 && !dynamic_extent_ && all_static(lanes_) &&
         schedule_.lanes.share() % schedule_.block() == 0 && schedule_.block() % schedule_.tile() == 0;
}

/// Emits the tiles of such a block: one, or a loop over them.
void RowLowering::tiles_of_block() {
  kernel::Builder& b = emit_.builder();
  const auto tile = [&](Value at) {
    emit_.push_scope();
    emit_.bind_lanes(lane_, at, schedule_.tile(), no_value);
    step(0, {});
    emit_.pop_scope();
  };
  if (schedule_.block() == schedule_.tile()) return tile(first_lane_);
  b.loop(first_lane_, b.add(first_lane_, b.index(schedule_.block())), b.index(schedule_.tile()), {},
         [&](Value at, const std::vector<Value>&) {
           tile(at);
           return std::vector<Value>{};
         });
}

/// Emits pass p of a column kernel: lanes stay on the columns while a loop runs over the reduced elements. They are
/// distributed over a few partial results, since an addition takes several cycles but several can be in flight.
void RowLowering::inner_loop(int p) {
  kernel::Builder& b = emit_.builder();
  hoist(p, {loop_});
  if (has_frames(p) && all_static(serial_) && extent_of(serial_) > 1)
    return finish_reductions(p, part_of_columns(p, emit_.builder().index(0), 1));
  Value count = all_static(serial_) ? b.index(extent_of(serial_)) : points_of(serial_);
  const std::vector<Value> start = identities(p);
  const size_t reductions = start.size(), unroll = reductions > 0 && batches_loads(p) ? unroll_of(reductions) : 0;
  const size_t most_parts =
      reductions > 0 && all_static(serial_) && extent_of(serial_) >= 16 ? parts_of(reductions) : 1;
  // Additions of several reductions already alternate.
  const size_t parts =
      unroll > 0 ? std::min({most_parts, std::bit_floor(unroll), std::bit_floor(std::max<size_t>(1, 16 / reductions))})
                 : most_parts;
  std::vector<Value> carried;
  for (size_t part = 0; part < parts; ++part) carried.insert(carried.end(), start.begin(), start.end());

  // Adds one element to partial result `part`.
  auto one = [&](Value at, const std::vector<Value>& values, size_t part) {
    emit_.push_scope();
    emit_.bind(loop_, at);
    std::vector<Value> own(values.begin() + static_cast<std::ptrdiff_t>(part * reductions),
                           values.begin() + static_cast<std::ptrdiff_t>((part + 1) * reductions));
    std::vector<Value> next = step(p, own), all = values;
    std::copy(next.begin(), next.end(), all.begin() + static_cast<std::ptrdiff_t>(part * reductions));
    emit_.pop_scope();
    return all;
  };
  if (unroll > 0)
    return finish_reductions(p, combine_parts(p,
                                              unrolled_loop(p, carried, unroll, parts, b.index(0),
                                                            b.index(extent_of(serial_) / static_cast<int64_t>(unroll))),
                                              parts));
  Value stride = b.index(static_cast<int64_t>(parts));
  Value full = b.mul(b.scalar(ScalarOp::floordiv, {count, stride}), stride);
  carried = b.loop(b.index(0), full, stride, carried, [&](Value at, const std::vector<Value>& values) {
    std::vector<Value> next = values;
    for (size_t part = 0; part < parts; ++part) next = one(b.add(at, b.index(static_cast<int64_t>(part))), next, part);
    return next;
  });
  for (size_t part = 0; parts > 1 && part < static_cast<size_t>(extent_of(serial_)) % parts; ++part)
    carried = one(b.add(full, b.index(static_cast<int64_t>(part))), carried, part);
  finish_reductions(p, combine_parts(p, carried, parts));
}

/// Returns whether an element of the loop takes more than one load. A single load per element is in flight sooner
/// without unrolling.
bool RowLowering::batches_loads(int p) {
  size_t reads = 0;
  for (const Statement& statement : statements_)
    if (statement.pass == p && statement.root.kind != RootKind::row) reads += reads_of(statement).size();
  return reads > 1;
}

/// Returns the elements of an unrolled iteration on a GPU: a divisor of the innermost axis, so that they are adjacent
/// on it, or of the whole extent. 0: no useful divisor.
size_t RowLowering::unroll_of(size_t reductions) const {
  constexpr size_t least = 4, most = 16, most_sums = 224;
  if (!cx_.target.machine().wants_loads_in_flight() || !all_static(serial_) || extent_of(serial_) < 16) return 0;
  const size_t limit = std::max(least, std::min(most, most_sums / reductions));
  for (const int64_t extent : {serial_.back().extent.bound(), extent_of(serial_)})
    for (size_t unroll = limit; unroll >= least; --unroll)
      if (static_cast<size_t>(extent) % unroll == 0) return unroll;
  return 0;
}

/// Emits the unrolled loop, from iteration `first` to before `last`, over `parts` partial results. What the elements of
/// an iteration share (a window's position, a pixel that several windows cover) is recognized by its index and computed
/// once.
std::vector<Value> RowLowering::unrolled_loop(int p, const std::vector<Value>& initial, size_t unroll, size_t parts,
                                              Value first, Value last) {
  kernel::Builder& b = emit_.builder();
  const int64_t count = extent_of(serial_) / static_cast<int64_t>(unroll);
  const size_t reductions = initial.size() / parts;
  const Expr number = group_.cx->variable("q", 0, count - 1);
  std::vector<std::vector<Statement>> elements(unroll, statements_);
  for (size_t k = 0; k < unroll; ++k) {
    const Expr position = number * static_cast<int64_t>(unroll) + group_.cx->constant(static_cast<int64_t>(k));
    const auto replace = [&](int64_t id) { return id == loop_->value ? position : Expr(); };
    for (Statement& statement : elements[k]) {
      for (Expr& e : statement.operand) e = ix::substitute(e, replace);
      for (Expr& e : statement.root.index) e = ix::substitute(e, replace);
    }
  }
  return b.loop(first, last, b.index(1), initial, [&](Value at, const std::vector<Value>& values) {
    emit_.push_scope();
    emit_.bind(number, at);
    load_unrolled(p, elements);
    std::vector<Value> all = values;
    const auto element = [&](size_t k, const std::function<void()>& body) {
      for (const Statement& statement : statements_)
        if (statement.pass == p && statement.root.kind == RootKind::full)
          emit_.forget(statement.root.node);  // drop the previous element's value of a map without a buffer
      std::swap(statements_, elements[k]);
      body();
      std::swap(statements_, elements[k]);
    };
    const size_t at_once = has_frames(p) ? unroll / parts : 1;
    for (size_t k = 0; k < unroll; k += at_once) {
      const auto own = all.begin() + static_cast<std::ptrdiff_t>(k / at_once % parts * reductions);
      const std::vector<Value> state(own, own + static_cast<std::ptrdiff_t>(reductions));
      std::vector<Value> next;
      if (at_once == 1) element(k, [&] { next = step(p, state); });
      else
        next = step_of_several(p, std::min(at_once, unroll - k), state,
                               [&](size_t i, const auto& body) { element(k + i, body); });
      std::copy(next.begin(), next.end(), own);
    }
    emit_.pop_scope();
    return all;
  });
}

/// Returns the number of partial results: enough to keep loads in flight, few enough to stay in registers.
size_t RowLowering::parts_of(size_t reductions) const {
  if (!cx_.target.machine().wants_loads_in_flight()) return 4;
  size_t parts = 16;
  while (parts > 4 && (parts * reductions > 32 || parts * 4 > static_cast<size_t>(extent_of(serial_)))) parts /= 2;
  return parts;
}

/// Combines the partial results of each reduction pairwise: (0 + 1) + (2 + 3).
std::vector<Value> RowLowering::combine_parts(int p, std::vector<Value> carried, size_t parts) {
  const size_t reductions = carried.size() / parts;
  for (; parts > 1; parts /= 2)
    for (size_t part = 0; part < parts / 2; ++part) {
      size_t low = 2 * part * reductions, high = low + reductions, to = part * reductions;
      for (const Statement& statement : statements_) {
        if (statement.pass != p || !statement.carries()) continue;
        const kernel::State a = state_of(statement, carried, low), b = state_of(statement, carried, high);
        for (Value v : kernel::combine_states(emit_.builder(), node_of(statement).attrs->reducer, a, b))
          carried[to++] = v;
      }
    }
  carried.resize(reductions);
  return carried;
}

/// Emits the parts of pass p that do not depend on `varying` before its loop.
void RowLowering::hoist(int p, const std::vector<Expr>& varying) {
  for (const Statement& statement : statements_) {
    if (statement.pass != p || statement.root.kind == RootKind::row) continue;
    for (NodeId input : node_of(statement).inputs)
      if (statement.reduces()) emit_.hoist(input, statement.operand, varying);
      else if (is_elementwise(node_of(statement).op)) emit_.hoist(input, statement.root.index, varying);
  }
}

/// Returns the dtypes in which the components of a reduction's state are computed.
std::vector<Dtype> RowLowering::state_dtypes(const Statement& statement) const {
  std::vector<Dtype> dtypes;
  for (const NodeId component : node_of(statement).inputs)
    dtypes.push_back(compute_dtype(cx_.ir[component].type.dtype));
  return dtypes;
}

/// Returns the state of a reduction, which begins at `next` of the values that a pass carries, and moves `next` on.
kernel::State RowLowering::state_of(const Statement& statement, const std::vector<Value>& carried, size_t& next) const {
  const auto from = carried.begin() + static_cast<std::ptrdiff_t>(next);
  const size_t components = node_of(statement).inputs.size();
  next += components;
  return {from, from + static_cast<std::ptrdiff_t>(components)};
}

std::vector<Value> RowLowering::identities(int p) {
  std::vector<Value> values;
  for (const Statement& statement : statements_) {
    if (statement.pass != p || !statement.carries()) continue;
    for (Value v : kernel::identity_state(emit_.builder(), node_of(statement).attrs->reducer, state_dtypes(statement),
                                          {schedule_.tile()}))
      values.push_back(v);
  }
  return values;
}

void RowLowering::finish_reductions(int p, const std::vector<Value>& carried) {
  kernel::Builder& b = emit_.builder();
  size_t next = 0;
  for (const Statement& statement : statements_) {
    if (statement.pass != p || !statement.carries()) continue;
    kernel::State state = state_of(statement, carried, next);
    if (schedule_.kind == RowClass::row) state = kernel::reduce_state(b, node_of(statement).attrs->reducer, state, 0);
    finish_reduction(statement, state);
  }
}

/// Defines the components of a state that are roots of the group; `statement` carries it.
void RowLowering::finish_reduction(const Statement& statement, const kernel::State& state) {
  const auto number = static_cast<int>(&statement - statements_.data());
  for (const Statement& other : statements_)
    if (&other == &statement || other.first_result == number)
      finish_root(other, state[static_cast<size_t>(node_of(other).output)]);
}

void RowLowering::finish_root(const Statement& statement, Value v) {
  v = emit_.rounded(statement.root.node, v);
  emit_.define(statement.root.node, v);
  if (!cx_.has_buffer[statement.root.node]) return;
  if (schedule_.sharers() > 1) late_stores_.emplace_back(&statement, v);
  else emit_.store(statement.root.node, statement.root.index, v, false);
}

void RowLowering::row_roots(int p) {
  for (const Statement& statement : statements_)
    if (statement.pass == p && statement.root.kind == RootKind::row)
      finish_root(statement, emit_.make(statement.root.node, statement.root.index));
}

std::optional<Lowered> lower_rows(const LowerContext& cx, const Group& fused, const std::optional<Schedule>& given) {
  Group group = fused.copy();
  split_at_reads(cx.ir, cx.grouping, group, cx.target);
  if (!given) {
    if (std::optional<Lowered> transposed = lower_transposed(cx, group)) return transposed;
    // On a GPU what reads divide may lie across what is written: heads of an array that is transposed.
    if (Group split = fused.copy(); cx.target.machine().simt && split_where_divided(cx.ir, cx.grouping, split))
      if (std::optional<Lowered> transposed = lower_transposed(cx, split)) return transposed;
    const Schedule schedule = schedule_rows(cx.ir, cx.grouping, group, cx.target);
    return RowLowering(cx, group, schedule).run();
  }
  Schedule schedule = *given;
  if (!apply(schedule, cx.ir, cx.grouping, group, cx.target).empty()) return {};
  return RowLowering(cx, group, schedule).run();
}

}  // namespace weft::compiler
