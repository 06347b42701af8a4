#include "target/cuda/libraries/cublaslt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/hash.h"
#include "runtime/trace.h"
#include "target/cuda/driver/library.h"
#include "target/cuda/driver/workspace.h"

namespace weft::target::cuda {

namespace lt {

const Api* api() {
  static const Api* instance = bind_all<Api>(cublaslt_library());
  return instance;
}

std::string tile_name(uint32_t id) {
  static constexpr const char* names[] = {
      "auto",   "8x8",    "8x16",    "16x8",    "8x32",    "16x16",   "32x8",    "8x64",   "16x32",
      "32x16",  "64x8",   "32x32",   "32x64",   "64x32",   "32x128",  "64x64",   "128x32", "64x128",
      "128x64", "64x256", "128x128", "256x64",  "64x512",  "128x256", "256x128", "512x64", "64x96",
      "96x64",  "96x128", "128x160", "160x128", "192x128", "128x192", "128x96",  "32x256", "256x32"};
  return id < std::size(names) ? names[id] : fmt::format("tile {}", id);
}

}  // namespace lt

namespace {

void check_lt(int status, const char* call, const std::string& what) {
  if (status == 0) return;
  const char* text = lt::api()->status_string(status);
  throw_failure("matmul",
                fmt::format("{} failed: {} (status {}) on {}", call, text ? text : "unknown status", status, what));
}

/// What all calls on a device share.
struct LtShared {
  lt::Handle handle = nullptr;
  DevicePtr workspace = 0;
};

/// Returns the device's state; null if cuBLASLt does not start or there is no memory for its workspace.
const LtShared* lt_shared(Context& context) {
  static std::mutex mutex;
  static auto* all = new std::map<int, LtShared>;  // never destroyed: the driver may have ended by then
  std::lock_guard lock(mutex);
  const auto [slot, is_new] = all->try_emplace(context.ordinal());
  LtShared& s = slot->second;
  if (is_new) {
    const runtime::Span span("compiler", "cuBLASLt starts");
    context.make_current();
    if (lt::api()->create(&s.handle) != 0) s.handle = nullptr;
    if (s.handle && driver().mem_alloc(&s.workspace, cublaslt_workspace_bytes) != success) s.workspace = 0;
  }
  return s.handle && s.workspace ? &s : nullptr;
}

/// A handle of cuBLASLt's, destroyed with its owner.
template <class H>
struct Owned {
  H handle = nullptr;
  int (*destroy)(H) = nullptr;
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (handle) destroy(handle);
  }
};

template <class T>
void set(int (*function)(lt::MatmulDesc, int, const void*, size_t), lt::MatmulDesc to, int attribute, T value,
         const std::string& what) {
  check_lt(function(to, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute", what);
}

/// Returns the alignment that all operands have, at most 16 bytes (kernels read no more at once). The heuristic is
/// asked once for each alignment.
int64_t alignment_of(std::span<void* const> operands, uintptr_t offsets) {
  uintptr_t bits = 16 | offsets;
  for (const void* p : operands) bits |= reinterpret_cast<uintptr_t>(p);
  return static_cast<int64_t>(bits & (~bits + 1));
}

/// One of cuBLASLt's algorithms, or one of the other candidates.
struct Algorithm {
  lt::Algorithm plain{};
  uint64_t other = 0;  // 1 + its index
};

/// The candidates for operands of one alignment, and the choice between them.
struct Ways {
  std::vector<Algorithm> algorithms;
  Choice choice;
};

class CublasltCall final : public LibraryCall {
 public:
  CublasltCall(const kernel::DotDesc& desc, const LtForm& form, Context& context, const LtShared& shared,
               const CublasltOptions& options)
      : desc_(desc), what_(desc.to_string()), form_(form), context_(context), shared_(shared), options_(options),
        timer_(context, what_) {
    make_layout(a_, form.a);
    make_layout(b_, form.b);
    make_layout(d_, form.d);
    for (const LtForm::Offset& at : form.calls)
      offsets_ |= static_cast<uintptr_t>((form.swapped ? at.b : at.a) * desc.a.size() |
                                         (form.swapped ? at.a : at.b) * desc.b.size() | at.c * desc.c.size());
    matmul_.destroy = lt::api()->desc_destroy;
    check_lt(lt::api()->desc_create(&matmul_.handle, form.compute, form.scale), "cublasLtMatmulDescCreate", what_);
    const auto set_matmul = [&](int attribute, auto value) {
      set(lt::api()->desc_set, matmul_.handle, attribute, value, what_);
    };
    set_matmul(lt::matmul_transa, static_cast<int32_t>(form.a.transposed ? lt::op_t : lt::op_n));
    set_matmul(lt::matmul_transb, static_cast<int32_t>(form.b.transposed ? lt::op_t : lt::op_n));
    set_matmul(lt::matmul_epilogue, form.epilogue);
    if (desc_.bias) {
      set_matmul(lt::matmul_bias_data_type, static_cast<int32_t>(form.d.type));
      set_bias(reinterpret_cast<void*>(uintptr_t{1} << 20));  // only the alignment matters before the first run
    }
    if (has_pre_activation()) {
      set_matmul(lt::matmul_aux_leading, form.d.leading);
      set_argument(reinterpret_cast<void*>(uintptr_t{1} << 20));
    }
    for (int64_t k = 0; k < desc.scales; ++k) set_scale(k, reinterpret_cast<void*>(uintptr_t{1} << 20));
  }

  /// Returns false if cuBLASLt knows no algorithm.
  bool settle() { return ways(16) != nullptr; }

  void begin() const override {
    for (const Candidate& other : options_.others) other.call->begin();
  }

  std::string name() const override {
    std::lock_guard lock(mutex_);
    const auto known = ways_.find(last_);
    if (known == ways_.end()) return "cublaslt";
    const Algorithm& chosen = known->second.algorithms[known->second.choice.index()];
    if (chosen.other > 0) return options_.others[chosen.other - 1].call->name();
    uint32_t tile = 0;
    int32_t splits = 1;
    size_t written = 0;
    lt::api()->algorithm_get(&chosen.plain, lt::algorithm_tile_id, &tile, sizeof tile, &written);
    lt::api()->algorithm_get(&chosen.plain, lt::algorithm_splitk, &splits, sizeof splits, &written);
    return fmt::format("cublaslt {} splitk {}", lt::tile_name(tile), std::max(splits, 1));
  }

  void run(std::span<void* const> operands) const override {
    const size_t expected = 3u + (desc_.bias ? 1 : 0) + (desc_.residual ? 1 : 0) + (has_pre_activation() ? 1 : 0) +
                            static_cast<size_t>(desc_.scales);
    weft::check(operands.size() == expected, "cublaslt", "number of operands");
    std::lock_guard lock(mutex_);
    context_.make_current();
    const size_t scales = operands.size() - 1 - static_cast<size_t>(desc_.scales);  // the first scale
    const int64_t alignment = alignment_of(operands, offsets_);
    if (desc_.bias) set_bias(operands[2]);
    if (has_pre_activation()) set_argument(operands[scales - 1]);
    for (int64_t k = 0; k < desc_.scales; ++k) set_scale(k, operands[scales + static_cast<size_t>(k)]);
    Ways* known = ways(alignment);
    if (!known)
      throw_failure("matmul", fmt::format("cuBLASLt has no algorithm for {} with operands aligned to {} bytes", what_,
                                          alignment));
    if (!known->choice.settled() && timer_.may_measure()) choose(*known, alignment, operands);
    check_lt(launch(known->algorithms[known->choice.index()], operands), "cublasLtMatmul", what_);
  }

 private:
  bool has_pre_activation() const { return desc_.pre_activation != kernel::PreActivation::none; }

  void make_layout(Owned<lt::Layout>& to, const LtMatrix& m) const {
    to.destroy = lt::api()->layout_destroy;
    check_lt(lt::api()->layout_create(&to.handle, m.type, static_cast<uint64_t>(m.rows),
                                      static_cast<uint64_t>(m.columns), m.leading),
             "cublasLtMatrixLayoutCreate", what_);
    if (form_.batch == 1) return;
    const auto count = static_cast<int32_t>(form_.batch);
    check_lt(lt::api()->layout_set(to.handle, lt::layout_batch_count, &count, sizeof count),
             "cublasLtMatrixLayoutSetAttribute", what_);
    check_lt(lt::api()->layout_set(to.handle, lt::layout_strided_batch_offset, &m.batch_stride, sizeof m.batch_stride),
             "cublasLtMatrixLayoutSetAttribute", what_);
  }

  void set_bias(void* pointer) const {
    set(lt::api()->desc_set, matmul_.handle, lt::matmul_bias_pointer, pointer, what_);
  }

  /// Each scale multiplies the whole matmul, so it does not matter to which operand cuBLASLt attributes it.
  void set_scale(int64_t k, void* pointer) const {
    set(lt::api()->desc_set, matmul_.handle, k == 0 ? lt::matmul_a_scale_pointer : lt::matmul_b_scale_pointer, pointer,
        what_);
  }

  void set_argument(void* pointer) const {
    set(lt::api()->desc_set, matmul_.handle, lt::matmul_aux_pointer, pointer, what_);
  }

  int launch(const Algorithm& chosen, std::span<void* const> operands) const {
    if (chosen.other > 0) {
      options_.others[chosen.other - 1].call->run(operands);
      return 0;
    }
    const auto at = [](void* base, int64_t elements, Dtype t) {
      return static_cast<char*>(base) + elements * t.size();
    };
    const size_t first = form_.swapped ? 1 : 0, second = 1 - first;
    const Dtype types[] = {desc_.a, desc_.b};
    // float64 matmuls take float64 scalars, int8 ones int32 scalars.
    static constexpr float one = 1, zero = 0;
    static constexpr double one64 = 1, zero64 = 0;
    static constexpr int32_t one32 = 1, zero32 = 0;
    const void *alpha = &one, *beta = desc_.residual ? &one : &zero;
    if (form_.scale == lt::r_64f) alpha = &one64, beta = desc_.residual ? &one64 : &zero64;
    if (form_.scale == lt::r_32i) alpha = &one32, beta = &zero32;
    void* residual = desc_.residual ? operands[desc_.bias ? 3 : 2] : operands.back();
    for (const LtForm::Offset& offset : form_.calls) {
      const int status = lt::api()->matmul(
          shared_.handle, matmul_.handle, alpha, at(operands[first], offset.a, types[first]), a_.handle,
          at(operands[second], offset.b, types[second]), b_.handle, beta, at(residual, offset.c, desc_.c), d_.handle,
          at(operands.back(), offset.c, desc_.c), d_.handle, &chosen.plain, reinterpret_cast<void*>(shared_.workspace),
          cublaslt_workspace_bytes, context_.stream());
      if (status != 0) return status;
    }
    return 0;
  }

  /// Returns the candidates for operands of an alignment: only the recorded one if there is a record, else all; null if
  /// there is none.
  Ways* ways(int64_t alignment) const {
    last_ = alignment;
    if (const auto known = ways_.find(alignment); known != ways_.end()) return &known->second;
    Ways found{{}, Choice("cublaslt", key(alignment))};
    if (options_.search) replay(found, alignment);
    if (found.algorithms.empty()) found.algorithms = candidates(alignment);
    if (found.algorithms.empty()) return nullptr;
    if (!options_.search) found.choice.settle(0);
    return &ways_.insert_or_assign(alignment, std::move(found)).first->second;
  }

  /// Takes the algorithm that an earlier choice recorded.
  void replay(Ways& to, int64_t alignment) const {
    if (const auto recorded = recorded_algorithm(to.choice, alignment)) {
      to.algorithms = {*recorded};
      to.choice.settle(0);
    }
  }

  /// Measures the candidates on the operands. A matmul in place cannot be repeated, so candidates then write to other
  /// memory; without such memory the first one is taken.
  void choose(Ways& among, int64_t alignment, std::span<void* const> operands) const {
    replay(among, alignment);  // another call may have recorded a choice meanwhile
    if (among.choice.settled()) return;
    std::vector<void*> measured(operands.begin(), operands.end());
    std::shared_ptr<const Workspace> elsewhere;
    if (in_place(operands)) {
      elsewhere = another_result();
      if (!elsewhere) return among.choice.settle(0);
      measured.back() = reinterpret_cast<void*>(elsewhere->address());
    }
    const auto run = [&](size_t i) { return launch(among.algorithms[i], measured) == 0; };
    among.choice.choose(timer_, among.algorithms.size(), run, [&](size_t i) {
      const auto* bytes = reinterpret_cast<const char*>(&among.algorithms[i]);
      return Choice::Record(bytes, bytes + sizeof(Algorithm));
    });
  }

  bool in_place(std::span<void* const> operands) const {
    return desc_.residual && operands[desc_.bias ? 3 : 2] == operands.back();
  }

  /// Returns memory for a result; null for batched or several matmuls, or if there is too little memory.
  std::shared_ptr<const Workspace> another_result() const {
    if (form_.batch > 1 || form_.calls.size() > 1) return nullptr;
    const size_t bytes = static_cast<size_t>(form_.d.leading * form_.d.columns) * desc_.c.size();
    size_t free = 0, total = 0;
    if (driver().mem_get_info(&free, &total) != success || free < 2 * bytes) return nullptr;
    return std::make_shared<const Workspace>(context_, bytes);
  }

  /// Returns the heuristic's algorithms, best first, then the other candidates.
  std::vector<Algorithm> candidates(int64_t alignment) const {
    Owned<lt::Preference> preference;
    preference.destroy = lt::api()->preference_destroy;
    check_lt(lt::api()->preference_create(&preference.handle), "cublasLtMatmulPreferenceCreate", what_);
    const auto set_preference = [&](int attribute, auto value) {
      check_lt(lt::api()->preference_set(preference.handle, attribute, &value, sizeof value),
               "cublasLtMatmulPreferenceSetAttribute", what_);
    };
    set_preference(lt::preference_max_workspace_bytes, static_cast<uint64_t>(cublaslt_workspace_bytes));
    // Split-K partial sums must be added in the precision of the accumulator, not in that of a narrower result.
    const bool narrow = desc_.c.size() < 4;
    set_preference(lt::preference_reduction_scheme_mask,
                   static_cast<uint32_t>(lt::reduction_compute_type | (narrow ? 0u : lt::reduction_in_place)));
    for (int attribute : {lt::preference_min_alignment_a, lt::preference_min_alignment_b,
                          lt::preference_min_alignment_c, lt::preference_min_alignment_d})
      set_preference(attribute, static_cast<uint32_t>(alignment));
    std::array<lt::HeuristicResult, 8> results{};
    int count = 0;
    const int status =
        lt::api()->heuristic(shared_.handle, matmul_.handle, a_.handle, b_.handle, d_.handle, d_.handle,
                             preference.handle, static_cast<int>(results.size()), results.data(), &count);
    std::vector<Algorithm> out;
    if (status != 0) return out;
    for (int i = 0; i < count; ++i)
      if (results[static_cast<size_t>(i)].state == 0) out.push_back({results[static_cast<size_t>(i)].algorithm});
    for (size_t k = 0; !out.empty() && k < options_.others.size(); ++k)
      if (options_.others[k].alignment <= alignment) out.push_back({.other = k + 1});
    return out;
  }

  Digest key(int64_t alignment) const {
    Hasher hasher;
    hasher.digest(device_digest(context_))
        .number(lt::api()->version())
        .digest(desc_.digest())
        .number(options_.tf32)
        .number(alignment)
        .number(cublaslt_workspace_bytes);
    for (const Candidate& other : options_.others)
      if (other.alignment <= alignment) hasher.text(other.version);
    return hasher.finish();
  }

  /// Returns nothing without a record, or if cuBLASLt no longer accepts the recorded algorithm.
  std::optional<Algorithm> recorded_algorithm(const Choice& choice, int64_t alignment) const {
    const std::optional<Choice::Record> bytes = choice.recorded();
    Algorithm recorded;
    if (!bytes || bytes->size() != sizeof recorded) return std::nullopt;
    std::memcpy(&recorded, bytes->data(), sizeof recorded);
    if (recorded.other > 0) {
      const size_t k = recorded.other - 1;
      return k < options_.others.size() && options_.others[k].alignment <= alignment ? std::optional(recorded)
                                                                                     : std::nullopt;
    }
    lt::HeuristicResult result{};
    const int status = lt::api()->check(shared_.handle, matmul_.handle, a_.handle, b_.handle, d_.handle, d_.handle,
                                        &recorded.plain, &result);
    if (status != 0 || result.workspace_bytes > cublaslt_workspace_bytes) return std::nullopt;
    return recorded;
  }

  kernel::DotDesc desc_;
  std::string what_;
  LtForm form_;
  Context& context_;
  const LtShared& shared_;
  CublasltOptions options_;
  Owned<lt::Layout> a_, b_, d_;
  Owned<lt::MatmulDesc> matmul_;
  uintptr_t offsets_ = 0;  // address bits that the offsets of the calls set
  mutable std::mutex mutex_;
  mutable EventTimer timer_;
  mutable std::map<int64_t, Ways> ways_;  // by alignment
  mutable int64_t last_ = 16;
};

}  // namespace

std::shared_ptr<const LibraryCall> cublaslt(const kernel::DotDesc& desc, Context& context,
                                            const CublasltOptions& options) {
  if (!lt::api()) return nullptr;
  const std::optional<LtForm> form = cublaslt_form(desc, options.tf32);
  if (!form) return nullptr;
  const LtShared* s = lt_shared(context);
  if (!s) return nullptr;
  context.make_current();
  const runtime::Span span("compiler", "cuBLASLt is asked");
  auto call = std::make_shared<CublasltCall>(desc, *form, context, *s, options);
  return call->settle() ? call : nullptr;
}

void start_cublaslt(Context& context) {
  constexpr int64_t n = 256;
  kernel::DotDesc desc;
  desc.a = desc.b = desc.c = bfloat16;
  desc.m = desc.n = desc.k = n;
  desc.a_m = desc.b_k = desc.c_m = n;
  desc.a_k = desc.b_n = desc.c_n = 1;
  cublaslt(desc, context, {.search = false});
}

}  // namespace weft::target::cuda
