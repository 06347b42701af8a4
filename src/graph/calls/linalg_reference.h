#pragma once
// Decompositions of single matrices in float64 for the reference evaluation: the simplest correct algorithms, without
// regard to speed.
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

/// Returns the k-th matrix along the last two axes.
Matrix matrix_of(const HostTensor& t, int64_t k);
int64_t count_of(const HostTensor& t);
/// Appends numbers rounded to the tensor's dtype.
void append(HostTensor& t, std::span<const double> numbers);

/// Writes L over the lower part of a; returns false if a is not positive definite.
bool factor_cholesky(Matrix& a);
void solve_in_place(const Matrix& t, Matrix& b, bool upper);
/// Writes L and U over a; rows[i] is the row of a that became row i, pivots[i] the row that row i was exchanged with.
void factor_lu(Matrix& a, std::vector<int64_t>& rows, std::vector<int64_t>& pivots);
/// Returns the first `count` columns of the product of the Householder reflections that make a triangular.
Matrix reflections(Matrix a, int64_t count);
/// Diagonalises a symmetric matrix by Jacobi's rotations: w ascending, eigenvectors in the columns of the result.
Matrix rotate_symmetric(Matrix a, std::vector<double>& w);
/// Computes a = U S Vᵀ for at least as many rows as columns; U is stored in a.
Matrix rotate_columns(Matrix& a, std::vector<double>& s);
/// Computes eigenvalues by shifted QR steps, ascending; eigenvectors of length 1 in the columns of the result.
ComplexMatrix schur_vectors(const Matrix& a, std::vector<std::complex<double>>& w);

}  // namespace weft::graph::linalg
