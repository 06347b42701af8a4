#include "compiler/region/dot_region.h"

#include <algorithm>

#include "base/flat_set.h"
#include "compiler/layout/view.h"
#include "compiler/region/dot_epilogue.h"
#include "compiler/region/dot_plan.h"

namespace weft::compiler {

using graph::Op;
using ix::Expr;

NodeId only_reader(const Users& users, const NodeCounts& outputs, NodeId node) {
  const std::span<const NodeId> readers = users[node];
  return readers.size() == 1 && outputs[node] == 0 ? readers[0] : NodeId{};
}

namespace {

constexpr size_t most_values = 40, most_stored = 3;

/// Grows the region of one dot and prices its prefixes.
class RegionFinder {
 public:
  RegionFinder(const RegionContext& cx, NodeId dot)
      : cx_(cx), ir_(cx.ir), dot_(dot), shape_(ir_[dot].type.shape), vars_(domain(index_, shape_, "i")) {}

  std::vector<DotRegion> run() {
    grow();
    list_members();
    std::vector<DotRegion> out;
    for (size_t count = 0; count <= values_.size(); ++count)
      if (auto region = prefix(count)) out.push_back(std::move(*region));
    return out;
  }

 private:
  /// A value with what its epilogue reads besides earlier values.
  struct Added {
    NodeId id;
    std::vector<NodeId> reads, made;
  };

  /// A set of members: of the dot, which is the first, and of the values.
  using Mask = uint64_t;
  static_assert(most_values + 1 < 64);
  static Mask bit(size_t k) { return Mask{1} << k; }
  static Mask of_first(size_t count) { return bit(count) - 1; }

  struct Member {
    NodeId id;
    Mask inputs = 0, readers = 0;  // members that it reads, and that read it
    bool outside = false;          // an output, or read by what is no member
    bool stored = false;           // it must lie in memory if it is read outside a prefix: an output, a root, or an
                                   // operand of what reads memory
  };

  bool inside(NodeId id) const {
    return id == dot_ || std::any_of(values_.begin(), values_.end(), [&](const Added& v) { return v.id == id; });
  }

  /// Adds values in ascending order, as long as one can be computed from what is inside.
  void grow() {
    if (volume(shape_) <= 1 || is_complex(ir_[dot_].type.dtype)) return;
    SortedSet<NodeId> pending;
    const auto push_readers = [&](NodeId id) { pending.insert(cx_.users[id].begin(), cx_.users[id].end()); };
    push_readers(dot_);
    while (!pending.empty() && values_.size() < most_values) {
      const NodeId id = *pending.begin();
      pending.erase(pending.begin());
      std::optional<Added> added = add(id);
      if (!added) continue;
      values_.push_back(std::move(*added));
      push_readers(id);
    }
  }

  std::optional<Added> add(NodeId id) {
    const IrNode& n = ir_[id];
    if (!is_elementwise(n.op) || n.op == Op::bitcast || n.type.shape != shape_ || is_complex(n.type.dtype) ||
        n.phase != ir_[dot_].phase || n.materialized || n.inputs.empty())
      return {};
    EpilogueReads reads{ir_, cx_.strides, cx_.roots, index_, vars_, volume(shape_)};
    for (const NodeId input : n.inputs) {
      if (inside(input) && ir_[input].compute == Compute::root) return {};
      if (inside(input)) continue;
      if (stored_anyway(input)) reads.made.push_back(input), reads.nodes.push_back(input);
      else if (!reads.computable(input, vars_)) return {};
    }
    if (n.op == Op::add && n.fused)  // reads the factors themselves
      for (const NodeId input : ir_[n.inputs[1]].inputs)
        if (!inside(input) && !reads.computable(input, vars_)) return {};
    for (const NodeId node : reads.nodes)
      if (depends_on_dot(node)) return {};
    return Added{id, std::move(reads.nodes), std::move(reads.made)};
  }

  /// Returns whether an elementwise value will be stored because a reduction reads it as well.
  bool stored_anyway(NodeId id) const {
    if (!is_elementwise(ir_[id].op) || ir_[id].type.shape != shape_) return false;
    const auto reduced = [&](auto&& self, NodeId node) -> bool {
      const std::span<const NodeId> readers = cx_.users[node];
      return std::any_of(readers.begin(), readers.end(), [&](NodeId reader) {
        return ir_[reader].op == Op::reduce || (ir_[reader].op == Op::cast && self(self, reader));
      });
    };
    return reduced(reduced, id);
  }

