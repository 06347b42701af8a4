// What each pass over plans changes, and what it leaves as it was.
#include <set>
#include <unordered_set>

#include "compiler/plan/passes.h"
#include "compiler/verify/programs.h"

using namespace weft;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

constexpr const char* programs[] = {"norm",       "loss",        "chain",       "scatter",    "sort",
                                    "updates",    "copies",      "gpu norm",    "gpu loss",   "gpu row",
                                    "gpu decode", "gpu updates", "gpu singles", "gpu columns"};

/// The groups of all steps, sorted.
std::vector<GroupId> groups(const StepPlan& plan) {
  std::vector<GroupId> out;
  for (const Step& s : plan.steps) out.insert(out.end(), s.groups.begin(), s.groups.end());
  std::sort(out.begin(), out.end());
  return out;
}

double traffic(const StepPlan& plan) {
  double out = 0;
  for (const Step& s : plan.steps) out += s.cost.bytes;
  return out;
}

std::string kernels(const StepPlan& plan) {
  std::string out;
  for (const kernel::Kernel& k : plan.kernels) out += kernel::print(k);
  return out;
}

/// The kernels without what mark_constants says of their parameters.
std::string unmarked_kernels(StepPlan plan) {
  for (kernel::Kernel& k : plan.kernels)
    for (kernel::Param& p : k.params) p.constant = false;
  return kernels(plan);
}

}  // namespace

TEST_CASE("lower makes a step for each group, and places no buffer") {
  for (const char* name : programs) {
    INFO(std::string(name));
    const Compilation c = compiled(sample_program(name), "lower");
    for (const Step& s : c.steps.steps) {
      CHECK(s.groups.size() == (s.kind == Step::Kind::copy ? 0 : 1));
      CHECK(s.nodes.size() == 1);
    }
    std::unordered_set<Digest> digests;
    for (size_t k = 0; k < c.steps.kernels.size(); ++k) {
      CHECK(kernel::digest(c.steps.kernels[k]) == c.steps.digests[k]);
      CHECK(digests.insert(c.steps.digests[k]).second);
    }
    CHECK_FALSE(c.steps.placed);
    CHECK(c.steps.locations.empty());
  }
}

TEST_CASE("both fusions of launches keep groups, results and costs, and only the vertical one makes kernels") {
  std::set<std::string> fewer;
  for (const char* name : programs) {
    INFO(std::string(name));
    const Sample sample = sample_program(name);
    const StepPlan lowered = compiled(sample, "lower").steps, wide = compiled(sample, "horizontal_fusion").steps,
                   joined = compiled(sample, "vertical_fusion").steps;
    CHECK(groups(wide) == groups(lowered));
    CHECK(groups(joined) == groups(lowered));
    CHECK(traffic(wide) == traffic(lowered));
    CHECK(traffic(joined) == traffic(lowered));
    CHECK(kernels(wide) == kernels(lowered));
    for (size_t k = 0; k < joined.kernels.size(); ++k) CHECK(kernel::digest(joined.kernels[k]) == joined.digests[k]);
    if (wide.steps.size() < lowered.steps.size()) fewer.insert(std::string("horizontal: ") + name);
    if (joined.steps.size() < wide.steps.size()) fewer.insert(std::string("vertical: ") + name);
  }
  for (const char* each : {"horizontal: updates", "horizontal: gpu updates", "vertical: gpu singles"})
    CHECK_MESSAGE(fewer.contains(each), each);
  CHECK_FALSE(fewer.contains("horizontal: chain"));
  CHECK_FALSE(fewer.contains("vertical: gpu columns"));
}

TEST_CASE("launches of one kernel become segments of one launch, each with its own buffers") {
  const Sample sample = sample_program("updates");
  const StepPlan lowered = compiled(sample, "lower").steps, wide = compiled(sample, "horizontal_fusion").steps;
  std::set<std::vector<NodeId>> before, after;
  for (const Step& s : lowered.steps) before.insert(s.nodes.begin(), s.nodes.end());
  for (const Step& s : wide.steps) {
    after.insert(s.nodes.begin(), s.nodes.end());
    if (s.kind == Step::Kind::launch) CHECK(s.segments.size() == s.groups.size());
  }
  CHECK(before == after);
}

TEST_CASE("allocate changes nothing but locations") {
  for (const char* name : programs) {
    INFO(std::string(name));
    const Sample sample = sample_program(name);
    const StepPlan before = compiled(sample, "vertical_fusion").steps;
    StepPlan after = compiled(sample, "allocate").steps;
    CHECK(after.placed);
    CHECK(after.live_bytes <= after.arena_bytes);
    CHECK(kernels(after) == kernels(before));
    after.placed = false;
    CHECK(print(after) == print(before));
    const Compilation c = compiled(sample, "vertical_fusion");
    CHECK_THROWS_AS(static_cast<void>(allocate(compiled(sample, "allocate").steps, c.ir)), internal_error);
  }
}

TEST_CASE("mark_constants marks inputs that nothing writes, and changes nothing else") {
  size_t marked = 0;
  for (const char* name : {"gpu norm", "gpu loss", "gpu row", "gpu decode", "gpu updates", "gpu singles"}) {
    INFO(std::string(name));
    const Sample sample = sample_program(name);
    const StepPlan before = compiled(sample, "allocate").steps, after = compiled(sample, "mark_constants").steps;
    CHECK(print(after) == print(before));
    CHECK(unmarked_kernels(after) == kernels(before));
    for (const Step& s : after.steps)
      for (const StepSegment& segment : s.segments)
        for (size_t k = 0; k < segment.buffers.size(); ++k)
          if (after.kernels[s.kernel].params[k].constant) {
            CHECK(segment.buffers[k].in == Location::In::input);
            ++marked;
          }
  }
  CHECK(marked > 0);
  const Compilation c = compiled(sample_program("gpu norm"), "vertical_fusion");
  CHECK_THROWS_AS(static_cast<void>(mark_constants(c.steps, c.ir, c.grouping, c.ordering)), internal_error);
}
