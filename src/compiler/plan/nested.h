#pragma once
// Control flow at run time: a step that runs nested Programs on the outer program's buffers.
//
// The carry of a loop is in the memory of its results: it is copied there once, and every iteration updates it in place
// if the nested program can. A scan stores each element that it stacks directly at its position in the result.
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/program.h"
#include "graph/control/control.h"
#include "target/target.h"

namespace weft::compiler {

class Nested {
 public:
  using SymbolValue = std::function<int64_t(const Symbol*)>;
  virtual ~Nested() = default;
  /// Runs the operator. `operands`: inputs, then all results, used or not; row-major.
  virtual void run(std::span<void* const> operands, const SymbolValue& symbol_value) const = 0;

  const std::vector<std::shared_ptr<const Program>>& programs() const { return programs_; }

 protected:
  std::vector<std::shared_ptr<const Program>> programs_;
};

/// Builds the nested programs of a cond, while_loop or scan. Throws internal_error for any other operator.
std::shared_ptr<const Nested> make_nested(graph::Op op, std::shared_ptr<const graph::Control> control,
                                          target::Target& target, const Policy& policy);

}  // namespace weft::compiler
