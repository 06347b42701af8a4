#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "weft/array.h"

namespace weft {

using ArrayFunction = std::function<std::vector<array>(const std::vector<array>&)>;
using ScalarFunction = std::function<array(const std::vector<array>&)>;  ///< returns a scalar (shape ()) of a float dtype

/// f's value (first result, a float scalar) with the gradients of the arguments in `argnums`. Results beyond the first are carried along.
///
///     auto loss_and_grads = value_and_grad([&](const std::vector<array>& p) { return loss(p, x, y); }, {0, 1});
WEFT_API std::function<std::pair<std::vector<array>, std::vector<array>>(const std::vector<array>&)> value_and_grad(
    const ArrayFunction& fun, const std::vector<int>& argnums);
WEFT_API std::function<std::pair<array, std::vector<array>>(const std::vector<array>&)> value_and_grad(
    const ScalarFunction& fun, const std::vector<int>& argnums);
WEFT_API std::function<std::pair<array, array>(const array&)> value_and_grad(const std::function<array(const array&)>& fun);

WEFT_API std::function<std::vector<array>(const std::vector<array>&)> grad(const ScalarFunction& fun, const std::vector<int>& argnums);
WEFT_API std::function<array(const array&)> grad(const std::function<array(const array&)>& fun);

/// Results of fun at primals, and the products of the cotangents with its Jacobian.
WEFT_API std::pair<std::vector<array>, std::vector<array>> vjp(const ArrayFunction& fun, const std::vector<array>& primals,
                                                              const std::vector<array>& cotangents);

/// Gradients of a scalar with respect to arrays that it was computed from; the arrays keep their identity, which is what modules need.
/// Gradients of what the scalar does not depend on are zeros.
WEFT_API std::vector<array> gradients(const array& scalar, const std::vector<array>& with_respect_to);

}  // namespace weft
