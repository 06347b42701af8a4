#pragma once
// The numbers of a kernel that may be arguments of its launches as well as parts of its code: lengths, strides and
// offsets, from which addresses, limits, ends of loops and comparisons are computed, and quotients of lengths.
#include <cstdint>
#include <span>
#include <vector>

#include "kernel/tile.h"

namespace weft::kernel {

/// Returns whether numbers of the kernel can be arguments. Not where programs meet, where copies and products are
/// asynchronous, where a target's own code may know them, and where tiles have any size.
bool takes_numbers(const Kernel& kernel);

/// Returns the bits of the numbers, in the order in which instructions use them; one that is used twice is there twice.
std::vector<int64_t> numbers(const Kernel& kernel);

/// Returns the kernel with its use k of a number replaced by symbol kernel.symbols.size() + arguments[k], which takes
/// the number's bits; uses with -1 stay as they are. What says nothing becomes the same for all lengths: strides along
/// axes of which one element is read or written, and the sizes of small local buffers, which grow to a power of two.
Kernel with_arguments(const Kernel& kernel, std::span<const int> arguments);

}  // namespace weft::kernel
