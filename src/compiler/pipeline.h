#pragma once
// The compiler as one table of named passes, from the source graph to the steps of a program:
//
//     Source --> Ir --rewrites--> Ir --> Grouping --> Ordering --> TunedGroups --> StepPlan --plan passes--> StepPlan
//
// A pass is a function that sees the results of earlier passes as const and returns a new value of its own stage. After
// each pass the pipeline records the time, prints the result if that was asked for, and runs the stage's verifier. To
// add a pass, write a function and a row in pipeline.cpp (CONTRIBUTING.md).
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "compiler/fusion/order.h"
#include "compiler/ir/grouping.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/verify.h"
#include "compiler/plan/steps.h"
#include "compiler/program.h"
#include "compiler/tune/groups.h"
#include "target/machine.h"

namespace weft::compiler {

/// The inputs that every pass may read.
struct PassContext {
  const Source& source;
  target::Target& target;
  const Policy& policy;
};

// One signature for each arrow of the picture above.
using ImportPass = Ir (*)(const PassContext&);
using RewritePass = Ir (*)(Ir, const PassContext&);
using GroupingPass = Grouping (*)(const Ir&, const PassContext&);
using OrderingPass = Ordering (*)(const Ir&, const Grouping&, const PassContext&);
using TuningPass = TunedGroups (*)(const Ir&, const Grouping&, const Ordering&, const PassContext&);
using LoweringPass = StepPlan (*)(const Ir&, const Grouping&, const Ordering&, const TunedGroups&, const PassContext&);
using PlanPass = StepPlan (*)(StepPlan, const Ir&, const Grouping&, const Ordering&, const PassContext&);

struct Pass {
  const char* name;  // several rows may share one
  const char* why;   // why it runs at this point
  bool (*applies)(const target::Machine&, const Policy&);
  std::variant<ImportPass, RewritePass, GroupingPass, OrderingPass, TuningPass, LoweringPass, PlanPass> run;
};

/// Returns all passes in the order in which they run.
std::span<const Pass> passes();

/// The result of one row of the table. `text` is its dump, if one was asked for.
struct PassResult {
  const Pass* pass = nullptr;
  bool applied = false;
  double ms = 0;
  double verify_ms = 0;  // of its verifier, 0 if that did not run
  std::string text = {};
};

/// The state of a compilation, during the passes and after them.
struct Compilation {
  Ir ir;
  Interface interface;  // of the imported graph, for its verifier; empty where verification is off
  Grouping grouping;
  Ordering ordering;
  TunedGroups tuned;
  StepPlan steps;
  std::vector<PassResult> passes;  // one for each row
};

/// Returns the names that may be printed: stages of the finished program ("graph", "groups", "tune", "kernels",
/// "plan"), the table ("passes"), and "after:NAME" for each pass.
std::vector<std::string> printable();
/// Throws std::invalid_argument, with the whole list, if `name` is not in printable(). The message begins with `where`.
void check_printable(const std::string& name, const std::string& where);
/// Splits a list at its commas and checks each entry as check_printable does.
std::vector<std::string> parse_printable(const std::string& list, const std::string& where);

/// Returns whether WEFT_DUMP lists `name`. Throws std::invalid_argument as parse_printable does.
bool dumps(const std::string& name);

/// Runs one pass and replaces its stage of `c` by the result.
void run_pass(const Pass& pass, Compilation& c, const PassContext& cx);
/// Runs the verifier of the pass's stage on the pass's result. Throws internal_error "[after:NAME] RULE: …".
void verify_pass(const Pass& pass, const Compilation& c, const PassContext& cx);
/// Runs all passes that apply. Keeps the dump of every pass if `texts` is set, otherwise of those that WEFT_DUMP names.
/// Throws internal_error as verify_pass does.
Compilation run_passes(const PassContext& cx, bool texts);

/// Returns the table with the times of the passes that applied, and of their verifiers if those ran, as
/// `weft explain --show passes` prints it.
std::string print_passes(const std::vector<PassResult>& results);

/// Switches the verifiers after each pass on or off. They are on by default in debug builds, in builds with
/// WEFT_VERIFY, and in the test programs.
void set_verification(bool on);
bool verification();

}  // namespace weft::compiler
