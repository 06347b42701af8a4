#pragma once
// What every operation of weft/ops.h does before it builds its nodes: check the device, promote, broadcast, count axes
// from the front.
#include <string>
#include <vector>

#include "graph/build.h"
#include "weft/array.h"

namespace weft::detail {

/// Throws where the operation names a device that this build does not have.
void on_device(const char* op, const StreamOrDevice& s);
/// The same; nodes made while it lives belong to the stream that was named.
class OnStream {
 public:
  OnStream(const char* op, const StreamOrDevice& s);

 private:
  graph::StreamScope scope_;
};

std::string describe(const array& a);  // "float32 (2,3)"

/// The dtype itself where it is a float or complex, else float32: what `divide`, `exp`, `mean` … compute in.
Dtype floating_of(Dtype t);
/// Float32 for the half types: what sums over them are kept in.
Dtype accumulator(Dtype t);

/// A cast. A number written by the user as an integer is converted here and now, so that `x * 2` costs no node.
graph::Value to_dtype(const graph::Value& v, Dtype dtype);
/// Broadcast to one shape; throws "[op] …" naming both.
std::vector<graph::Value> broadcast_together(const char* op, std::vector<graph::Value> values);

/// From the front; throws std::out_of_range on one that does not exist (normalize_axis).
int64_t one_axis(const char* op, int axis, size_t ndim);
/// The same of several, ascending; throws std::invalid_argument on an axis named twice.
std::vector<int64_t> sorted_axes(const char* op, const std::vector<int>& axes, size_t ndim);
std::vector<int> all_axes(const array& a);

/// Throws unless every size is a number >= 0 or a symbol.
void require_shape(const char* op, const Shape& shape);
/// Throws unless the dtype is an integer.
void require_integer(const char* op, const char* what, const array& a);

}  // namespace weft::detail
