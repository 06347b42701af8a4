#include "compiler/schedule/splits.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/ir/grouping.h"
#include "compiler/ir/index_map.h"
#include "compiler/ir/rewriter.h"
#include "compiler/region/dot_region.h"
#include "compiler/region/library_epilogue.h"
#include "compiler/rewrite/gemv.h"
#include "compiler/rewrite/row_reductions.h"
#include "compiler/schedule/rows.h"
#include "target/target.h"

namespace weft::compiler {

namespace {

constexpr int64_t programs_wanted = 2048, most_programs = 8192, many_rows = programs_wanted / 4;
// Bounds on column sums that a row kernel may compute as well (group_columns.cpp).
constexpr int64_t least_columns = 16, most_columns = 8192;
constexpr int64_t least_rows = 256, least_rows_of_part = 8, few_rows_of_part = 16;

/// The reduced axes of a reduction, if they are adjacent and of static length.
struct Run {
  size_t first = 0, end = 0;
  int64_t length = 1;  // product of their extents
  bool innermost = false;
};

/// Describes the reduced axes in `run`; returns false if they are not adjacent or not static.
bool run_of(const IrNode& reduction, const Shape& shape, Run& run) {
  const auto& axes = reduction.attrs->axes;
  if (axes.empty()) return false;
  run.first = static_cast<size_t>(axes.front());
  run.end = static_cast<size_t>(axes.back()) + 1;
  if (run.end - run.first != axes.size()) return false;
  for (size_t k = run.first; k < run.end; ++k) {
    if (!shape[k].is_static()) return false;
    run.length *= shape[k].bound();
  }
  run.innermost = true;
  for (size_t k = run.end; k < shape.size(); ++k) run.innermost = run.innermost && shape[k] == 1;
  return true;
}

// Elements that blocks reduce, one column each, in less time than a second launch takes.
constexpr int64_t few_split_elements = int64_t{1} << 15;

/// Returns whether clusters that each share a row are enough to fill a GPU.
bool fills_by_clusters(int64_t rows, const target::Machine& machine) {
  constexpr int64_t programs_of_clusters = 128;
  return machine.max_cluster > 1 && rows * machine.max_cluster >= programs_of_clusters;
}

/// Returns the most parts to split a reduction into, or 1 to leave it whole. `kept`: the number of results.
int64_t parts(const Run& run, int64_t kept, bool in_memory) {
  const int64_t rows = run.innermost ? kept : (kept + 127) / 128;  // programs without a split
  const int64_t least = run.innermost ? 4096 : 32;                 // elements of a part
  if (rows >= many_rows || run.length < 4 * least) return 1;
  if (in_memory && !run.innermost && run.length * kept <= few_split_elements && run.length <= 8192) return 1;
  // A warp that reduces columns has one load a row in flight: very long columns need more warps.
  const int64_t programs =
      run.innermost ? programs_wanted : std::clamp(run.length / 112, programs_wanted, most_programs);
  return std::min(programs / rows, run.length / least);
}

/// Returns the largest number of parts, at most `wanted`, that split the leading reduced axes evenly and at axis
/// boundaries, so that indices stay simple.
int64_t divisor(const Run& run, const Shape& shape, int64_t wanted) {
  int64_t count = 1;
  for (size_t k = run.first; k < run.end && count < wanted; ++k) {
    const int64_t n = shape[k].bound();
    int64_t cut = 1;  // the largest divisor of this axis that keeps the count within `wanted`
    for (int64_t d = 1; d <= n && count * d <= wanted; ++d)
      if (n % d == 0) cut = d;
    count *= cut;
    if (cut != n) break;
  }
  return count;
}

/// Returns a number of parts near `wanted`: usually the divisor just below it. If the axes only have much smaller
/// divisors, so that columns would keep too few SMs busy, it may be up to twice as many. For several axes, the first of
/// which is often a batch, that applies only if few parts are wanted.
int64_t balanced(const Run& run, const Shape& shape, int64_t wanted) {
  constexpr int64_t few = 64;
  const int64_t count = divisor(run, shape, wanted);
  return run.innermost || (run.end - run.first > 1 && wanted >= few) || 4 * count >= 3 * wanted
             ? count
             : divisor(run, shape, 2 * wanted - 1);
}

/// Returns the largest divisor of the reduced elements, at most `wanted`. Kernels of rows number their rows across all
/// axes: a part may begin inside of one.
int64_t divisor_of_all(const Run& run, int64_t wanted) {
  int64_t count = 1;
  for (int64_t d = 1; d <= std::min(wanted, run.length); ++d)
    if (run.length % d == 0) count = d;
  return count;
}

/// Returns the parts of a reduction of rows that a row kernel of that width may compute as well.
int64_t parts_of_rows(const Run& run, int64_t columns) {
  return divisor_of_all(run, std::min(programs_of_rows(columns), run.length / least_rows_of_part));
}

/// Adds the nodes of reductions so that all components of a state are results of one reduction.
class StateRewriter : protected Rewriter {
 protected:
  explicit StateRewriter(Ir ir) : Rewriter(std::move(ir)) {}

