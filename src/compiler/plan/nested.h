#pragma once
// Control flow at run time: a step that runs nested Programs on the outer program's buffers.
//
// No time step of a loop copies its carry. What is carried lies, in this order of preference (loop_carry.h),
//   - in the rows of a result in which a scan stacks it: each step reads the row that the step before it has written;
//   - in the memory of its result, which every step updates in place, where the step's program can do so;
//   - in two buffers by turns.
// A scan stores each element that it stacks directly at its position in the result.
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "compiler/program.h"
#include "graph/control/control.h"
#include "target/target.h"

namespace weft::compiler {

class Nested {
 public:
  using SymbolValue = std::function<int64_t(const Symbol*)>;
  virtual ~Nested() = default;
  /// Runs the operator. `operands`: inputs, then all results, used or not; row-major. `scratch`: scratch_bytes() of
  /// memory on the programs' device.
  virtual void run(std::span<void* const> operands, void* scratch, const SymbolValue& symbol_value) const = 0;
  /// Returns whether a device can record a run: nothing in it waits for the device.
  virtual bool recordable() const { return false; }
  /// Returns the memory that a run needs beside the operands: the programs' arenas and second buffers of the carry.
  int64_t scratch_bytes() const { return scratch_bytes_; }
  /// Returns what one step of a loop takes, or both branches of a cond.
  Stats stats() const;

  const std::vector<std::shared_ptr<const Program>>& programs() const { return programs_; }

 protected:
  std::vector<std::shared_ptr<const Program>> programs_;
  int64_t scratch_bytes_ = 0;
};

/// Builds the nested programs of a cond, while_loop or scan. Throws internal_error for any other operator.
std::shared_ptr<const Nested> make_nested(graph::Op op, std::shared_ptr<const graph::Control> control,
                                          target::Target& target, const Policy& policy);

}  // namespace weft::compiler
