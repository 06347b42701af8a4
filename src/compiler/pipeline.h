#pragma once
// The compiler as one table of named passes, from the source graph to the steps of a program:
//
//   Source --> Ir --rewrites--> Ir --> Grouping --> Ordering --> StepPlan
//
// A pass is a function from what earlier passes made, which it sees as const, to a new value of its own stage. After
// each pass the pipeline notes its time, prints what it made where somebody asks for that, and runs the verifier of the
// stage. Adding a pass is a function and a row in pipeline.cpp (CONTRIBUTING.md).
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
#include "target/machine.h"

namespace weft::compiler {

/// What every pass may ask about.
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
using StepsPass = StepPlan (*)(const Ir&, const Grouping&, const Ordering&, const PassContext&);

struct Pass {
  const char* name;  // several rows may share one
  const char* why;   // why it stands where it stands
  bool (*applies)(const target::Machine&, const Policy&);
  std::variant<ImportPass, RewritePass, GroupingPass, OrderingPass, StepsPass> run;
};

/// All passes in the order in which they run.
std::span<const Pass> passes();

/// What became of one row of the table: `text` is its dump, where it was asked for.
struct PassResult {
  const Pass* pass = nullptr;
  bool applied = false;
  double ms = 0;
  double verify_ms = 0;  // of its verifier, where that ran
  std::string text = {};
};

/// A source on its way through the table, and after it.
struct Compilation {
  Ir ir;
  Interface interface;  // of the imported graph
  Grouping grouping;
  Ordering ordering;
  StepPlan steps;
  std::vector<PassResult> passes;  // one for each row
};

/// What may be printed: stages of the finished program ("graph", "groups", "tune", "kernels", "plan"), the table
/// ("passes"), and "after:NAME" for each pass.
std::vector<std::string> printable();
/// Throws std::invalid_argument, with the whole list, where `name` is not in printable(); `where` begins the message.
void check_printable(const std::string& name, const std::string& where);
/// The entries of a list with commas between them, each checked.
std::vector<std::string> parse_printable(const std::string& list, const std::string& where);

/// Whether WEFT_DUMP lists `name`. Throws std::invalid_argument as parse_printable does.
bool dumps(const std::string& name);

/// Runs one pass: its stage of `c` is replaced by what it returns.
void run_pass(const Pass& pass, Compilation& c, const PassContext& cx);
/// Runs the verifier of the pass's stage on what the pass made. Throws internal_error "[after:NAME] RULE: …".
void verify_pass(const Pass& pass, const Compilation& c, const PassContext& cx);
/// Runs the table. `texts`: the dump of every pass is kept; else of those that WEFT_DUMP names. Throws internal_error
/// as verify_pass does.
Compilation run_passes(const PassContext& cx, bool texts);

/// The table with what applied, as `weft explain --show passes` prints it.
std::string print_passes(const std::vector<PassResult>& results);

/// Verifiers run after each pass: by default in builds with WEFT_VERIFY and debug builds, and in test_compiler.
void set_verification(bool on);
bool verification();

}  // namespace weft::compiler
