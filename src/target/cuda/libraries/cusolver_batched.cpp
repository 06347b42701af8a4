// Runs many small matrices in one batched call of cuSOLVER or cuBLAS.
#include <algorithm>
#include <climits>

#include "target/cuda/libraries/cusolver_call.h"

namespace weft::target::cuda::cusolver {

namespace {

constexpr int most_small = 32;  // rows and columns, at most, of a matrix that the Jacobi kernel keeps in one block

template <class T>
class BatchedCall final : public LibraryCall {
 public:
  BatchedCall(const Problem& problem, Context& context, Shared& shared, std::shared_ptr<const LinalgKernels> kernels)
      : problem_(problem), count_(static_cast<int>(problem.count)), context_(context), shared_(shared),
        kernels_(std::move(kernels)) {
    plan();
  }

  std::string name() const override {
    return problem_.routine == Routine::cholesky || problem_.routine == Routine::eigh ||
                   problem_.routine == Routine::svd
               ? "cusolver, batched"
               : "cublas, batched";
  }

  void run(std::span<void* const> p) const override {
    std::lock_guard lock(shared_.mutex);
    context_.make_current();
    const Problem& q = problem_;
    const Routines<T>& r = routines<T>();
    const auto numbers = [](void* at) { return static_cast<T*>(at); };
    const auto reals = [](void* at) { return static_cast<Real<T>*>(at); };
    switch (q.routine) {
      case Routine::cholesky:
        copy(p[1], p[0], 0);
        fill_table({{p[1], q.bytes[1]}});
        check_call(r.potrf_batched(shared_.handle, upper, q.n, table(0), q.n, static_cast<int*>(p[2]), count_),
                   "potrfBatched");
        return kernels_->upper_parts(q.element, p[0], p[1], q.n, q.count);  // the routine for float64 writes there
      case Routine::solve_triangular: {
        const T one = 1;
        copy(p[2], p[1], 1);
        fill_table({{p[0], q.bytes[0]}, {p[2], q.bytes[2]}});
        return check_call(r.trsm_batched(shared_.blas, right, q.first ? lower : upper, q.second ? adjoint : plain,
                                         stored, q.columns, q.n, &one, table(0), q.n, table(1), q.columns, count_),
                          "trsmBatched");
      }
      case Routine::lu:
        copy(p[1], p[0], 0);
        fill_table({{p[1], q.bytes[1]}});
        check_call(r.getrf_batched(shared_.blas, q.n, table(0), q.n, static_cast<int*>(p[3]), info(), count_),
                   "getrfBatched");
        return kernels_->exchanged_rows(static_cast<const int*>(p[3]), q.n, static_cast<uint32_t*>(p[2]), q.n, q.count);
      case Routine::qr: {
        int wrong = 0;  // index of a wrong parameter
        copy(kept(), p[0], 0);
        fill_table({{kept(), q.bytes[0]}, {tau(), tau_bytes()}});
        check_call(r.geqrf_batched(shared_.blas, q.m, q.n, table(0), q.m, table(1), &wrong, count_), "geqrfBatched");
        return kernels_->columns_of_q(q.element, kept(), tau(), p[1], q.m, q.n, q.columns, q.count);
      }
      case Routine::svd:
        copy(kept(), p[0], 0);
        check_call(
            r.gesvdj_batched(shared_.handle, q.wanted, q.m, q.n, numbers(kept()), q.m, reals(p[1]), numbers(p[2]), q.m,
                             numbers(p[3]), q.n, numbers(work()), work_size_, info(), shared_.jacobi, count_),
            "gesvdjBatched");
        conjugate(p[3], 3);  // as in CusolverCall
        return kernels_->poison(info(), 1, q.count, q.parts(p, {1, 2, 3}));
      case Routine::eigh:
        copy(p[2], p[0], 0);
        if (by_reflections())
          check_call(api()->newer.syev_batched(shared_.handle, shared_.parameters, q.wanted, upper, q.n, type<T>(),
                                               p[2], q.n, type<Real<T>>(), p[1], type<T>(), work(), work_bytes_,
                                               host_work_.data(), host_work_.size(), info(), q.count),
                     "XsyevBatched");
        else
          check_call(r.syevj_batched(shared_.handle, q.wanted, upper, q.n, numbers(p[2]), q.n, reals(p[1]),
                                     numbers(work()), work_size_, info(), shared_.symmetric, count_),
                     "syevjBatched");
        conjugate(p[2], 2);
        return kernels_->poison(info(), 1, q.count, q.parts(p, {1, 2}));
    }
  }

