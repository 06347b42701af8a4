#pragma once
// Decompositions by Eigen (calls defined in graph/calls/call_linalg.cpp, call_orthogonal.cpp and call_eig.cpp): one
// matrix at a time, and the matrices of a batch in parallel. Elements of complex matrices
// (graph/complex/complex_calls.cpp) are pairs in memory, which std::complex is too.
#include <algorithm>
#include <complex>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include <Eigen/Core>

#include "target/cpu/routines/calls.h"

namespace weft::target {

/// Returns whether the matrices are complex: arrays then have an axis of pairs more.
bool has_pairs(const kernel::CallDesc& desc);

/// Returns a call that runs each(operands of one matrix) for every matrix of the batch, that is, for each index of all
/// axes of the first input except those of a matrix.
std::shared_ptr<const LibraryCall> over_matrices(const kernel::CallDesc& desc,
                                                 std::function<void(std::span<void* const> operands)> each);

struct MatrixSize {
  int64_t rows, columns;  // of the first input: its last axis but one, and its last, besides the pairs
};
MatrixSize matrix_size(const kernel::CallDesc& desc);

template <class T>
void fill_nan(void* to, int64_t count) {
  std::fill_n(static_cast<T*>(to), count, T(std::numeric_limits<typename Eigen::NumTraits<T>::Real>::quiet_NaN()));
}

/// Returns over_matrices with make(number), a function for matrices of the number's type: float, double, or a complex
/// number of such parts.
template <class Make>
std::shared_ptr<const LibraryCall> for_dtype(const kernel::CallDesc& desc, Make make) {
  const bool wide = desc.inputs[0].dtype == float64;
  if (has_pairs(desc))
    return wide ? over_matrices(desc, make(std::complex<double>())) : over_matrices(desc, make(std::complex<float>()));
  return wide ? over_matrices(desc, make(0.0)) : over_matrices(desc, make(0.0f));
}

/// The type of a number's parts, and that of the number in float64.
template <class T>
using Part = typename Eigen::NumTraits<T>::Real;
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, Part<T>>, double, std::complex<double>>;

template <class T>
using Dense = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

/// The eigenvalues of a Hermitian matrix, ascending, and its eigenvectors as columns, empty where none were asked for.
template <class S>
struct Eigenpairs {
  bool found;  // whether the iteration converged
  Eigen::VectorXd values;
  Dense<S> vectors;
};

/// Computes them from the lower triangle of a. S: double or std::complex<double>. All callers share the two functions,
/// since Eigen's solver takes tens of seconds to compile.
template <class S>
Eigenpairs<S> eigenpairs(const Dense<S>& a, bool vectors);

}  // namespace weft::target