  /// Returns the reduction as that of component k of its state.
  IrNode component(IrNode node, size_t k) const {
    node.output = static_cast<int>(k);
    node.type.dtype = to_[node.inputs[k]].type.dtype;
    node.results.assign(node.inputs.size() > 1 ? node.inputs.size() : 0, node.type);
    for (size_t i = 0; i < node.results.size(); ++i) node.results[i].dtype = to_[node.inputs[i]].type.dtype;
    return node;
  }

  /// Adds a reduction; of one that was added before, returns that node.
  NodeId add_state(IrNode node) {
    if (!has_results(node)) return add(std::move(node));
    std::vector<int64_t> key{static_cast<int64_t>(node.attrs->reducer), node.output};
    for (const NodeId input : node.inputs) key.push_back(input);
    key.insert(key.end(), node.attrs->axes.begin(), node.attrs->axes.end());
    NodeId& known = states_.try_emplace(std::move(key), -1).first->second;
    return known >= 0 ? known : known = add(std::move(node));
  }

  /// Returns a reshape of `v` to `shape`, looking through reshapes of v. Equal requests share one node.
  NodeId reshaped(NodeId v, const Shape& shape) {
    if (to_[v].type.shape == shape) return v;
    if (to_[v].op == graph::Op::reshape) return reshaped(to_[v].inputs[0], shape);
    NodeId& view = views_.try_emplace({v, bounds(shape)}, -1).first->second;
    return view >= 0 ? view : view = shaped(graph::Op::reshape, v, shape);
  }

 private:
  std::map<std::vector<int64_t>, NodeId> states_;
  std::map<std::pair<NodeId, std::vector<int64_t>>, NodeId> views_;
};

/// Splits reductions to fewer than eight results over many elements once, for the threads of a CPU.
class FewResults : StateRewriter {
 public:
  /// `columns`: also splits reductions that leave the last axis whole.
  FewResults(Ir ir, bool columns) : StateRewriter(std::move(ir)), columns_(columns) {}

  Ir run() {
    return rewrite([&](NodeId, IrNode node) -> NodeId {
      return node.op == graph::Op::reduce ? cut(std::move(node)) : add(std::move(node));
    });
  }

  static bool any(const Ir& ir) {
    return std::any_of(ir.nodes.begin(), ir.nodes.end(), [&](const IrNode& n) {
      return n.op == graph::Op::reduce && is_long(n, ir[n.inputs[0]].type.shape);
    });
  }

 private:
  static constexpr int64_t long_reduction = 1 << 17, few_results = 8, most_parts = 256, least_of_part = 1024;

