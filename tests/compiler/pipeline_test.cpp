// The table of passes: what it says, what it prints after each pass, and that no pass changes what an earlier one made.
#include "compiler/pipeline.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "compiler/fusion/group.h"
#include "compiler/lower/lower.h"
#include "compiler/rewrite/rules.h"
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/regions/composites.h"
#include "graph/table.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;

namespace {

/// Rows without their mean, a matmul with gelu, and the sum of everything: one of each kind of pass has something to
/// do.
Graph example() {
  const Value x = parameter({{64, 48}, float32}, 0), w = parameter({{48, 96}, float32}, 1);
  const Value centred = x - broadcast(sum(x, {1}, true) * (1.0 / 48), x.shape());
  const Value y = gelu_tanh(dot(centred, w, {1}, {0}));
  return {{x, w}, {y, sum(y * 1.0, {0, 1})}};
}

size_t row(const std::string& name) {
  for (size_t k = 0; k < passes().size(); ++k)
    if (passes()[k].name == name) return k;
  FAIL("no pass is called ", name);
  return 0;
}

/// Sets an environment variable while it lives.
struct Environment {
  Environment(const char* variable, const char* value) : name(variable) { setenv(variable, value, 1); }
  ~Environment() { unsetenv(name); }
  const char* name;
};

}  // namespace

TEST_CASE("passes: each has a name for the command line and a reason for where it stands") {
  for (const Pass& pass : passes()) {
    const std::string name = pass.name;
    CHECK_MESSAGE(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos, name);
    CHECK_MESSAGE(std::string(pass.why).size() > 20, name);
  }
}

TEST_CASE("passes: rewrites of the graph come first, then fusion, the order of the groups, and the plan") {
  size_t stage = 0;
  for (const Pass& pass : passes()) {
    CHECK_MESSAGE(pass.run.index() >= stage, pass.name);
    stage = pass.run.index();
  }
  CHECK(std::holds_alternative<ImportPass>(passes().front().run));
  CHECK(std::holds_alternative<PlanPass>(passes().back().run));
  CHECK(row("import") < row("simplify"));
  CHECK(row("simplify") < row("dead_code"));
  for (const char* whole : {"small_convolution", "join_reductions", "reduction_algebra", "split_cumulative"})
    CHECK_MESSAGE(row(whole) < row("split_reduction"), whole);
  CHECK(row("split_reduction") < row("gemv"));
  CHECK(row("rematerialize") < row("fuse"));
  CHECK(row("fuse") < row("order"));
  CHECK(row("order") < row("tune"));
  CHECK(row("tune") < row("lower"));
  CHECK(row("lower") < row("horizontal_fusion"));
  CHECK(row("horizontal_fusion") < row("vertical_fusion"));
  CHECK(row("vertical_fusion") < row("allocate"));
  CHECK(row("allocate") < row("mark_constants"));
}

TEST_CASE("passes: the machine and the policy decide which apply") {
  weft::test::SimtTarget gpu;
  const auto applied = [](target::Target& target, const Policy& policy) {
    std::set<std::string> names;
    const auto program = build({example(), {}, {}}, target, policy);
    for (const auto& [name, ms] : program->stats().passes) {
      CHECK(ms >= 0);
      names.insert(name);
    }
    return names;
  };
  const std::set<std::string> cpu = applied(target::cpu(), {}), simt = applied(gpu, {});
  for (const char* both :
       {"import", "simplify", "split_reduction", "fuse", "order", "tune", "lower", "horizontal_fusion", "allocate"}) {
    CHECK(cpu.contains(both));
    CHECK(simt.contains(both));
  }
  for (const char* simt_only : {"gemv", "reduction_algebra", "vertical_fusion", "mark_constants"}) {
    CHECK_FALSE(cpu.contains(simt_only));
    CHECK(simt.contains(simt_only));
  }
  CHECK_FALSE(cpu.contains("rematerialize"));
  Policy small;
  small.memory_budget = 1 << 20;
  CHECK(applied(target::cpu(), small).contains("rematerialize"));
}

TEST_CASE("passes: the graph is printed after each of them, and the table with their times") {
  weft::test::SimtTarget gpu;
  for (target::Target* target : {&target::cpu(), static_cast<target::Target*>(&gpu)}) {
    std::shared_ptr<const Program> program;
    {
      const BuildRecord record(true);
      program = build({example(), {}, {}}, *target);
    }
    const std::string table = program->print("passes");
    std::set<std::string> ran;
    for (const auto& [name, ms] : program->stats().passes) ran.insert(name);
    for (const Pass& pass : passes()) {
      CAPTURE(pass.name);
      CHECK(table.find(pass.name) != std::string::npos);
      CHECK(table.find(pass.why) != std::string::npos);
      const std::string text = program->print(std::string("after:") + pass.name);
      if (!ran.contains(pass.name)) {
        CHECK(text.empty());
        continue;
      }
      const char* has = std::holds_alternative<GroupingPass>(pass.run)   ? "group 0 "
                        : std::holds_alternative<OrderingPass>(pass.run) ? " makes %"
                        : std::holds_alternative<TuningPass>(pass.run)   ? " groups by choice"
                        : std::holds_alternative<LoweringPass>(pass.run) ? " kernels"
                        : std::holds_alternative<PlanPass>(pass.run)     ? " kernels"
                                                                         : "return %";
      CHECK(text.find(has) != std::string::npos);
    }
    CHECK(program->print("after:import").find(" reduce ") != std::string::npos);
    CHECK(program->print("after:rematerialize").empty());
    CHECK(program->print("after:horizontal_fusion").find("arena") == std::string::npos);
    CHECK(program->print("after:allocate").starts_with("arena "));
    CHECK(program->print("graph") != program->print("after:import"));
  }
}