  /// Returns whether a node is computed from the dot, or may be: the search is bounded.
  bool depends_on_dot(NodeId node) const {
    constexpr size_t most_visited = 400;
    SortedSet<NodeId> seen;
    std::vector<NodeId> pending{node};
    while (!pending.empty()) {
      const NodeId id = pending.back();
      pending.pop_back();
      if (id == dot_) return true;
      if (id < dot_ || !seen.insert(id).second) continue;
      if (seen.size() > most_visited) return true;
      pending.insert(pending.end(), ir_[id].inputs.begin(), ir_[id].inputs.end());
    }
    return false;
  }

  double bytes(NodeId id) const {
    return static_cast<double>(volume(ir_[id].type.shape)) * static_cast<double>(ir_[id].type.dtype.size());
  }
  /// Adds the bytes of the arrays among `nodes`; vectors come from caches.
  double array_bytes(const SortedSet<NodeId>& nodes) const {
    double sum = 0;
    for (const NodeId id : nodes)
      if (volume(ir_[id].type.shape) * 2 >= volume(shape_)) sum += bytes(id);
    return sum;
  }

  /// Lists the dot and the values with what is read and who reads it.
  void list_members() {
    for (size_t k = 0; k <= values_.size(); ++k) members_.push_back({k == 0 ? dot_ : values_[k - 1].id});
    for (Member& m : members_) {
      for (const NodeId input : ir_[m.id].inputs) m.inputs |= mask_of(input);
      m.outside = m.stored = cx_.outputs[m.id] > 0;
      m.stored = m.stored || cx_.roots[m.id];
      for (const NodeId reader : cx_.users[m.id]) {
        const Mask mask = mask_of(reader);
        m.readers |= mask;
        if (mask != 0) continue;
        m.outside = true;
        m.stored = m.stored || reads_memory(reader);
      }
    }
  }

  Mask mask_of(NodeId id) const {
    const auto at = std::ranges::lower_bound(members_, id, {}, &Member::id);
    return at != members_.end() && at->id == id ? bit(static_cast<size_t>(at - members_.begin())) : 0;
  }

  /// Returns whether a reader that is no member needs an operand in memory. Others compute it.
  bool reads_memory(NodeId reader) const {
    while (is_movement(ir_[reader].op) && ir_[reader].op != Op::concat && cx_.users[reader].size() == 1)
      reader = cx_.users[reader][0];
    return !is_elementwise(ir_[reader].op) && ir_[reader].op != Op::reduce;
  }

  /// Returns the nodes outside `in` that read a stored value, or what is computed from it: values that are not among
  /// `stored`.
  SortedSet<NodeId> readers_outside(NodeId id, Mask in, Mask stored) const {
    Mask seen = mask_of(id);
    SortedSet<NodeId> outside;
    std::vector<NodeId> pending{id};
    while (!pending.empty()) {
      const NodeId at = pending.back();
      pending.pop_back();
      for (const NodeId reader : cx_.users[at]) {
        const Mask mask = mask_of(reader);
        if (!(mask & in)) outside.insert(reader);
        else if (!(mask & (stored | seen))) pending.push_back(reader);
        seen |= mask & in;
      }
    }
    return outside;
  }

  bool read_outside(size_t k, Mask in) const { return members_[k].outside || (members_[k].readers & ~in) != 0; }

  /// Returns the first of the members `in` that is read outside and can not be computed there from those that are
  /// stored; nothing if there is none.
  std::optional<size_t> first_missing(Mask in, Mask stored) const {
    Mask known = stored;
    for (size_t k = 0; k < members_.size() && bit(k) <= in; ++k) {
      if (k > 0 && !(members_[k].inputs & in & ~known)) known |= bit(k);
      if (!(known & bit(k)) && read_outside(k, in)) return k;
    }
    return {};
  }

  /// Returns which of the members `in` the kernel stores: those that must lie in memory, and what the readers of others
  /// need to compute them: one value if one is enough, the smallest and of these the last.
  Mask results(Mask in) const {
    Mask stored = 0;
    for (size_t k = 0; bit(k) <= in; ++k)
      if (read_outside(k, in) && members_[k].stored) stored |= bit(k);
    if (first_missing(in, stored)) {
      std::optional<size_t> best;
      for (size_t k = 0; bit(k) <= in; ++k)
        if (!(stored & bit(k)) && (!best || bytes(members_[k].id) <= bytes(members_[*best].id)) &&
            !first_missing(in, stored | bit(k)))
          best = k;
      if (best) stored |= bit(*best);
    }
    for (auto k = first_missing(in, stored); k; k = first_missing(in, stored)) stored |= bit(*k);
    return stored;
  }

  std::vector<NodeId> nodes(Mask mask) const {
    std::vector<NodeId> out;
    for (size_t k = 0; k < members_.size(); ++k)
      if (mask & bit(k)) out.push_back(members_[k].id);
    return out;
  }

