// Splits reductions as steps say. The parts of an axis are reduced first, then what they give, in one order whatever
// the machine: this is the one step that changes the tree of a sum.
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "compiler/ir/rewriter.h"
#include "compiler/schedule/steps/values.h"

namespace weft::compiler {

namespace {

using graph::Op;
using schedule::Kind;
using schedule::Step;

class ScheduledSplitter : Rewriter {
 public:
  explicit ScheduledSplitter(Ir ir) : Rewriter(std::move(ir)) {
    for (const ScheduledValue& value : from_.scheduled)
      for (const Step& step : value.steps.list())
        if (step.kind == Kind::split_reduce) add_wish(step, value.node);
  }

  Ir run() {
    return rewrite([&](NodeId id, IrNode node) -> NodeId {
      const auto wish = wishes_.find(id);
      return wish == wishes_.end() ? add(std::move(node)) : split(std::move(node), wish->second);
    });
  }

 private:
  /// A reduced axis, by its position in the operand, and its parts.
  struct Wish {
    int64_t axis, parts;
  };

  [[noreturn]] static void refuse(const Step& step, const std::string& what) {
    throw_invalid("schedule", schedule::to_string(step) + ": " + what);
  }

  /// Finds the reduction that a value is: itself, or what its elementwise operators read.
  NodeId reduction_of(const Step& step, NodeId value) const {
    NodeId id = value;
    while (from_[id].op != Op::reduce) {
      NodeId next = -1;
      if (is_elementwise(from_[id].op) || is_movement(from_[id].op))
        for (const NodeId input : from_[id].inputs) {
          if (is_constant(input)) continue;
          if (next >= 0 && next != input) refuse(step, "the value is made of several arrays: schedule the reduction");
          next = input;
        }
      if (next < 0) refuse(step, "the value is made by no reduction");
      id = next;
    }
    return id;
  }

  bool is_constant(NodeId id) const {
    while (from_[id].op == Op::broadcast || from_[id].op == Op::reshape || from_[id].op == Op::cast)
      id = from_[id].inputs[0];
    return from_[id].op == Op::constant;
  }

  void add_wish(const Step& step, NodeId value) {
    const NodeId id = reduction_of(step, value);
    const IrNode& node = from_[id];
    if (has_results(node)) refuse(step, "the value is one of several results of a reduction, which stay together");
    const std::vector<int64_t>& axes = node.attrs->axes;
    const Shape& shape = from_[node.inputs[0]].type.shape;
    std::string all;
    for (size_t k = 0; k < axes.size(); ++k) {
      const Dim extent = shape[static_cast<size_t>(axes[k])];
      all += fmt::format("{}r{} ({})", k ? ", " : "", k, extent.bound());
      if (step.axes[0] != fmt::format("r{}", k)) continue;
      const int64_t parts = step.numbers[0];
      if (!extent.is_static()) refuse(step, "the axis has no static length");
      if (extent.bound() % parts != 0)
        refuse(step, fmt::format("{} parts do not divide the {} elements of the axis: give a divisor of them", parts,
                                 extent.bound()));
      if (!wishes_.emplace(id, Wish{axes[k], parts}).second)
        refuse(step, "the reduction is split already: it is split once, along one axis");
      return;
    }
    refuse(step, fmt::format("there is no axis {}: the reduced axes are {}", step.axes[0], all));
  }

  NodeId split(IrNode node, const Wish& wish) {
    const Dtype result = node.type.dtype;
    NodeId operand = node.inputs[0];
    if (is_low_float(to_[operand].type.dtype)) operand = cast(operand, float32);
    Shape shape = to_[operand].type.shape;
    const auto at = shape.begin() + wish.axis;
    *at = Dim(at->bound() / wish.parts);
    shape.insert(shape.begin() + wish.axis, Dim(wish.parts));
    IrNode parts = made(Op::reduce, {shaped(Op::reshape, operand, shape)}, {}, to_[operand].type.dtype);
    if (!is_low_float(result)) parts.type.dtype = result;
    graph::Attrs& of_parts = parts.attrs.edit();
    of_parts.reducer = node.attrs->reducer;
    for (const int64_t axis : node.attrs->axes) of_parts.axes.push_back(axis >= wish.axis ? axis + 1 : axis);
    int64_t position = 0;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (has_axis(of_parts.axes, static_cast<int64_t>(axis))) continue;
      position += static_cast<int64_t>(axis) < wish.axis;
      parts.type.shape.push_back(shape[axis]);
    }
    parts.whole = true;
    IrNode rest = made(Op::reduce, {}, node.type.shape, parts.type.dtype);
    rest.inputs = {add(std::move(parts))};
    rest.attrs.edit().reducer = node.attrs->reducer;
    rest.attrs.edit().axes = {position};
    rest.whole = true;
    return cast(add(std::move(rest)), result);
  }

  std::map<NodeId, Wish> wishes_;
};

}  // namespace

Ir split_scheduled_reductions(Ir ir) {
  if (ir.scheduled.empty()) return ir;
  return ScheduledSplitter(std::move(ir)).run();
}

}  // namespace weft::compiler
