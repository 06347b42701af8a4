#pragma once
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "weft/array.h"

/// Transforms functions: derivatives, batching, recomputation. Transforms compose in any order: every derivative and
/// every batched function is a graph of ordinary operators again.
///
/// A function that is transformed is called once, with arrays that have no data yet (vmap) or whose history is recorded
/// (the others). Arrays that it captures are constants to a derivative and the same for a whole batch. Numbers and
/// shapes of arguments that do not fit throw std::invalid_argument in the call.
namespace weft {

/// A function of arrays.
using ArrayFunction = std::function<std::vector<array>(const std::vector<array>&)>;
/// A function whose result is a scalar (shape []), for grad.
using ScalarFunction = std::function<array(const std::vector<array>&)>;
/// A function of one array.
using UnaryFunction = std::function<array(const array&)>;
/// A function of two arrays.
using BinaryFunction = std::function<array(const array&, const array&)>;
/// What value_and_grad returns: (results, gradients).
using ValueAndGradFunction =
    std::function<std::pair<std::vector<array>, std::vector<array>>(const std::vector<array>&)>;
/// What value_and_grad of a ScalarFunction returns: (value, gradients).
using SimpleValueAndGradFunction = std::function<std::pair<array, std::vector<array>>(const std::vector<array>&)>;
/// MLX's names of the same.
using ValueAndGradFn = ValueAndGradFunction;
using SimpleValueAndGradFn = SimpleValueAndGradFunction;

/// Returns a function that computes the results of fun and the gradients of its first result, a scalar, with respect to
/// the arguments in `argnums` (-1 is the last). Each gradient has the shape and dtype of its argument. Throws
/// std::invalid_argument in the call where the first result is no floating scalar.
///
///     auto loss_and_grads = value_and_grad([&](const std::vector<array>& p) { return loss(p, x, y); }, {0, 1});
WEFT_API ValueAndGradFunction value_and_grad(const ArrayFunction& fun, const std::vector<int>& argnums);
WEFT_API ValueAndGradFunction value_and_grad(const ArrayFunction& fun, int argnum = 0);
WEFT_API SimpleValueAndGradFunction value_and_grad(const ScalarFunction& fun, const std::vector<int>& argnums);
WEFT_API SimpleValueAndGradFunction value_and_grad(const ScalarFunction& fun, int argnum = 0);
WEFT_API std::function<std::pair<array, array>(const array&)> value_and_grad(const UnaryFunction& fun);

/// Returns a function that computes the gradients of value_and_grad alone.
WEFT_API ArrayFunction grad(const ScalarFunction& fun, const std::vector<int>& argnums);
WEFT_API ArrayFunction grad(const ScalarFunction& fun, int argnum = 0);
WEFT_API UnaryFunction grad(const UnaryFunction& fun);

/// Returns the results of fun at the primals, and the products of the cotangents (one for each result, of its shape)
/// with its Jacobian: one for each primal.
WEFT_API std::pair<std::vector<array>, std::vector<array>> vjp(const ArrayFunction& fun,
                                                               const std::vector<array>& primals,
                                                               const std::vector<array>& cotangents);
WEFT_API std::pair<array, array> vjp(const UnaryFunction& fun, const array& primal, const array& cotangent);

/// Returns the results of fun at the primals, and the products of its Jacobian with the tangents (one for each primal,
/// of its shape): one for each result, zeros where nothing arrives or the function is discrete. Derivatives of integers
/// are integers.
WEFT_API std::pair<std::vector<array>, std::vector<array>> jvp(const ArrayFunction& fun,
                                                               const std::vector<array>& primals,
                                                               const std::vector<array>& tangents);
WEFT_API std::pair<array, array> jvp(const UnaryFunction& fun, const array& primal, const array& tangent);

/// Returns a function that computes the Jacobian of whole arrays: shape of the result, then shape of the argument. All
/// unit tangents are pushed at once, for few inputs; the number of kernels does not depend on their number.
WEFT_API UnaryFunction jacfwd(const UnaryFunction& fun);
/// Returns a function that computes the same Jacobian by pulling all unit cotangents at once, for few results.
WEFT_API UnaryFunction jacrev(const UnaryFunction& fun);
/// Returns a function that computes the Hessian, jacfwd of jacrev: shapes of the result, the argument, the argument.
WEFT_API UnaryFunction hessian(const UnaryFunction& fun);
/// A function that returns derivatives by several arguments: [k][n] is the derivative of result k by argument
/// argnums[n].
using JacobianFunction = std::function<std::vector<std::vector<array>>(const std::vector<array>&)>;
/// Returns a function that computes Jacobians by several arguments, forward.
WEFT_API JacobianFunction jacfwd(const ArrayFunction& fun, const std::vector<int>& argnums);
/// Returns a function that computes Jacobians by several arguments, in reverse.
WEFT_API JacobianFunction jacrev(const ArrayFunction& fun, const std::vector<int>& argnums);
/// Returns a function that computes Hessians: [m][n] is the second derivative by arguments argnums[m] and argnums[n].
WEFT_API JacobianFunction hessian(const ScalarFunction& fun, const std::vector<int>& argnums);

/// Returns the function applied to every element along an axis of its arguments, all at once. In `in_axes` -1 is an
/// argument that is the same for all elements (other axes count from the front); no axes at all are 0 for every
/// argument. `out_axes` are the positions of the batch axis in the results; next to an axis from the front, negative
/// ones count from the end. Every result has a batch axis: one that depends on no mapped argument is repeated along it.
/// A list in which no axis counts from the front is refused at once, as by MLX; an axis that an argument or a result
/// lacks throws std::out_of_range in the call.
///
/// Numbers drawn inside from the default random sequence are drawn for each element anew; a key that is mapped draws
/// what it would draw by itself.
WEFT_API ArrayFunction vmap(const ArrayFunction& fun, const std::vector<int>& in_axes = {},
                            const std::vector<int>& out_axes = {});
WEFT_API UnaryFunction vmap(const UnaryFunction& fun, int in_axis = 0, int out_axis = 0);
WEFT_API BinaryFunction vmap(const BinaryFunction& fun, int in_axis_a = 0, int in_axis_b = 0, int out_axis = 0);

/// The derivative rules and the batched form that custom_function takes:
///   vjp(primals, cotangents, outputs) → one cotangent for each primal
///   jvp(primals, tangents, argnums) → one tangent for each output; tangents are those of the primals in argnums
///   vmap(inputs, axes) → outputs and their axes (-1: not mapped)
using CustomVjp =
    std::function<std::vector<array>(const std::vector<array>&, const std::vector<array>&, const std::vector<array>&)>;
using CustomJvp =
    std::function<std::vector<array>(const std::vector<array>&, const std::vector<array>&, const std::vector<int>&)>;
using CustomVmap =
    std::function<std::pair<std::vector<array>, std::vector<int>>(const std::vector<array>&, const std::vector<int>&)>;
/// Returns the function with derivatives or a batched form of its own; what is not given follows from the function
/// itself, as in MLX. Arrays that `fun` captures get no gradient through a vjp of its own, and no tangent through a
/// jvp: pass what is to be differentiated.
WEFT_API ArrayFunction custom_function(const ArrayFunction& fun, const std::optional<CustomVjp>& fun_vjp = std::nullopt,
                                       const std::optional<CustomJvp>& fun_jvp = std::nullopt,
                                       const std::optional<CustomVmap>& fun_vmap = std::nullopt);
/// Returns the function with a vjp of its own.
WEFT_API ArrayFunction custom_vjp(const ArrayFunction& fun, const CustomVjp& fun_vjp);

/// Returns the same function, whose gradient computes it again instead of keeping its intermediate results: less memory
/// for one more forward pass. What is computed again has the same bits, random numbers included; gradients, also of
/// arrays that it captures, are the same but for the order in which contributions to one array are added.
WEFT_API ArrayFunction checkpoint(const ArrayFunction& fun);

/// Returns the gradients of a scalar with respect to arrays that it was computed from; zeros for those it does not
/// depend on. The arrays keep their identity, which is what modules need.
WEFT_API std::vector<array> gradients(const array& scalar, const std::vector<array>& with_respect_to);

}  // namespace weft
