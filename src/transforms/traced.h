#pragma once
// A traced function: a program, the arrays it captured, and the source of each result and each new state.
#include <memory>
#include <vector>

#include "compiler/program.h"
#include "weft/compile.h"

namespace weft::transforms {

/// The source of a result or a new state in a call.
struct Slot {
  enum class From {
    program,   // output `index` of the program
    argument,  // passed through
    state,     // the value that state `index` had before the call
    captured,  // an array that the function refers to
  };
  From from;
  size_t index;
};

/// One signature of a compiled function. The program's inputs are the arguments, the states, then the captured arrays,
/// in this order.
struct Traced {
  std::shared_ptr<const compiler::Program> program;  // null where nothing is computed
  std::vector<graph::Type> outputs;                  // of the program; axes may be symbolic
  std::vector<array> captured;                       // with data; captured by reference
  size_t states =
      0;  // number of states that are inputs: the implicit key, which is last, is one only where it is drawn from
  std::vector<Slot> results;
  std::vector<Slot> new_states;           // an unchanged state is its own source
  std::vector<compiler::Update> updates;  // output → index of the state (not of the input)
};

/// Runs `fun` once on placeholders of the given types, with the handles in `states` replaced meanwhile, and builds the
/// program. `implicit_key` says that the last state is the thread's default random sequence, which was added
/// implicitly.
Traced trace_function(const ArrayFunction& fun, const std::vector<graph::Type>& arguments,
                      const std::vector<array*>& states, bool implicit_key);

/// A function's graph with the arrays it refers to: the graph's inputs are the arguments, then the captured arrays.
struct FunctionGraph {
  graph::Graph graph;
  std::vector<array> captured;  // with data
};
/// Runs `fun` once on placeholders. The key of the default random sequence is captured where the function draws from
/// it.
FunctionGraph graph_of(const ArrayFunction& fun, const std::vector<graph::Type>& arguments);

/// Calls `fun` inside another trace, which it becomes a part of. Its states must be captured by an enclosing compiled
/// function, if there is one.
std::vector<array> call_inside_trace(const ArrayFunction& fun, const std::vector<array>& arguments,
                                     const std::vector<array*>& states);

}  // namespace weft::transforms
