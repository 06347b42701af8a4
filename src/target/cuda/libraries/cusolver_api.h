#pragma once
// The parts of cuSOLVER's dense interface and of cuBLAS's triangular and batched routines that Weft needs, in
// declarations of our own. tests/target/cuda/cuda_libraries_test.cpp compares them with their headers. Matrices are
// column-major.
#include <complex>
#include <cstdint>
#include <string>
#include <tuple>

#include "target/cuda/driver/driver.h"

namespace weft::target::cuda::cusolver {

using Handle = struct OpaqueSolver*;
using Blas = struct OpaqueBlas*;
using Jacobi = struct OpaqueJacobi*;
using SymmetricJacobi = struct OpaqueSymmetricJacobi*;
using Parameters = struct OpaqueParameters*;
enum Part : int { lower = 0, upper = 1 };
enum Vectors : int { no_vectors = 0, vectors = 1 };
enum Side : int { left = 0, right = 1 };
enum Operation : int { plain = 0, adjoint = 2 };
enum Diagonal : int { stored = 0, ones = 1 };
enum NumberType : int { real_32 = 0, real_64 = 1, complex_32 = 4, complex_64 = 5 };

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
/// float of float and complex float, double of double and complex double.
template <class T>
using Real = typename RealOf<T>::type;

/// The routines for one element type: "…S…" for float, "…D…" for double, "…C…" and "…Z…" for complex numbers of them,
/// where orgqr is ungqr and sy… is he…. Workspace sizes are in elements.
template <class T>
struct Routines {
  int (*potrf_size)(Handle, Part, int n, T* a, int lda, int* size);
  int (*potrf)(Handle, Part, int n, T* a, int lda, T* work, int size, int* info);
  int (*getrf_size)(Handle, int m, int n, T* a, int lda, int* size);
  int (*getrf)(Handle, int m, int n, T* a, int lda, T* work, int* pivots, int* info);
  int (*laswp)(Handle, int n, T* a, int lda, int first, int last, const int* pivots, int step);
  int (*geqrf_size)(Handle, int m, int n, T* a, int lda, int* size);
  int (*geqrf)(Handle, int m, int n, T* a, int lda, T* tau, T* work, int size, int* info);
  int (*orgqr_size)(Handle, int m, int n, int k, const T* a, int lda, const T* tau, int* size);
  int (*orgqr)(Handle, int m, int n, int k, T* a, int lda, const T* tau, T* work, int size, int* info);
  int (*syevd_size)(Handle, Vectors, Part, int n, const T* a, int lda, const Real<T>* w, int* size);
  int (*syevd)(Handle, Vectors, Part, int n, T* a, int lda, Real<T>* w, T* work, int size, int* info);
  int (*gesvdj_size)(Handle, Vectors, int thin, int m, int n, const T* a, int lda, const Real<T>* s, const T* u,
                     int ldu, const T* v, int ldv, int* size, Jacobi);
  int (*gesvdj)(Handle, Vectors, int thin, int m, int n, T* a, int lda, Real<T>* s, T* u, int ldu, T* v, int ldv,
                T* work, int size, int* info, Jacobi);
  int (*trsm)(Blas, Side, Part, Operation, Diagonal, int m, int n, const T* alpha, const T* a, int lda, T* b, int ldb);

