#include "compiler/rewrite/one_hot_gather.h"

#include <optional>

#include "compiler/ir/index_map.h"
#include "compiler/ir/rewriter.h"

namespace weft::compiler {

namespace {

using graph::Op;

struct OneHot {
  int source = 0, target = 0;  // the array before casts and reshapes; the index to read, one a row
};

class Picker : Rewriter {
 public:
  explicit Picker(Ir ir) : Rewriter(std::move(ir)) {}

  Ir run() {
    bool any = false;
    for (NodeId id = 0; id < from_.size() && !any; ++id) any = find(id).has_value();
    if (!any) return std::move(from_);
    return rewrite([&](NodeId id, IrNode node) -> NodeId {
      const std::optional<OneHot> one_hot = find(id);
      return one_hot ? gather(*one_hot, from_[id]) : add(std::move(node));
    });
  }

 private:
  static constexpr int64_t shortest = 1024;  // a shorter row's sum costs little

  bool is_zero(NodeId id) const {
    while (from_[id].op == Op::broadcast || from_[id].op == Op::reshape) id = from_[id].inputs[0];
    return from_[id].op == Op::constant && from_[id].attrs->number.real() == 0;
  }

  /// Returns the operand of a broadcast along the last axis alone: a node with one element a row.
  std::optional<int> by_row(NodeId id, const Shape& shape) const {
    if (from_[id].op != Op::broadcast) return {};
    const int inner = from_[id].inputs[0];
    const Shape& s = from_[inner].type.shape;
    if (s.size() != shape.size() || s.back() != 1) return {};
    for (size_t k = 0; k + 1 < s.size(); ++k)
      if (s[k] != shape[k]) return {};
    return inner;
  }

  /// Returns whether a node is an iota along the last axis.
  bool counts_last(NodeId id, const Shape& shape) const {
    while (from_[id].op == Op::broadcast && from_[from_[id].inputs[0]].type.shape.size() == shape.size())
      id = from_[id].inputs[0];
    return from_[id].op == Op::iota &&
           from_[id].attrs->axes[0] + 1 == static_cast<int64_t>(from_[id].type.shape.size()) &&
           from_[id].type.shape.back() == shape.back();
  }

  /// Matches Σ over the last axis of select(iota == target, x, 0).
  std::optional<OneHot> find(NodeId id) const {
    const IrNode& reduction = from_[id];
    if (reduction.op != Op::reduce || reduction.attrs->reducer != kernel::Reducer::sum) return {};
    const IrNode& choice = from_[reduction.inputs[0]];
    const Shape& shape = choice.type.shape;
    if (choice.op != Op::select ||
        reduction.attrs->axes != std::vector<int64_t>{static_cast<int64_t>(shape.size()) - 1} ||
        !is_zero(choice.inputs[2]))
      return {};
    for (const Dim& d : shape)
      if (!d.is_static()) return {};
    if (shape.back().bound() < shortest) return {};
    const IrNode& test = from_[choice.inputs[0]];
    if (test.op != Op::eq) return {};
    const bool first = counts_last(test.inputs[0], shape);
    if (!first && !counts_last(test.inputs[1], shape)) return {};
    const std::optional<int> target = by_row(test.inputs[first ? 1 : 0], shape);
    int source = choice.inputs[1];
    while (from_[source].op == Op::cast || from_[source].op == Op::reshape) source = from_[source].inputs[0];
    const Op made = from_[source].op;
    if (!target || volume(from_[source].type.shape) != volume(shape) || (made != Op::parameter && made != Op::dot))
      return {};
    return OneHot{source, *target};
  }

  /// Returns source[row · length + target] for each row, and 0 where the target lies outside the row.
  NodeId gather(const OneHot& one_hot, const IrNode& reduction) {
    const graph::Type& rows = from_[one_hot.target].type;
    const int64_t length = from_[reduction.inputs[0]].type.shape.back().bound(), count = volume(rows.shape);
    // Another phase keeps the gather out of its reader's group: a kernel that overwrites the logits then waits for this
    // read alone.
    phase_ = reduction.phase - 1;
    const Shape flat{count};
    const int target = cast(reshaped(renamed(one_hot.target), flat), int64);
    const int inside = node(Op::bit_and,
                            {node(Op::le, {number(0, flat, int64), target}, flat, bool_),
                             node(Op::lt, {target, number(length, flat, int64)}, flat, bool_)},
                            flat, bool_);
    IrNode counting = made(Op::iota, {}, flat, int64);
    graph::Attrs& attrs = counting.attrs.edit();
    attrs.axes = {0}, attrs.shape = flat, attrs.dtype = int64;
    const int start = node(Op::mul, {add(std::move(counting)), number(length, flat, int64)}, flat, int64);
    const int position =
        node(Op::add, {start, node(Op::select, {inside, target, number(0, flat, int64)}, flat, int64)}, flat, int64);
    const Dtype dtype = from_[one_hot.source].type.dtype;
    IrNode read = made(Op::gather, {reshaped(renamed(one_hot.source), {count * length}), position}, {count, 1}, dtype);
    graph::Attrs& slices = read.attrs.edit();
    slices.axes = {0}, slices.shape = {1};
    const int value = cast(reshaped(add(std::move(read)), flat), reduction.type.dtype);
    return reshaped(
        node(Op::select, {inside, value, number(0, flat, reduction.type.dtype)}, flat, reduction.type.dtype),
        reduction.type.shape);
  }

  NodeId node(Op op, std::vector<NodeId> inputs, const Shape& shape, Dtype dtype) {
    return add(made(op, std::move(inputs), shape, dtype));
  }
  NodeId reshaped(NodeId v, const Shape& shape) { return shaped(Op::reshape, v, shape); }
  NodeId number(int64_t n, const Shape& shape, Dtype dtype) {
    IrNode constant = made(Op::constant, {}, {}, dtype);
    graph::Attrs& attrs = constant.attrs.edit();
    attrs.dtype = dtype, attrs.number = is_float(dtype) ? Number::of_real(static_cast<double>(n)) : Number::of_int(n);
    return shaped(Op::broadcast, add(std::move(constant)), shape);
  }
};

}  // namespace

Ir one_hot_gather(Ir ir) { return Picker(std::move(ir)).run(); }

}  // namespace weft::compiler
