// weft/transforms.h: the transforms on function objects. The arguments that a gradient is asked for reach the function as aliases: nodes of their own, so that an array
// that is passed twice, or also captured, is told apart; and ordinary differentiable nodes, so that gradients nest.
#include "weft/transforms.h"

#include <algorithm>

#include "array/op_support.h"
#include "array/realise.h"
#include "base/error.h"
#include "transforms/grad.h"

namespace weft {
namespace {

using detail::describe;

void require_float(const char* op, const char* what, const array& a) {
  if (!is_float(a.dtype())) throw_invalid(op, std::string(what) + " must be of a floating type, got " + describe(a) + ": convert it with astype");
}

void require_scalar(const char* op, const array& value) {
  if (value.ndim() != 0) throw_invalid(op, "the function must return a scalar, shape (), to have a gradient; it returned " + describe(value));
  require_float(op, "the value", value);
}

std::vector<size_t> checked_argnums(const char* op, const std::vector<int>& argnums, size_t count) {
  if (argnums.empty()) throw_invalid(op, "name at least one argument to differentiate");
  std::vector<size_t> result;
  for (int n : argnums) {
    const int64_t at = n < 0 ? n + static_cast<int64_t>(count) : n;
    if (at < 0 || at >= static_cast<int64_t>(count))
      throw_invalid(op, "argument " + std::to_string(n) + " was asked for, but the function was called with " + std::to_string(count));
    if (std::count(result.begin(), result.end(), static_cast<size_t>(at))) throw_invalid(op, "argument " + std::to_string(n) + " is named twice");
    result.push_back(static_cast<size_t>(at));
  }
  return result;
}

// One array a target; zeros where nothing flowed.
std::vector<array> filled(const graph::Values& cotangents, const graph::Values& targets) {
  std::vector<array> result;
  for (size_t k = 0; k < targets.size(); ++k) result.emplace_back(cotangents[k] ? cotangents[k] : graph::zeros_like(targets[k]));
  return result;
}

std::vector<array> scalar_gradients(const array& value, const graph::Values& targets) {
  const graph::Value root = value.value(), one = graph::full_like(root, 1);
  return filled(transforms::pull_back(std::span(&root, 1), std::span(&one, 1), targets), targets);
}

std::pair<std::vector<array>, std::vector<array>> value_and_gradients(const char* op, const ArrayFunction& fun, const std::vector<int>& argnums,
                                                                      const std::vector<array>& arguments) {
  detail::Trace trace(detail::Trace::Kind::differentiate);
  std::vector<array> inputs = arguments;
  graph::Values targets;
  for (size_t n : checked_argnums(op, argnums, arguments.size())) {
    require_float(op, ("argument " + std::to_string(n)).c_str(), arguments[n]);
    targets.push_back(detail::alias(arguments[n].value()));
    trace.watch(targets.back());
    inputs[n] = array(targets.back());
  }
  std::vector<array> values = fun(inputs);
  if (values.empty()) throw_invalid(op, "the function returned nothing: its first result is the value to differentiate");
  require_scalar(op, values[0]);
  std::vector<array> gradients = scalar_gradients(values[0], targets);
  return {std::move(values), std::move(gradients)};
}

ArrayFunction as_array_function(const ScalarFunction& fun) {
  return [fun](const std::vector<array>& a) { return std::vector<array>{fun(a)}; };
}
ArrayFunction as_array_function(const std::function<array(const array&)>& fun) {
  return [fun](const std::vector<array>& a) { return std::vector<array>{fun(a[0])}; };
}

}  // namespace

std::function<std::pair<std::vector<array>, std::vector<array>>(const std::vector<array>&)> value_and_grad(const ArrayFunction& fun,
                                                                                                          const std::vector<int>& argnums) {
  return [fun, argnums](const std::vector<array>& arguments) { return value_and_gradients("value_and_grad", fun, argnums, arguments); };
}

std::function<std::pair<array, std::vector<array>>(const std::vector<array>&)> value_and_grad(const ScalarFunction& fun,
                                                                                             const std::vector<int>& argnums) {
  return [fun = as_array_function(fun), argnums](const std::vector<array>& arguments) {
    auto [values, gradients] = value_and_gradients("value_and_grad", fun, argnums, arguments);
    return std::pair(values[0], std::move(gradients));
  };
}

std::function<std::pair<array, array>(const array&)> value_and_grad(const std::function<array(const array&)>& fun) {
  return [fun = as_array_function(fun)](const array& argument) {
    auto [values, gradients] = value_and_gradients("value_and_grad", fun, {0}, {argument});
    return std::pair(values[0], gradients[0]);
  };
}

std::function<std::vector<array>(const std::vector<array>&)> grad(const ScalarFunction& fun, const std::vector<int>& argnums) {
  return [fun = as_array_function(fun), argnums](const std::vector<array>& arguments) {
    return value_and_gradients("grad", fun, argnums, arguments).second;
  };
}

std::function<array(const array&)> grad(const std::function<array(const array&)>& fun) {
  return [fun = as_array_function(fun)](const array& argument) { return value_and_gradients("grad", fun, {0}, {argument}).second[0]; };
}

std::pair<std::vector<array>, std::vector<array>> vjp(const ArrayFunction& fun, const std::vector<array>& primals,
                                                     const std::vector<array>& cotangents) {
  detail::Trace trace(detail::Trace::Kind::differentiate);
  graph::Values targets;
  std::vector<array> inputs;
  for (const array& primal : primals) {
    targets.push_back(detail::alias(primal.value()));
    trace.watch(targets.back());
    inputs.emplace_back(targets.back());
  }
  std::vector<array> results = fun(inputs);
  if (results.size() != cotangents.size())
    throw_invalid("vjp", "the function has " + std::to_string(results.size()) + " results, but " + std::to_string(cotangents.size()) + " cotangents were given");
  graph::Values outputs, seeds;
  for (size_t k = 0; k < results.size(); ++k) {
    if (results[k].shape() != cotangents[k].shape())
      throw_invalid("vjp", "cotangent " + std::to_string(k) + ", " + describe(cotangents[k]) + ", must have the shape of its result, " + describe(results[k]));
    outputs.push_back(results[k].value());
    seeds.push_back(is_float(results[k].dtype()) ? detail::to_dtype(cotangents[k].value(), results[k].dtype()) : graph::Value{});
  }
  return {std::move(results), filled(transforms::pull_back(outputs, seeds, targets), targets)};
}

std::vector<array> gradients(const array& scalar, const std::vector<array>& with_respect_to) {
  require_scalar("gradients", scalar);
  graph::Values targets;
  bool target_itself = false;
  for (const array& a : with_respect_to) {
    require_float("gradients", "an array to differentiate by", a);
    targets.push_back(a.value());
    target_itself = target_itself || a.value() == scalar.value();
  }
  const bool evaluated = detail::has_data(scalar.value()) && !detail::constant_number(scalar.value());
  if (evaluated && !target_itself)
    throw_invalid("gradients", "the scalar has been evaluated, so that what it was computed from is forgotten: ask for gradients before looking at it");
  return scalar_gradients(scalar, targets);
}

}  // namespace weft
