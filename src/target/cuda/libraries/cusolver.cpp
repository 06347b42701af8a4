#include "target/cuda/libraries/cusolver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/number.h"
#include "target/cuda/driver/library.h"
#include "target/cuda/libraries/cusolver_call.h"

namespace weft::target::cuda {

namespace cusolver {

const Api* api() {
  static const Api* instance = []() -> const Api* {
    auto* functions = new Api{};
    bool all = cublas_library().available() && cusolver_library().available();
    const auto bind = [&all](auto*& function, const char* name) {
      const Library& library = std::string_view(name).starts_with("cublas") ? cublas_library() : cusolver_library();
      all = library.bind(function, name) && all;
    };
    if (all) for_each_function(*functions, bind);
    bool newer = all;
    if (all)
      for_each_function(functions->newer, [&newer](auto*& function, const char* name) {
        newer = cusolver_library().bind(function, name) && newer;
      });
    if (!newer) functions->newer = {};
    if (all) return functions;
    delete functions;
    return nullptr;
  }();
  return instance;
}

void check_solver(int status, const char* call, const std::string& what) {
  if (status != 0) throw_failure("linalg", fmt::format("{} failed with status {} on {}", call, status, what));
}

namespace {

/// Complex matrices have the parts of a number along a last axis (graph/complex/complex_calls.cpp).
constexpr std::string_view of_complex = "complex_";
bool takes_pairs(const kernel::CallDesc& desc) { return std::string_view(desc.name).starts_with(of_complex); }

Dtype element_of(const kernel::CallDesc& desc) {
  return takes_pairs(desc) ? complex_of(desc.inputs[0].dtype) : desc.inputs[0].dtype;
}
size_t batch_axes(const kernel::CallDesc& desc) { return desc.inputs[0].extents.size() - (takes_pairs(desc) ? 3 : 2); }

}  // namespace

Problem::Problem(Routine wanted_routine, const kernel::CallDesc& desc)
    : routine(wanted_routine), what(desc.to_string()), element(element_of(desc)) {
  const std::vector<int64_t>& extents = desc.inputs[0].extents;
  const size_t batch = batch_axes(desc);
  for (size_t k = 0; k < batch; ++k) count *= extents[k];
  for (const auto* arrays : {&desc.inputs, &desc.outputs})
    for (const kernel::CallDesc::Array& array : *arrays) {
      size_t each = static_cast<size_t>(array.dtype.size());
      for (size_t k = batch; k < array.extents.size(); ++k) each *= static_cast<size_t>(array.extents[k]);
      bytes.push_back(each);
      used.push_back(array.used);
    }
  n = static_cast<int>(extents[batch]), m = static_cast<int>(extents[batch + 1]);
  if (routine == Routine::solve_triangular) columns = static_cast<int>(desc.inputs[1].extents[batch + 1]);
  if (routine == Routine::qr) columns = static_cast<int>(desc.outputs[0].extents[batch]);
  if (!desc.integers.empty()) first = desc.integers[0] != 0;
  if (desc.integers.size() > 1) second = desc.integers[1] != 0;
  wanted = desc.outputs.size() < 2 || routine == Routine::lu || desc.outputs[1].used || desc.outputs.back().used
               ? vectors
               : no_vectors;
}

/// Returns the operands `of` that have readers.
std::vector<LinalgKernels::Matrices> Problem::parts(std::span<void* const> operands,
                                                    std::initializer_list<size_t> of) const {
  std::vector<LinalgKernels::Matrices> out;
  for (const size_t k : of)
    if (used[k]) out.push_back({operands[k], bytes[k]});
  return out;
}

}  // namespace cusolver

namespace {

using namespace cusolver;

/// Returns the device's state; null if the libraries do not start.
Shared* shared(Context& context) {
  static std::mutex mutex;
  static auto& all = *new std::map<int, std::unique_ptr<Shared>>;  // never destroyed: the driver may have ended by then
  std::lock_guard lock(mutex);
  const auto [at, added] = all.try_emplace(context.ordinal());
  if (!added) return at->second.get();
  auto made = std::make_unique<Shared>();
  context.make_current();
  const Api& api = *cusolver::api();
  const bool started = api.create(&made->handle) == 0 && api.blas_create(&made->blas) == 0 &&
                       api.create_jacobi(&made->jacobi) == 0 && api.create_symmetric_jacobi(&made->symmetric) == 0 &&
                       api.set_stream(made->handle, context.stream()) == 0 &&
                       api.blas_set_stream(made->blas, context.stream()) == 0;
  if (started && api.newer.create_parameters && api.newer.create_parameters(&made->parameters) != 0)
    made->parameters = nullptr;
  if (started) at->second = std::move(made);
  return at->second.get();
}

constexpr int infos_of_one = 2;  // at most two routines in sequence, each with its status

/// Processes one matrix after the other.
template <class T>
class CusolverCall final : public LibraryCall {
 public:
  CusolverCall(const Problem& problem, Context& context, Shared& shared, std::shared_ptr<const LinalgKernels> kernels)
      : problem_(problem), context_(context), shared_(shared), kernels_(std::move(kernels)) {
    plan();
  }

