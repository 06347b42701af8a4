#pragma once
// The kernels of the attention that a descriptor asks for: a candidate beside libraries.
#include <optional>

#include "kernel/describe/attention_desc.h"
#include "kernel/routines/routine.h"
#include "kernels/attention/attention.h"
#include "target/machine.h"

namespace weft::kernels {

/// Returns a descriptor's attention over [batch, key heads, heads of one key head]. Buffers are its operands in their
/// order, then the sums of rows that its derivative needs.
Attention attention_of(const kernel::AttentionDesc& desc);

/// Returns the kernels in their order, with scratch for what is between them; the same bits on every run. None where
/// the attention has no such kernels: operands are 16-bit floats whose columns are contiguous and whose other strides
/// are whole 16 bytes, every query sees a key, and sums and scores fit into registers.
std::optional<kernel::Routine> attention_routine(const kernel::AttentionDesc& desc, const target::Machine& machine);

/// Returns whether such kernels are worth being compiled and measured beside a library's: the attention is no small
/// one.
bool attention_may_win(const kernel::AttentionDesc& desc);

}  // namespace weft::kernels
