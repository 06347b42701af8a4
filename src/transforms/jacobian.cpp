// Whole Jacobians: one derivative for a placeholder direction, batched over all unit directions.
#include "base/error.h"
#include "graph/rows.h"
#include "transforms/watched.h"

namespace weft {

using transforms::values_of;
using transforms::Watched;

namespace {

using graph::Value;
using graph::Values;
using Jacobian = std::vector<std::vector<array>>;

/// Returns all unit arrays of a type: (elements, shape…).
Value units(const graph::Type& type) {
  if (!is_static(type.shape)) throw_invalid("jacobian", "needs static shapes, got " + graph::to_string(type));
  const int64_t n = num_elements(type.shape);
  const Shape square{n, n};
  const Value hot = graph::binary(graph::Op::eq, graph::iota(square, 0, int64), graph::iota(square, 1, int64));
  return graph::reshape(graph::cast(hot, type.dtype), graph::prepend(Dim(n), type.shape));
}

/// Returns the `derivatives` of a placeholder direction for all unit directions at once: (elements, shape…) each.
Values for_all_units(const Values& derivatives, const Value& placeholder, const Values& like) {
  const Value all = units(placeholder.type());
  const graph::Batched unit{all, 0};
  Values present, out;
  for (const Value& d : derivatives)
    if (d) present.push_back(d);
  const std::vector<graph::Batched> batched = graph::batch(present, std::span(&placeholder, 1), std::span(&unit, 1));
  size_t next = 0;
  for (size_t k = 0; k < derivatives.size(); ++k) {
    if (!derivatives[k]) {
      out.push_back(graph::full(graph::prepend(all.shape()[0], like[k].shape()), like[k].dtype(), Number::of_real(0)));
      continue;
    }
    out.push_back(graph::batched(batched[next].value, batched[next].axis, all.shape()[0]));
    ++next;
  }
  return out;
}

Shape join(const Shape& a, const Shape& b) {
  Shape out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

/// Reshapes (elements, rest…) to (rest…, shape…).
Value units_last(const Value& v, const Shape& shape) {
  std::vector<int64_t> order;
  for (int64_t axis = 1; axis < v.type().rank(); ++axis) order.push_back(axis);
  order.push_back(0);
  return graph::reshape(graph::permute(v, order), join(Shape(v.shape().begin() + 1, v.shape().end()), shape));
}

/// Throws unless arguments and results are floats: units and derivatives have their dtypes.
void require_float_arguments(const char* op, const std::vector<int>& argnums, const std::vector<array>& arguments) {
  for (size_t n : transforms::checked_argnums(op, argnums, arguments.size()))
    transforms::require_float(op, ("argument " + std::to_string(n)).c_str(), arguments[n]);
}

void require_float_results(const char* op, const std::vector<array>& results) {
  for (size_t k = 0; k < results.size(); ++k)
    transforms::require_float(op, ("result " + std::to_string(k)).c_str(), results[k]);
}

Jacobian forward(const char* op, const ArrayFunction& fun, const std::vector<int>& argnums,
                 const std::vector<array>& arguments) {
  require_float_arguments(op, argnums, arguments);
  Watched watched(op, arguments, argnums);
  const std::vector<array> results = fun(watched.arguments());
  require_float_results(op, results);
  const Values outputs = values_of(results);
  Jacobian jacobian(results.size());
  for (size_t n = 0; n < watched.targets().size(); ++n) {
    const Value& target = watched.targets()[n];
    Values tangents(watched.targets().size());
    tangents[n] = graph::parameter(target.type());
    const Values columns =
        for_all_units(graph::push_forward(outputs, watched.targets(), tangents), tangents[n], outputs);
    for (size_t k = 0; k < results.size(); ++k) jacobian[k].emplace_back(units_last(columns[k], target.shape()));
  }
  return jacobian;
}

Jacobian reverse(const char* op, const ArrayFunction& fun, const std::vector<int>& argnums,
                 const std::vector<array>& arguments) {
  require_float_arguments(op, argnums, arguments);
  Watched watched(op, arguments, argnums);
  const std::vector<array> results = fun(watched.arguments());
  require_float_results(op, results);
  Jacobian jacobian(results.size());
  for (size_t k = 0; k < results.size(); ++k) {
    const Value output = results[k].value(), cotangent = graph::parameter(output.type());
    const Values flowing = graph::pull_back(std::span(&output, 1), std::span(&cotangent, 1), watched.targets());
    const Values rows = for_all_units(flowing, cotangent, watched.targets());
    for (size_t n = 0; n < rows.size(); ++n)
      jacobian[k].emplace_back(graph::reshape(rows[n], join(output.shape(), watched.targets()[n].shape())));
  }
  return jacobian;
}

ArrayFunction reverse_of_one(const char* op, const ArrayFunction& fun, const std::vector<int>& argnums) {
  return [=](const std::vector<array>& arguments) {
    Jacobian rows = reverse(op, fun, argnums, arguments);
    if (rows.size() != 1) throw_invalid(op, "the function must have one result, it has " + std::to_string(rows.size()));
    return rows[0];
  };
}

}  // namespace

UnaryFunction jacfwd(const UnaryFunction& fun) {
  return [fun = transforms::as_array_function(fun)](const array& x) { return forward("jacfwd", fun, {0}, {x})[0][0]; };
}
UnaryFunction jacrev(const UnaryFunction& fun) {
  return [fun = transforms::as_array_function(fun)](const array& x) { return reverse("jacrev", fun, {0}, {x})[0][0]; };
}
UnaryFunction hessian(const UnaryFunction& fun) {
  return [rows = reverse_of_one("hessian", transforms::as_array_function(fun), {0})](const array& x) {
    return forward("hessian", rows, {0}, {x})[0][0];
  };
}

JacobianFunction jacfwd(const ArrayFunction& fun, const std::vector<int>& argnums) {
  return [=](const std::vector<array>& arguments) { return forward("jacfwd", fun, argnums, arguments); };
}
JacobianFunction jacrev(const ArrayFunction& fun, const std::vector<int>& argnums) {
  return [=](const std::vector<array>& arguments) { return reverse("jacrev", fun, argnums, arguments); };
}
JacobianFunction hessian(const ScalarFunction& fun, const std::vector<int>& argnums) {
  return [rows = reverse_of_one("hessian", transforms::as_array_function(fun), argnums),
          argnums](const std::vector<array>& arguments) { return forward("hessian", rows, argnums, arguments); };
}

}  // namespace weft