  /// Returns the region of the first `count` values; nothing if it stores too much or would wait for itself.
  std::optional<DotRegion> prefix(size_t count) const {
    DotRegion region;
    region.dot = dot_;
    const Mask all = of_first(count + 1);
    SortedSet<NodeId> reads;
    for (size_t k = 0; k < count; ++k) {
      const Added& v = values_[k];
      reads.insert(v.reads.begin(), v.reads.end());
      region.values.push_back(v.id);
      region.made.insert(region.made.end(), v.made.begin(), v.made.end());
    }
    region.stored = nodes(results(all));
    if (region.stored.empty() || region.stored.size() > most_stored + 1) return {};
    region.result = region.stored.back();
    region.stored.pop_back();
    if (count > 0 && region.result != region.values.back()) return {};  // its last value serves nobody yet
    const NodeId first = region.stored.empty() ? region.result : region.stored.front();
    // All results are made at once, so what they are made from comes before the first of them.
    for (const NodeId id : reads)
      if (id >= first) return {};
    for (const NodeId id : reads)
      if (region.like < 0 && !is_leaf(ir_, id) && ir_[id].type.shape == shape_) region.like = id;
    region.own_bytes = array_bytes(reads) + bytes(region.result);
    for (const NodeId id : region.stored) region.own_bytes += bytes(id);
    region.bytes = price(all, reads);
    return region;
  }

  /// Returns a later dot of the same shape among the arrays that values read: its kernel can compute them as well; -1
  /// if there is none.
  NodeId another_dot(const SortedSet<NodeId>& reads) const {
    for (const NodeId id : reads)
      if (id > dot_ && ir_[id].op == Op::dot && cx_.roots[id] && ir_[id].type.shape == shape_) return id;
    return {};
  }

  /// Returns what is read besides `known` members to compute `results`.
  SortedSet<NodeId> reads_of(Mask results, Mask known) const {
    Mask needed = results;
    SortedSet<NodeId> reads;
    for (size_t k = members_.size(); k-- > 1;) {
      if (!(needed & ~known & bit(k))) continue;
      const Added& v = values_[k - 1];
      reads.insert(v.reads.begin(), v.reads.end());
      needed |= members_[k].inputs;
    }
    return reads;
  }

  /// Prices a prefix: what the dot's kernel stores and reads, then what is read of its results, and what the values
  /// that follow it cost. These are computed by another dot's kernel, by one of their own, or wherever they are read.
  double price(Mask all, const SortedSet<NodeId>& reads) const {
    const Mask whole = of_first(members_.size()), made = results(all), last = results(whole);
    const std::vector<NodeId> made_nodes = nodes(made);
    double sum = array_bytes({made_nodes.begin(), made_nodes.end()}) + array_bytes(reads);
    NodeId host{};
    if (all != whole) {
      SortedSet<NodeId> in = reads_of(last, all);
      for (const NodeId id : made_nodes) {
        const SortedSet<NodeId> readers = readers_outside(id, all, made);
        if (std::ranges::any_of(readers, [&](NodeId r) { return mask_of(r) != 0; })) in.insert(id);
      }
      host = another_dot(in);
      in.erase(host);
      bool launch = false;
      size_t inlined = 0;  // kernels that compute the values where they read them
      for (size_t k = 0; k < members_.size(); ++k) {
        if (!(last & ~all & bit(k))) continue;
        const NodeId id = members_[k].id;
        if (host >= 0 || members_[k].stored) sum += bytes(id), launch = true;
        else inlined = std::max(inlined, readers_outside(id, whole, last).size());
      }
      sum += array_bytes(in) * static_cast<double>(inlined + (launch ? 1 : 0));
      if (host >= 0) sum -= bytes(host);  // which the whole region would have stored
      else if (launch) sum += cx_.launch_bytes;
    }
    for (size_t k = 0; k < members_.size(); ++k)
      if ((last & bit(k)) && (host >= 0 || (all & bit(k)) || members_[k].stored))
        sum += bytes(members_[k].id) * static_cast<double>(readers_outside(members_[k].id, whole, last).size());
    return sum;
  }