  static int64_t reduced(const IrNode& node, const Shape& shape) {
    int64_t count = 1;
    for (const int64_t axis : node.attrs->axes) {
      if (!shape[static_cast<size_t>(axis)].is_static()) return 0;
      count *= shape[static_cast<size_t>(axis)].bound();
    }
    return count;
  }
  static bool is_long(const IrNode& node, const Shape& shape) {
    return !node.whole && volume(node.type.shape) < few_results && reduced(node, shape) >= long_reduction;
  }
  /// Returns whether the reduction runs down columns, which ReductionSplitter splits instead.
  static bool is_column(const IrNode& node, const Shape& shape) {
    const auto& axes = node.attrs->axes;
    return axes.back() + 1 < static_cast<int64_t>(shape.size()) &&
           axes.back() - axes.front() + 1 == static_cast<int64_t>(axes.size()) && !is_low_float(node.type.dtype);
  }

  /// Splits the first reduced axis if it is long, else reduces it separately from the others.
  NodeId cut(IrNode node) {
    const Shape shape = to_[node.inputs[0]].type.shape;
    if (!is_long(node, shape) || (!columns_ && is_column(node, shape))) return reduce(std::move(node));
    const auto axis = static_cast<size_t>(node.attrs->axes[0]);
    const int64_t extent = shape[axis].bound(), all = reduced(node, shape);
    int64_t parts = 1;
    for (int64_t p = 2; p <= most_parts; ++p)
      if (extent % p == 0 && all / p >= least_of_part) parts = p;
    IrNode first = node;
    Shape split = shape;
    if (parts > 1 && (parts >= 8 || node.attrs->axes.size() == 1)) {
      split[axis] = extent / parts;
      split.insert(split.begin() + static_cast<std::ptrdiff_t>(axis), Dim(parts));
      for (int64_t& a : first.attrs.edit().axes) ++a;  // all reduced axes are at or after the one that is split
    } else if (node.attrs->axes.size() > 1) {
      first.attrs.edit().axes.erase(first.attrs.edit().axes.begin());
    } else {
      return reduce(std::move(node));
    }
    for (NodeId& component : first.inputs) component = reshaped(component, split);
    first.type.shape.clear();
    int64_t position = 0;  // position of the remaining reduced axis in the partial result
    for (size_t a = 0; a < split.size(); ++a) {
      if (std::count(first.attrs->axes.begin(), first.attrs->axes.end(), static_cast<int64_t>(a)) > 0) continue;
      if (a < axis) ++position;
      first.type.shape.push_back(split[a]);
    }
    for (size_t k = 0; k < node.inputs.size(); ++k) node.inputs[k] = cut(component(first, k));
    node.attrs.edit().axes = {position};
    return cut(std::move(node));
  }

  /// Adds the reduction, or a reshape if all reduced axes have extent 1.
  NodeId reduce(IrNode node) {
    const Shape& shape = to_[node.inputs[0]].type.shape;
    const bool one = std::all_of(node.attrs->axes.begin(), node.attrs->axes.end(),
                                 [&](int64_t axis) { return shape[static_cast<size_t>(axis)] == 1; });
    return one ? shaped(graph::Op::reshape, node.inputs[static_cast<size_t>(node.output)], node.type.shape)
               : add_state(std::move(node));
  }

  const bool columns_;
};

/// Cuts reductions over axes on both sides of one that is kept: the statistics of groups of channels over all pixels,
/// whose rows are short pieces of memory. The leading axes are reduced first, down columns of adjacent elements, then
/// the few results of that. On a GPU only rows of many pieces are cut: a block of threads holds shorter ones in
/// registers, for all that depends on their sums, and pieces of whole cache lines are read as well by rows.
class InterruptedReductions : StateRewriter {
 public:
  InterruptedReductions(Ir ir, bool many_programs) : StateRewriter(std::move(ir)), many_programs_(many_programs) {}