  // Batched routines. Pointer tables hold the address of each matrix; plain pointers mean matrices one after the other.
  int (*potrf_batched)(Handle, Part, int n, T* a[], int lda, int* info, int count);
  int (*syevj_batched_size)(Handle, Vectors, Part, int n, const T* a, int lda, const Real<T>* w, int* size,
                            SymmetricJacobi, int count);
  int (*syevj_batched)(Handle, Vectors, Part, int n, T* a, int lda, Real<T>* w, T* work, int size, int* info,
                       SymmetricJacobi, int count);
  int (*gesvdj_batched_size)(Handle, Vectors, int m, int n, const T* a, int lda, const Real<T>* s, const T* u, int ldu,
                             const T* v, int ldv, int* size, Jacobi, int count);
  int (*gesvdj_batched)(Handle, Vectors, int m, int n, T* a, int lda, Real<T>* s, T* u, int ldu, T* v, int ldv, T* work,
                        int size, int* info, Jacobi, int count);
  int (*trsm_batched)(Blas, Side, Part, Operation, Diagonal, int m, int n, const T* alpha, const T* const a[], int lda,
                      T* const b[], int ldb, int count);
  int (*getrf_batched)(Blas, int n, T* const a[], int lda, int* pivots, int* info, int count);
  int (*geqrf_batched)(Blas, int m, int n, T* const a[], int lda, T* const tau[], int* host_info, int count);
};

/// Routines of cuSOLVER 11.7.1 and later; null in older versions. Workspace sizes, on device and host, are in bytes.
struct Newer {
  int (*create_parameters)(Parameters* parameters);
  int (*syev_batched_size)(Handle, Parameters, Vectors, Part, int64_t n, NumberType, const void* a, int64_t lda,
                           NumberType, const void* w, NumberType, size_t* device, size_t* host, int64_t count);
  int (*syev_batched)(Handle, Parameters, Vectors, Part, int64_t n, NumberType, void* a, int64_t lda, NumberType,
                      void* w, NumberType, void* work, size_t bytes, void* host_work, size_t host_bytes, int* info,
                      int64_t count);
};

struct Api {
  int (*create)(Handle* handle);
  int (*set_stream)(Handle handle, StreamHandle stream);
  int (*create_jacobi)(Jacobi* parameters);
  int (*create_symmetric_jacobi)(SymmetricJacobi* parameters);
  int (*blas_create)(Blas* handle);
  int (*blas_set_stream)(Blas handle, StreamHandle stream);
  std::tuple<Routines<float>, Routines<double>, Routines<std::complex<float>>, Routines<std::complex<double>>> routines;
  Newer newer;
};

/// Calls visit(pointer, name) for each function of one element type.
template <class T, class Visit>
void for_each_routine(Routines<T>& r, Visit&& visit) {
  constexpr bool complex = !std::is_same_v<T, Real<T>>;
  const std::string type = sizeof(Real<T>) == 8 ? (complex ? "Z" : "D") : (complex ? "C" : "S");
  const std::string orgqr = complex ? "ungqr" : "orgqr", syev = complex ? "heev" : "syev";
  const auto dense = [&](auto*& function, const std::string& name) {
    visit(function, ("cusolverDn" + type + name).c_str());
  };
  dense(r.potrf_size, "potrf_bufferSize"), dense(r.potrf, "potrf");
  dense(r.getrf_size, "getrf_bufferSize"), dense(r.getrf, "getrf"), dense(r.laswp, "laswp");
  dense(r.geqrf_size, "geqrf_bufferSize"), dense(r.geqrf, "geqrf");
  dense(r.orgqr_size, orgqr + "_bufferSize"), dense(r.orgqr, orgqr);
  dense(r.syevd_size, syev + "d_bufferSize"), dense(r.syevd, syev + "d");
  dense(r.gesvdj_size, "gesvdj_bufferSize"), dense(r.gesvdj, "gesvdj");
  dense(r.potrf_batched, "potrfBatched");
  dense(r.syevj_batched_size, syev + "jBatched_bufferSize"), dense(r.syevj_batched, syev + "jBatched");
  dense(r.gesvdj_batched_size, "gesvdjBatched_bufferSize"), dense(r.gesvdj_batched, "gesvdjBatched");
  const auto blas = [&](auto*& function, const char* name) { visit(function, ("cublas" + type + name).c_str()); };
  blas(r.trsm, "trsm_v2"), blas(r.trsm_batched, "trsmBatched"), blas(r.getrf_batched, "getrfBatched"),
      blas(r.geqrf_batched, "geqrfBatched");
}

/// Calls visit(pointer, name) for all functions.
template <class Visit>
void for_each_function(Api& api, Visit&& visit) {
  visit(api.create, "cusolverDnCreate");
  visit(api.set_stream, "cusolverDnSetStream");
  visit(api.create_jacobi, "cusolverDnCreateGesvdjInfo");
  visit(api.create_symmetric_jacobi, "cusolverDnCreateSyevjInfo");
  visit(api.blas_create, "cublasCreate_v2");
  visit(api.blas_set_stream, "cublasSetStream_v2");
  std::apply([&](auto&... routines) { (for_each_routine(routines, visit), ...); }, api.routines);
}

template <class Visit>
void for_each_function(Newer& newer, Visit&& visit) {
  visit(newer.create_parameters, "cusolverDnCreateParams");
  visit(newer.syev_batched_size, "cusolverDnXsyevBatched_bufferSize"),
      visit(newer.syev_batched, "cusolverDnXsyevBatched");
}

/// Returns the functions; null if a library is missing (library.h says why) or lacks one that is not in Newer.
const Api* api();

}  // namespace weft::target::cuda::cusolver
