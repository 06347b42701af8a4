#include "compiler/view.h"

#include <algorithm>
#include <vector>

namespace weft::compiler {
namespace {

using graph::Op;
using graph::Storage;

struct Axis {
  int64_t extent, stride;
};

/// Neighbouring axes that one step runs through are one axis; those of extent 1 are none.
std::vector<Axis> collapsed(const Shape& shape, const Strides& strides) {
  std::vector<Axis> axes;
  for (size_t k = 0; k < shape.size(); ++k) {
    const int64_t n = shape[k].bound();
    if (n == 1) continue;
    if (!axes.empty() && axes.back().stride == n * strides[k]) axes.back() = {axes.back().extent * n, strides[k]};
    else axes.push_back({n, strides[k]});
  }
  return axes;
}

/// One operator applied to where its input lies.
std::optional<Storage> moved(const graph::Node& node, Storage at) {
  const graph::Attrs& attrs = node.attrs();
  const Shape &from = node.inputs()[0].shape(), &to = node.types()[0].shape;
  Strides strides;
  switch (node.op()) {
    case Op::reshape: {
      const std::optional<Strides> found = reshaped_strides(from, at.strides, to);
      if (!found) return std::nullopt;
      strides = *found;
      break;
    }
    case Op::permute:
      for (int64_t axis : attrs.axes) strides.push_back(at.strides[static_cast<size_t>(axis)]);
      break;
    case Op::broadcast:
      strides.assign(to.size() - from.size(), 0);
      for (size_t k = 0; k < from.size(); ++k) strides.push_back(from[k] == to[strides.size()] ? at.strides[k] : 0);
      break;
    case Op::slice:
      if (num_elements(to) > 0)
        for (size_t k = 0; k < from.size(); ++k) at.offset += attrs.start[k] * at.strides[k];
      for (size_t k = 0; k < from.size(); ++k) strides.push_back(at.strides[k] * attrs.step[k]);
      break;
    default: strides = at.strides;  // the same elements at the same places
  }
  at.strides = std::move(strides);
  return at;
}

bool may_be_view(const graph::Node& node) {
  return moves_only(node.op()) && !node.attrs().packed && is_static(node.types()[0].shape) && is_static(node.inputs()[0].shape()) &&
         node.inputs()[0].dtype().size() == node.types()[0].dtype.size();
}

}  // namespace

bool moves_only(Op op) {
  return op == Op::reshape || op == Op::permute || op == Op::broadcast || op == Op::slice || op == Op::stop_gradient || op == Op::bitcast;
}

std::optional<Strides> reshaped_strides(const Shape& from, const Strides& strides, const Shape& to) {
  if (num_elements(from) == 0) return row_major_strides(to);
  std::vector<Axis> axes = collapsed(from, strides);
  Strides result(to.size(), 1);
  int64_t left = 1, stride = 1;  // what is left of the current axis, counted from the last one, and the step within it
  for (size_t k = to.size(); k-- > 0;) {
    const int64_t n = to[k].bound();
    if (left == 1 && n != 1) {
      left = axes.back().extent;
      stride = axes.back().stride;
      axes.pop_back();
    }
    result[k] = stride;
    if (left % n != 0) return std::nullopt;
    left /= n;
    stride *= n;
  }
  return result;
}

std::optional<Storage> view_of(const graph::Value& value) {
  std::vector<const graph::Node*> chain;
  const graph::Value* v = &value;
  while (!v->node->storage(v->index)) {
    if (!may_be_view(*v->node)) return std::nullopt;
    chain.push_back(v->node.get());
    v = &v->node->inputs()[0];
  }
  std::optional<Storage> at = *v->node->storage(v->index);
  for (size_t k = chain.size(); at && k-- > 0;) at = moved(*chain[k], std::move(*at));
  return at;
}

}  // namespace weft::compiler
