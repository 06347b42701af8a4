#pragma once
// Decompositions of single matrices in float64, for the reference evaluation: the plainest algorithms that are right,
// in no hurry.
#include <complex>
#include <functional>
#include <vector>

#include "graph/table.h"

namespace weft::graph::linalg {

template <class T>
struct Dense {
  int64_t rows = 0, columns = 0;
  std::vector<T> data;
  Dense(int64_t m, int64_t n) : rows(m), columns(n), data(static_cast<size_t>(m * n)) {}
  T& operator()(int64_t i, int64_t j) { return data[static_cast<size_t>(i * columns + j)]; }
  const T& operator()(int64_t i, int64_t j) const { return data[static_cast<size_t>(i * columns + j)]; }
};
using Matrix = Dense<double>;
using ComplexMatrix = Dense<std::complex<double>>;

Matrix transposed(const Matrix& a);

/// The k-th of the matrices along the last two axes, and their number.
Matrix matrix_of(const HostTensor& t, int64_t k);
int64_t count_of(const HostTensor& t);
/// Appends numbers, rounded to the tensor's dtype.
void append(HostTensor& t, std::span<const double> numbers);

/// L over the lower part of a; false where a is not positive definite.
bool factor_cholesky(Matrix& a);
void solve_in_place(const Matrix& t, Matrix& b, bool upper);
/// L and U over a; rows[i] is the row of a that became row i, pivots[i] the row with which row i was exchanged.
void factor_lu(Matrix& a, std::vector<int64_t>& rows, std::vector<int64_t>& pivots);
/// The first `count` columns of the product of Householder's reflections that make a triangular.
Matrix reflections(Matrix a, int64_t count);
/// By Jacobi's rotations: w ascending, eigenvectors in the columns of the result. a symmetric.
Matrix rotate_symmetric(Matrix a, std::vector<double>& w);
/// a = U S Vᵀ for at least as many rows as columns: U is left in a.
Matrix rotate_columns(Matrix& a, std::vector<double>& s);
/// Eigenvalues by shifted QR steps, in ascending order; eigenvectors of length 1 in the columns of the result.
ComplexMatrix schur_vectors(const Matrix& a, std::vector<std::complex<double>>& w);

}  // namespace weft::graph::linalg
