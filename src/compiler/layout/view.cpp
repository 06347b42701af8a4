#include "compiler/layout/view.h"

#include <algorithm>
#include <vector>

namespace weft::compiler {
namespace {

using graph::Op;
using graph::Storage;

struct Axis {
  int64_t extent, stride;
};

/// Merges neighbouring axes that one stride runs through, and drops axes of extent 1.
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

/// Returns where the result of one movement operator lies if its input lies at `at`; nothing if it is no view.
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
    default: strides = at.strides;  // the same elements at the same positions
  }
  at.strides = std::move(strides);
  return at;
}

bool may_be_view(const graph::Node& node) {
  return moves_only(node.op()) && !node.attrs().packed && is_static(node.types()[0].shape) &&
         is_static(node.inputs()[0].shape()) && node.inputs()[0].dtype().size() == node.types()[0].dtype.size();
}

/// The movement operators between a value and its base, the value's own first.
struct ViewChain {
  std::vector<const graph::Node*> steps;
  const graph::Value* base;
};

ViewChain chain_to_base(const graph::Value& value) {
  ViewChain chain{{}, &value};
  while (!chain.base->node->storage(chain.base->index) && may_be_view(*chain.base->node)) {
    chain.steps.push_back(chain.base->node.get());
    chain.base = &chain.base->node->inputs()[0];
  }
  return chain;
}

/// Returns where the value lies if its base lies at `from`; nothing if it is no view.
std::optional<Storage> moved(const ViewChain& chain, Storage from) {
  std::optional<Storage> at = std::move(from);
  for (size_t k = chain.steps.size(); at && k-- > 0;) at = moved(*chain.steps[k], std::move(*at));
  return at;
}

/// Returns the layout in which a program stores a value.
Storage row_major(const graph::Value& value) { return {nullptr, 0, row_major_strides(value.shape())}; }

}  // namespace

bool moves_only(Op op) {
  return op == Op::reshape || op == Op::permute || op == Op::broadcast || op == Op::slice || op == Op::stop_gradient ||
         op == Op::bitcast;
}

std::optional<Strides> reshaped_strides(const Shape& from, const Strides& strides, const Shape& to) {
  if (num_elements(from) == 0) return row_major_strides(to);
  std::vector<Axis> axes = collapsed(from, strides);
  Strides result(to.size(), 1);
  int64_t left = 1, stride = 1;  // the rest of the current axis, from the last axis on, and the stride within it
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
  const ViewChain chain = chain_to_base(value);
  const Storage* data = chain.base->node->storage(chain.base->index);
  return data ? moved(chain, *data) : std::nullopt;
}

std::optional<graph::Value> packed_base(const graph::Value& value) {
  const ViewChain chain = chain_to_base(value);
  const graph::Node& base = *chain.base->node;
  if (chain.steps.empty() || base.storage(chain.base->index) || !base.attrs().packed) return std::nullopt;
  return moved(chain, row_major(*chain.base)) ? std::optional(*chain.base) : std::nullopt;
}

std::optional<Strides> strides_once_computed(const graph::Value& value) {
  const ViewChain chain = chain_to_base(value);
  const Storage* data = chain.base->node->storage(chain.base->index);
  const std::optional<Storage> at = moved(chain, data ? *data : row_major(*chain.base));
  return at ? std::optional(at->strides) : std::nullopt;
}

}  // namespace weft::compiler