  std::string name() const override { return problem_.routine == Routine::solve_triangular ? "cublas" : "cusolver"; }
  /// The iterative routines wait for the device, so they cannot be captured.
  bool recordable() const override { return problem_.routine != Routine::svd && problem_.routine != Routine::eigh; }

  void run(std::span<void* const> operands) const override {
    std::lock_guard lock(shared_.mutex);
    context_.make_current();
    std::vector<char*> one(operands.size());
    for (int64_t k = 0; k < problem_.count; ++k) {
      for (size_t i = 0; i < one.size(); ++i)
        one[i] = static_cast<char*>(operands[i]) + static_cast<size_t>(k) * problem_.bytes[i];
      launch(one, info() + infos_of_one * k);
    }
    // The other routines cannot fail, or `poison` marks their results.
    if (problem_.routine == Routine::svd)
      kernels_->poison(info(), infos_of_one, problem_.count, problem_.parts(operands, {1, 2, 3}));
    if (problem_.routine == Routine::eigh)
      kernels_->poison(info(), infos_of_one, problem_.count, problem_.parts(operands, {1, 2}));
    if (problem_.routine == Routine::qr)
      kernels_->poison(info(), infos_of_one, problem_.count, problem_.parts(operands, {1}));
  }

 private:
  template <class N = T>
  static N* numbers(char* p) {
    return reinterpret_cast<N*>(p);
  }
  char* scratch(size_t offset) const { return reinterpret_cast<char*>(workspace_->address()) + offset; }
  int* info() const { return reinterpret_cast<int*>(scratch(0)); }
  T* work() const { return numbers(scratch(work_at_)); }

  void check_call(int status, const char* call) const { check_solver(status, call, problem_.what); }

  void copy(char* to, const char* from, size_t bytes) const {
    check_result(driver().memcpy_dtod_async(reinterpret_cast<DevicePtr>(to), reinterpret_cast<DevicePtr>(from), bytes,
                                            context_.stream()),
                 "cuMemcpyDtoDAsync");
  }

  /// Lays out the workspace: status of each matrix, memory that a routine keeps (a copy that it overwrites, tau), then
  /// its own workspace.
  void plan() {
    const Routines<T>& r = routines<T>();
    const Handle h = shared_.handle;
    context_.make_current();
    int size = 0, more = 0;
    size_t kept = 0;
    switch (problem_.routine) {
      case Routine::cholesky:
        check_call(r.potrf_size(h, upper, problem_.n, nullptr, problem_.n, &size), "potrf_bufferSize");
        break;
      case Routine::solve_triangular: break;
      case Routine::lu:
        check_call(r.getrf_size(h, problem_.m, problem_.n, nullptr, problem_.m, &size), "getrf_bufferSize");
        break;
      case Routine::qr:
        check_call(r.geqrf_size(h, problem_.m, problem_.n, nullptr, problem_.m, &size), "geqrf_bufferSize");
        check_call(r.orgqr_size(h, problem_.m, problem_.columns, problem_.n, nullptr, problem_.m, nullptr, &more),
                   "orgqr_bufferSize");
        kept = static_cast<size_t>(problem_.n) * sizeof(T);
        break;
      case Routine::svd:
        check_call(r.gesvdj_size(h, problem_.wanted, 1, problem_.m, problem_.n, nullptr, problem_.m, nullptr, nullptr,
                                 problem_.m, nullptr, problem_.n, &size, shared_.jacobi),
                   "gesvdj_bufferSize");
        kept = problem_.bytes[0];
        break;
      case Routine::eigh:
        check_call(r.syevd_size(h, problem_.wanted, upper, problem_.n, nullptr, problem_.n, nullptr, &size),
                   "syevd_bufferSize");
        break;
    }
    work_size_ = std::max(size, more);
    kept_at_ = padded(static_cast<size_t>(problem_.count) * infos_of_one * sizeof(int));
    work_at_ = kept_at_ + padded(kept);
    workspace_ = shared_workspace(context_, work_at_ + padded(static_cast<size_t>(work_size_) * sizeof(T)));
    if (problem_.routine == Routine::lu) make_row_indices();
  }