TEST_CASE("passes: names that nothing has are refused with all that something has") {
  const auto program = build({example(), {}, {}}, target::null());
  CHECK_THROWS_WITH_AS(program->print("after:nothing"), doctest::Contains("after:split_reduction"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(program->print("nothing"),
                       doctest::Contains("graph, groups, schedules, tune, kernels, plan, passes"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(program->print("after:simplify"), doctest::Contains("BuildRecord"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(parse_printable("graph,after:simplfy", "--show"), doctest::Contains("[--show] 'after:simplfy'"),
                       std::invalid_argument);
  CHECK(parse_printable("graph,after:fuse", "--show") == std::vector<std::string>{"graph", "after:fuse"});
  const Environment dump("WEFT_DUMP", "grahp");
  CHECK_THROWS_WITH_AS(build({example(), {}, {}}, target::null()), doctest::Contains("[WEFT_DUMP] 'grahp'"),
                       std::invalid_argument);
}

TEST_CASE("passes: a grouping that is ordered and lowered twice gives the same kernels, and stays what it was") {
  weft::test::SimtTarget gpu;
  for (target::Target* target : {&target::cpu(), static_cast<target::Target*>(&gpu)}) {
    const Source source{example(), {}, {}};
    const Policy policy;
    Compilation c = run_passes({source, *target, policy}, true);
    const std::string before = print(c.ir, c.grouping), steps = print(c.steps);
    const auto kernels = [&] {
      for (const Pass& pass : passes().subspan(row("order")))
        if (pass.applies(target->machine(), policy)) run_pass(pass, c, {source, *target, policy});
      std::string text = print(c.ir, c.grouping, c.ordering) + print(c.steps);
      for (const kernel::Kernel& k : c.steps.kernels) text += kernel::print(k);
      return text;
    };
    const std::string once = kernels();
    CHECK(kernels() == once);
    CHECK(print(c.ir, c.grouping) == before);
    CHECK(once.find(steps) != std::string::npos);
  }
}

TEST_CASE("passes: a copy of a group has expressions of its own that say the same") {
  const Source source{example(), {}, {}};
  const Compilation c = run_passes({source, target::null(), Policy{}}, false);
  for (const Group& group : c.grouping.groups) {
    const Group copy = group.copy();
    REQUIRE(copy.roots.size() == group.roots.size());
    REQUIRE(copy.domain.size() == group.domain.size());
    for (size_t k = 0; k < group.domain.size(); ++k) {
      CHECK(copy.domain[k].var->context != group.domain[k].var->context);
      CHECK(ix::to_string(copy.domain[k].var) == ix::to_string(group.domain[k].var));
    }
    for (size_t k = 0; k < group.roots.size(); ++k)
      for (size_t axis = 0; axis < group.roots[k].index.size(); ++axis)
        CHECK(ix::to_string(copy.roots[k].index[axis]) == ix::to_string(group.roots[k].index[axis]));
  }
}

TEST_CASE("rules: each has a name of its own and reads as algebra") {
  std::set<std::string> names;
  for (const std::span<const Rule> family : {algebra_rules(), movement_rules(), reduction_rules(), scatter_rules(),
                                             dot_rules(), nested_reduction_rules(), reduction_algebra_rules()})
    for (const Rule& rule : family) {
      CHECK_MESSAGE(names.insert(rule.name).second, rule.name);
      CHECK_MESSAGE(std::string(rule.form).find("→") != std::string::npos, rule.name);
      CHECK_MESSAGE(!std::string(rule.condition).empty(), rule.name);
      CHECK_MESSAGE(std::any_of(graph::table().begin(), graph::table().end(),
                                [&](const graph::Row* row) { return rule.operators(row->op); }),
                    rule.name);
    }
}

TEST_CASE("reductions that few results wait for are cut once, in one pass, for every machine") {
  weft::test::SimtTarget gpu;
  const Value x = parameter({{1 << 20}, float32});
  const Source source{{{x}, {sum(x, {0})}}, {}, {}};
  for (target::Target* target : {&target::cpu(), static_cast<target::Target*>(&gpu)}) {
    std::shared_ptr<const Program> program;
    {
      const BuildRecord record(true);
      program = build(source, *target);
    }
    const auto reductions = [&](const std::string& pass) {
      const std::string text = program->print("after:" + pass);
      size_t count = 0;
      for (size_t at = text.find("= reduce"); at != std::string::npos; at = text.find("= reduce", at + 1)) ++count;
      return count;
    };
    CHECK(reductions("simplify") == 1);
    CHECK(reductions("split_reduction") == 2);
  }
}
