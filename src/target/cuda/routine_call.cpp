#include "target/cuda/routine_call.h"

#include <fmt/format.h>

#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention/desc.h"
#include "kernels/gemm/desc.h"
#include "target/cuda/driver/workspace.h"

namespace weft::target::cuda {

namespace {

constexpr int64_t sort_lanes = 4096, search_lanes = 256;
constexpr int64_t grain = 256;  // alignment of buffers in the workspace, in bytes

class RoutineCall final : public LibraryCall {
 public:
  RoutineCall(std::string name, kernel::Routine routine, Target& target, Context* context)
      : name_(std::move(name)), routine_(std::move(routine)), target_(target), context_(context) {
    for (int64_t each : routine_.scratch) {
      offsets_.push_back(scratch_bytes_);
      scratch_bytes_ += (each + grain - 1) / grain * grain;
    }
  }

  std::string name() const override { return name_; }

  void begin() const override { prepare(); }

  void run(std::span<void* const> operands) const override {
    prepare();
    std::vector<void*> all(operands.begin(), operands.end());
    for (int64_t offset : offsets_)
      all.push_back(workspace_ ? reinterpret_cast<char*>(workspace_->address()) + offset : nullptr);
    for (const kernel::Routine::Launch& launch : routine_.launches) {
      std::vector<void*> buffers;
      for (int b : launch.buffers) buffers.push_back(all.at(static_cast<size_t>(b)));
      const Segment segment{buffers, launch.symbols, launch.grid};
      executables_[launch.kernel]->run(std::span(&segment, 1), 0);
    }
  }

 private:
  /// Starts the kernels' compilation, and takes the workspace: not before, since a candidate may never run.
  void prepare() const {
    std::call_once(once_, [&] {
      if (context_ && scratch_bytes_ > 0) workspace_ = shared_workspace(*context_, static_cast<size_t>(scratch_bytes_));
      executables_ = target_.begin(routine_.kernels, std::vector<std::vector<size_t>>(routine_.kernels.size(), {1}));
    });
  }

  std::string name_;
  kernel::Routine routine_;
  Target& target_;
  Context* context_;
  std::vector<int64_t> offsets_;  // in the workspace
  int64_t scratch_bytes_ = 0;
  mutable std::once_flag once_;  // guards the initialization of all that follows
  mutable std::vector<std::shared_ptr<const Executable>> executables_;
  mutable std::shared_ptr<const Workspace> workspace_;
};

/// Returns a version of kernels: other code, or other kernels, are other candidates.
std::string version_of(const Target& target, std::span<const kernel::Kernel> kernels) {
  Hasher hasher;
  hasher.text(target.fingerprint());
  for (const kernel::Kernel& kernel : kernels) hasher.digest(kernel::digest(kernel));
  return hasher.finish().hex();
}

}  // namespace

std::shared_ptr<const LibraryCall> routine_call(const kernel::CallDesc& desc, Target& target, Context* context) {
  std::optional<kernel::Routine> routine =
      kernel::routine_for(desc, desc.name == "searchsorted" ? search_lanes : sort_lanes);
  if (!routine) return nullptr;
  std::string name = fmt::format("generated, {} kernels", routine->launches.size());
  return std::make_shared<RoutineCall>(std::move(name), std::move(*routine), target, context);
}

std::vector<Candidate> generated_products(const kernel::DotDesc& desc, Target& target) {
  constexpr size_t most = 1;                 // each is compiled and measured
  constexpr int64_t operand_alignment = 16;  // bytes, of tensor maps and words
  std::vector<Candidate> out;
  for (kernels::GemmKernel& made : kernels::gemm_kernels(desc, target.machine(), most)) {
    if (!kernels::gemm_may_win(desc, made.tiling)) continue;
    const kernels::GemmTile& tile = made.tiling.tile;
    std::string name = fmt::format("weft gemm {}x{}", tile.rows, tile.columns),
                version = version_of(target, std::span(&made.kernel, 1));
    std::vector<int> operands(made.kernel.params.size());
    std::iota(operands.begin(), operands.end(), 0);
    kernel::Routine routine{{std::move(made.kernel)}, {{0, std::move(operands), {}, made.programs}}, {}};
    out.push_back({std::make_shared<RoutineCall>(std::move(name), std::move(routine), target, nullptr),
                   std::move(version), operand_alignment});
  }
  return out;
}

std::vector<Candidate> generated_attention(const kernel::AttentionDesc& desc, Target& target, Context* context) {
  std::optional<kernel::Routine> routine = kernels::attention_routine(desc, target.machine());
  if (!routine) return {};
  std::string name = desc.derivative ? "weft attention_vjp" : "weft attention",
              version = version_of(target, routine->kernels);
  return {{std::make_shared<RoutineCall>(std::move(name), std::move(*routine), target, context), std::move(version)}};
}

}  // namespace weft::target::cuda
