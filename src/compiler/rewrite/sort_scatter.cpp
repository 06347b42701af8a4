#include "compiler/rewrite/sort_scatter.h"

#include <map>
#include <utility>

#include "compiler/ir/index_map.h"
#include "compiler/ir/rewriter.h"
#include "kernel/routines/routine.h"

namespace weft::compiler {

using graph::Op;

namespace {

// Without a sort one launch adds up all rows, and each of its programs reads all ids. Of fewer rows than these that is
// faster than the launches of a sort. A row narrower than a warp leaves lanes of the sorted kernels idle, so there must
// be more of them; how many more was not measured (bench: operations, histogram).
constexpr int64_t least_sorted_rows = 2048, warp = 32, least_narrow_rows = 8192;

class ScatterSorter : Rewriter {
 public:
  ScatterSorter(Ir ir, const target::Target& target, const Numerics& numerics)
      : Rewriter(std::move(ir)), target_(target), numerics_(numerics) {}

  Ir run() {
    return rewrite([&](NodeId id, IrNode node) -> NodeId {
      const auto sizes = row_scatter(from_, id);
      if (!sizes || fits_tables(from_, id, target_.machine()) || !has_sort(*sizes)) return add(std::move(node));
      return sorted(std::move(node), *sizes);
    });
  }

 private:
  struct Sorted {
    NodeId keys, positions;
  };

  bool has_sort(const RowScatter& sizes) {
    const auto [known, fresh] = has_sort_.try_emplace({sizes.count, kernel::scatter_key(sizes.rows).size()});
    if (!fresh) return known->second;
    const kernel::CallDesc::Array keys{kernel::scatter_key(sizes.rows), {sizes.count}};
    return known->second = target_.call({"sort", {keys}, {keys, {uint32, {sizes.count}}}, {0}, numerics_}) != nullptr;
  }

  NodeId number(int64_t value, int64_t count) {
    IrNode node = made(Op::constant, {}, {}, int64);
    node.attrs.edit().dtype = int64;
    node.attrs.edit().number = Number::of_int(value);
    return shaped(Op::broadcast, add(std::move(node)), {count});
  }

  NodeId elementwise(Op op, std::vector<NodeId> inputs, Dtype dtype) {
    const Shape shape = to_[inputs[0]].type.shape;
    return add(made(op, std::move(inputs), shape, dtype));
  }

  NodeId keys(NodeId ids, const RowScatter& sizes) {
    const bool may_be_negative = !is_unsigned(to_[ids].type.dtype);
    const NodeId zero = number(0, sizes.count), rows = number(sizes.rows, sizes.count);
    NodeId id = cast(shaped(Op::reshape, ids, {sizes.count}), int64);
    if (may_be_negative) {
      const NodeId negative = elementwise(Op::lt, {id, zero}, bool_);
      id = elementwise(Op::select, {negative, elementwise(Op::add, {id, rows}, int64), id}, int64);
    }
    const NodeId inside = elementwise(
        Op::bit_and, {elementwise(Op::le, {zero, id}, bool_), elementwise(Op::lt, {id, rows}, bool_)}, bool_);
    return cast(elementwise(Op::select, {inside, id, rows}, int64), kernel::scatter_key(sizes.rows));
  }

  /// Returns the sorted keys of ids with their positions. Ids under another shape are the same.
  Sorted sort(NodeId ids, const RowScatter& sizes) {
    while (to_[ids].op == Op::reshape) ids = to_[ids].inputs[0];
    const auto [known, fresh] = sorts_.try_emplace({ids, sizes.rows});
    if (!fresh) return known->second;
    const NodeId list = keys(ids, sizes);
    IrNode node = made(Op::call, {list}, {sizes.count}, to_[list].type.dtype);
    node.attrs.edit().call = "sort";
    node.attrs.edit().integers = {0};
    node.results = {node.type, {node.type.shape, uint32}};
    IrNode positions = node;
    positions.output = 1;
    positions.type = node.results[1];
    const NodeId sorted = add(std::move(node));
    return known->second = {sorted, add(std::move(positions))};
  }

