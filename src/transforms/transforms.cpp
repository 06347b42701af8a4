// weft/transforms.h: gradients and directional derivatives. Differentiated arguments reach the function as aliases:
// nodes of their own, so that an array that is passed twice, or also captured, is told apart; and ordinary
// differentiable nodes, so that derivatives nest.
#include "weft/transforms.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "array/op_support.h"
#include "array/realise.h"
#include "base/error.h"
#include "transforms/watched.h"

namespace weft {

using transforms::as_array_function;
using transforms::filled;
using transforms::Watched;

namespace {

using detail::describe;

void require_scalar(const char* op, const array& value) {
  if (value.ndim() != 0)
    throw_invalid(op,
                  "the function must return a scalar, shape (), to have a gradient; it returned " + describe(value));
}

std::vector<array> scalar_gradients(const array& value, const graph::Values& targets, bool nested) {
  const graph::Value root = value.value(), one = graph::full_like(root, 1);
  return filled(graph::pull_back(std::span(&root, 1), std::span(&one, 1), targets, nested), targets);
}

std::pair<std::vector<array>, std::vector<array>> value_and_gradients(const char* op, const ArrayFunction& fun,
                                                                      const std::vector<int>& argnums,
                                                                      const std::vector<array>& arguments) {
  Watched watched(op, arguments, argnums);
  std::vector<array> values = fun(watched.arguments());
  if (values.empty())
    throw_invalid(op, "the function returned nothing: its first result is the value to differentiate");
  require_scalar(op, values[0]);
  std::vector<array> gradients = scalar_gradients(values[0], watched.targets(), false);
  return {std::move(values), std::move(gradients)};
}

void require_counts(const char* op, const char* what, size_t given, const char* of, size_t expected) {
  if (given != expected)
    throw_invalid(op, std::to_string(expected) + " " + of + ", but " + std::to_string(given) + " " + what +
                          " were given: one is needed for each");
}

/// Returns the tangent or cotangent in the dtype of its value; throws where the shape differs.
graph::Value direction(const char* op, const char* what, const char* of, size_t k, const array& given,
                       const array& value) {
  if (value.shape() != given.shape())
    throw_invalid(op, std::string(what) + " " + std::to_string(k) + ", " + describe(given) +
                          ", must have the shape of its " + of + ", " + describe(value));
  return detail::to_dtype(given.value(), value.dtype());
}

/// Throws where an index of a gather or scatter depends on one of the integers among the targets: an index has no
/// tangent.
void refuse_index_directions(const graph::Values& values, const graph::Values& targets) {
  graph::Values integers;
  std::copy_if(targets.begin(), targets.end(), std::back_inserter(integers),
               [](const graph::Value& v) { return !graph::is_inexact(v.dtype()); });
  if (integers.empty()) return;
  std::unordered_set<const graph::Node*> reached;
  for (const graph::Value& v : integers) reached.insert(v.node.get());
  for (const graph::Step& step : graph::history(values, integers)) {
    const graph::Op op = step.node->op();
    if (!step.depends || op == graph::Op::stop_gradient) continue;
    const size_t last = op == graph::Op::gather    ? step.inputs.size()
                        : op == graph::Op::scatter ? step.inputs.size() - 1
                                                   : 0;
    for (size_t k = 1; k < last; ++k)
      if (reached.contains(step.inputs[k].node.get()))
        throw_invalid(
            "jvp",
            "an argument is an index, which has no tangent: capture it, or stop_gradient it, instead of passing it");
    reached.insert(step.node.get());
  }
}

}  // namespace

// ---- what the transforms share: transforms/watched.h ----

namespace transforms {

void require_float(const char* op, const char* what, const array& a) {
  if (!is_float(a.dtype()))
    throw_invalid(op,
                  std::string(what) + " must be of a floating type, got " + describe(a) + ": convert it with astype");
}

std::vector<size_t> checked_argnums(const char* op, const std::vector<int>& argnums, size_t count) {
  if (argnums.empty()) throw_invalid(op, "name at least one argument to differentiate");
  std::vector<size_t> result;
  for (int n : argnums) {
    const int64_t at = n < 0 ? n + static_cast<int64_t>(count) : n;
    if (at < 0 || at >= static_cast<int64_t>(count))
      throw_invalid(op, "argument " + std::to_string(n) + " was asked for, but the function was called with " +
                            std::to_string(count));
    if (std::count(result.begin(), result.end(), static_cast<size_t>(at)))
      throw_invalid(op, "argument " + std::to_string(n) + " is named twice");
    result.push_back(static_cast<size_t>(at));
  }
  return result;
}

std::vector<array> filled(const graph::Values& derivatives, const graph::Values& of) {
  std::vector<array> result;
  for (size_t k = 0; k < of.size(); ++k)
    result.emplace_back(derivatives[k] ? derivatives[k] : graph::zeros_like(of[k]));
  return result;
}

Watched::Watched(const char* op, const std::vector<array>& arguments, const std::vector<int>& argnums)
    : trace_(detail::Trace::Kind::differentiate), arguments_(arguments) {
  for (size_t n : checked_argnums(op, argnums, arguments.size())) watch(n);
}

Watched::Watched(const std::vector<array>& arguments)
    : trace_(detail::Trace::Kind::differentiate), arguments_(arguments) {
  for (size_t n = 0; n < arguments.size(); ++n) watch(n);
}

void Watched::watch(size_t n) {
  targets_.push_back(graph::alias(arguments_[n].value()));
  trace_.watch(targets_.back());
  arguments_[n] = array(targets_.back());
}

ArrayFunction as_array_function(const ScalarFunction& fun) {
  return [fun](const std::vector<array>& a) { return std::vector<array>{fun(a)}; };
}
ArrayFunction as_array_function(const UnaryFunction& fun) {
  return [fun](const std::vector<array>& a) { return std::vector<array>{fun(a[0])}; };
}

}  // namespace transforms

// ---- gradients ----

ValueAndGradFunction value_and_grad(const ArrayFunction& fun, const std::vector<int>& argnums) {
  return [fun, argnums](const std::vector<array>& arguments) {
    return value_and_gradients("value_and_grad", fun, argnums, arguments);
  };
}
ValueAndGradFunction value_and_grad(const ArrayFunction& fun, int argnum) {
  return value_and_grad(fun, std::vector<int>{argnum});
}

SimpleValueAndGradFunction value_and_grad(const ScalarFunction& fun, const std::vector<int>& argnums) {
  return [fun = as_array_function(fun), argnums](const std::vector<array>& arguments) {
    auto [values, gradients] = value_and_gradients("value_and_grad", fun, argnums, arguments);
    return std::pair(values[0], std::move(gradients));
  };
}
SimpleValueAndGradFunction value_and_grad(const ScalarFunction& fun, int argnum) {
  return value_and_grad(fun, std::vector<int>{argnum});
}

std::function<std::pair<array, array>(const array&)> value_and_grad(const UnaryFunction& fun) {
  return [fun = as_array_function(fun)](const array& argument) {
    auto [values, gradients] = value_and_gradients("value_and_grad", fun, {0}, {argument});
    return std::pair(values[0], gradients[0]);
  };
}

ArrayFunction grad(const ScalarFunction& fun, const std::vector<int>& argnums) {
  return [fun = as_array_function(fun), argnums](const std::vector<array>& arguments) {
    return value_and_gradients("grad", fun, argnums, arguments).second;
  };
}
ArrayFunction grad(const ScalarFunction& fun, int argnum) { return grad(fun, std::vector<int>{argnum}); }

UnaryFunction grad(const UnaryFunction& fun) {
  return [fun = as_array_function(fun)](const array& argument) {
    return value_and_gradients("grad", fun, {0}, {argument}).second[0];
  };
}

// ---- products with Jacobians ----

std::pair<std::vector<array>, std::vector<array>> vjp(const ArrayFunction& fun, const std::vector<array>& primals,
                                                      const std::vector<array>& cotangents) {
  Watched watched(primals);
  std::vector<array> results = fun(watched.arguments());
  require_counts("vjp", "cotangents", cotangents.size(), "results", results.size());
  graph::Values seeds;
  for (size_t k = 0; k < results.size(); ++k)
    seeds.push_back(direction("vjp", "cotangent", "result", k, cotangents[k], results[k]));
  const graph::Values flowing = graph::pull_back(transforms::values_of(results), seeds, watched.targets());
  return {std::move(results), filled(flowing, watched.targets())};
}

std::pair<array, array> vjp(const UnaryFunction& fun, const array& primal, const array& cotangent) {
  const auto [results, products] = vjp(as_array_function(fun), {primal}, {cotangent});
  return {results[0], products[0]};
}

std::pair<std::vector<array>, std::vector<array>> jvp(const ArrayFunction& fun, const std::vector<array>& primals,
                                                      const std::vector<array>& tangents) {
  require_counts("jvp", "tangents", tangents.size(), "primals", primals.size());
  graph::Values seeds;
  for (size_t k = 0; k < primals.size(); ++k)
    seeds.push_back(direction("jvp", "tangent", "primal", k, tangents[k], primals[k]));
  Watched watched(primals);
  std::vector<array> results = fun(watched.arguments());
  const graph::Values values = transforms::values_of(results);
  refuse_index_directions(values, watched.targets());
  return {std::move(results), filled(graph::push_forward(values, watched.targets(), seeds), values)};
}

std::pair<array, array> jvp(const UnaryFunction& fun, const array& primal, const array& tangent) {
  const auto [results, products] = jvp(as_array_function(fun), {primal}, {tangent});
  return {results[0], products[0]};
}

std::vector<array> gradients(const array& scalar, const std::vector<array>& with_respect_to) {
  require_scalar("gradients", scalar);
  graph::Values targets;
  bool target_itself = false;
  for (const array& a : with_respect_to) {
    targets.push_back(a.value());
    target_itself = target_itself || a.value() == scalar.value();
  }
  const bool evaluated = detail::has_data(scalar.value()) && !detail::constant_number(scalar.value());
  if (evaluated && !target_itself)
    throw_invalid("gradients",
                  "the scalar has been evaluated, so that what it was computed from is forgotten: ask for gradients "
                  "before looking at it");
  return scalar_gradients(scalar, targets, true);
}

}  // namespace weft
