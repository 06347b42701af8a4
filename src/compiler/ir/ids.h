#pragma once
// What the compiler numbers: nodes of an Ir and groups of a Grouping.
#include "base/indexed_vector.h"
#include "weft/shape.h"

namespace weft::compiler {

using NodeId = Id<struct NodeTag>;
using GroupId = Id<struct GroupTag>;
using NodeFlags = IndexedVector<NodeId, bool>;
using NodeCounts = IndexedVector<NodeId, int>;
using NodeStrides = IndexedVector<NodeId, Strides>;

}  // namespace weft::compiler