  Ir run() {
    return rewrite([&](NodeId, IrNode node) -> NodeId {
      const size_t first = leading(node, to_, many_programs_);
      return first > 0 ? cut(std::move(node), first) : add(std::move(node));
    });
  }

  static bool any(const Ir& ir, bool many_programs) {
    return std::any_of(ir.nodes.begin(), ir.nodes.end(),
                       [&](const IrNode& n) { return leading(n, ir, many_programs) > 0; });
  }

  /// Returns how many of a reduction's axes to reduce first, or 0 to leave it whole.
  static size_t leading(const IrNode& node, const Ir& ir, bool many_programs) {
    if (node.op != graph::Op::reduce || node.whole) return 0;
    const Shape& shape = ir[node.inputs[0]].type.shape;
    if (std::any_of(shape.begin(), shape.end(), [](const Dim& d) { return !d.is_static(); })) return 0;
    const std::vector<int64_t>& axes = node.attrs->axes;
    int64_t length = 1, columns = 1;
    size_t first = 0;
    const auto kept_before = [&](size_t k) {  // whether an axis between the reduced axes k - 1 and k is kept
      for (int64_t axis = axes[k - 1] + 1; axis < axes[k]; ++axis)
        if (!(shape[static_cast<size_t>(axis)] == 1)) return true;
      return false;
    };
    for (; first < axes.size() && (first == 0 || !kept_before(first)); ++first)
      length *= shape[static_cast<size_t>(axes[first])].bound();
    const auto one = [&](int64_t axis) { return shape[static_cast<size_t>(axis)] == 1; };
    if (std::all_of(axes.begin() + static_cast<std::ptrdiff_t>(first), axes.end(), one)) return 0;  // nothing is left
    for (auto axis = static_cast<size_t>(axes[first - 1]) + 1; axis < shape.size(); ++axis)
      columns *= shape[axis].bound();
    if (many_programs && !is_scattered(node, ir[node.inputs[0]].type)) return 0;
    return length >= least_length && columns >= least_columns ? first : 0;
  }

 private:
  static constexpr int64_t least_length = 16;   // of columns: what they leave is then little to read again
  static constexpr int64_t least_columns = 16;  // adjacent ones: a vector of float32
  static constexpr int64_t cache_line = 128;    // of a GPU: bytes

  /// Returns whether a reduction's rows are long ones of short pieces.
  static bool is_scattered(const IrNode& node, const graph::Type& operand) {
    const std::vector<int64_t>& axes = node.attrs->axes;
    int64_t piece = 1, row = 1;
    for (auto axis = static_cast<int64_t>(operand.shape.size()) - 1; axis >= 0; --axis) {
      const Dim& extent = operand.shape[static_cast<size_t>(axis)];
      if (std::count(axes.begin(), axes.end(), axis) > 0) piece *= extent.bound();
      else if (!(extent == 1)) break;
    }
    for (const int64_t axis : axes) row *= operand.shape[static_cast<size_t>(axis)].bound();
    return row > row_in_registers && piece * static_cast<int64_t>(operand.dtype.size()) < cache_line;
  }

  NodeId cut(IrNode node, size_t first) {
    const Dtype result = node.type.dtype;
    for (NodeId& v : node.inputs)
      if (is_low_float(to_[v].type.dtype)) v = cast(v, float32);
    const Shape& shape = to_[node.inputs[0]].type.shape;
    IrNode columns = node;
    auto& axes = columns.attrs.edit().axes;
    axes.resize(first);
    columns.type.shape.clear();
    std::vector<int64_t> left;  // by axis of the operand: its position in the columns' results
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      left.push_back(columns.type.rank());
      if (std::count(axes.begin(), axes.end(), static_cast<int64_t>(axis)) == 0)
        columns.type.shape.push_back(shape[axis]);
    }
    auto& rest = node.attrs.edit().axes;
    rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(first));
    for (int64_t& axis : rest) axis = left[static_cast<size_t>(axis)];
    for (size_t k = 0; k < node.inputs.size(); ++k) node.inputs[k] = add_state(component(columns, k));
    return cast(add_state(component(node, static_cast<size_t>(node.output))), result);
  }

