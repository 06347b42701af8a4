#pragma once
#include <string>
#include <utility>
#include <vector>

#include "weft/array.h"

namespace weft {

/// Returns Einstein's summation, as NumPy writes it: "ij,jk->ik". Letters name axes; a letter that is not in the result
/// is summed over; twice in one operand it takes the diagonal; "..." is any number of axes, broadcast, and summed over
/// where the result has none; without "->" the result has those of "...", then the letters that occur once, in
/// alphabetical order. Any number of operands, contracted pair by pair in the order of `einsum_path`, each pair one
/// matrix product. Integers are multiplied and summed. The result has the operands' promoted dtype.
///
/// Beyond NumPy, an axis of an operand may be a sum in parentheses, of which the element at that position is taken:
/// "(2*o+3*k+1)" reads element 2·o + 3·k + 1, as a convolution does. Its terms are index names, positive integers times
/// index names, and integers. Of the indices of a sum all but one must have a length from another axis or sum; the last
/// is as long as fits. Where there are parentheses and a space stands between two axes, names are words and spaces
/// separate them:
///
///     array x = ones({1, 9, 9, 3}), w = ones({3, 3, 3, 8});
///     array y = einsum("b (2*oh+kh) (2*ow+kw) c, kh kw c o -> b oh ow o", {x, w});  // [1, 4, 4, 8]
///     array same = einsum("b(2*i+k)(2*j+l)c,klco->bijo", {x, w});
///
/// A sum is a view of windows, so derivatives and batching are those of a product. Throws std::invalid_argument for
/// subscripts that do not fit the operands, and for what is no such sum.
WEFT_API array einsum(const std::string& subscripts, const std::vector<array>& operands, StreamOrDevice s = {});

/// Returns the order in which `einsum` contracts, which is MLX's, and a description of its cost. Each step is the
/// ascending positions, in the list of operands, of those that it contracts: one for a single operand, else two, or
/// more where no pair is cheaper than all at once. Their product goes to the end of the list.
WEFT_API std::pair<std::vector<std::vector<int>>, std::string> einsum_path(const std::string& subscripts,
                                                                           const std::vector<array>& operands);

}  // namespace weft
