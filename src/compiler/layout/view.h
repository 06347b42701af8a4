#pragma once
// Views: a chain of movement over data is an affine index into the same buffer, so nothing has to be computed.
#include <optional>

#include "graph/node.h"

namespace weft::compiler {

/// reshape, permute, broadcast, slice, stop_gradient and bitcasts: operators that may become views.
bool moves_only(graph::Op op);
/// Strides under another shape of as many elements, where the elements still lie at regular distances along each axis;
/// symbolic axes at their bounds.
std::optional<Strides> reshaped_strides(const Shape& from, const Strides& strides, const Shape& to);
/// Where the value lies within the data that it is made from, if the way there is a view. The caller holds
/// graph::structure(), shared.
std::optional<graph::Storage> view_of(const graph::Value& value);
/// The value without data that was asked for row-major (graph::Attrs::packed) and of which `value` will be a view, if
/// there is one. The caller holds graph::structure(), shared.
std::optional<graph::Value> packed_base(const graph::Value& value);
/// The strides of `value` if it is evaluated as a view of what it is made from, which lies row-major where it has no
/// data yet; nothing where it cannot be a view. The caller holds graph::structure(), shared.
std::optional<Strides> strides_once_computed(const graph::Value& value);

}  // namespace weft::compiler
