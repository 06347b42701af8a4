#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/program.h"

namespace weft::compiler {

namespace {

DigestedPolicy eager_form(Policy policy) {
  policy.tuning = std::min(policy.tuning, Tuning::cached);
  policy.share_code = true;
  const Digest digest = policy.digest();
  return {std::move(policy), digest};
}

/// The default policy, and what is derived from it.
struct Defaults {
  explicit Defaults(const Policy& chosen) : policy(chosen), eager(eager_form(chosen)) {}
  Policy policy;
  DigestedPolicy eager;
};
Defaults& defaults() {
  static Defaults all{Policy()};
  return all;
}

}  // namespace

const Policy& default_policy() { return defaults().policy; }
const DigestedPolicy& eager_policy() { return defaults().eager; }
void set_default_policy(const Policy& policy) { defaults() = Defaults(policy); }

std::string Policy::to_string() const {
  const std::string budget = memory_budget == INT64_MAX ? "none" : std::to_string(memory_budget);
  static constexpr const char* modes[] = {"off", "cached", "on", "force"};
  Hasher recorded;
  if (choices)
    for (const auto& [key, choice] : *choices) recorded.digest(key).text(choice);
  return fmt::format(
      "libraries={} tf32={} deterministic={} update_in_place={} share_code={} memory_budget={} tuning={} "
      "choices={}",
      libraries, numerics.tf32, numerics.deterministic, update_in_place, share_code, budget,
      modes[static_cast<int>(tuning)], choices && !choices->empty() ? recorded.finish().hex() : "none");
}

Digest Policy::digest() const { return Hasher().text(to_string()).finish(); }

}  // namespace weft::compiler
