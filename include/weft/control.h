#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "weft/transforms.h"

/// Control flow inside the graph, with JAX's meanings: bodies are functions that are traced once, so a loop of any
/// length is one small program that runs many times. They nest, differentiate in both modes, batch, and run inside and
/// outside of compile. What a body captures is the same in every step; it is differentiated like an argument.
namespace weft {

/// Returns true_fun(operands) where `pred` (one bool) is true, else false_fun(operands): only that one runs. Both
/// return arrays of the same shapes and dtypes. Under vmap with a mapped condition both run, and each element takes its
/// own.
WEFT_API std::vector<array> cond(const array& pred, const ArrayFunction& true_fun, const ArrayFunction& false_fun,
                                 const std::vector<array>& operands = {});

/// Returns the carry after body_fun was applied for as long as cond_fun(carry), one bool, is true; at most max_steps
/// times where that is given. The carry keeps its shapes and dtypes. Under vmap the loop runs until every element is
/// done; those that are done keep their carry.
///
/// Reverse derivatives: with max_steps the carry of each step is kept (max_steps times its memory); without, it is
/// computed again from 24 snapshots (24 times its memory, and n/2 · log2(n) steps more for n steps). Numbers drawn in
/// the body from the default random sequence are the same in every step: carry a key and split it.
WEFT_API std::vector<array> while_loop(const ScalarFunction& cond_fun, const ArrayFunction& body_fun,
                                       const std::vector<array>& init, std::optional<int64_t> max_steps = std::nullopt);

/// A step of scan: takes the carry and the elements of this step, returns the next carry and the results of this step.
using ScanFunction = std::function<std::pair<std::vector<array>, std::vector<array>>(const std::vector<array>& carry,
                                                                                     const std::vector<array>& x)>;
/// Returns the last carry and the results of all steps, stacked in the order of xs. Step i calls f with the carry and
/// element i of each of `xs` along its first axis, from the last one if `reverse`. Without xs, `length` is the number
/// of steps. The carry keeps its shapes and dtypes. In a function that is compiled with a dynamic axis the first axis
/// may be that axis.
///
///     const ScanFunction cell = [&](const std::vector<array>& carry, const std::vector<array>& x) {
///       const array h = tanh(matmul(x[0], w) + matmul(carry[0], u));
///       return std::pair{std::vector{h}, std::vector{h}};
///     };
///     auto [last, all] = scan(cell, {h0}, {xs});
///
/// Reverse derivatives keep the carry of each step and the results of matrix products in it, and compute the rest
/// again. Numbers drawn in f from the default random sequence differ from step to step (where the number of steps is
/// dynamic, they are those of a loop of its bound).
WEFT_API std::pair<std::vector<array>, std::vector<array>> scan(const ScanFunction& f, const std::vector<array>& init,
                                                                const std::vector<array>& xs,
                                                                std::optional<int64_t> length = std::nullopt,
                                                                bool reverse = false);

}  // namespace weft