  /// Returns the updates at the positions, [count, 1, …]. A cast that widens them stays behind the gather, so that
  /// updates that are stored are narrow.
  NodeId updates_at(NodeId updates, NodeId positions, const Shape& rows) {
    const IrNode& given = to_[updates];
    const Dtype wide = given.type.dtype;
    if (given.op == Op::cast && to_[given.inputs[0]].type.dtype.size() < wide.size() &&
        is_float(to_[given.inputs[0]].type.dtype))
      updates = given.inputs[0];
    Shape flat = rows, one = rows, picked = rows;
    flat[0] = to_[positions].type.shape[0];
    one[0] = 1;
    picked.insert(picked.begin(), flat[0]);
    picked[1] = 1;
    const NodeId list = shaped(Op::reshape, updates, flat);
    IrNode node = made(Op::gather, {list, positions}, picked, to_[list].type.dtype);
    node.attrs.edit().axes = {0};
    node.attrs.edit().shape = one;
    return cast(add(std::move(node)), wide);
  }

  NodeId sorted(IrNode node, const RowScatter& sizes) {
    const Sorted order = sort(node.inputs[1], sizes);
    node.inputs[2] = updates_at(node.inputs[2], order.positions, node.type.shape);
    node.inputs[1] = order.keys;
    node.sorted = true;
    return add(std::move(node));
  }

  const target::Target& target_;
  const Numerics& numerics_;
  std::map<std::pair<int64_t, int64_t>, bool> has_sort_;  // by count, and the size of a key
  std::map<std::pair<NodeId, int64_t>, Sorted> sorts_;    // by ids, and the rows that they name
};

}  // namespace

std::optional<RowScatter> row_scatter(const Ir& ir, NodeId scatter) {
  const IrNode& n = ir[scatter];
  if (n.op != Op::scatter || n.attrs->mode != graph::ScatterMode::add || n.attrs->axes != std::vector<int64_t>{0} ||
      is_complex(n.type.dtype) || n.type.dtype == bool_)
    return {};
  const Shape &shape = n.type.shape, &points = ir[n.inputs[1]].type.shape;
  const graph::Type& given = ir[n.inputs[2]].type;
  if (shape.empty() || given.shape.size() != points.size() + shape.size() || given.shape[points.size()] != 1) return {};
  RowScatter sizes{1, shape[0].bound(), 1};
  for (size_t k = 1; k < shape.size(); ++k) {
    if (!shape[k].is_static() || given.shape[points.size() + k] != shape[k]) return {};
    sizes.width *= shape[k].bound();
  }
  for (const Dim& d : points) {
    if (!d.is_static()) return {};
    sizes.count *= d.bound();
  }
  const int64_t least = sizes.width < warp ? least_narrow_rows : least_sorted_rows;
  if (!shape[0].is_static() || sizes.rows == 0 || sizes.width == 0 || sizes.count < least || sizes.count > INT32_MAX)
    return {};
  return sizes;
}

bool adds_one_number(const Ir& ir, NodeId scatter) {
  NodeId update = ir[scatter].inputs[2];
  while (ir[update].op == Op::broadcast || ir[update].op == Op::reshape) update = ir[update].inputs[0];
  return volume(ir[update].type.shape) == 1;
}

Dtype table_dtype(const Ir& ir, NodeId scatter) {
  return !adds_one_number(ir, scatter) && ir[scatter].type.dtype.size() == 8 ? int64 : int32;
}

bool fits_tables(const Ir& ir, NodeId scatter, const target::Machine& machine) {
  if (!machine.wants_many_programs()) return false;
  const auto sizes = row_scatter(ir, scatter);
  if (!sizes || !(is_integer(ir[scatter].type.dtype) || adds_one_number(ir, scatter))) return false;
  // Two programs share an SM, and a table is no larger than what it saves: the list of updates.
  const int64_t cells = sizes->rows * sizes->width, bytes = cells * table_dtype(ir, scatter).size();
  return bytes <= machine.shared_bytes / 2 && sizes->rows <= sizes->count &&
         sizes->count <= INT32_MAX / std::max<int64_t>(1, sizes->width);
}

Ir sort_scatters(Ir ir, const target::Target& target, const Numerics& numerics) {
  if (!numerics.deterministic) return ir;
  for (NodeId id = 0; id < ir.size(); ++id)
    if (row_scatter(ir, id)) return ScatterSorter(std::move(ir), target, numerics).run();
  return ir;
}

}  // namespace weft::compiler
