// custom_function and checkpoint: the user's function as a region with rules of its own (graph::Composite).
#include <algorithm>

#include "array/op_support.h"
#include "base/error.h"
#include "graph/control/control.h"
#include "graph/rows.h"
#include "transforms/closure.h"
#include "transforms/watched.h"

namespace weft {
namespace {

using graph::Value;
using graph::Values;
using In = std::span<const Value>;

/// A function that was run once on watched aliases, so that it may read values, as a closed graph.
struct Region {
  size_t arguments;
  graph::Graph graph;
  Values inputs;  // arguments, then captured values
};

Region region_of(const ArrayFunction& fun, const std::vector<array>& arguments) {
  const uint64_t first_id = transforms::next_node_id();
  transforms::Watched watched(arguments);
  const transforms::Body body{watched.targets(), transforms::values_of(fun(watched.arguments()))};
  Region region{arguments.size(), {}, transforms::values_of(arguments)};
  region.graph = transforms::close(std::span(&body, 1), first_id, region.inputs)[0];
  return region;
}

graph::Composite composite_of(const char* name, const Region& region) {
  graph::Composite composite;
  composite.name = name;
  composite.key = transforms::graph_key(region.graph);
  composite.body = [graph = region.graph](In in) { return graph::instantiate(graph, in); };
  return composite;
}

std::vector<array> build(graph::Composite composite, Region region) {
  if (region.graph.outputs.empty()) return {};
  return transforms::arrays_of(
      graph::composite(std::make_shared<graph::Composite>(std::move(composite)), std::move(region.inputs)));
}

void require_count(const char* what, size_t given, size_t expected) {
  if (given != expected)
    throw_invalid("custom_function", std::string(what) + " returned " + std::to_string(given) + " arrays, but " +
                                         std::to_string(expected) + " are needed");
}

/// Checks that the user's rule returned a value of the right type.
Value checked(const char* what, const array& given, const graph::Type& type) {
  if (given.shape() != type.shape)
    throw_invalid("custom_function", std::string(what) + " returned " + detail::describe(given) + " for " +
                                         graph::to_string(type) + ": shapes must be equal");
  return detail::to_dtype(given.value(), type.dtype);
}

std::vector<array> filled(In derivatives, In like) {
  return transforms::filled(Values(derivatives.begin(), derivatives.end()), Values(like.begin(), like.end()));
}

}  // namespace

ArrayFunction custom_function(const ArrayFunction& fun, const std::optional<CustomVjp>& fun_vjp,
                              const std::optional<CustomJvp>& fun_jvp, const std::optional<CustomVmap>& fun_vmap) {
  if (!fun_vjp && !fun_jvp && !fun_vmap) return fun;
  return [=](const std::vector<array>& arguments) {
    Region region = region_of(fun, arguments);
    graph::Composite composite = composite_of("custom_function", region);
    const size_t count = region.arguments;
    if (fun_vjp)
      composite.vjp = [rule = *fun_vjp, count](In in, In out, In cotangents) {
        const In primals = in.first(count);
        const std::vector<array> given =
            rule(transforms::arrays_of(primals), filled(cotangents, out), transforms::arrays_of(out));
        require_count("the vjp", given.size(), count);
        Values result(in.size());
        for (size_t k = 0; k < count; ++k) result[k] = checked("the vjp", given[k], in[k].type());
        return result;
      };
    if (fun_jvp)
      composite.jvp = [rule = *fun_jvp, count](In in, In out, In tangents) {
        std::vector<array> given_tangents;
        std::vector<int> argnums;
        for (size_t k = 0; k < count; ++k)
          if (tangents[k]) {
            given_tangents.emplace_back(tangents[k]);
            argnums.push_back(static_cast<int>(k));
          }
        if (argnums.empty()) return Values(out.size());
        const std::vector<array> given = rule(transforms::arrays_of(in.first(count)), given_tangents, argnums);
        require_count("the jvp", given.size(), out.size());
        Values result;
        for (size_t k = 0; k < out.size(); ++k) result.push_back(checked("the jvp", given[k], out[k].type()));
        return result;
      };
    if (fun_vmap)
      composite.vmap = [rule = *fun_vmap, count, types = region.graph.outputs](In in, std::span<const int> axes) {
        for (size_t k = count; k < in.size(); ++k)
          if (axes[k] >= 0)
            throw_invalid(
                "custom_function",
                "the function captures an array that is mapped: pass it as an argument, so that its vmap sees it");
        const auto [given, out_axes] =
            rule(transforms::arrays_of(in.first(count)),
                 std::vector<int>(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(count)));
        require_count("the vmap", given.size(), types.size());
        require_count("the vmap's axes", out_axes.size(), types.size());
        const Dim extent = graph::batch_extent(in, axes);
        Values result;
        for (size_t k = 0; k < given.size(); ++k) {
          const Value v = graph::batched(given[k].value(), out_axes[k], extent);
          const graph::Type expected{graph::prepend(extent, types[k].shape()), types[k].dtype()};
          if (!(v.type() == expected))
            throw_invalid("custom_function", "the vmap returned " + detail::describe(given[k]) + " with axis " +
                                                 std::to_string(out_axes[k]) + " for " + graph::to_string(expected));
          result.push_back(v);
        }
        return result;
      };
    return build(std::move(composite), std::move(region));
  };
}

ArrayFunction custom_vjp(const ArrayFunction& fun, const CustomVjp& fun_vjp) { return custom_function(fun, fun_vjp); }

ArrayFunction checkpoint(const ArrayFunction& fun) {
  return [fun](const std::vector<array>& arguments) {
    Region region = region_of(fun, arguments);
    graph::Composite composite = composite_of("checkpoint", region);
    // Computes the body again after the cotangents: `depends` keeps it apart from the first computation, and after what
    // the cotangents wait for.
    composite.vjp = [graph = region.graph](In in, In, In cotangents) {
      Values arrived, again;
      for (const Value& g : cotangents)
        if (g) arrived.push_back(g);
      for (const Value& v : in) again.push_back(graph::depends(v, arrived));
      return graph::pull_back(graph::instantiate(graph, again), cotangents, again);
    };
    return build(std::move(composite), std::move(region));
  };
}

}  // namespace weft
