#pragma once
// Control flow inside the graph, with JAX's meanings: bodies are functions that are traced once, so that a loop of any
// length is one small program that runs again and again. They nest, they differentiate in both modes, they batch, and
// they run inside and outside of compile. What a body captures is the same in every step; it is differentiated like an
// argument.
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "weft/transforms.h"

namespace weft {

/// true_fun(operands) where `pred` (one bool) is true, else false_fun(operands): only that one runs. Both return arrays
/// of the same shapes and dtypes. Under vmap with a mapped condition both run, and each element takes its own.
WEFT_API std::vector<array> cond(const array& pred, const ArrayFunction& true_fun, const ArrayFunction& false_fun,
                                 const std::vector<array>& operands = {});

/// The carry after body_fun has been applied for as long as cond_fun(carry), one bool, is true; at most max_steps times
/// where that is given. The carry keeps its shapes and dtypes. Under vmap the loop runs until every element is done;
/// those that are done keep their carry.
///
/// Reverse derivatives: with max_steps each step's carry is kept (max_steps times its memory); without, it is computed
/// again from 24 snapshots (24 times its memory, and n/2 · log2(n) steps more for n steps).
/// Numbers drawn in the body from the default random sequence are the same in every step: carry a key and split it.
WEFT_API std::vector<array> while_loop(const ScalarFunction& cond_fun, const ArrayFunction& body_fun,
                                       const std::vector<array>& init, std::optional<int64_t> max_steps = std::nullopt);

/// f(carry, x) → carry and what this step gives. x are the elements of `xs` along their first axis, from the last one
/// if `reverse`. Returns the last carry and what the steps gave, stacked in the order of xs. Without xs, `length` says
/// how many steps there are. The carry keeps its shapes and dtypes. In a function that is compiled for any length the
/// first axis may be that length.
///
///     auto [last, all] = scan([&](const auto& c, const auto& x) { auto h = tanh(matmul(x[0], w) + matmul(c[0], u));
///       return std::pair{std::vector{h}, std::vector{h}}; },
///                             {h0}, {xs});
///
/// Reverse derivatives keep each step's carry and the results of products in it, and compute the rest again. Numbers
/// drawn in f from the default random sequence differ from step to step (where the number of steps is known only later,
/// they are those of a loop of its bound).
using ScanFunction = std::function<std::pair<std::vector<array>, std::vector<array>>(const std::vector<array>& carry,
                                                                                     const std::vector<array>& x)>;
WEFT_API std::pair<std::vector<array>, std::vector<array>> scan(const ScanFunction& f, const std::vector<array>& init,
                                                                const std::vector<array>& xs,
                                                                std::optional<int64_t> length = std::nullopt,
                                                                bool reverse = false);

}  // namespace weft
