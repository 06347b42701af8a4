#pragma once
// The body of a loop as a program, and where each part of the carry lies from step to step.
#include <cstdint>
#include <memory>
#include <vector>

#include "compiler/program.h"
#include "graph/control/control.h"

namespace weft::compiler {

struct CarryBuffer {
  enum class Kind : uint8_t {
    in_place,       // the memory of its result: each step overwrites what it has read
    alternating,    // the memory of its result and a second buffer by turns
    stacked_after,  // the rows of a result that stacks the carry after each step
    stacked_before  // the rows of a result that stacks the carry before each step; after the last one, its result
  } kind = Kind::in_place;
  size_t stack = 0;  // stacked_after, stacked_before: that result of the loop
};

/// The program of a loop's body. Its inputs are the body's. Of the body's results it leaves out those that it need not
/// write: a carry that is stacked as well, and a stack of the carry before each step.
struct LoopBody {
  Source source;
  std::vector<CarryBuffer> carry;
  std::vector<int> output_of;  // by result of the body: the program's output, or -1

  explicit LoopBody(const graph::Control& control);
  /// Lets the parts of the carry that the program does not update in place alternate.
  void settle(const Program& program, const graph::Control& control);
};

}  // namespace weft::compiler
