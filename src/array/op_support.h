#pragma once
// The steps that every operation of weft/ops.h takes before it builds nodes: checks the device, promotes, broadcasts,
// normalizes axes.
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "graph/build.h"
#include "weft/array.h"

namespace weft::detail {

/// Throws std::invalid_argument if `s` names a device or stream that does not exist.
void on_device(const char* op, const StreamOrDevice& s);
/// Makes the same check; nodes made while it lives belong to the named stream, if one is named.
class OnStream {
 public:
  OnStream(const char* op, const StreamOrDevice& s) {
    if (!std::holds_alternative<std::monostate>(s)) enter(op, s);
  }

 private:
  void enter(const char* op, const StreamOrDevice& s);

  std::optional<graph::StreamScope> scope_;
};

std::string describe(const array& a);  // returns "float32 (2,3)"

/// Returns the dtype where it is floating or complex, else float32: the dtype of `divide`, `exp`, `mean` ….
Dtype floating_of(Dtype t);
/// Returns the dtype that sums accumulate in: float32 for 16- and 8-bit floats, else the dtype.
Dtype accumulator(Dtype t);

/// Returns a cast. An integer constant is converted when the graph is built, so `x * 2` costs no node.
graph::Value to_dtype(const graph::Value& v, Dtype dtype);
/// Returns the values broadcast to one shape; throws std::invalid_argument naming all shapes.
std::vector<graph::Value> broadcast_together(const char* op, std::vector<graph::Value> values);

/// Returns the axis counted from the front; throws std::out_of_range where it does not exist (normalize_axis).
int64_t one_axis(const char* op, int axis, size_t ndim);
/// Returns several axes counted from the front, ascending; throws std::invalid_argument where one is named twice.
std::vector<int64_t> sorted_axes(const char* op, const std::vector<int>& axes, size_t ndim);
std::vector<int> all_axes(const array& a);

/// Throws unless every size is a number >= 0 or a symbol.
void require_shape(const char* op, const Shape& shape);
/// Throws unless the dtype is an integer.
void require_integer(const char* op, const char* what, const array& a);

}  // namespace weft::detail
