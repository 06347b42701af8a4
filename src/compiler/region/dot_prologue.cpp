#include "compiler/region/dot_prologue.h"

#include <algorithm>

#include "compiler/ir/unpacking.h"
#include "compiler/region/dot_epilogue.h"
#include "compiler/region/dot_plan.h"

namespace weft::compiler {

namespace {

/// Basic operations of a prologue for each element that is loaded. In the block form an element is packed once and
/// takes part in 240 multiply-adds, so that 16 operations are 3 % of the work. A program on tensor cores makes an
/// element for 64 to 256 multiply-adds, of which they do 15 (H100) to 16 (A100) in the time of an operation on the
/// vector units: 16 operations an element take as long as its multiply-adds, which is a matter of the bytes that they
/// save (Grouper::region_of). Elements that share integers are unpacked by more, since their matrix is to lie in memory
/// nowhere.
constexpr double most_operations = 16, most_to_unpack = 32;

bool lists(const std::vector<int64_t>& list, int64_t axis) {
  return std::find(list.begin(), list.end(), axis) != list.end();
}

/// Returns whether each array lies along the contracted axes as along one, and jumps along no other axis but the last,
/// so that a matrix has a stride and a jump along each of its two axes.
bool lies_as_matrices(const Shape& shape, const std::vector<int64_t>& contracted, const std::vector<int64_t>& batch,
                      const std::vector<std::vector<AxisLayout>>& arrays) {
  for (const std::vector<AxisLayout>& axes : arrays) {
    std::optional<AxisLayout> depth;
    for (const int64_t axis : contracted) {
      const auto at = static_cast<size_t>(axis);
      if (shape[at] == 1) continue;
      if (depth && !shape[at].is_static()) return false;
      depth = depth ? joined(*depth, axes[at], shape[at].bound(), true) : axes[at];
      if (!depth) return false;
    }
    bool last = true;
    for (size_t at = shape.size(); at-- > 0;) {
      if (shape[at] == 1 || lists(contracted, static_cast<int64_t>(at))) continue;
      const bool is_row = last && !lists(batch, static_cast<int64_t>(at));
      if (axes[at].jump.period > 0 && !is_row) return false;
      last = last && !is_row;
    }
  }
  return true;
}

/// Returns whether a node is computed from `from`, or may be: the search is bounded.
bool depends_on(const Ir& ir, NodeId node, NodeId from) {
  constexpr size_t most_visited = 200;
  std::vector<NodeId> pending{node}, seen;
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    if (id == from) return true;
    if (id < from || std::find(seen.begin(), seen.end(), id) != seen.end()) continue;
    if (seen.size() == most_visited) return true;
    seen.push_back(id);
    pending.insert(pending.end(), ir[id].inputs.begin(), ir[id].inputs.end());
  }
  return false;
}

/// Returns whether an array lies in memory for others than the values of a prologue: an input, an output, what a
/// routine leaves, or what somebody else reads. The kernel that makes any other could store the operand in its place.
bool in_memory_anyway(const RegionContext& cx, const EpilogueReads& reads, NodeId array) {
  if (is_leaf(cx.ir, array) || cx.outputs[array] > 0 || is_call(cx.ir[array].op)) return true;
  std::vector<NodeId> pending(cx.users[array].begin(), cx.users[array].end());
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    if (is_movement(cx.ir[id].op) && cx.outputs[id] == 0) {
      pending.insert(pending.end(), cx.users[id].begin(), cx.users[id].end());
      continue;
    }
    if (std::none_of(reads.computed.begin(), reads.computed.end(), [&](const auto& at) { return at.first == id; }))
      return true;
  }
  return false;
}

}  // namespace

/// Returns whether an array has a number for each of so many elements: codes of few bits share an integer. The scales
/// of groups are fewer.
static bool holds_elements(const IrNode& array, double elements) {
  constexpr double bits = 8;
  return is_integer(array.type.dtype) ? bits * bytes(array) >= elements
                                      : 4 * static_cast<double>(volume(array.type.shape)) > elements;
}

