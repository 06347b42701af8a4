#pragma once
#include <string>
#include <utility>
#include <vector>

#include "weft/array.h"

namespace weft {

/// Returns Einstein's summation, as NumPy writes it: "ij,jk->ik". Letters name axes; a letter that is not in the result
/// is summed over; twice in one operand it takes the diagonal; "..." is any number of leading axes, broadcast; without
/// "->" the result has the letters that occur once, in alphabetical order. Any number of operands, contracted pair by
/// pair in a good order, each pair one matrix product. Integers are multiplied and summed.
///
/// Beyond NumPy: "(2*o+3*k)" is one axis of which element 2·o + 3·k is taken, as in a convolution:
/// "nc(2*o+k),dck->ndo". The length of one of the two letters must be known from another operand; the other is as long
/// as fits. Throws std::invalid_argument for subscripts that do not fit the operands.
WEFT_API array einsum(const std::string& subscripts, const std::vector<array>& operands, StreamOrDevice s = {});

/// Returns the order in which `einsum` contracts, and a description of its cost. The order is pairs of positions in the
/// list of operands, whose product goes to the end of the list.
WEFT_API std::pair<std::vector<std::vector<int>>, std::string> einsum_path(const std::string& subscripts,
                                                                           const std::vector<array>& operands);

}  // namespace weft
