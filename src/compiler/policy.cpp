#include <fmt/format.h>

#include <mutex>

#include "compiler/program.h"

namespace weft::compiler {

namespace {
Policy& current() {
  static Policy policy;
  return policy;
}
}  // namespace

const Policy& default_policy() { return current(); }
void set_default_policy(const Policy& policy) { current() = policy; }

std::string Policy::to_string() const {
  const std::string budget = memory_budget == INT64_MAX ? "none" : std::to_string(memory_budget);
  static constexpr const char* modes[] = {"off", "cached", "on", "force"};
  Hasher recorded;
  if (choices)
    for (const auto& [key, choice] : *choices) recorded.digest(key).number(choice);
  return fmt::format("libraries={} tf32={} deterministic={} update_in_place={} memory_budget={} tuning={} choices={}",
                     libraries, numerics.tf32, numerics.deterministic, update_in_place, budget,
                     modes[static_cast<int>(tuning)], choices && !choices->empty() ? recorded.finish().hex() : "none");
}

Digest Policy::digest() const { return Hasher().text(to_string()).finish(); }

}  // namespace weft::compiler
