// Cholesky factors and triangular systems.
#include <Eigen/Cholesky>

#include "target/cpu/linalg/linalg.h"

namespace weft::target {
namespace {

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Into = Eigen::Map<RowMajor<T>>;
template <class T>
using From = Eigen::Map<const RowMajor<T>>;

template <class T>
void cholesky(std::span<void* const> operands, int64_t n) {
  int32_t& failed = *static_cast<int32_t*>(operands[2]);
  failed = 0;
  if (n == 0) return;
  Into<T> l(static_cast<T*>(operands[1]), n, n);
  l = From<T>(static_cast<const T*>(operands[0]), n, n);
  const Eigen::LLT<Eigen::Ref<RowMajor<T>>, Eigen::Lower> factor(l);
  failed = factor.info() == Eigen::Success ? 0 : 1;
}

template <class T>
void solve(std::span<void* const> operands, int64_t n, int64_t columns, bool upper, bool adjoint) {
  const From<T> t(static_cast<const T*>(operands[0]), n, n);
  Into<T> x(static_cast<T*>(operands[2]), n, columns);
  x = From<T>(static_cast<const T*>(operands[1]), n, columns);
  if (upper && adjoint) t.adjoint().template triangularView<Eigen::Lower>().solveInPlace(x);
  else if (upper) t.template triangularView<Eigen::Upper>().solveInPlace(x);
  else if (adjoint) t.adjoint().template triangularView<Eigen::Upper>().solveInPlace(x);
  else t.template triangularView<Eigen::Lower>().solveInPlace(x);
}

int64_t columns_of(const kernel::CallDesc::Array& a, bool pairs) {
  return a.extents[a.extents.size() - (pairs ? 2 : 1)];
}

}  // namespace

std::shared_ptr<const LibraryCall> cpu_cholesky(const kernel::CallDesc& desc) {
  return for_dtype(desc, [&](auto number) {
    return [n = matrix_size(desc).rows](std::span<void* const> operands) { cholesky<decltype(number)>(operands, n); };
  });
}

std::shared_ptr<const LibraryCall> cpu_solve_triangular(const kernel::CallDesc& desc) {
  return for_dtype(desc, [&](auto number) {
    return [n = matrix_size(desc).rows, columns = columns_of(desc.inputs[1], has_pairs(desc)),
            upper = desc.integers[0] != 0, adjoint = desc.integers[1] != 0](std::span<void* const> operands) {
      if (n > 0 && columns > 0) solve<decltype(number)>(operands, n, columns, upper, adjoint);
    };
  });
}

}  // namespace weft::target
