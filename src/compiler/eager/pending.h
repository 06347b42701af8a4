#pragma once
// What must be computed for some values: found by a walk of the pending graph, run by a Program.
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "compiler/program.h"
#include "graph/node.h"
#include "target/target.h"

namespace weft::compiler {

/// A Program with its inputs and the nodes that it computes, and the values that are views.
struct Pending {
  std::vector<graph::Storage> inputs;               // where they lie: without strides, which the Program knows
  std::vector<std::shared_ptr<graph::Node>> nodes;  // their outputs are the Program's, in order
  std::vector<std::pair<std::shared_ptr<graph::Node>, graph::Storage>> views;
  graph::Values views_of_results;          // known once the Program has run
  std::shared_ptr<const Program> program;  // null where there are no nodes, and where none has been built
  bool built() const { return program || nodes.empty(); }
};

/// What `collect` does where there is no Program yet.
enum class Unbuilt : uint8_t { build, leave };

/// Collects what must be computed for `values`: views at once, the rest with its Program. The caller holds
/// graph::structure(), shared. Throws std::invalid_argument if a value is being traced.
Pending collect(std::span<const graph::Value> values, target::Target& target, Unbuilt unbuilt, Keep keep = Keep::held);

/// Runs the Program and materialises the nodes, except those that another evaluation has computed meanwhile.
void finish(Pending pending);

/// Returns whether `finish` costs the calling thread less than handing it over to another one: the Program is brief and
/// finds its inputs where it runs.
bool is_brief(const Pending& pending, target::Target& target);

}  // namespace weft::compiler
