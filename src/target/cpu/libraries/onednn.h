#pragma once
// Matmuls by oneDNN (its v2 and v3 API). Built without WEFT_HAVE_ONEDNN, every query returns null.
//
// oneDNN takes a matmul if
//
//   - the dtypes are f32·f32→f32; bf16·bf16 or f16·f16 → the same or f32, summed in f32; s8·s8 or u8·s8 → s32
//     (without bias, on processors with VNNI: it saturates on others);
//   - batch·m·n·k >= onednn_min_work: a call costs about 0.7 µs before the first matmul, generated code about 0.05 µs;
//   - one of the last two strides of A and of B is 1, and C's rows or columns are contiguous (for columns, the
//     transposed matmul is computed, without a bias only);
//   - oneDNN has an optimised implementation for that layout (never its reference one).
//
// All other matmuls use generated code. The answer depends on the descriptor alone, not on timing. Large matmuls are
// cut into pieces by their size alone, and each piece runs on one thread, so the bits do not depend on the number of
// threads.
#include <memory>
#include <string>

#include "kernel/describe/desc.h"
#include "target/target.h"

namespace weft::target {

inline constexpr double onednn_min_work = 32.0 * 32.0 * 32.0;

/// Returns a call for a matmul, or null if oneDNN does not take it. The call may run on any thread, also inside the
/// thread team (then on that thread alone).
std::shared_ptr<const LibraryCall> onednn_dot(const kernel::DotDesc& desc);
/// Returns the version, "2.6.3", or "" if built without oneDNN.
std::string onednn_version();
/// The widest instruction set that oneDNN has code for, that this processor supports and that is not disabled
/// (ONEDNN_MAX_CPU_ISA, limit_onednn).
struct OnednnIsa {
  const char* name;  // vendor's spelling: "AVX2"; "" if built without oneDNN
  int vector_bits;
};
OnednnIsa onednn_isa();
/// Limits oneDNN to "generic", "avx2" or "avx512"; "native": no limit. Throws if oneDNN has been used already.
void limit_onednn(const std::string& isa);

}  // namespace weft::target
