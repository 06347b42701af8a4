// vmap: the function runs once on placeholders for one element of each mapped argument; then its graph is batched
// (graph/derive/derive.h).
#include <algorithm>

#include "array/op_support.h"
#include "base/error.h"
#include "graph/rows.h"
#include "transforms/watched.h"

namespace weft {
namespace {

using graph::Batched;
using graph::Value;

/// Throws where axes are given for arguments or results, and all of them say "not mapped", as MLX does.
void require_axes(const std::vector<int>& in_axes, const std::vector<int>& out_axes) {
  const auto unmapped = [](const std::vector<int>& axes) {
    return !axes.empty() && std::all_of(axes.begin(), axes.end(), [](int axis) { return axis < 0; });
  };
  if (unmapped(in_axes) == unmapped(out_axes)) return;
  throw_invalid("vmap", std::string("no axis of the ") + (unmapped(in_axes) ? "arguments" : "results") +
                            " is mapped: give at least one of them an axis from the front, or none in either list");
}

size_t checked_axis(int axis, size_t k, const array& a) {
  if (a.ndim() == 0)
    throw_out_of_range("vmap", "argument " + std::to_string(k) +
                                   " is a scalar and has no axis to map along: give it axis -1, or an axis");
  if (axis < 0 || axis >= static_cast<int>(a.ndim()))
    throw_out_of_range("vmap", "axis " + std::to_string(axis) + " of argument " + std::to_string(k) + ", " +
                                   detail::describe(a) + ", does not exist (-1 is an argument that is not mapped)");
  return static_cast<size_t>(axis);
}

struct Call {
  graph::Values placeholders;
  std::vector<Batched> batched;
  std::vector<array> arguments;
  Dim extent;
};

Call placeholders_for(const std::vector<array>& arguments, const std::vector<int>& axes) {
  Call call;
  call.arguments = arguments;
  for (size_t k = 0; k < arguments.size(); ++k) {
    if (axes[k] == -1) continue;
    const size_t axis = checked_axis(axes[k], k, arguments[k]);
    Shape shape = arguments[k].shape();
    const Dim extent = shape[axis];
    shape.erase(shape.begin() + static_cast<int64_t>(axis));
    if (!call.placeholders.empty() && !(extent == call.extent))
      throw_invalid("vmap", "mapped axes must be equally long, but argument " + std::to_string(k) + ", " +
                                detail::describe(arguments[k]) + ", has another length along axis " +
                                std::to_string(axis) + " than the arguments before it");
    call.extent = extent;
    call.placeholders.push_back(graph::parameter({shape, arguments[k].dtype()}));
    call.batched.push_back({arguments[k].value(), static_cast<int>(axis)});
    call.arguments[k] = array(call.placeholders.back());
  }
  if (call.placeholders.empty()) throw_invalid("vmap", "no argument is mapped: give at least one of them an axis");
  return call;
}

array placed(const Batched& result, const Dim& extent, int out_axis, size_t k) {
  const Value v = graph::batched(result.value, result.axis, extent);
  const int rank = v.type().rank(), to = out_axis < 0 ? out_axis + rank : out_axis;
  if (to < 0 || to >= rank)
    throw_out_of_range("vmap", "result " + std::to_string(k) + " cannot carry its batch axis at " +
                                   std::to_string(out_axis) + ": with it, it has " + std::to_string(rank) + " axes");
  std::vector<int64_t> order;
  for (int axis = 1; axis < rank; ++axis) order.push_back(axis);
  order.insert(order.begin() + to, 0);
  return array(graph::permute(v, order));
}

std::vector<int> axes_or_zeros(const char* what, std::vector<int> axes, size_t count) {
  if (axes.empty()) axes.assign(count, 0);
  if (axes.size() != count)
    throw_invalid("vmap", std::to_string(axes.size()) + " " + what + " axes were given for " + std::to_string(count) +
                              ": one is needed for each");
  return axes;
}

std::vector<array> run_batched(const ArrayFunction& fun, const std::vector<int>& in_axes,
                               const std::vector<int>& out_axes, const std::vector<array>& arguments) {
  Call call = placeholders_for(arguments, axes_or_zeros("argument", in_axes, arguments.size()));
  detail::Trace trace(detail::Trace::Kind::batch);
  trace.set_extent(call.extent);
  const std::vector<array> results = fun(call.arguments);
  for (size_t k = 0; k < trace.keys().size(); ++k) {
    call.placeholders.push_back(trace.key_placeholders()[k]);
    call.batched.push_back({trace.keys()[k], 0});
  }
  const std::vector<Batched> batched = graph::batch(transforms::values_of(results), call.placeholders, call.batched);
  const std::vector<int> positions = axes_or_zeros("result", out_axes, results.size());
  std::vector<array> out;
  for (size_t k = 0; k < results.size(); ++k) out.push_back(placed(batched[k], call.extent, positions[k], k));
  return out;
}

}  // namespace

ArrayFunction vmap(const ArrayFunction& fun, const std::vector<int>& in_axes, const std::vector<int>& out_axes) {
  require_axes(in_axes, out_axes);
  return [fun, in_axes, out_axes](const std::vector<array>& arguments) {
    return run_batched(fun, in_axes, out_axes, arguments);
  };
}

UnaryFunction vmap(const UnaryFunction& fun, int in_axis, int out_axis) {
  require_axes({in_axis}, {out_axis});
  return [fun = transforms::as_array_function(fun), in_axis, out_axis](const array& a) {
    return run_batched(fun, {in_axis}, {out_axis}, {a})[0];
  };
}

BinaryFunction vmap(const BinaryFunction& fun, int in_axis_a, int in_axis_b, int out_axis) {
  require_axes({in_axis_a, in_axis_b}, {out_axis});
  const ArrayFunction on_both = [fun](const std::vector<array>& a) { return std::vector<array>{fun(a[0], a[1])}; };
  return [on_both, in_axis_a, in_axis_b, out_axis](const array& a, const array& b) {
    return run_batched(on_both, {in_axis_a, in_axis_b}, {out_axis}, {a, b})[0];
  };
}

}  // namespace weft
