#pragma once
// oneDNN's answer to a matmul (its v2 and v3 API). Built without WEFT_HAVE_ONEDNN, every answer is
// null.
//
// The rule: oneDNN takes a matmul when
//   - the dtypes are f32·f32→f32; bf16·bf16 or f16·f16 → the same or f32, summed in f32; s8·s8 or u8·s8 → s32 (without
//     bias, on
//     processors with VNNI: elsewhere it saturates);
//   - batch·m·n·k >= onednn_min_work: a call costs about 0.7 µs before the first matmul, generated code
//   about 0.05 µs;
//   - one of the last two strides of A and of B is 1, and C's rows, or its columns, are contiguous (columns:
//   the transposed matmul is
//     computed, without a bias only);
//   - oneDNN has an optimised implementation for that layout (never its reference one).
// Everything else is left to generated code. The answer depends on the descriptor alone, not on timing.
// Large matmuls are cut into pieces by their size alone; each piece runs on one thread, so the bits do not depend on
// how many there are.
#include <memory>
#include <string>

#include "kernel/describe/desc.h"
#include "target/target.h"

namespace weft::target {

inline constexpr double onednn_min_work = 32.0 * 32.0 * 32.0;

/// Null where the rule says no, or where oneDNN declines. The call may run on any thread, also inside the
/// thread team (then on that thread alone).
std::shared_ptr<const LibraryCall> onednn_dot(const kernel::DotDesc& desc);
/// "2.6.3", or "" where built without it.
std::string onednn_version();
/// The widest instruction set that oneDNN has code for, uses on this processor and is not denied (ONEDNN_MAX_CPU_ISA,
/// limit_onednn).
struct OnednnIsa {
  const char* name;  // as its makers write it: "AVX2"; "" where built without oneDNN
  int vector_bits;
};
OnednnIsa onednn_isa();
/// No code of oneDNN's for more than "generic", "avx2" or "avx512"; "native": no limit. Throws where it has been used
/// already.
void limit_onednn(const std::string& isa);

}  // namespace weft::target
