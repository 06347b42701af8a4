#pragma once
// What calls of cuSOLVER and cuBLAS share, one matrix after the other (cusolver.cpp) or batched (cusolver_batched.cpp).
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernel/describe/desc.h"
#include "target/cuda/driver/workspace.h"
#include "target/cuda/handwritten/linalg_kernels.h"
#include "target/cuda/libraries/cusolver_api.h"
#include "target/target.h"

namespace weft::target::cuda::cusolver {

enum class Routine { cholesky, solve_triangular, lu, qr, svd, eigh };

/// A descriptor's matrices as the routines see them.
struct Problem {
  Problem(Routine routine, const kernel::CallDesc& desc);
  std::vector<LinalgKernels::Matrices> parts(std::span<void* const> operands, std::initializer_list<size_t> of) const;

  Routine routine;
  std::string what;  // for errors
  int64_t count = 1;
  std::vector<size_t> bytes;  // of one matrix's part, by operand
  std::vector<bool> used;
  int m = 0, n = 0;                    // rows and columns
  int columns = 0;                     // of the right side, or of Q
  bool first = false, second = false;  // the call's integers
  Vectors wanted = vectors;
  Dtype element;  // float32, float64, complex64 or complex128
};

/// What all calls on a device share. Calls take turns: the routines of one handle are not thread-safe.
struct Shared {
  Handle handle = nullptr;
  Blas blas = nullptr;
  Jacobi jacobi = nullptr;
  SymmetricJacobi symmetric = nullptr;
  Parameters parameters = nullptr;  // null where the newer routines are not there
  std::mutex mutex;
};

template <class T>
const Routines<T>& routines() {
  return std::get<Routines<T>>(api()->routines);
}

/// Returns f(T()) for the element type T of a problem.
template <class F>
auto for_element(Dtype element, F f) {
  if (element == complex128) return f(std::complex<double>());
  if (element == complex64) return f(std::complex<float>());
  if (element == float64) return f(double());
  return f(float());
}

constexpr size_t grain = 256;  // alignment of parts of the workspace, in bytes
inline size_t padded(size_t bytes) { return (bytes + grain - 1) / grain * grain; }

/// Throws if a routine reports failure.
void check_solver(int status, const char* call, const std::string& what);

/// Returns a call for all matrices at once; null if there is no correct routine for it.
std::shared_ptr<const LibraryCall> batched_call(const Problem& problem, Context& context, Shared& shared,
                                                std::shared_ptr<const LinalgKernels> kernels);
/// Returns whether the batched call is preferred.
bool batches(const Problem& problem, const Shared& shared);

}  // namespace weft::target::cuda::cusolver
