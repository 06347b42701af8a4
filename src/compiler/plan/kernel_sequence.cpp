#include "compiler/plan/kernel_sequence.h"

#include <fmt/format.h>

#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace weft::compiler {

namespace {

class KernelSequence final : public target::LibraryCall {
 public:
  KernelSequence(kernel::Routine routine, target::Target& target) : routine_(std::move(routine)), target_(target) {}

  std::string name() const override { return fmt::format("generated, {} kernels", routine_.launches.size()); }
  void begin() const override { code(); }

  void run(std::span<void* const> operands) const override { run_with(operands, {}); }

  void run_with(std::span<void* const> operands, std::span<const int64_t> lengths) const override {
    for (const kernel::Routine::Launch& launch : routine_.launches) {
      std::vector<void*> buffers;
      for (const int b : launch.buffers) buffers.push_back(operands[static_cast<size_t>(b)]);
      std::vector<int64_t> symbols = launch.symbols;
      for (const size_t k : launch.lengths) symbols.push_back(lengths[k]);
      const int64_t grid = launch.count ? launch.count.value(symbols) : launch.grid;
      if (grid < 1) continue;
      const target::Segment segment{buffers, symbols, grid};
      code()[launch.kernel]->run(std::span(&segment, 1), work_of_launch);
    }
  }

 private:
  static constexpr double work_of_launch = 1e9;  // enough for all threads

  const std::vector<std::shared_ptr<const target::Executable>>& code() const {
    std::call_once(once_, [&] {
      code_ = target_.begin(routine_.kernels, std::vector<std::vector<size_t>>(routine_.kernels.size(), {1}));
    });
    return code_;
  }

  kernel::Routine routine_;
  target::Target& target_;
  mutable std::once_flag once_;
  mutable std::vector<std::shared_ptr<const target::Executable>> code_;
};

}  // namespace

std::shared_ptr<const target::LibraryCall> kernel_sequence(kernel::Routine routine, target::Target& target) {
  return std::make_shared<KernelSequence>(std::move(routine), target);
}

}  // namespace weft::compiler
