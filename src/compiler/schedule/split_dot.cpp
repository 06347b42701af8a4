#include <algorithm>
#include <tuple>

#include "compiler/ir/index_map.h"
#include "compiler/ir/rewriter.h"
#include "compiler/ir/unpacking.h"
#include "compiler/region/matmul_work.h"
#include "compiler/schedule/splits.h"

namespace weft::compiler {

namespace {

using graph::Op;
using Axes = std::vector<int64_t>;

constexpr int64_t most_parts = 64, depth_of_slice = 64;  // a part is whole slices of k

int64_t product_of(const Shape& shape, const Axes& axes) {
  int64_t out = 1;
  for (const int64_t axis : axes) out *= shape[static_cast<size_t>(axis)].bound();
  return out;
}

/// Returns `axes` after axis `at` has become two, of which the first is new.
Axes shifted(Axes axes, int64_t at) {
  for (int64_t& axis : axes) axis += axis >= at;
  return axes;
}

class DotSplitter : Rewriter {
 public:
  DotSplitter(Ir ir, const target::Machine& machine, bool tf32, bool libraries)
      : Rewriter(std::move(ir)), machine_(machine), tf32_(tf32), libraries_(libraries) {}

  Ir run() {
    return rewrite([&](NodeId, IrNode node) -> NodeId {
      const int64_t parts = node.op == Op::dot ? parts_of(node) : 1;
      return parts > 1 ? split(std::move(node), parts) : add(std::move(node));
    });
  }

 private:
  /// Returns into how many parts the contracted axis is divided: where the product is then predicted to be done first.
  int64_t parts_of(const IrNode& dot) const {
    const graph::Type &a = to_[dot.inputs[0]].type, &b = to_[dot.inputs[1]].type;
    const graph::Attrs& at = *dot.attrs;
    const bool halves = a.dtype == float16 || a.dtype == bfloat16;
    const bool fits = a.dtype == b.dtype && (halves || (a.dtype == float32 && tf32_)) && at.axes.size() == 1 &&
                      is_static(a.shape) && is_static(b.shape) && volume(a.shape) > 0 && volume(b.shape) > 0 &&
                      machine_.tensor_core_bytes(a.dtype) > 0 && machine_.bandwidth > 0 &&
                      machine_.matmul_flops(a.dtype, true) > 0 && machine_.peak.f32 > 0;
    if (!fits) return 1;
    const int64_t depth = product_of(a.shape, at.axes), batches = product_of(a.shape, at.batch),
                  rows = volume(a.shape) / (depth * batches), columns = volume(b.shape) / (depth * batches);
    const auto elements = static_cast<double>(batches * rows * columns),
               size = static_cast<double>(dot.type.dtype.size());
    const Unpacking left = unpacking(to_, dot.inputs[0]), right = unpacking(to_, dot.inputs[1]);
    if (libraries_ && left.bytes + right.bytes == 0) return 1;
    const auto seconds = [&](int64_t parts) {
      kernels::GemmWork work{a.dtype, batches * parts, rows, columns, depth / parts};
      work.loaded = {left.bytes, right.bytes}, work.operations = {left.operations, right.operations};
      work.bytes = parts > 1 ? 4 : size;
      work.a_shared = left.bytes > 0, work.b_shared = right.bytes > 0;
      work.b_across = at.axes2.front() + 1 < static_cast<int64_t>(b.shape.size());
      if (kernels::exchanges_operands(machine_, work)) work = kernels::exchanged(work);
      const double sum =
          (4 * static_cast<double>(parts) + size) * elements / machine_.bandwidth + machine_.launch_seconds;
      return kernels::gemm_tiling(machine_, work).seconds + (parts > 1 ? sum : 0);
    };
    int64_t best = 1;
    double least = seconds(1);
    for (int64_t parts = 2; parts <= most_parts; ++parts)
      if (depth % (parts * depth_of_slice) == 0)
        if (const double now = seconds(parts); now < least) best = parts, least = now;
    return best;
  }

  NodeId split(IrNode dot, int64_t parts) {
    graph::Attrs& at = dot.attrs.edit();
    const Dtype dtype = dot.type.dtype;
    for (const auto& [input, axes, batch] :
         {std::tuple{0, &at.axes, &at.batch}, std::tuple{1, &at.axes2, &at.batch2}}) {
      const int64_t axis = axes->front();
      Shape shape = to_[dot.inputs[static_cast<size_t>(input)]].type.shape;
      const auto k = shape.begin() + axis;
      *k = Dim(k->bound() / parts);
      shape.insert(shape.begin() + axis, Dim(parts));
      NodeId& operand = dot.inputs[static_cast<size_t>(input)];
      operand = shaped(Op::reshape, operand, shape);
      *axes = {axis + 1};
      *batch = shifted(*batch, axis);
      batch->insert(batch->begin(), axis);
    }
    at.dtype = float32;
    const Shape whole = dot.type.shape;
    dot.type.dtype = float32;
    dot.type.shape.insert(dot.type.shape.begin(), Dim(parts));
    IrNode sum = made(Op::reduce, {add(std::move(dot))}, whole, float32);
    sum.attrs.edit().reducer = kernel::Reducer::sum;
    sum.attrs.edit().axes = {0};
    return cast(add(std::move(sum)), dtype);
  }

  const target::Machine& machine_;
  const bool tf32_, libraries_;
};

}  // namespace

Ir split_dots(Ir ir, const target::Machine& machine, bool tf32, bool libraries) {
  return DotSplitter(std::move(ir), machine, tf32, libraries).run();
}

}  // namespace weft::compiler
