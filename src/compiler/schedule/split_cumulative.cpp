#include "compiler/schedule/splits.h"

#include <algorithm>

#include "compiler/ir/rewriter.h"
#include "graph/build.h"

namespace weft::compiler {

namespace {

using graph::Op;
using graph::Value;

constexpr int64_t cumulative_programs = 4096, least_along = 4096, least_across = 64, grain = 256;

struct Parts {
  int64_t count = 1, length = 0;  // count · length elements, padding after the end of the axis included
};

/// Returns the split of an axis, given how the cumulative kernels choose programs: one for each row if the axis is
/// innermost, else one for each panel of 256 rows along the axes inside it.
Parts parts_of(const Shape& shape, size_t axis) {
  if (!shape[axis].is_static()) return {};
  int64_t outer = 1, inner = 1;
  for (size_t k = 0; k < shape.size(); ++k) (k < axis ? outer : inner) *= k == axis ? 1 : shape[k].bound();
  const int64_t n = shape[axis].bound(), programs = inner == 1 ? outer : outer * ((inner + 255) / 256),
                least = inner == 1 ? least_along : least_across;
  if (programs == 0 || programs > cumulative_programs / 8 || n < 4 * least) return {};
  const int64_t count = std::min(cumulative_programs / programs, n / least), step = inner == 1 ? grain : 1;
  const int64_t length = ((n + count - 1) / count + step - 1) / step * step;
  return {(n + length - 1) / length, length};
}

Value combined(const graph::Attrs& prefix, const Value& a, const Value& b) {
  if (prefix.integers[2] != 0) return graph::binary(Op::logaddexp, a, b);
  return graph::scalar(kernel::combine(prefix.reducer), a, b);
}

/// Builds the cumulative reduction of `operand` in two levels: within each part, then over the parts' totals.
Value in_parts(const graph::Attrs& attrs, const Value& operand, const Parts& parts) {
  const auto axis = static_cast<size_t>(attrs.axes[0]);
  const int at = static_cast<int>(axis);
  const bool backwards = attrs.integers[0] != 0, exclusive = attrs.integers[1] != 0, logs = attrs.integers[2] != 0;
  const Shape& shape = operand.shape();
  const Dtype dtype = is_low_float(operand.dtype()) ? float32 : operand.dtype();
  Value v = graph::cast(operand, dtype);
  const int64_t n = shape[axis].bound(), padded = parts.count * parts.length;
  if (padded != n) {
    std::vector<int64_t> low(shape.size(), 0), high(shape.size(), 0);
    high[axis] = padded - n;
    v = graph::pad(v, low, high, logs ? Number::of_real(-INFINITY) : kernel::identity(attrs.reducer, dtype));
  }
  Shape cut(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis));
  cut.push_back(parts.count);
  cut.push_back(parts.length);
  cut.insert(cut.end(), shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, shape.end());
  v = graph::reshape(v, cut);
  const Value within = graph::cumulative(attrs.reducer, v, at + 1, backwards, exclusive, logs);
  const int64_t last = backwards ? 0 : parts.length - 1;
  Value totals = graph::slice_axis(within, at + 1, last, 1);
  if (exclusive) totals = combined(attrs, totals, graph::slice_axis(v, at + 1, last, 1));
  const Value before = graph::cumulative(attrs.reducer, totals, at, backwards, true, logs);
  Value out = combined(attrs, graph::broadcast(before, cut), within);
  Shape whole = shape;
  whole[axis] = padded;
  out = graph::reshape(out, whole);
  if (padded != n) out = graph::slice_axis(out, at, 0, n);
  return graph::cast(out, operand.dtype());
}

class CumulativeSplitter : Rewriter {
 public:
  explicit CumulativeSplitter(Ir ir) : Rewriter(std::move(ir)) {}

  Ir run() {
    return rewrite([&](NodeId, IrNode node) -> NodeId {
      const Parts parts =
          node.op == Op::cumulative ? parts_of(node.type.shape, static_cast<size_t>(node.attrs->axes[0])) : Parts{};
      return parts.count > 1 ? prefix(node, parts) : add(std::move(node));
    });
  }

 private:
  /// Builds the split as a graph of its own, whose parameter is the operand, and copies its nodes into the new Ir.
  NodeId prefix(const IrNode& node, const Parts& parts) {
    const Value operand = graph::parameter(to_[node.inputs[0]].type, 0);
    const Ir inside = import({{{operand}, {in_parts(node.attrs, operand, parts)}}, {}, {}});
    IndexedVector<NodeId, NodeId> ids(inside.nodes.size());
    for (NodeId id = 0; id < inside.size(); ++id) {
      IrNode copy = inside[id];
      for (NodeId& input : copy.inputs) input = ids[input];
      copy.phase = node.phase;
      ids[id] = id == inside.inputs[0] ? node.inputs[0] : add(std::move(copy));
    }
    return ids[inside.outputs[0]];
  }
};

}  // namespace

Ir split_cumulative(Ir ir) {
  const bool any = std::any_of(ir.nodes.begin(), ir.nodes.end(), [](const IrNode& n) {
    return n.op == Op::cumulative && parts_of(n.type.shape, static_cast<size_t>(n.attrs->axes[0])).count > 1;
  });
  if (!any) return ir;
  return CumulativeSplitter(std::move(ir)).run();
}

}  // namespace weft::compiler
