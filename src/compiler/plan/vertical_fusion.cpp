#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "compiler/plan/passes.h"
#include "kernel/derive/sequence.h"

namespace weft::compiler {

namespace {

constexpr size_t most_joined_insts = 300,
                 most_joined_params = 16;  // of launches that become one: long kernels take long to compile

size_t insts(const kernel::Block& block) {
  size_t n = block.insts.size();
  for (const kernel::Inst& i : block.insts)
    for (const kernel::Block& b : i.blocks) n += insts(b);
  return n;
}

class VerticalFusion {
 public:
  explicit VerticalFusion(StepPlan plan) : plan_(std::move(plan)) {
    for (size_t k = 0; k < plan_.digests.size(); ++k) kernel_ids_.emplace(plan_.digests[k], k);
  }

  StepPlan run() {
    std::vector<Step> joined;
    for (Step& step : plan_.steps) {
      const bool both = !joined.empty() && is_single(joined.back()) && is_single(step);
      if (!both || !follow(joined.back(), step)) joined.push_back(std::move(step));
    }
    plan_.steps = std::move(joined);
    drop_unused_kernels();
    return std::move(plan_);
  }

 private:
  /// Returns whether a step is a launch of one program that can take in another one. Parallel loops
  /// cannot, nor products on tensor cores: their blocks have a shape of their own. Kernels of users keep their names.
  bool is_single(const Step& step) const {
    if (step.kind != Step::Kind::launch || step.of_user || step.segments.size() != 1 || step.segments[0].grid != 1)
      return false;
    const kernel::Kernel& k = plan_.kernels[step.kernel];
    return !k.any_size &&
           std::none_of(k.body.insts.begin(), k.body.insts.end(), [](const kernel::Inst& i) { return i.parallel; });
  }

  /// Makes `second` a part of the launch before it. Returns whether it fits.
  bool follow(Step& first, const Step& second) {
    const kernel::Kernel &a = plan_.kernels[first.kernel], &b = plan_.kernels[second.kernel];
    if (insts(a.body) + insts(b.body) > most_joined_insts || a.params.size() + b.params.size() > most_joined_params)
      return false;
    std::vector<NodeId> nodes = first.nodes[0];
    std::vector<kernel::Ref> params;
    for (size_t k = 0; k < second.nodes[0].size(); ++k) {
      const auto at = static_cast<size_t>(std::find(nodes.begin(), nodes.end(), second.nodes[0][k]) - nodes.begin());
      if (at == nodes.size()) nodes.push_back(second.nodes[0][k]);
      else if (at < a.params.size() && !(a.params[at].dtype == b.params[k].dtype)) return false;
      params.push_back(static_cast<kernel::Ref>(at));
    }
    kernel::Kernel both = kernel::in_sequence(a, b, params);
    const Digest digest = kernel::digest(both);
    const auto [it, fresh] = kernel_ids_.try_emplace(digest, plan_.kernels.size());
    first.name = both.name;
    first.kernel = it->second;
    if (fresh) {
      plan_.kernels.push_back(std::move(both));
      plan_.digests.push_back(digest);
    }
    std::vector<SymbolArgument>& symbols = first.segments[0].symbols;
    symbols.insert(symbols.end(), second.segments[0].symbols.begin(), second.segments[0].symbols.end());
    first.nodes[0] = std::move(nodes);
    absorb(first, second);
    return true;
  }

  void drop_unused_kernels() {
    std::map<size_t, size_t> kernel_ids;
    std::vector<kernel::Kernel> used;
    std::vector<Digest> digests;
    for (Step& step : plan_.steps) {
      if (step.kind != Step::Kind::launch) continue;
      const auto [it, fresh] = kernel_ids.try_emplace(step.kernel, used.size());
      if (fresh) {
        used.push_back(std::move(plan_.kernels[step.kernel]));
        digests.push_back(plan_.digests[step.kernel]);
      }
      step.kernel = it->second;
    }
    plan_.kernels = std::move(used);
    plan_.digests = std::move(digests);
  }

  StepPlan plan_;
  std::unordered_map<Digest, size_t> kernel_ids_;
};

}  // namespace

StepPlan vertical_fusion(StepPlan plan) { return VerticalFusion(std::move(plan)).run(); }

}  // namespace weft::compiler