  const bool many_programs_;
};

/// Splits reductions for a device that only thousands of programs fill.
class ReductionSplitter : StateRewriter {
 public:
  ReductionSplitter(Ir ir, const target::Target& target)
      : StateRewriter(std::move(ir)), target_(target), users_(users(from_)), of_rows_(row_values(from_)) {
    for (const InlinedRegion& region : from_.regions)
      if (is_library_slope(region.name))
        for (const NodeId product : users_[region.result])
          if (const NodeId result = of_dot_and_slope(product, region.result); result >= 0) derivatives_.insert(result);
  }

  Ir run() {
    return rewrite([&](NodeId id, IrNode node) -> NodeId {
      if (node.op != graph::Op::reduce) {
        const NodeId copy = add(std::move(node));
        if (derivatives_.contains(id)) matmuls_.insert(copy);
        return copy;
      }
      return reduce(id, std::move(node), in_memory(from_[id].inputs[0]));
    });
  }

 private:
  /// Returns the 16-bit value that a dot's result times the derivative of an activation is rounded to, if a library may
  /// sum its rows; else -1.
  NodeId of_dot_and_slope(NodeId product, NodeId slope) const {
    if (from_[product].op != graph::Op::mul) return {};
    NodeId dot = from_[product].inputs[from_[product].inputs[0] == slope ? 1 : 0];
    while (from_[dot].op == graph::Op::cast) dot = from_[dot].inputs[0];
    if (from_[dot].op != graph::Op::dot || !hides_sums(from_, dot)) return {};
    const std::span<const NodeId> readers = users_[product];
    return readers.size() == 1 && from_[readers[0]].op == graph::Op::cast ? readers[0] : NodeId{};
  }

  /// Returns whether v is a matmul's result times gelu's derivative, or a view of it: a library may sum its rows in the
  /// same call.
  bool of_matmul(NodeId v) const {
    while (!matmuls_.contains(v) && (to_[v].op == graph::Op::cast || to_[v].op == graph::Op::reshape))
      v = to_[v].inputs[0];
    return matmuls_.contains(v);
  }

  /// Adds a reduction, split if need be. `id`: the node in the old graph, or -1 for the second step of a split.
  NodeId reduce(NodeId id, IrNode node, bool in_memory) {
    const graph::Type operand = to_[node.inputs[0]].type;
    Run run;
    if (node.whole || !run_of(node, operand.shape, run)) return add_state(std::move(node));
    const int64_t kept = volume(node.type.shape);
    const int64_t of_rows = parts_of_rows(run, kept);
    const bool beside_rows = id >= 0 && !has_results(node) && run.first == 0 && !run.innermost &&
                             run.length >= least_rows && kept >= least_columns && kept <= most_columns &&
                             enough_beside_rows(of_rows, run.length / of_rows, kept) &&
                             reduces_row_value(from_, of_rows_, id);
    if (id >= 0 && run.innermost && fills_by_clusters(kept, target_.machine()) && of_whole_row(id))
      return add_state(std::move(node));
    const bool with_matmul =
        run.first == 0 && !run.innermost && run.length % kernel::rows_of_a_sum == 0 && of_matmul(node.inputs[0]);
    if (!with_matmul && !beside_rows && !run.innermost && run.first == 0 && in_memory &&
        (id < 0 || !of_whole_row(id)) && parts_of_columns(run.length, kept, 1, target_).parts > 1)
      return add_state(std::move(node));  // warps share the columns (lower/loops/columns.cpp)
    const int64_t count = with_matmul   ? divisor(run, operand.shape, run.length / kernel::rows_of_a_sum)
                          : beside_rows ? of_rows
                                        : parts_by_load(run, operand.shape, kept, in_memory);
    if (count <= 1) return add_state(std::move(node));
    const Dtype result = node.type.dtype;
    for (NodeId& v : node.inputs)
      if (is_low_float(to_[v].type.dtype)) v = cast(v, float32);

    // If the split falls between two axes, no reshape is needed.
    size_t border = run.first;
    for (int64_t left = count; border < run.end && left % operand.shape[border].bound() == 0 && left > 1; ++border)
      left /= operand.shape[border].bound();
    if (!beside_rows && extent(operand.shape, run.first, border) == count) {
      node.inputs = parts_of_state(over(node, border, run.end));
      return cast(reduce(-1, over(node, run.first, border), true), result);
    }
    Shape shape(operand.shape.begin(), operand.shape.begin() + static_cast<std::ptrdiff_t>(run.first));
    shape.push_back(count);
    shape.push_back(run.length / count);
    shape.insert(shape.end(), operand.shape.begin() + static_cast<std::ptrdiff_t>(run.end), operand.shape.end());
    for (NodeId& v : node.inputs) v = has_results(node) ? reshaped(v, shape) : shaped(graph::Op::reshape, v, shape);
    node.inputs = parts_of_state(over(node, run.first + 1, run.first + 2));
    IrNode rest = over(node, run.first, run.first + 1);
    return cast(reduce(-1, std::move(rest), true), result);
  }

