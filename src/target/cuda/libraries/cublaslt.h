#pragma once
// Matmuls by cuBLASLt.
//
// The rule: cuBLASLt takes a matmul when
//   - the dtypes are f32·f32→f32 or f64·f64→f64; bf16·bf16 or f16·f16 → the same or f32, summed in f32; s8·s8→s32; or
//     8-bit floats (e4m3·e4m3, e4m3·e5m2, e5m2·e4m3) → f16, bf16 or f32 on devices that have them, where k is the
//     contiguous axis of both operands and m, n, k are multiples of 16;
//   - batch·m·n·k >= cublaslt_min_work;
//   - one of the last two strides of A, of B and of C is 1 (that of C's rows, with a bias), and C does not overlap;
//   - batch axes merge into one, and the remaining ones make up to cublaslt_max_calls calls;
//   - the epilogue is a bias, relu, gelu_tanh (cuBLASLt's gelu), or a residual without an activation; for 16-bit
//   results
//     also gelu_tanh with the pre-activation as an additional result, or with its derivative as a factor;
//   - cuBLASLt knows an algorithm for all that on this device.
// Everything else is left to generated code.
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kernel/describe/desc.h"
#include "target/cuda/driver/candidates.h"
#include "target/cuda/driver/context.h"
#include "target/cuda/libraries/cublaslt_api.h"
#include "target/target.h"

namespace weft::target::cuda {

inline constexpr double cublaslt_min_work = 32.0 * 32.0 * 32.0;
inline constexpr int64_t cublaslt_max_calls = 32;
inline constexpr size_t cublaslt_workspace_bytes = size_t{32} << 20;

struct CublasltOptions {
  bool tf32 = false;   // float32 matmuls may round their operands to TF32
  bool search = true;  // candidates are measured (driver/candidates.h); otherwise the heuristic's first runs
  std::vector<Candidate> others = {};  // further candidates to measure
};

/// A matrix as cuBLASLt sees it: column-major with leading dimension `leading`, as stored, before `transposed`.
struct LtMatrix {
  lt::DataType type = lt::r_32f;
  bool transposed = false;
  int64_t rows = 0, columns = 0, leading = 0, batch_stride = 0;
  bool operator==(const LtMatrix&) const = default;
};

/// The matmul in cuBLASLt's terms: D[m×n] = epilogue(op(A) · op(B) + beta C).
struct LtForm {
  /// The offsets of the operands of one call, in elements; a matmul may take several calls.
  struct Offset {
    int64_t a = 0, b = 0, c = 0;
  };
  bool swapped = false;  // its A is our B and its B our A; its D is our row-major C transposed
  LtMatrix a, b, d;
  int64_t batch = 1;
  std::vector<Offset> calls;
  uint32_t epilogue = lt::epilogue_default;
  lt::ComputeType compute = lt::compute_32f;
  lt::DataType scale = lt::r_32f;
};

/// Returns the form, or nothing where the rule above says no (its last line needs a device and is not checked).
std::optional<LtForm> cublaslt_form(const kernel::DotDesc& desc, bool tf32 = false);

/// Returns a call for the context's stream with workspace (shared by all calls of the stream) and algorithm. Null if
/// the rule says no or cuBLASLt is missing. `run` takes device addresses, returns when the work is enqueued, and may be
/// captured.
std::shared_ptr<const LibraryCall> cublaslt(const kernel::DotDesc& desc, Context& context,
                                            const CublasltOptions& options = {});

/// Opens the library and asks it for one matmul, so that its start-up work is done early.
void start_cublaslt(Context& context);

}  // namespace weft::target::cuda
