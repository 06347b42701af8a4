#include "compiler/program/share_code.h"

#include <map>
#include <mutex>

#include "kernel/family/family.h"

namespace weft::compiler {

namespace {

kernel::Families& families_of(const Digest& target) {
  static std::mutex mutex;
  static auto& all = *new std::map<Digest, kernel::Families>;
  const std::lock_guard lock(mutex);
  return all[target];
}

}  // namespace

bool share_code(StepPlan& plan, size_t first, target::Target& target) {
  kernel::Families& families = families_of(target.digest());
  std::vector<std::vector<int64_t>> numbers(plan.kernels.size());
  bool any = false;
  for (size_t k = first; k < plan.kernels.size(); ++k) {
    kernel::General general = families.general(plan.kernels[k]);
    if (general.numbers.empty()) continue;
    plan.kernels[k] = std::move(general.kernel);
    numbers[k] = std::move(general.numbers);
    any = true;
  }
  for (Step& step : plan.steps) {
    if (step.kind != Step::Kind::launch) continue;
    for (StepSegment& segment : step.segments)
      for (const int64_t n : numbers[step.kernel]) segment.symbols.push_back({n, nullptr});
  }
  return any;
}

}  // namespace weft::compiler
