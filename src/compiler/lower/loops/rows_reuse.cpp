// Reuse between the passes of a row kernel: values that are expensive to compute (CPU) or to load (GPU) are kept in
// scratch, and the next row is prefetched while this one is computed.
#include <algorithm>

#include "base/error.h"
#include "compiler/lower/loops/rows.h"
#include "compiler/schedule/work.h"
#include "graph/table.h"

namespace weft::compiler {

using graph::Op;
using ix::Expr;
using kernel::Value;

namespace {

constexpr int64_t most_scratch_bytes = 96 << 10;   // of one kernel: about half of it stays in the L1 cache
constexpr int64_t most_prefetch_bytes = 64 << 10;  // a longer row would evict the row in use
constexpr double least_cost = 8;                   // basic operations that cost more than a store and a load

}  // namespace

/// Returns the basic operations that a node's value costs if its operands are in registers or the L1 cache. Stops
/// counting at `least_cost`.
double RowLowering::cost(NodeId node) {
  const IrNode& n = cx_.ir[node];
  if (emit_.is_memory(node)) return 0;
  double total = operations_of(n);
  for (NodeId input : n.inputs)
    if (total < least_cost) total += cost(input);
  return total;
}

/// Records what pass p computes on lanes, and marks for reuse what an earlier pass has computed if it costs enough. On
/// a GPU loads are what costs: loaded values are kept instead, in the dtype of memory.
void RowLowering::examine(int p, NodeId node, const std::vector<Expr>& index) {
  const bool many = cx_.target.machine().keeps_loads();
  emit_.walk(node, index, [&](NodeId id, const std::vector<Expr>& at) {
    bool moves = std::any_of(at.begin(), at.end(), [&](Expr e) { return ix::depends_on(e, lane_); });
    if (!moves || cx_.ir[id].op == Op::constant) return false;
    if (emit_.is_memory(id)) {
      if (p == 0) first_loads_.emplace_back(id, at);
      if (!many) return false;
    } else if (many) {
      return true;
    }
    std::vector<const ix::Node*> key;
    for (Expr e : at) key.push_back(e.get());
    auto [it, fresh] = seen_.try_emplace({id, key}, Seen{p});
    if (fresh || it->second.pass == p || (!many && cost(id) < least_cost)) return true;
    if (it->second.reused == SIZE_MAX) {
      it->second.reused = reused_.size();
      reused_.push_back({id, at, it->second.pass, {}});
    }
    reused_[it->second.reused].wanted.insert(p);
    return false;
  });
}

/// Finds the values that several passes need and allocates scratch for them, as far as it fits. Requires static
/// extents.
void RowLowering::find_reused() {
  for (const DomainVariable& v : group_.domain)
    if (!v.extent.is_static()) return;  // scratch has a length, and is declared outside of conditions
  emit_.push_scope();
  emit_.bind_lanes(lane_, emit_.builder().index(0), schedule_.tile(), kernel::no_value);
  for (int p = 0; p < passes_; ++p)
    for (const Statement& statement : statements_) {
      if (statement.pass != p || statement.root.kind == RootKind::row) continue;
      const IrNode& node = cx_.ir[statement.root.node];
      if (statement.reduces() || is_elementwise(node.op))
        for (NodeId input : node.inputs)
          examine(p, input, statement.reduces() ? statement.operand : statement.root.index);
    }
  emit_.pop_scope();
  for (NodeId node : group_.reads) emit_.param(node, false);  // all of them come before the scratch
  const int64_t elements = scratch_share(), iterations = schedule_.sharers();
  const int64_t most = cx_.target.machine().keeps_loads() ? most_kept_bytes(cx_.target) : most_scratch_bytes;
  int64_t bytes = 0;
  std::erase_if(reused_, [&](Reused& reused) {
    Dtype t = reused_dtype(reused);
    if (bytes + elements * t.size() > most) return true;
    bytes += elements * t.size();
    reused.scratch =
        iterations > 1 ? emit_.builder().local(t, elements * iterations, elements) : emit_.builder().local(t, elements);
    return false;
  });
}

/// Returns the elements of the row, or of a part of it, in scratch: whole tiles.
int64_t RowLowering::scratch_share() const {
  return ((schedule_.sharers() > 1 ? part() : schedule_.lanes.share()) + schedule_.tile() - 1) / schedule_.tile() *
         schedule_.tile();
}

/// Returns the position of the lanes' first element in scratch.
Value RowLowering::scratch_offset() {
  return scratch_shift_ == kernel::no_value ? emit_.lane_base()
                                            : emit_.builder().add(emit_.lane_base(), scratch_shift_);
}

/// Returns the dtype in scratch: the node's dtype for loads (GPU), its compute dtype otherwise.
Dtype RowLowering::reused_dtype(const Reused& reused) const {
  const Dtype t = cx_.ir[reused.node].type.dtype;
  return cx_.target.machine().keeps_loads() ? t : compute_dtype(t);
}

/// Copies what the first pass loads and later passes read again into scratch before the first pass, the whole row at
/// once: a GPU has asynchronous copies for that, which take no registers and do not wait for each other.
void RowLowering::ask_for_row() {
  constexpr int64_t word = 16;
  if (!cx_.target.machine().copies_asynchronously() || schedule_.kind != RowClass::row || one_tile() ||
      dynamic_extent_ || !all_static(lanes_))
    return;
  kernel::Builder& b = emit_.builder();
  const int64_t width = schedule_.tile();
  const bool parts = schedule_.sharers() > 1;
  const Value first = parts ? first_lane_ : b.index(0), count = parts ? part_count_ : b.index(schedule_.lanes.share()),
              step = b.index(width);
  const Value full = b.mul(b.scalar(kernel::ScalarOp::floordiv, {count, step}), step);
  std::vector<Reused*> asked;
  for (Reused& reused : reused_)
    if (reused.made == 0 && emit_.is_memory(reused.node) &&
        schedule_.lanes.share() * reused_dtype(reused).size() % word == 0)
      asked.push_back(&reused);
  const auto tile = [&](Value at, Value limit) {
    emit_.push_scope();
    emit_.bind_lanes(lane_, b.add(first, at), width, limit);
    for (const Reused* reused : asked)
      b.store(reused->scratch,
              b.cast(b.broadcast(emit_.value(reused->node, reused->index), {width}), reused_dtype(*reused)),
              scratch_offset(), {1});
    emit_.pop_scope();
  };
  if (asked.empty()) return;
  b.loop(b.index(0), full, step, {}, [&](Value at, const std::vector<Value>&) {
    tile(at, kernel::no_value);
    return std::vector<Value>{};
  });
  int64_t end = 0, begin = 0;
  if (!b.known(count, end) || !b.known(full, begin) || begin < end) tile(full, b.sub(count, full));
  for (Reused* reused : asked) reused->made = -1, reused->wanted.insert(0);
}

/// Loads the kept values that pass p reads.
void RowLowering::recall(int p) {
  kernel::Builder& b = emit_.builder();
  for (const Reused& reused : reused_)
    if (reused.wanted.contains(p))
      emit_.remember(reused.node, reused.index,
                     b.cast(b.load(reused.scratch, scratch_offset(), {schedule_.tile()}, {1}),
                            compute_dtype(cx_.ir[reused.node].type.dtype)));
}

/// Stores the values that pass p computes and later passes read.
void RowLowering::keep(int p) {
  kernel::Builder& b = emit_.builder();
  for (const Reused& reused : reused_)
    if (reused.made == p)
      b.store(reused.scratch,
              b.cast(b.broadcast(emit_.value(reused.node, reused.index), {schedule_.tile()}), reused_dtype(reused)),
              scratch_offset(), {1});
}

/// Prefetches the next row in the second pass. The hardware prefetcher follows only the first pass, and stops at its
/// end.
void RowLowering::prefetch_next(int p) {
  if (!cx_.target.machine().prefetches() || p != 1 || (overlapped_ && passes_ == 2) ||
      schedule_.kind != RowClass::row || !program_)
    return;
  for (const auto& [node, index] : first_loads_)
    if (schedule_.lanes.share() * cx_.ir[node].type.dtype.size() <= most_prefetch_bytes)
      emit_.prefetch(node, index, program_);
}

/// Returns what a statement reads from memory, except the group's own results.
RowLowering::Reads RowLowering::reads_of(const Statement& statement) {
  Reads found;
  const IrNode& root = cx_.ir[statement.root.node];
  if (!statement.reduces() && !is_elementwise(root.op)) return found;
  for (NodeId input : root.inputs)
    emit_.walk(
        input, statement.reduces() ? statement.operand : statement.root.index,
        [&](NodeId node, const std::vector<Expr>& at) {
          if (std::any_of(group_.roots.begin(), group_.roots.end(), [&](const Root& r) { return r.node == node; }))
            return false;
          if (emit_.is_memory(node)) found.emplace_back(node, at);
          return true;
        });
  return found;
}

/// On a GPU, issues all loads of an unrolled iteration's elements before the first of them is computed. Otherwise the
/// device's compiler places loads as late as it can, in few registers, and every load is waited for.
void RowLowering::load_unrolled(int p, const std::vector<std::vector<Statement>>& elements) {
  constexpr size_t most_loads = 96;  // more do not fit into a thread's registers
  if (!cx_.target.machine().wants_loads_in_flight()) return;
  Reads all;
  for (const std::vector<Statement>& statements : elements)
    for (const Statement& statement : statements) {
      if (statement.pass != p || statement.root.kind == RootKind::row) continue;
      for (auto& read : reads_of(statement))
        if (std::find(all.begin(), all.end(), read) == all.end()) all.push_back(std::move(read));
    }
  if (all.size() > most_loads) return;
  emit_.set_streaming(true);
  std::vector<Value> raw;  // in the dtype of memory: widening a value would wait for it
  emit_.push_scope();
  for (const auto& [node, index] : all)
    raw.push_back(emit_.builder().cast(emit_.value(node, index), cx_.ir[node].type.dtype));
  emit_.pop_scope();
  emit_.set_streaming(false);
  for (size_t k = 0; k < all.size(); ++k)
    emit_.remember(all[k].first, all[k].second,
                   emit_.builder().cast(raw[k], compute_dtype(cx_.ir[all[k].first].type.dtype)));
}

/// Issues all loads first if there are few programs, since nothing then hides a load's latency. Loads of the program's
/// inputs come before those of values that the previous kernel still computes.
void RowLowering::load_early() {
  constexpr int64_t few_programs = 256;
  if (!cx_.target.machine().wants_loads_in_flight() || !one_tile() || schedule_.kind != RowClass::row || passes_ < 2 ||
      grid_ > few_programs)
    return;
  Reads all;
  for (const Statement& statement : statements_) {
    if (statement.root.kind == RootKind::row) continue;
    for (auto& read : reads_of(statement)) all.push_back(std::move(read));
  }
  std::stable_partition(all.begin(), all.end(), [&](const auto& read) { return is_leaf(cx_.ir, read.first); });
  for (const auto& [node, index] : all) emit_.value(node, index);
}

}  // namespace weft::compiler