  /// Fills row indices 0, 1 … on the device once. The routine that exchanges a matrix's rows, which moves 4-byte words,
  /// is run on them too.
  void make_row_indices() {
    std::vector<uint32_t> row_indices(static_cast<size_t>(problem_.m));
    std::iota(row_indices.begin(), row_indices.end(), 0u);
    row_indices_ = std::make_unique<Workspace>(context_, row_indices.size() * sizeof(uint32_t));
    check_result(driver().memcpy_htod_async(row_indices_->address(), row_indices.data(),
                                            row_indices.size() * sizeof(uint32_t), context_.stream()),
                 "cuMemcpyHtoDAsync");
    context_.synchronize();
  }

  void launch(const std::vector<char*>& p, int* info) const {
    const Routines<T>& r = routines<T>();
    const Handle h = shared_.handle;
    switch (problem_.routine) {
      case Routine::cholesky:  // a row-major lower part is a column-major upper part
        copy(p[1], p[0], problem_.bytes[0]);
        return check_call(
            r.potrf(h, upper, problem_.n, numbers(p[1]), problem_.n, work(), work_size_, reinterpret_cast<int*>(p[2])),
            "potrf");
      case Routine::solve_triangular: return solve(p);
      case Routine::lu: return lu(p, info);
      case Routine::qr:
        copy(p[1], p[0], problem_.bytes[0]);
        check_call(r.geqrf(h, problem_.m, problem_.n, numbers(p[1]), problem_.m, numbers(scratch(kept_at_)), work(),
                           work_size_, info),
                   "geqrf");
        return check_call(r.orgqr(h, problem_.m, problem_.columns, problem_.n, numbers(p[1]), problem_.m,
                                  numbers(scratch(kept_at_)), work(), work_size_, info + 1),
                          "orgqr");
      case Routine::svd:
        copy(scratch(kept_at_), p[0], problem_.bytes[0]);
        check_call(r.gesvdj(h, problem_.wanted, 1, problem_.m, problem_.n, numbers(scratch(kept_at_)), problem_.m,
                            numbers<Real<T>>(p[1]), numbers(p[2]), problem_.m, numbers(p[3]), problem_.n, work(),
                            work_size_, info, shared_.jacobi),
                   "gesvdj");
        return conjugate(p[3], 3);  // V by columns is Vᵀ by rows
      case Routine::eigh:
        copy(p[2], p[0], problem_.bytes[0]);
        check_call(r.syevd(h, problem_.wanted, upper, problem_.n, numbers(p[2]), problem_.n, numbers<Real<T>>(p[1]),
                           work(), work_size_, info),
                   "syevd");
        return conjugate(p[2], 2);  // a row-major Hermitian matrix is the conjugate of a column-major one
    }
  }

  /// Conjugates one matrix of an operand, where it has readers.
  void conjugate(void* matrix, size_t operand) const {
    if (problem_.used[operand])
      kernels_->conjugate(problem_.element, matrix, static_cast<int64_t>(problem_.bytes[operand] / sizeof(T)));
  }

