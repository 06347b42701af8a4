#pragma once
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "weft/array.h"

/// Functions on functions. They compose in any order: every derivative and every batched function is a graph of
/// ordinary operators again.
///
/// A function that is transformed is called once, with arrays that have no data yet (vmap) or whose history is watched
/// (the others). Arrays that it captures are constants to a derivative and the same for a whole batch.
namespace weft {

using ArrayFunction = std::function<std::vector<array>(const std::vector<array>&)>;
using ScalarFunction = std::function<array(const std::vector<array>&)>;  ///< for grad: returns a scalar (shape ())
using UnaryFunction = std::function<array(const array&)>;
using BinaryFunction = std::function<array(const array&, const array&)>;
using ValueAndGradFunction =
    std::function<std::pair<std::vector<array>, std::vector<array>>(const std::vector<array>&)>;
using SimpleValueAndGradFunction = std::function<std::pair<array, std::vector<array>>(const std::vector<array>&)>;
using ValueAndGradFn = ValueAndGradFunction;  ///< MLX's names of the same
using SimpleValueAndGradFn = SimpleValueAndGradFunction;

/// f's value (first result, a scalar) with the gradients of the arguments in `argnums` (-1 is the last). Results beyond
/// the first are carried along.
///
///     auto loss_and_grads = value_and_grad([&](const std::vector<array>& p) { return loss(p, x, y); }, {0, 1});
WEFT_API ValueAndGradFunction value_and_grad(const ArrayFunction& fun, const std::vector<int>& argnums);
WEFT_API ValueAndGradFunction value_and_grad(const ArrayFunction& fun, int argnum = 0);
WEFT_API SimpleValueAndGradFunction value_and_grad(const ScalarFunction& fun, const std::vector<int>& argnums);
WEFT_API SimpleValueAndGradFunction value_and_grad(const ScalarFunction& fun, int argnum = 0);
WEFT_API std::function<std::pair<array, array>(const array&)> value_and_grad(const UnaryFunction& fun);

WEFT_API ArrayFunction grad(const ScalarFunction& fun, const std::vector<int>& argnums);
WEFT_API ArrayFunction grad(const ScalarFunction& fun, int argnum = 0);
WEFT_API UnaryFunction grad(const UnaryFunction& fun);

/// Results of fun at the primals, and the products of the cotangents (one for each result, of its shape) with its
/// Jacobian: one for each primal.
WEFT_API std::pair<std::vector<array>, std::vector<array>> vjp(const ArrayFunction& fun,
                                                               const std::vector<array>& primals,
                                                               const std::vector<array>& cotangents);
WEFT_API std::pair<array, array> vjp(const UnaryFunction& fun, const array& primal, const array& cotangent);

/// Results of fun at the primals, and the products of its Jacobian with the tangents (one for each primal, of its
/// shape): one for each result, zeros where nothing arrives or the function is discrete; derivatives of integers are
/// integers.
WEFT_API std::pair<std::vector<array>, std::vector<array>> jvp(const ArrayFunction& fun,
                                                               const std::vector<array>& primals,
                                                               const std::vector<array>& tangents);
WEFT_API std::pair<array, array> jvp(const UnaryFunction& fun, const array& primal, const array& tangent);

/// Jacobians of whole arrays: shape of the result, then shape of the argument. `jacfwd` pushes all unit tangents at
/// once (for few inputs), `jacrev` pulls all unit cotangents at once (for few results); the number of kernels does not
/// depend on their number. `hessian` is jacfwd of jacrev: result, argument, argument.
WEFT_API UnaryFunction jacfwd(const UnaryFunction& fun);
WEFT_API UnaryFunction jacrev(const UnaryFunction& fun);
WEFT_API UnaryFunction hessian(const UnaryFunction& fun);
/// The same for several arrays: [k][n] is the derivative of result k by argument argnums[n]. For a Hessian, [m][n] is
/// that of a function with one result by arguments argnums[m] and argnums[n].
using JacobianFunction = std::function<std::vector<std::vector<array>>(const std::vector<array>&)>;
WEFT_API JacobianFunction jacfwd(const ArrayFunction& fun, const std::vector<int>& argnums);
WEFT_API JacobianFunction jacrev(const ArrayFunction& fun, const std::vector<int>& argnums);
WEFT_API JacobianFunction hessian(const ScalarFunction& fun, const std::vector<int>& argnums);

/// The function applied to every element along an axis of its arguments, all at once. In `in_axes` -1 is an argument
/// that is the same for all (other axes count from the front); no axes at all: 0 for every argument. `out_axes` say
/// where results carry the batch axis; beside others, negative ones are counted from the end. Every result has one: one
/// that depends on no mapped argument is repeated along it. Lists of which one alone names no axis from the front are
/// refused at once, as by MLX; an axis that an argument or a result lacks throws std::out_of_range in the call.
///
/// Numbers drawn inside from the default random sequence are drawn for each element anew; a key that is mapped draws
/// what it would draw by itself.
WEFT_API ArrayFunction vmap(const ArrayFunction& fun, const std::vector<int>& in_axes = {},
                            const std::vector<int>& out_axes = {});
WEFT_API UnaryFunction vmap(const UnaryFunction& fun, int in_axis = 0, int out_axis = 0);
WEFT_API BinaryFunction vmap(const BinaryFunction& fun, int in_axis_a = 0, int in_axis_b = 0, int out_axis = 0);

/// A function with derivatives or a batched form of its own; what is not given follows from the function itself. As in
/// MLX:
///   vjp(primals, cotangents, outputs) → one cotangent for each primal
///   jvp(primals, tangents, argnums) → one tangent for each output; tangents are those of the primals in argnums
///   vmap(inputs, axes) → outputs and their axes (-1: not mapped)
/// Arrays that `fun` captures get no gradient through a vjp of its own, and no tangent through a jvp: pass what is to
/// be differentiated.
using CustomVjp =
    std::function<std::vector<array>(const std::vector<array>&, const std::vector<array>&, const std::vector<array>&)>;
using CustomJvp =
    std::function<std::vector<array>(const std::vector<array>&, const std::vector<array>&, const std::vector<int>&)>;
using CustomVmap =
    std::function<std::pair<std::vector<array>, std::vector<int>>(const std::vector<array>&, const std::vector<int>&)>;
WEFT_API ArrayFunction custom_function(const ArrayFunction& fun, const std::optional<CustomVjp>& fun_vjp = std::nullopt,
                                       const std::optional<CustomJvp>& fun_jvp = std::nullopt,
                                       const std::optional<CustomVmap>& fun_vmap = std::nullopt);
WEFT_API ArrayFunction custom_vjp(const ArrayFunction& fun, const CustomVjp& fun_vjp);

/// The same function, whose gradient computes it again instead of keeping what it computed on the way: less memory for
/// one more forward pass. What is computed again has the same bits, random numbers included; gradients, also of arrays
/// that it captures, are the same but for the order in which contributions to one array are added.
WEFT_API ArrayFunction checkpoint(const ArrayFunction& fun);

/// Gradients of a scalar with respect to arrays that it was computed from; the arrays keep their identity, which is
/// what modules need. Gradients of what the scalar does not depend on are zeros.
WEFT_API std::vector<array> gradients(const array& scalar, const std::vector<array>& with_respect_to);

}  // namespace weft