  /// Returns the parts of any other reduction. Where the warps of blocks that share the columns of a part are as
  /// many, a block or two for each SM are enough, and few partial results are left to combine.
  int64_t parts_by_load(const Run& run, const Shape& shape, int64_t kept, bool in_memory) const {
    // Half of the warps that keep memory busy: what they lose, a launch that combines many partial results costs too.
    constexpr int64_t blocks_of_processor = 2, columns_of_block = 128, least_warps = 512;
    const int64_t wanted = parts(run, kept, in_memory);
    if (wanted > 1 && kept > 0 && !run.innermost && run.first == 0) {
      const int64_t panels = (kept + columns_of_block - 1) / columns_of_block;
      const int64_t blocks = blocks_of_processor * target_.machine().processors / panels;
      if (blocks > 1 && blocks < wanted) {
        const int64_t count = balanced(run, shape, blocks);
        const int64_t warps = count * parts_of_columns(run.length / count, kept, count, target_).parts;
        if (warps >= std::max(wanted, least_warps / panels)) return count;
      }
    }
    return balanced(run, shape, wanted);
  }

  /// Adds the reduction of each part, all components of its state.
  std::vector<NodeId> parts_of_state(const IrNode& node) {
    std::vector<NodeId> components;
    for (size_t k = 0; k < node.inputs.size(); ++k) components.push_back(add_state(component(node, k)));
    return components;
  }

  /// Returns whether the row's kernel reads the result again for the row's elements, or computes it from another such
  /// result. Blocks of a cluster then share the row.
  bool of_whole_row(NodeId reduction) const {
    return reaches(
               reduction, [&](NodeId id) { return users_[id]; },
               [](const IrNode& n) { return n.op == graph::Op::broadcast; }) ||
           reaches(
               reduction, [&](NodeId id) { return std::span<const NodeId>(from_[id].inputs); },
               [](const IrNode& n) { return n.op == graph::Op::reduce; });
  }

  /// Returns whether `found` holds for a node that is reached from a reduction along `next` through elementwise nodes,
  /// casts, reshapes and broadcasts.
  template <class Next, class Found>
  bool reaches(int from, Next next, Found found) const {
    std::set<NodeId> seen;
    std::vector<NodeId> pending(next(from).begin(), next(from).end());
    while (!pending.empty()) {
      const NodeId id = pending.back();
      pending.pop_back();
      const IrNode& n = from_[id];
      if (found(n)) return true;
      const bool goes_on =
          is_elementwise(n.op) || n.op == graph::Op::reshape || n.op == graph::Op::cast || n.op == graph::Op::broadcast;
      if (goes_on && seen.insert(id).second) pending.insert(pending.end(), next(id).begin(), next(id).end());
    }
    return false;
  }

