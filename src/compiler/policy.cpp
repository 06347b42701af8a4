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
  return fmt::format("libraries={} update_in_place={} memory_budget={}", libraries, update_in_place, budget);
}

Digest Policy::digest() const { return Hasher().text(to_string()).finish(); }

}  // namespace weft::compiler
