#include "target/cuda/cusolver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "target/cuda/cusolver_api.h"
#include "target/cuda/library.h"
#include "target/cuda/workspace.h"

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
    if (all) return functions;
    delete functions;
    return nullptr;
  }();
  return instance;
}

}  // namespace cusolver

namespace {

using namespace cusolver;

constexpr size_t grain = 256;  // of parts of the workspace
size_t padded(size_t bytes) { return (bytes + grain - 1) / grain * grain; }

void check_solver(int status, const char* call, const std::string& what) {
  if (status != 0) throw_failure("linalg", fmt::format("{} failed with status {} on {}", call, status, what));
}

/// What all calls on one device share. Calls come one after the other: the routines of one handle are not to be entered twice.
struct Shared {
  Handle handle = nullptr;
  Blas blas = nullptr;
  Jacobi jacobi = nullptr;
  std::mutex mutex;
};

/// Null where the libraries do not start.
Shared* shared(Context& context) {
  static std::mutex mutex;
  static auto& all = *new std::map<int, std::unique_ptr<Shared>>;  // never destroyed: the driver may have ended by then
  std::lock_guard lock(mutex);
  const auto [at, added] = all.try_emplace(context.ordinal());
  if (!added) return at->second.get();
  auto made = std::make_unique<Shared>();
  context.make_current();
  const Api& api = *cusolver::api();
  const bool started = api.create(&made->handle) == 0 && api.blas_create(&made->blas) == 0 && api.create_jacobi(&made->jacobi) == 0 &&
                       api.set_stream(made->handle, context.stream()) == 0 && api.blas_set_stream(made->blas, context.stream()) == 0;
  if (started) at->second = std::move(made);
  return at->second.get();
}

enum class Routine { cholesky, solve_triangular, lu, qr, svd, eigh };

template <class T> const Routines<T>& routines() {
  if constexpr (sizeof(T) == 8) return cusolver::api()->doubles;
  else return cusolver::api()->floats;
}

template <class T> class CusolverCall final : public LibraryCall {
 public:
  CusolverCall(Routine routine, const kernel::CallDesc& desc, Context& context, Shared& shared) : routine_(routine), what_(desc.to_string()), context_(context), shared_(shared) {
    const std::vector<int64_t>& extents = desc.inputs[0].extents;
    const size_t batch = extents.size() - 2;
    for (size_t k = 0; k < batch; ++k) count_ *= extents[k];
    for (const auto* arrays : {&desc.inputs, &desc.outputs})
      for (const kernel::CallDesc::Array& array : *arrays) {
        size_t bytes = static_cast<size_t>(array.dtype.size);
        for (size_t k = batch; k < array.extents.size(); ++k) bytes *= static_cast<size_t>(array.extents[k]);
        bytes_.push_back(bytes);
      }
    n_ = static_cast<int>(extents[batch]), m_ = static_cast<int>(extents[batch + 1]);  // columns and rows
    if (routine == Routine::solve_triangular) columns_ = static_cast<int>(desc.inputs[1].extents.back());
    if (routine == Routine::qr) columns_ = static_cast<int>(desc.outputs[0].extents[batch]);
    if (!desc.integers.empty()) first_ = desc.integers[0] != 0;
    if (desc.integers.size() > 1) second_ = desc.integers[1] != 0;
    wanted_ = desc.outputs.size() < 2 || routine == Routine::lu || desc.outputs[1].used || desc.outputs.back().used ? vectors : no_vectors;
    plan();
  }

  std::string name() const override { return routine_ == Routine::solve_triangular ? "cublas" : "cusolver"; }
  bool recordable() const override { return false; }  // some of the routines wait for the device

  void run(std::span<void* const> operands) const override {
    std::lock_guard lock(shared_.mutex);
    context_.make_current();
    std::vector<char*> one(operands.size());
    for (int64_t k = 0; k < count_; ++k) {
      for (size_t i = 0; i < one.size(); ++i) one[i] = static_cast<char*>(operands[i]) + static_cast<size_t>(k) * bytes_[i];
      launch(one);
    }
  }

 private:
  T* numbers(char* p) const { return reinterpret_cast<T*>(p); }
  char* scratch(size_t offset) const { return reinterpret_cast<char*>(workspace_->address()) + offset; }
  int* info() const { return reinterpret_cast<int*>(scratch(0)); }
  T* work() const { return numbers(scratch(work_at_)); }

  void check_call(int status, const char* call) const { check_solver(status, call, what_); }

  void copy(char* to, const char* from, size_t bytes) const {
    check(driver().memcpy_dtod_async(reinterpret_cast<DevicePtr>(to), reinterpret_cast<DevicePtr>(from), bytes, context_.stream()), "cuMemcpyDtoDAsync");
  }

  /// The workspace: info, then what a routine keeps (a copy that it overwrites, tau), then its own.
  void plan() {
    const Routines<T>& r = routines<T>();
    const Handle h = shared_.handle;
    context_.make_current();
    int size = 0, more = 0;
    size_t kept = 0;
    switch (routine_) {
      case Routine::cholesky: check_call(r.potrf_size(h, upper, n_, nullptr, n_, &size), "potrf_bufferSize"); break;
      case Routine::solve_triangular: break;
      case Routine::lu: check_call(r.getrf_size(h, m_, n_, nullptr, m_, &size), "getrf_bufferSize"); break;
      case Routine::qr:
        check_call(r.geqrf_size(h, m_, n_, nullptr, m_, &size), "geqrf_bufferSize");
        check_call(r.orgqr_size(h, m_, columns_, n_, nullptr, m_, nullptr, &more), "orgqr_bufferSize");
        kept = static_cast<size_t>(n_) * sizeof(T);
        break;
      case Routine::svd:
        check_call(r.gesvdj_size(h, wanted_, 1, m_, n_, nullptr, m_, nullptr, nullptr, m_, nullptr, n_, &size, shared_.jacobi), "gesvdj_bufferSize");
        kept = bytes_[0];
        break;
      case Routine::eigh: check_call(r.syevd_size(h, wanted_, upper, n_, nullptr, n_, nullptr, &size), "syevd_bufferSize"); break;
    }
    work_size_ = std::max(size, more);
    work_at_ = grain + padded(kept);
    workspace_ = shared_workspace(context_, work_at_ + padded(static_cast<size_t>(work_size_) * sizeof(T)));
    if (routine_ == Routine::lu) make_row_numbers();
  }

  /// 0, 1 …, on the device for as long as the call: rows are exchanged among them as among the matrix's, by a routine that moves words of four bytes.
  void make_row_numbers() {
    std::vector<uint32_t> numbers(static_cast<size_t>(m_));
    std::iota(numbers.begin(), numbers.end(), 0u);
    row_numbers_ = std::make_unique<Workspace>(context_, numbers.size() * sizeof(uint32_t));
    check(driver().memcpy_htod_async(row_numbers_->address(), numbers.data(), numbers.size() * sizeof(uint32_t), context_.stream()), "cuMemcpyHtoDAsync");
    context_.synchronize();
  }

  void launch(const std::vector<char*>& p) const {
    const Routines<T>& r = routines<T>();
    const Handle h = shared_.handle;
    switch (routine_) {
      case Routine::cholesky:  // the lower part of a matrix row by row is the upper part of one column by column
        copy(p[1], p[0], bytes_[0]);
        return check_call(r.potrf(h, upper, n_, numbers(p[1]), n_, work(), work_size_, reinterpret_cast<int*>(p[2])), "potrf");
      case Routine::solve_triangular: return solve(p);
      case Routine::lu: return lu(p);
      case Routine::qr:
        copy(p[1], p[0], bytes_[0]);
        check_call(r.geqrf(h, m_, n_, numbers(p[1]), m_, numbers(scratch(grain)), work(), work_size_, info()), "geqrf");
        return check_call(r.orgqr(h, m_, columns_, n_, numbers(p[1]), m_, numbers(scratch(grain)), work(), work_size_, info()), "orgqr");
      case Routine::svd:
        copy(scratch(grain), p[0], bytes_[0]);
        return check_call(r.gesvdj(h, wanted_, 1, m_, n_, numbers(scratch(grain)), m_, numbers(p[1]), numbers(p[2]), m_, numbers(p[3]), n_, work(), work_size_, info(), shared_.jacobi),
                          "gesvdj");
      case Routine::eigh:
        copy(p[2], p[0], bytes_[0]);
        return check_call(r.syevd(h, wanted_, upper, n_, numbers(p[2]), n_, numbers(p[1]), work(), work_size_, info()), "syevd");
    }
  }

  /// T X = B row by row is Xᵀ Tᵀ = Bᵀ column by column.
  void solve(const std::vector<char*>& p) const {
    const T one = 1;
    copy(p[2], p[1], bytes_[1]);
    check_call(routines<T>().trsm(shared_.blas, right, first_ ? lower : upper, second_ ? transposed : plain, stored, columns_, n_, &one, numbers(p[0]), n_, numbers(p[2]), columns_), "trsm");
  }

  void lu(const std::vector<char*>& p) const {
    const Routines<T>& r = routines<T>();
    int* pivots = reinterpret_cast<int*>(p[3]);
    copy(p[1], p[0], bytes_[0]);
    check_call(r.getrf(shared_.handle, m_, n_, numbers(p[1]), m_, work(), pivots, info()), "getrf");
    copy(p[2], reinterpret_cast<const char*>(row_numbers_->address()), bytes_[2]);
    check_call(cusolver::api()->floats.laswp(shared_.handle, 1, reinterpret_cast<float*>(p[2]), m_, 1, std::min(m_, n_), pivots, 1), "laswp");
  }

  Routine routine_;
  std::string what_;
  Context& context_;
  Shared& shared_;
  int64_t count_ = 1;
  std::vector<size_t> bytes_;  // of one matrix's part, by operand
  int m_ = 0, n_ = 0, columns_ = 0, work_size_ = 0;
  bool first_ = false, second_ = false;  // the call's integers
  Vectors wanted_ = vectors;
  size_t work_at_ = 0;
  std::shared_ptr<const Workspace> workspace_;
  std::unique_ptr<const Workspace> row_numbers_;
};

/// Where the processor does not have the batch done before a GPU is through its matrices one by one: measured on an H200 beside 16 cores (weft bench linalg), copies included.
bool worth_it(int64_t count, int64_t columns) { return columns >= 256 || (columns >= 48 && count <= 4); }

std::optional<Routine> routine_of(const kernel::CallDesc& desc) {
  static constexpr std::pair<std::string_view, Routine> names[] = {{"cholesky", Routine::cholesky}, {"solve_triangular", Routine::solve_triangular}, {"lu", Routine::lu},
                                                                  {"qr", Routine::qr},             {"svd", Routine::svd},                            {"eigh", Routine::eigh}};
  for (const auto& [name, routine] : names)
    if (name == desc.name) return routine;
  return std::nullopt;
}

/// Elements of one array as far as the routines count them.
bool countable(const kernel::CallDesc& desc) {
  for (const auto* arrays : {&desc.inputs, &desc.outputs})
    for (const kernel::CallDesc::Array& array : *arrays) {
      int64_t matrix = 1;
      for (size_t k = desc.inputs[0].extents.size() - 2; k < array.extents.size(); ++k) matrix *= array.extents[k];
      if (matrix > INT_MAX) return false;
    }
  return true;
}

}  // namespace

std::shared_ptr<const LibraryCall> cusolver_call(const kernel::CallDesc& desc, Context& context) {
  const std::optional<Routine> routine = routine_of(desc);
  if (!routine || !cusolver::api() || !countable(desc)) return nullptr;
  const std::vector<int64_t>& extents = desc.inputs[0].extents;
  int64_t count = 1;
  for (size_t k = 0; k + 2 < extents.size(); ++k) count *= extents[k];
  if (!worth_it(count, std::min(extents[extents.size() - 2], extents.back()))) return nullptr;
  if (std::any_of(extents.begin(), extents.end(), [](int64_t n) { return n == 0; }) || (*routine == Routine::solve_triangular && desc.inputs[1].extents.back() == 0)) return nullptr;
  Shared* const all = shared(context);
  if (!all) return nullptr;
  if (desc.inputs[0].dtype == float64) return std::make_shared<CusolverCall<double>>(*routine, desc, context, *all);
  return std::make_shared<CusolverCall<float>>(*routine, desc, context, *all);
}

}  // namespace weft::target::cuda