  /// Solves T X = B in row-major order as Xᵀ Tᵀ = Bᵀ in column-major order.
  void solve(const std::vector<char*>& p) const {
    const T one = 1;
    copy(p[2], p[1], problem_.bytes[1]);
    check_call(routines<T>().trsm(shared_.blas, right, problem_.first ? lower : upper,
                                  problem_.second ? adjoint : plain, stored, problem_.columns, problem_.n, &one,
                                  numbers(p[0]), problem_.n, numbers(p[2]), problem_.columns),
               "trsm");
  }

  void lu(const std::vector<char*>& p, int* info) const {
    const Routines<T>& r = routines<T>();
    int* pivots = reinterpret_cast<int*>(p[3]);
    copy(p[1], p[0], problem_.bytes[0]);
    check_call(r.getrf(shared_.handle, problem_.m, problem_.n, numbers(p[1]), problem_.m, work(), pivots, info),
               "getrf");
    copy(p[2], reinterpret_cast<const char*>(row_indices_->address()), problem_.bytes[2]);
    check_call(cusolver::routines<float>().laswp(shared_.handle, 1, reinterpret_cast<float*>(p[2]), problem_.m, 1,
                                                 std::min(problem_.m, problem_.n), pivots, 1),
               "laswp");
  }

  Problem problem_;
  Context& context_;
  Shared& shared_;
  std::shared_ptr<const LinalgKernels> kernels_;
  int work_size_ = 0;
  size_t kept_at_ = 0, work_at_ = 0;
  std::shared_ptr<const Workspace> workspace_;
  std::unique_ptr<const Workspace> row_indices_;
};

/// Returns whether a GPU that processes matrices one by one is faster than the CPU with its copies. Measured on an H200
/// with 16 CPU cores (weft bench linalg). For one or two matrices, a direct (not iterative) routine takes less time
/// than copies to the host and back.
bool worth_it(const Problem& p) {
  const int columns = std::min(p.m, p.n);
  const bool direct = p.routine != Routine::svd && p.routine != Routine::eigh;
  return columns >= 256 || (columns >= 48 && p.count <= 4) || (direct && p.count <= 2);
}

std::optional<Routine> routine_of(const kernel::CallDesc& desc) {
  static constexpr std::pair<std::string_view, Routine> names[] = {{"cholesky", Routine::cholesky},
                                                                   {"solve_triangular", Routine::solve_triangular},
                                                                   {"lu", Routine::lu},
                                                                   {"qr", Routine::qr},
                                                                   {"svd", Routine::svd},
                                                                   {"eigh", Routine::eigh}};
  const std::string_view called = std::string_view(desc.name).substr(takes_pairs(desc) ? of_complex.size() : 0);
  for (const auto& [name, routine] : names)
    if (name == called) return routine;
  return std::nullopt;
}

/// Returns whether the routines' 32-bit sizes can count the elements of each array.
bool countable(const kernel::CallDesc& desc) {
  for (const auto* arrays : {&desc.inputs, &desc.outputs})
    for (const kernel::CallDesc::Array& array : *arrays) {
      int64_t matrix = 1;
      for (size_t k = batch_axes(desc); k < array.extents.size(); ++k) matrix *= array.extents[k];
      if (matrix > INT_MAX) return false;
    }
  return true;
}

}  // namespace

std::shared_ptr<const LibraryCall> cusolver_call(const kernel::CallDesc& desc, Context& context,
                                                 std::shared_ptr<const LinalgKernels> kernels) {
  const std::optional<Routine> routine = routine_of(desc);
  if (!routine || !cusolver::api() || !countable(desc)) return nullptr;
  for (const kernel::CallDesc::Array& input : desc.inputs)
    if (std::find(input.extents.begin(), input.extents.end(), 0) != input.extents.end()) return nullptr;
  const Problem problem(*routine, desc);
  Shared* const all = shared(context);
  if (!all) return nullptr;
  const bool at_once = batches(problem, *all);
  if (!at_once && !worth_it(problem)) return nullptr;
  if (at_once) return batched_call(problem, context, *all, std::move(kernels));
  return for_element(problem.element, [&](auto number) -> std::shared_ptr<const LibraryCall> {
    return std::make_shared<CusolverCall<decltype(number)>>(problem, context, *all, std::move(kernels));
  });
}

}  // namespace weft::target::cuda