  /// Returns whether the reduction's operand will be read from memory, not computed inline.
  bool in_memory(NodeId id) const {
    const auto read_whole = [&](NodeId user) { return from_[user].op == graph::Op::dot || is_call(from_[user].op); };
    for (;; id = from_[id].inputs[0]) {
      const graph::Op op = from_[id].op;
      if (op == graph::Op::reduce || op == graph::Op::parameter || op == graph::Op::dot || is_call(op)) return true;
      const std::span<const NodeId> readers = users_[id];
      if (std::any_of(readers.begin(), readers.end(), read_whole)) return true;
      if (op != graph::Op::cast && (!is_movement(op) || op == graph::Op::concat)) return false;
    }
  }

  static int64_t extent(const Shape& shape, size_t first, size_t end) {
    int64_t n = 1;
    for (size_t k = first; k < end; ++k) n *= shape[k].bound();
    return n;
  }

  /// Builds the reduction of `like`'s operands over the axes from `first` to `end`, with its reducer and of the same
  /// component.
  IrNode over(const IrNode& like, size_t first, size_t end) const {
    IrNode node = made(graph::Op::reduce, like.inputs, to_[like.inputs[0]].type.shape, float32);
    node.attrs.edit().reducer = like.attrs->reducer;
    for (size_t axis = first; axis < end; ++axis) node.attrs.edit().axes.push_back(static_cast<int64_t>(axis));
    node.type.shape.erase(node.type.shape.begin() + static_cast<std::ptrdiff_t>(first),
                          node.type.shape.begin() + static_cast<std::ptrdiff_t>(end));
    return component(std::move(node), static_cast<size_t>(like.output));
  }

  const target::Target& target_;
  const Users users_;
  const NodeFlags of_rows_;  // row values (rewrite/row_reductions.h)
  // Matmuls multiplied by gelu's derivative: nodes of the old graph, and of the new one.
  std::set<NodeId> derivatives_, matmuls_;
};

}  // namespace

bool cuts_into_columns(const Ir& ir, NodeId reduction, const target::Target& target) {
  return InterruptedReductions::leading(ir[reduction], ir, target.machine().simt) > 0;
}

bool clusters_share_few(int64_t rows, const target::Machine& machine) {
  return rows < many_rows && fills_by_clusters(rows, machine);
}

int64_t programs_of_rows(int64_t columns) {
  constexpr int64_t width_of_a_warp = 1024, chunk = 128, least_width = 64, few_registers = 256;
  int64_t width = least_width, programs = 1024;
  while (width < std::min(columns, chunk)) width *= 2;
  if (columns > chunk) width = (columns + chunk - 1) / chunk * chunk;
  // Of a narrow row a thread has few elements, and more registers beside them.
  if (columns <= width_of_a_warp / 2) return (width > few_registers ? 1568 : 1280) * 512 / width;
  for (width = width_of_a_warp; width < columns; width *= 2) programs /= 2;
  return programs;
}

bool enough_beside_rows(int64_t parts, int64_t each, int64_t columns) {
  return each <= few_rows_of_part || 4 * parts >= programs_of_rows(columns);
}

Ir split_reductions(Ir ir, const target::Target& target) {
  const bool many_programs = target.machine().simt;
  if (many_programs) ir = deep_gemv(std::move(ir));
  if (FewResults::any(ir)) ir = FewResults(std::move(ir), !many_programs).run();
  if (InterruptedReductions::any(ir, many_programs)) ir = InterruptedReductions(std::move(ir), many_programs).run();
  if (many_programs) ir = ReductionSplitter(std::move(ir), target).run();
  return ir;
}

}  // namespace weft::compiler