std::optional<ComputedOperand> computed_operand(const RegionContext& cx, NodeId dot, size_t side) {
  const Ir& ir = cx.ir;
  const NodeId operand = ir[dot].inputs[side], base = operand_base(ir, cx.strides, cx.roots, operand);
  const IrNode& n = ir[base];
  if (is_leaf(ir, base) || cx.roots[base] || cx.outputs[base] > 0 || !is_elementwise(n.op)) return {};
  ix::Context index;
  const std::vector<ix::Expr> vars = domain(index, ir[operand].type.shape, "i");
  EpilogueReads reads{ir, cx.strides, cx.roots, index, vars, volume(n.type.shape), true};
  if (!reads.computable(operand, vars)) return {};
  ComputedOperand out;
  for (const auto& [id, at] : reads.computed) out.operations += operations_of(ir[id], most_operations + 1);
  for (const NodeId id : reads.nodes) out.read += bytes(ir[id]);
  out.elements = static_cast<double>(volume(n.type.shape)), out.stored = bytes(n);
  out.readers = static_cast<double>(cx.users[base].size());
  // Of the arrays of the operand's size none has its dtype: what is computed in the operand's own dtype stays in the
  // kernel that makes it.
  std::vector<NodeId> whole;
  for (const NodeId id : reads.nodes)
    if (holds_elements(ir[id], out.elements)) whole.push_back(id);
  const auto converts = [&](NodeId id) { return ir[id].type.dtype != n.type.dtype && in_memory_anyway(cx, reads, id); };
  out.packed = std::any_of(whole.begin(), whole.end(), [&](NodeId id) {
    return is_integer(ir[id].type.dtype) && volume(ir[id].type.shape) < volume(n.type.shape);
  });
  // Each reader of the operand reads what it is made from, or it is made once, stored, and read by each.
  if (out.operations > (out.packed ? most_to_unpack : most_operations) || whole.empty() ||
      !std::all_of(whole.begin(), whole.end(), converts) ||
      out.readers * out.read >= out.read + (1 + out.readers) * out.stored)
    return {};
  // A scale that is computed from the array itself: the kernel that goes through the array for it makes the operand.
  for (const NodeId id : reads.nodes)
    for (const NodeId array : whole)
      if (id != array && depends_on(ir, id, array)) return {};
  NodeFlags roots = cx.roots;
  for (const NodeId id : reads.made) roots[id] = true;
  const graph::Attrs& at = *ir[dot].attrs;
  const EpilogueParts parts = prologue_of(ir, cx.strides, roots, operand);
  if (!lies_as_matrices(ir[operand].type.shape, side == 0 ? at.axes : at.axes2, side == 0 ? at.batch : at.batch2,
                        parts.axes))
    return {};
  out.of_leaf = std::all_of(whole.begin(), whole.end(), [&](NodeId id) { return is_leaf(ir, id); });
  out.made = std::move(reads.made);
  return out;
}

double loaded_bytes(const kernel::Epilogue& prologue, int64_t chunk) {
  const auto both = std::find_if(prologue.operands.begin(), prologue.operands.end(),
                                 [](const kernel::EpilogueOperand& x) { return x.has_m() && x.has_n(); });
  const bool by_depth = both == prologue.operands.end() || both->n == 1 || (both->n == 0 && both->n_jump.by == 1);
  double sum = 0;
  for (const kernel::EpilogueOperand& x : prologue.operands) {
    if (by_depth ? !x.has_m() : !x.has_n()) continue;  // what all chunks of a thread share
    const int64_t step = by_depth ? x.n : x.m;
    const kernel::Jump& jump = by_depth ? x.n_jump : x.m_jump;
    // Of a chunk: every element, one for each period, or one. Loads of less than a register fill one.
    const int64_t count = step != 0 ? chunk : jump.period > 0 ? std::max<int64_t>(1, chunk / jump.period) : 1;
    sum += static_cast<double>(std::max<int64_t>(4, count * x.dtype.size()));
  }
  return sum / static_cast<double>(chunk);
}

bool shares_arrays(const kernel::Epilogue& prologue) {
  constexpr int64_t fragment = 8;  // columns
  const auto divides = [](const kernel::Jump& jump) {
    return jump.period == 0 || jump.period % fragment == 0 || fragment % jump.period == 0;
  };
  bool parts = false;
  for (const kernel::EpilogueOperand& x : prologue.operands) {
    if (x.m_jump.period > 0 || (x.has_m() && x.n != 0) || !divides(x.n_jump)) return false;
    parts = parts || (x.has_m() && x.n_jump.period > 1);
  }
  return parts;
}

double prologue_operations(const kernel::Epilogue& prologue) {
  constexpr double conversion = 2;
  double sum = 0;
  for (const kernel::EpilogueStep& s : prologue.steps)
    if (s.kind == kernel::EpilogueStep::Kind::scalar) sum += kernel::info(s.op).flops;
    else if (s.kind == kernel::EpilogueStep::Kind::cast) sum += conversion;
  return sum;
}

}  // namespace weft::compiler
