#include "compiler/region/attention_plan.h"

#include <algorithm>

#include "base/error.h"
#include "compiler/region/dot_plan.h"

namespace weft::compiler {

namespace {

// Tiles of wider heads do not fit into the L1 cache. Lanes run along rows: with fewer rows many are idle.
constexpr int64_t widest_head = 256, fewest_rows = 8;

}  // namespace

bool is_single_query(const graph::AttentionRegion& region, const Dim& queries) {
  return queries == 1 && !region.derivative && region.dropout == 0;
}

namespace {

/// Returns whether the region is attention in a dtype of the class, with heads of static widths that are not too wide.
bool has_fitting_heads(const graph::Node& region) {
  const auto& composite = region.attrs().composite;
  if (region.op() != graph::Op::composite || !composite->attention) return false;
  const graph::Type &q = region.inputs()[0].type(), &v = region.inputs()[2].type();
  const Dim &width = q.shape.back(), &value_width = v.shape.back();
  const bool any = std::all_of(q.shape.begin(), q.shape.end(), [](const Dim& d) { return d.bound() > 0; }) &&
                   v.shape[v.shape.size() - 2].bound() > 0;
  return q.dtype != float64 && width.is_static() && value_width.is_static() && any && value_width.bound() > 0 &&
         std::max(width.bound(), value_width.bound()) <= widest_head;
}

Dim queries_of(const graph::Node& region) {
  const Shape& q = region.inputs()[0].type().shape;
  return q[q.size() - 2];
}

/// Returns whether the mask is a number of keys.
bool counts_keys(const graph::Node& region) {
  return region.attrs().composite->attention->mask && is_integer(region.inputs()[3].dtype());
}

bool takes_attention(const graph::Node& region) {
  return has_fitting_heads(region) && queries_of(region).bound() >= fewest_rows && !counts_keys(region);
}

}  // namespace

bool takes_single_query(const graph::Node& region) {
  if (!has_fitting_heads(region)) return false;
  const graph::AttentionRegion& attention = *region.attrs().composite->attention;
  return is_single_query(attention, queries_of(region)) && (!attention.mask || counts_keys(region));
}

namespace {

/// Returns whether attention of a dtype runs by the kernels of src/kernels: on CPUs, and on tensor cores.
bool runs_tiled(Dtype t, const target::Machine& machine, const Numerics& numerics) {
  return !machine.simt || t.size() == 2 || (t == float32 && numerics.tf32);
}

}  // namespace

bool takes_tiled_attention(const graph::Node& region, const target::Machine& machine, const Numerics& numerics) {
  return takes_attention(region) && runs_tiled(region.inputs()[0].dtype(), machine, numerics);
}

bool takes_tiled_attention(const AttentionPlan& plan, const target::Machine& machine, const Numerics& numerics) {
  return !plan.join && plan.splits == 0 && plan.cache < 0 && !is_single_query(plan.region, plan.tq) &&
         runs_tiled(plan.q.dtype, machine, numerics);
}

std::optional<PackedResult> packed_result(const Ir& ir, const Users& users, const NodeStrides& strides,
                                          const NodeFlags& roots, NodeId result) {
  int part = result, reader = -1;
  for (;; part = reader) {
    const std::span<const NodeId> readers = users[part];
    if (readers.size() != 1 || (part != result && roots[static_cast<size_t>(part)])) return {};
    reader = readers[0];
    if (ir[reader].op == graph::Op::concat) break;
    if (ir[reader].op != graph::Op::permute && ir[reader].op != graph::Op::reshape) return {};
  }
  const IrNode& joined = ir[reader];
  const Shape& shape = ir[part].type.shape;
  if (!is_static(joined.type.shape)) return {};
  const auto view = strided_view(ir, strides, roots, part);
  if (!view || view->node != result || view->offset != 0 || !is_row_major(shape, view->strides)) return {};
  // What lies behind the axis is contiguous: a line of the part, or of the whole.
  const auto line = [&](NodeId id) {
    const Shape& of = ir[id].type.shape;
    int64_t out = 1;
    for (auto k = static_cast<size_t>(joined.attrs->axes[0]); k < of.size(); ++k) out *= of[k].bound();
    return out;
  };
  const int64_t width = line(part), whole = line(reader);
  PackedResult out{reader, 0, {}};
  int found = 0;
  for (const NodeId input : joined.inputs) {
    if (input == part) ++found;
    if (found == 0) out.offset += line(input);
  }
  if (found != 1) return {};
  for (size_t axis = 0; axis < strides[result].size(); ++axis) {
    const int64_t stride = strides[result][axis], extent = ir[result].type.shape[axis].bound();
    if (stride % width == 0) out.strides.push_back(stride / width * whole);  // from row to row
    else if (stride * extent <= width) out.strides.push_back(stride);        // within a row
    else return {};
  }
  return out;
}

AttentionPlan plan_attention(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots,
                             const std::vector<NodeId>& results, const std::map<NodeId, PackedResult>& packed,
                             NodeId cache) {
  const IrNode& node = ir[*std::find_if(results.begin(), results.end(), [](NodeId id) { return id >= 0; })];
  AttentionPlan plan;
  plan.region = *node.attrs->composite->attention;
  const Shape &q = ir[node.inputs[0]].type.shape,
              &v = ir[node.inputs.size() > 2 ? node.inputs[2] : node.inputs[0]].type.shape;
  const size_t axes = q.size() - 2;
  for (size_t k = 0; k < axes; ++k) plan.batch.push_back(q[k].bound());
  plan.tq = q[axes];
  plan.tk = v[axes];
  plan.width = q[axes + 1].bound();
  plan.value_width = v[axes + 1].bound();

  // Right-aligned, as masks are broadcast: missing axes have stride 0.
  auto split = [&](NodeId base, int64_t offset, const std::vector<int64_t>& given, bool columns) {
    const size_t rank = axes + (columns ? 2 : 1);
    std::vector<int64_t> all(rank - given.size(), 0);
    all.insert(all.end(), given.begin(), given.end());
    AttentionOperand x{base,      ir[base].type.dtype,
                       offset,    {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(axes)},
                       all[axes], columns ? all[axes + 1] : 0};
    return x;
  };
  auto operand = [&](NodeId id, bool columns) {
    auto view = strided_view(ir, strides, roots, id);  // axes of extent 1 have stride 0 in it
    check(view.has_value(), "plan_attention", "an operand is not a strided view: " + print(ir, id));
    return split(view->node, view->offset, view->strides, columns);
  };
  auto result = [&](size_t k, bool columns) {
    NodeId id = results[k];
    if (const auto it = packed.find(id); it != packed.end())
      return split(it->second.node, it->second.offset, it->second.strides, columns);
    return id < 0 ? AttentionOperand{} : split(id, 0, strides[id], columns);
  };
  if (!node.attrs->integers.empty() && node.attrs->integers[0] == static_cast<int64_t>(AttentionPart::join)) {
    plan.tq = 1;
    plan.join = true;
    plan.v = operand(node.inputs[0], true);
    plan.k = operand(node.inputs[1], false);
    plan.o = result(0, true);
    return plan;
  }
  if (!node.attrs->integers.empty()) plan.splits = node.attrs->integers[1], plan.split_keys = node.attrs->integers[2];
  plan.cache = cache;
  if (cache >= 0) plan.q.dtype = ir[node.inputs[0]].type.dtype;
  else plan.q = operand(node.inputs[0], true);
  plan.k = operand(node.inputs[1], true);
  plan.v = operand(node.inputs[2], true);
  if (plan.region.mask) plan.mask = operand(node.inputs[3], true);
  if (plan.region.dropout > 0) {
    // Not as masks are: the axes before the words are the first ones of the batch.
    const NodeId id = node.inputs[plan.region.mask ? 4 : 3];
    const auto view = strided_view(ir, strides, roots, id);
    check(view.has_value(), "plan_attention", "the key of dropout is not a strided view: " + print(ir, id));
    plan.keyed = view->strides.size() - 1;
    plan.key = {view->node, ir[view->node].type.dtype, view->offset, view->strides, view->strides.back(), 0};
    plan.key.batch.pop_back(), plan.key.batch.resize(axes, 0);
  }
  if (plan.region.derivative) {
    const size_t count = node.inputs.size();
    plan.o = operand(node.inputs[count - 3], true);
    plan.lse = operand(node.inputs[count - 2], false);
    plan.g = operand(node.inputs[count - 1], true);
    plan.dq = result(0, true), plan.dk = result(1, true), plan.dv = result(2, true);
  } else {
    plan.o = result(0, true), plan.lse = result(1, false);
  }
  return plan;
}

}  // namespace weft::compiler
