#include "compiler/ir/index_map.h"

#include <algorithm>
#include <functional>
#include <string>

#include "base/error.h"

namespace weft::compiler {

using graph::Op;
using ix::Expr;

std::vector<int64_t> bounds(const Shape& shape) {
  std::vector<int64_t> result;
  for (const Dim& d : shape) result.push_back(d.bound());
  return result;
}

int64_t volume(const Shape& shape) {
  int64_t n = 1;
  for (const Dim& d : shape) n *= d.bound();
  return n;
}

bool is_row_major(const Shape& shape, const Strides& strides) {
  int64_t expected = 1;
  for (size_t k = shape.size(); k-- > 0;) {
    if (shape[k].bound() != 1 && strides[k] != expected) return false;
    expected *= shape[k].bound();
  }
  return true;
}

Strides padded_strides(const Shape& shape, int64_t elements) {
  Strides strides = row_major_strides(shape);
  const int64_t row = shape.back().bound(), pitch = (row + elements - 1) / elements * elements;
  for (size_t k = 0; k + 1 < strides.size(); ++k) strides[k] = strides[k] / std::max<int64_t>(row, 1) * pitch;
  return strides;
}

int64_t stored_elements(const Shape& shape, const Strides& strides) {
  int64_t elements = volume(shape);
  for (size_t k = 0; elements > 0 && k < shape.size(); ++k)
    elements = std::max(elements, shape[k].bound() * strides[k]);
  return elements;
}

std::vector<Expr> domain(ix::Context& cx, const Shape& shape, const char* prefix) {
  std::vector<Expr> index;
  for (size_t k = 0; k < shape.size(); ++k) {
    bool single = shape[k].bound() <= 1;
    index.push_back(single ? cx.constant(0) : cx.variable(prefix + std::to_string(k), 0, shape[k].bound() - 1));
  }
  return index;
}

namespace {

Expr conjunction(ix::Context& cx, Expr a, Expr b) { return a ? cx.both(a, b) : b; }

/// Right-aligned: an axis of extent 1, or a missing one, is read at 0.
std::vector<Expr> through_broadcast(ix::Context& cx, const Shape& from, std::span<const Expr> index) {
  std::vector<Expr> result;
  size_t missing = index.size() - from.size();
  for (size_t k = 0; k < from.size(); ++k) result.push_back(from[k].bound() == 1 ? cx.constant(0) : index[missing + k]);
  return result;
}

Access through_pad(ix::Context& cx, const IrNode& node, const Shape& from, std::span<const Expr> index) {
  Access access{node.inputs[0], {}, {}, node.attrs->number};
  for (size_t k = 0; k < index.size(); ++k) {
    Expr inner = index[k] - node.attrs->low[k];
    if (node.attrs->low[k] > 0) access.valid = conjunction(cx, access.valid, inner >= 0);
    if (node.attrs->high[k] > 0) access.valid = conjunction(cx, access.valid, inner < from[k].bound());
    access.index.push_back(inner);
  }
  if (access.valid && access.valid.is_constant(1)) access.valid = {};
  return access;
}

/// The pair (window, element) is one position along the windowed axis.
std::vector<Expr> through_window(const IrNode& node, std::span<const Expr> index) {
  auto axis = static_cast<size_t>(node.attrs->axes[0]);
  std::vector<Expr> result(index.begin(), index.end());
  result[axis] = index[axis] * node.attrs->window[1] + index[axis + 1] * node.attrs->window[2];
  result.erase(result.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
  return result;
}

}  // namespace

Access push(ix::Context& cx, const Ir& ir, NodeId movement, std::span<const Expr> index) {
  const IrNode& node = ir[movement];
  const Shape& from = ir[node.inputs[0]].type.shape;
  Access access{node.inputs[0], {}, {}, {}};
  switch (node.op) {
    case Op::stop_gradient:
    case Op::depends: access.index.assign(index.begin(), index.end()); return access;
    case Op::reshape:
      if (volume(from) == 0) access.index.assign(from.size(), cx.constant(0));
      else access.index = ix::reindex_reshape(cx, index, bounds(from), bounds(node.type.shape));
      return access;
    case Op::permute:
      access.index.resize(index.size());
      for (size_t k = 0; k < index.size(); ++k) access.index[static_cast<size_t>(node.attrs->axes[k])] = index[k];
      return access;
    case Op::broadcast: access.index = through_broadcast(cx, from, index); return access;
    case Op::slice:
      for (size_t k = 0; k < index.size(); ++k) {
        int64_t step = node.attrs->step.empty() ? 1 : node.attrs->step[k];
        access.index.push_back(index[k] * step + node.attrs->start[k]);
      }
      return access;
    case Op::pad: return through_pad(cx, node, from, index);
    case Op::window: access.index = through_window(node, index); return access;
    default: throw_internal("access", "not a movement node: " + print(ir, movement));
  }
}

std::vector<Access> push_concat(ix::Context& cx, const Ir& ir, NodeId concat, std::span<const Expr> index) {
  const IrNode& node = ir[concat];
  auto axis = static_cast<size_t>(node.attrs->axes[0]);
  std::vector<Access> branches;
  int64_t begin = 0;
  for (NodeId input : node.inputs) {
    int64_t extent = ir[input].type.shape[axis].bound();
    Access access{input, std::vector<Expr>(index.begin(), index.end()), {}, {}};
    access.index[axis] = index[axis] - begin;
    access.valid = cx.both(access.index[axis] >= 0, access.index[axis] < extent);
    branches.push_back(std::move(access));
    begin += extent;
  }
  return branches;
}

bool IndexTuples::Less::operator()(const std::vector<Expr>& a, const std::vector<Expr>& b) const {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [](Expr x, Expr y) { return std::less<>()(x.get(), y.get()); });
}

int IndexTuples::of(std::vector<Expr> index) {
  const auto [it, fresh] = ids_.try_emplace(std::move(index), static_cast<int>(indices_.size()));
  if (fresh) indices_.push_back(&it->first);
  return it->second;
}

Access peel(ix::Context& cx, const Ir& ir, NodeId node, std::vector<Expr> index) {
  Access access{node, std::move(index), {}, {}};
  while (is_movement(ir[access.node].op) && ir[access.node].op != Op::concat) {
    Access next = push(cx, ir, access.node, access.index);
    if (next.valid) break;
    access = std::move(next);
  }
  return access;
}

}  // namespace weft::compiler
