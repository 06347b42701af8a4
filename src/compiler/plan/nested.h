#pragma once
// Control flow at run time: a step that runs nested Programs on the outer program's buffers.
//
// A loop's carry lives in the memory of its results: it is copied there once, and every step updates it in place where
// the nested program can. What a scan stacks is written where it belongs, step by step.
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
  /// Inputs, then results (all with memory, read by somebody or not): row-major.
  virtual void run(std::span<void* const> operands, const SymbolValue& symbol_value) const = 0;

  const std::vector<std::shared_ptr<const Program>>& programs() const { return programs_; }

 protected:
  std::vector<std::shared_ptr<const Program>> programs_;
};

std::shared_ptr<const Nested> make_nested(graph::Op op, std::shared_ptr<const graph::Control> control,
                                          target::Target& target, const Policy& policy);

}  // namespace weft::compiler
