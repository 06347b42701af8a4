#pragma once
// Control flow: nodes that hold graphs and run them, as JAX's cond, while_loop and scan.
//
// cond        pred, operands…               → one of two graphs on the operands
// while_loop  constants…, carry…            → the carry after as many steps as the condition holds (at most max_steps)
// scan        constants…, carry…, xs…       → the carry after `length` steps, then what each step gave, stacked
//
// Bodies are closed graphs: their parameters in order, nothing else. A predicate is a bool of rank 0.
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/hash.h"
#include "graph/build.h"

namespace weft::graph {

struct Control {
  std::vector<Graph> bodies;  // cond: where true, where false; while_loop: condition, step; scan: step
  int64_t constants = 0;      // while_loop, scan: leading inputs, the same in every step
  int64_t carry = 0;          // the inputs after them, which each step replaces
  Dim length = 0;             // scan: a number, or a symbol of the scanned arrays
  bool reverse = false;       // scan: from the last element to the first
  int64_t max_steps = -1;     // while_loop; -1: no bound
  Digest key = {};            // of all this, from `make_control`
  /// Another node of the same inputs whose results are the first results of this one, which computes more; this node
  /// can replace it.
  std::shared_ptr<const Control> extends = nullptr;

  int64_t results() const { return static_cast<int64_t>(bodies.back().outputs.size()); }
};

/// Returns the control with its key.
std::shared_ptr<const Control> make_control(Control control);

Values cond(const Value& pred, const Values& operands, Graph where_true, Graph where_false);
/// Makes the loop; `carry` holds the inputs after the constants.
Values while_loop(const Values& constants, const Values& carry, Graph condition, Graph step, int64_t max_steps = -1,
                  std::shared_ptr<const Control> extends = nullptr);
Values scan(const Values& constants, const Values& carry, const Values& xs, Graph step, const Dim& length, bool reverse,
            std::shared_ptr<const Control> extends = nullptr);

/// Returns the results of a graph on other inputs.
Values instantiate(const Graph& graph, std::span<const Value> inputs);
/// Returns a graph over new parameters from which `make` builds the results.
template <class Make>
Graph graph_over(const std::vector<Type>& types, Make make_results) {
  Graph graph;
  for (const Type& t : types) graph.inputs.push_back(parameter(t, static_cast<int64_t>(graph.inputs.size())));
  graph.outputs = make_results(std::span<const Value>(graph.inputs));
  return graph;
}
std::vector<Type> types_of(std::span<const Value> values);
bool is_control(Op op);

/// Replaces nodes by others that extend them, so that nothing is computed twice.
Graph share_extended(const Graph& graph);

/// Rewrites scans so that their steps do less: results that nobody reads go, as does work that can be done for all
/// steps at once in front of the scan or behind it. Regions of the steps are inlined except those that are `kept`. What
/// it makes has no derivative rules that fit `extends`, so it is for graphs that are about to be compiled.
Graph simplify_scans(const Graph& graph, const std::function<bool(const Node&)>& kept = {});

// Rules of the rows, by file: control.cpp, loop_forward.cpp, loop_reverse.cpp.
Values cond_vjp(const Node&, std::span<const Value>, std::span<const Value>, std::span<const Value>);
Values cond_jvp(const Node&, std::span<const Value>, std::span<const Value>, std::span<const Value>);
Values cond_vmap(const Node&, std::span<const Value>, std::span<const int>);
Values while_vjp(const Node&, std::span<const Value>, std::span<const Value>, std::span<const Value>);
Values while_jvp(const Node&, std::span<const Value>, std::span<const Value>, std::span<const Value>);
Values while_vmap(const Node&, std::span<const Value>, std::span<const int>);
Values scan_vjp(const Node&, std::span<const Value>, std::span<const Value>, std::span<const Value>);
Values scan_jvp(const Node&, std::span<const Value>, std::span<const Value>, std::span<const Value>);
Values scan_vmap(const Node&, std::span<const Value>, std::span<const int>);

}  // namespace weft::graph
