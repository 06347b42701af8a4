#include "compiler/fusion/scatter_rows.h"

#include "compiler/fusion/grouper.h"

namespace weft::compiler {

using graph::Op;

namespace {

constexpr int64_t least_rows = 2048, least_width = 32;

}  // namespace

std::optional<ScatterRowsForm> scatter_rows_form(const Ir& ir, NodeId scatter, const target::Target& target,
                                                 const Numerics& numerics) {
  const IrNode& n = ir[scatter];
  if (!target.machine().wants_many_programs() || n.op != Op::scatter || n.attrs->mode != graph::ScatterMode::add ||
      n.attrs->axes != std::vector<int64_t>{0} || !is_float(n.type.dtype))
    return std::nullopt;
  const Shape& shape = n.type.shape;
  const Shape& points = ir[n.inputs[1]].type.shape;
  const graph::Type& given = ir[n.inputs[2]].type;
  if (shape.size() < 2 || given.shape.size() != points.size() + shape.size() || given.shape[points.size()] != 1)
    return std::nullopt;
  int64_t width = 1, count = 1;
  for (size_t k = 1; k < shape.size(); ++k) {
    if (!shape[k].is_static() || given.shape[points.size() + k] != shape[k]) return std::nullopt;
    width *= shape[k].bound();
  }
  for (const Dim& d : points) {
    if (!d.is_static()) return std::nullopt;
    count *= d.bound();
  }
  if (!shape[0].is_static() || count < least_rows || count > INT32_MAX || width < least_width) return std::nullopt;
  ScatterRowsForm form;
  form.ids = n.inputs[1];
  form.updates = n.inputs[2];
  if (const IrNode& cast = ir[form.updates];
      cast.op == Op::cast && is_low_float(ir[cast.inputs[0]].type.dtype) && n.type.dtype == float32)
    form.updates = cast.inputs[0];
  form.desc = {"scatter_rows",
               {{ir[form.ids].type.dtype, {count}}, {ir[form.updates].type.dtype, {count, width}}},
               {{n.type.dtype, {shape[0].bound(), width}}},
               {},
               {.deterministic = numerics.deterministic}};
  if (!target.call(form.desc)) return std::nullopt;
  return form;
}

/// Marks the operands of scatter routines as roots: the routines read them from memory.
void Grouper::mark_scatter_rows() {
  for (NodeId id = 0; id < ir_.size(); ++id) {
    if (ir_[id].op != Op::scatter) continue;
    const auto form = scatter_rows_form(ir_, id, *target_, policy_.numerics);
    if (!form) continue;
    const ScatterRows sums{form->desc, memory_of(ir_, strides_, base_root_, form->ids, true),
                           memory_of(ir_, strides_, base_root_, form->updates, true)};
    for (const NodeId node : {sums.ids, sums.updates})
      if (!is_leaf(ir_, node)) base_root_[node] = true;
    scatter_rows_[id] = sums;
  }
}

}  // namespace weft::compiler
