#pragma once
// Helpers that the files of regions share.
#include "graph/build.h"

namespace weft::graph {

Dtype compute_dtype(Dtype t);                             // float32 for the 16-bit floats, else t
Value widened(const Value& v);                            // cast to it
Value broadcast_like(const Value& v, const Value& like);  // broadcast to like's shape
Value finite_or_zero(const Value& m);  // infinities become 0: exp(x - m) of infinite x stays inf or 0, not NaN
Value stable_logsumexp(const Value& x, const std::vector<int64_t>& axes);  // axes kept at extent 1

}  // namespace weft::graph
