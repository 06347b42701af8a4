#pragma once
// Small kernels that stand beside cuSOLVER's and cuBLAS's routines on matrices: what a routine could not do becomes
// NaN, without the host having looked; tables of the addresses of many matrices; rows in the order that LU left them
// in; what a routine was to leave alone; the columns of Q from its reflections.
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "target/cuda/codegen/executable.h"

namespace weft::target::cuda {

class LinalgKernels {
 public:
  using Compile = std::function<std::vector<char>(const std::string& source)>;
  /// One matrix of each lies `bytes` behind the one before.
  struct Matrices {
    void* first = nullptr;
    size_t bytes = 0;
  };

  static const std::string& source();
  LinalgKernels(Context& context, Compile compile) : context_(context), compile_(std::move(compile)) {}
  /// Matrix k of each of up to three results becomes NaN throughout where one of the `words` numbers info[k·words …] is
  /// not 0.
  void poison(const int* info, int words, int64_t count, std::span<const Matrices> results) const;
  /// table[i·count + k]: the address of matrix k of the i-th of up to three.
  void addresses(void* table, int64_t count, std::span<const Matrices> of) const;
  /// rows[k·m …]: the numbers of m rows after rows 0, 1 … have changed positions with rows pivots[k·pivoted …] - 1 one
  /// after the other.
  void exchanged_rows(const int* pivots, int pivoted, uint32_t* rows, int m, int64_t count) const;
  /// What lies above the diagonals of `count` matrices n × n, row by row, of float32 or float64.
  void upper_parts(bool doubles, const void* from, void* to, int n, int64_t count) const;
  /// The first `columns` columns of Q = H₀H₁…, Hᵢ = 1 - tauᵢ vᵢvᵢᵀ, where vᵢ is 0 above row i, 1 there, and column i of
  /// the matrix below. Matrices of m rows and n reflections, column by column, of float32 or float64.
  void columns_of_q(bool doubles, const void* reflections, const void* tau, void* q, int m, int n, int columns,
                    int64_t count) const;

 private:
  enum Which { nan, table, rows, upper, q_floats, q_doubles, kernels };
  void launch(Which which, int64_t blocks, int threads, size_t shared_bytes, void** arguments) const;
  Context& context_;
  Compile compile_;
  mutable std::once_flag once_;
  mutable FunctionHandle functions_[kernels] = {};
};

}  // namespace weft::target::cuda