 private:
  /// Lays out the workspace: status, two tables of addresses, memory that a routine keeps (copies that it overwrites,
  /// tau), then its own workspace.
  void plan() {
    const Problem& q = problem_;
    const Routines<T>& r = routines<T>();
    context_.make_current();
    if (q.routine == Routine::svd)
      check_call(r.gesvdj_batched_size(shared_.handle, q.wanted, q.m, q.n, nullptr, q.m, nullptr, nullptr, q.m, nullptr,
                                       q.n, &work_size_, shared_.jacobi, count_),
                 "gesvdjBatched_bufferSize");
    size_t host_bytes = 0;
    if (by_reflections()) {
      check_call(
          api()->newer.syev_batched_size(shared_.handle, shared_.parameters, q.wanted, upper, q.n, type<T>(), nullptr,
                                         q.n, type<Real<T>>(), nullptr, type<T>(), &work_bytes_, &host_bytes, q.count),
          "XsyevBatched_bufferSize");
      host_work_.resize(host_bytes);
    } else if (q.routine == Routine::eigh)
      check_call(r.syevj_batched_size(shared_.handle, q.wanted, upper, q.n, nullptr, q.n, nullptr, &work_size_,
                                      shared_.symmetric, count_),
                 "syevjBatched_bufferSize");
    const auto count = static_cast<size_t>(q.count);
    const bool keeps = q.routine == Routine::svd || q.routine == Routine::qr;
    table_at_ = padded(count * sizeof(int));
    kept_at_ = table_at_ + padded(2 * count * sizeof(void*));
    tau_at_ = kept_at_ + (keeps ? padded(count * q.bytes[0]) : 0);
    work_at_ = tau_at_ + (q.routine == Routine::qr ? padded(count * tau_bytes()) : 0);
    if (!by_reflections()) work_bytes_ = static_cast<size_t>(work_size_) * sizeof(T);
    workspace_ = shared_workspace(context_, work_at_ + padded(work_bytes_));
  }

  bool by_reflections() const { return problem_.routine == Routine::eigh && problem_.n > most_small; }
  template <class N>
  static constexpr NumberType type() {
    constexpr bool wide = sizeof(Real<N>) == 8;
    if constexpr (std::is_same_v<N, Real<N>>) return wide ? real_64 : real_32;
    else return wide ? complex_64 : complex_32;
  }
  void check_call(int status, const char* call) const { check_solver(status, call, problem_.what); }
  char* scratch(size_t offset) const { return reinterpret_cast<char*>(workspace_->address()) + offset; }
  int* info() const { return reinterpret_cast<int*>(scratch(0)); }
  T** table(int64_t which) const { return reinterpret_cast<T**>(scratch(table_at_)) + which * problem_.count; }
  void* kept() const { return scratch(kept_at_); }
  void* tau() const { return scratch(tau_at_); }
  void* work() const { return scratch(work_at_); }
  size_t tau_bytes() const { return static_cast<size_t>(problem_.n) * sizeof(T); }

  void fill_table(std::initializer_list<LinalgKernels::Matrices> of) const {
    kernels_->addresses(scratch(table_at_), problem_.count, of);
  }

  /// Conjugates all matrices of an operand, where it has readers.
  void conjugate(void* matrices, size_t operand) const {
    const auto numbers = static_cast<int64_t>(problem_.bytes[operand] / sizeof(T));
    if (problem_.used[operand]) kernels_->conjugate(problem_.element, matrices, problem_.count * numbers);
  }

  /// Copies all matrices of an operand.
  void copy(void* to, const void* from, size_t operand) const {
    check_result(
        driver().memcpy_dtod_async(reinterpret_cast<DevicePtr>(to), reinterpret_cast<DevicePtr>(from),
                                   static_cast<size_t>(problem_.count) * problem_.bytes[operand], context_.stream()),
        "cuMemcpyDtoDAsync", problem_.what);
  }

  Problem problem_;
  int count_;
  Context& context_;
  Shared& shared_;
  std::shared_ptr<const LinalgKernels> kernels_;
  int work_size_ = 0;  // in elements, as most of the routines count it
  size_t work_bytes_ = 0;
  mutable std::vector<char> host_work_;  // written under the lock of `shared`
  size_t table_at_ = 0, kept_at_ = 0, tau_at_ = 0, work_at_ = 0;
  std::shared_ptr<const Workspace> workspace_;
};

}  // namespace

/// Returns whether the batched routine is faster, as measured on an H200 for 1, 4 and 16 matrices of 8 to 1024 columns
/// and for many small ones, against one matrix after the other and against 16 CPU cores.
bool batches(const Problem& p, const Shared& shared) {
  if (p.count > INT_MAX / 2) return false;
  const int longest = std::max(p.m, p.n);
  switch (p.routine) {
    case Routine::cholesky:
    case Routine::solve_triangular: return p.count > 1 && longest <= 1024;
    case Routine::lu:
      return p.m == p.n && (longest <= 64 || (longest <= 128 && p.count > 1) || (longest <= 256 && p.count >= 4));
    case Routine::qr:
      return longest <= 16 || (longest <= 32 && p.count >= 3) || (longest <= 64 && p.count >= 6) ||
             (longest <= 128 && p.count >= 16);
    case Routine::svd: return p.m == p.n && longest <= most_small;  // of others it computes all columns of U
    case Routine::eigh: return longest <= most_small || (shared.parameters && (longest <= 256 || p.count == 1));
  }
  return false;
}

std::shared_ptr<const LibraryCall> batched_call(const Problem& problem, Context& context, Shared& shared,
                                                std::shared_ptr<const LinalgKernels> kernels) {
  return for_element(problem.element, [&](auto number) -> std::shared_ptr<const LibraryCall> {
    return std::make_shared<BatchedCall<decltype(number)>>(problem, context, shared, std::move(kernels));
  });
}

}  // namespace weft::target::cuda::cusolver