  const RegionContext& cx_;
  const Ir& ir_;
  NodeId dot_;
  const Shape& shape_;
  ix::Context index_;
  std::vector<Expr> vars_;
  std::vector<Added> values_;    // ascending
  std::vector<Member> members_;  // likewise
};

/// Returns whether `reduction` sums a matrix in float32 over all axes but `free_axis` of `operand`, which is the
/// matrix, permuted or reshaped.
bool sums_rows(const Ir& ir, NodeId reduction, NodeId operand, int64_t free_axis) {
  const IrNode& f = ir[reduction];
  if (f.op != Op::reduce || f.attrs->reducer != kernel::Reducer::sum || f.type.dtype != float32 || f.type.rank() != 1)
    return false;
  ix::Context cx;
  const std::vector<Expr> vars = domain(cx, ir[operand].type.shape, "i");
  const Expr free = vars[static_cast<size_t>(free_axis)];
  Access access{operand, vars, {}, {}};
  while (access.node != f.inputs[0] && (ir[access.node].op == Op::permute || ir[access.node].op == Op::reshape))
    access = push(cx, ir, access.node, access.index);
  if (access.node != f.inputs[0] || free.is_constant()) return false;
  for (size_t axis = 0; axis < access.index.size(); ++axis)
    if (has_axis(f.attrs->axes, static_cast<int64_t>(axis)) ? ix::depends_on(access.index[axis], free)
                                                            : !(access.index[axis] == free))
      return false;
  return true;
}

}  // namespace

std::vector<DotRegion> dot_regions(const RegionContext& cx, NodeId dot) { return RegionFinder(cx, dot).run(); }

/// The sum must come after what the dot reads, so that one kernel can compute both where the first of them is.
void add_operand_sum(const RegionContext& cx, DotRegion& region) {
  const Ir& ir = cx.ir;
  const IrNode& dot = ir[region.dot];
  if (dot.type.dtype != float32 || dot.type.rank() != 2 || !dot.attrs->batch.empty() || region.result != region.dot)
    return;
  const int last_read = std::max(operand_base(ir, cx.strides, cx.roots, dot.inputs[0]),
                                 operand_base(ir, cx.strides, cx.roots, dot.inputs[1]));
  for (size_t side = 0; side < 2; ++side) {
    const NodeId operand = dot.inputs[side];
    int64_t free_axis = 0;
    while (has_axis(side == 0 ? dot.attrs->axes : dot.attrs->axes2, free_axis)) ++free_axis;
    NodeId base = operand;
    if (free_axis >= ir[operand].type.rank() || ir[operand].type.dtype != float32) continue;
    while (ir[base].op == Op::permute || ir[base].op == Op::reshape) base = ir[base].inputs[0];
    for (const NodeId id : cx.users[base]) {
      if (id < last_read || !sums_rows(ir, id, operand, free_axis)) continue;
      region.sum = id;
      region.summed = side == 0 ? kernel::OperandSum::a : kernel::OperandSum::b;
      return;
    }
  }
}

/// Compares the depth of the contraction with the least at which the epilogue's sums are hidden behind the
/// multiplications of the next tile. Measured on an H200, a training step without and with sums: GPT-2 350M (depth
/// 1024) 143.9 and 145.5 ms, 774M (depth 1280) 308.9 and 302.9 ms.
bool hides_sums(const Ir& ir, NodeId dot) {
  constexpr int64_t least_depth = 1280;
  int64_t depth = 1;
  const Shape& from = ir[ir[dot].inputs[0]].type.shape;
  for (const int64_t axis : ir[dot].attrs->axes)
    depth *= from[static_cast<size_t>(axis)].is_static() ? from[static_cast<size_t>(axis)].bound() : 0;
  return depth >= least_depth;
}

std::optional<DotRegion> with_row_sums(const RegionContext& cx, const DotRegion& region) {
  const Ir& ir = cx.ir;
  const Shape& shape = ir[region.result].type.shape;
  if (!hides_sums(ir, region.dot) || region.sum >= 0 || !is_low_float(ir[region.result].type.dtype) || shape.empty())
    return {};
  // Follow casts to float32 and reshapes to a reduction over one axis of rows_of_a_sum rows, before an axis of whole
  // rows.
  std::vector<NodeId> pending{region.result};
  while (!pending.empty()) {
    const NodeId node = pending.back();
    pending.pop_back();
    for (const NodeId id : cx.users[node]) {
      const IrNode& n = ir[id];
      if ((n.op == Op::cast && n.type.dtype == float32) || n.op == Op::reshape) pending.push_back(id);
      if (n.op != Op::reduce || n.attrs->reducer != kernel::Reducer::sum || n.type.dtype != float32 ||
          n.attrs->axes.size() != 1)
        continue;
      const Shape& from = ir[node].type.shape;
      const auto axis = static_cast<size_t>(n.attrs->axes[0]);
      if (axis + 2 != from.size() || !(from[axis] == Dim(kernel::rows_of_a_sum)) || !(from.back() == shape.back()))
        continue;
      DotRegion out = region;
      out.sum = id, out.summed = kernel::OperandSum::c;
      return out;
    }
  }
  return {};
}

}  // namespace weft::compiler
