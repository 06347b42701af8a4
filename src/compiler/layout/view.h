#pragma once
// Views: movement over data that exists maps to other strides over the same buffer, so nothing is computed or copied.
#include <optional>

#include "graph/node.h"

namespace weft::compiler {

/// Returns whether an operator may become a view: reshape, permute, broadcast, slice, stop_gradient or bitcast.
bool moves_only(graph::Op op);
/// Returns the strides under another shape of as many elements; nothing if the elements then have no regular distance
/// along each axis. Symbolic axes count at their bounds.
std::optional<Strides> reshaped_strides(const Shape& from, const Strides& strides, const Shape& to);
/// Returns where a value lies within the data that it is computed from if only movement that can be a view is between;
/// nothing otherwise. The caller holds graph::structure(), shared.
std::optional<graph::Storage> view_of(const graph::Value& value);
/// Returns the base of `value` if it has no data yet, is to be stored row-major (graph::Attrs::packed), and `value`
/// will be a view of it; nothing otherwise. The caller holds graph::structure(), shared.
std::optional<graph::Value> packed_base(const graph::Value& value);
/// Returns the strides that `value` will have as a view of its base, which is row-major if it has no data yet; nothing
/// if it cannot be a view. The caller holds graph::structure(), shared.
std::optional<Strides> strides_once_computed(const graph::Value& value);

}  // namespace weft::compiler
