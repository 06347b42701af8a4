#pragma once
// Decompositions of single matrices in float64 for the reference evaluation: the simplest correct algorithms, without
// regard to speed. All compute with complex numbers; real matrices are those whose imaginary parts are zero, and stay
// so.
#include <complex>
#include <functional>
#include <vector>

#include "graph/table.h"

namespace weft::graph::linalg {

using Complex = std::complex<double>;

struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<Complex> data;
  Matrix(int64_t m, int64_t n) : rows(m), columns(n), data(static_cast<size_t>(m * n)) {}
  Complex& operator()(int64_t i, int64_t j) { return data[static_cast<size_t>(i * columns + j)]; }
  const Complex& operator()(int64_t i, int64_t j) const { return data[static_cast<size_t>(i * columns + j)]; }
};

Matrix transposed(const Matrix& a);
Matrix adjoint_of(const Matrix& a);

/// Returns the k-th matrix along the last two axes. Tensors of complex numbers hold both parts of each element.
Matrix matrix_of(const HostTensor& t, int64_t k);
int64_t count_of(const HostTensor& t);
/// Appends numbers rounded to the tensor's dtype: real parts alone unless that is complex.
void append(HostTensor& t, std::span<const Complex> numbers);

/// Writes L over the lower part of a; returns false if a is not positive definite.
bool factor_cholesky(Matrix& a);
void solve_in_place(const Matrix& t, Matrix& b, bool upper);
/// Writes L and U over a; rows[i] is the row of a that became row i, pivots[i] the row that row i was exchanged with.
void factor_lu(Matrix& a, std::vector<int64_t>& rows, std::vector<int64_t>& pivots);
/// Returns the first `count` columns of the product of the Householder reflections that make a triangular, with a real
/// diagonal.
Matrix reflections(Matrix a, int64_t count);
/// Diagonalises a Hermitian matrix by Jacobi's rotations: w ascending, eigenvectors in the columns of the result.
Matrix rotate_hermitian(Matrix a, std::vector<Complex>& w);
/// Computes a = U S Vᴴ for at least as many rows as columns; U is stored in a, and V is the result.
Matrix rotate_columns(Matrix& a, std::vector<Complex>& s);
/// Computes eigenvalues by shifted QR steps, ascending; eigenvectors of length 1 in the columns of the result.
Matrix schur_vectors(const Matrix& a, std::vector<Complex>& w);

}  // namespace weft::graph::linalg
