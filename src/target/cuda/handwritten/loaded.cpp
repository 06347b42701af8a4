#include "target/cuda/handwritten/loaded.h"

#include <fmt/format.h>

#include "runtime/background.h"
#include "target/cuda/driver/workspace.h"

namespace weft::target::cuda {

namespace {

constexpr int64_t operand_alignment = 16;  // bytes, required by all kernels of the table

class HandwrittenCall final : public LibraryCall {
 public:
  HandwrittenCall(std::shared_ptr<const LoadedKernel> kernel, const Match& match)
      : kernel_(std::move(kernel)), match_(match) {
    if (match.scratch_bytes > 0)
      scratch_ = shared_workspace(kernel_->context(), static_cast<size_t>(match.scratch_bytes));
  }

  std::string name() const override { return match_.label; }
  void begin() const override { kernel_->begin(); }

  void run(std::span<void* const> operands) const override {
    Context& context = kernel_->context();
    context.make_current();
    void* scratch = scratch_ ? reinterpret_cast<void*>(scratch_->address()) : nullptr;
    match_.run(operands, scratch, [&](size_t k, void** arguments) {
      const KernelEntry& entry = match_.entries.at(k);
      launch(context, kernel_->entry(k), entry.shape.grid_x, entry.shape.grid_y, arguments, entry.symbol);
    });
  }

 private:
  std::shared_ptr<const LoadedKernel> kernel_;
  Match match_;
  std::shared_ptr<const Workspace> scratch_;
};

}  // namespace

const Entry& LoadedKernel::entry(size_t index) const {
  std::call_once(once_, [&] {
    const ModuleHandle module = load_module(context_, compile_(source_), entries_.front().symbol);
    std::vector<Entry> found;
    for (const KernelEntry& entry : entries_)
      found.push_back(find_entry(context_, module,
                                 {.source = "",
                                  .symbol = entry.symbol,
                                  .threads = static_cast<int>(entry.shape.threads),
                                  .shared_bytes = entry.shape.shared_bytes}));
    loaded_ = std::move(found);
  });
  return loaded_.at(index);
}

void LoadedKernel::begin() const {
  if (begun_.exchange(true)) return;
  runtime::begin_in_background([self = shared_from_this()] { self->entry(0); });
}

std::shared_ptr<const LibraryCall> handwritten_call(std::shared_ptr<const LoadedKernel> kernel, const Match& match) {
  return std::make_shared<HandwrittenCall>(std::move(kernel), match);
}

std::shared_ptr<const LoadedKernel> HandwrittenKernels::loaded(const HandwrittenKernel& kernel,
                                                               const Match& match) const {
  std::lock_guard lock(mutex_);
  std::shared_ptr<const LoadedKernel>& known = loaded_[match.form];
  if (known) return known;
  known = std::make_shared<LoadedKernel>(context_, compile_, source_of(kernel, match.parameters), match.entries);
  return known;
}

std::vector<Candidate> HandwrittenKernels::candidates(const kernel::CallDesc& work, bool preferred) const {
  std::vector<Candidate> out;
  for (const Found& found : matches(work, machine_, table_))
    if (found.kernel->preferred == preferred)
      out.push_back({handwritten_call(loaded(*found.kernel, found.match), found.match),
                     fmt::format("{} {}", found.kernel->name, found.kernel->version), operand_alignment});
  return out;
}

}  // namespace weft::target::cuda
