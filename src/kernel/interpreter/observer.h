#pragma once
// Who looks on while the interpreter runs a kernel: a debugger. It is asked before each instruction, and told of each
// mistake before that is thrown.
#include <span>
#include <string>
#include <vector>

#include "kernel/interpreter/orders.h"
#include "kernel/tile_values.h"

namespace weft::kernel {

/// A block that is being run: its next instruction, and of a loop the counter.
struct Frame {
  const Block* block = nullptr;
  const Inst* owner = nullptr;
  size_t next = 0;
  int64_t i = 0, hi = 0, by = 0;
};

/// Where a program, or one of its roles, stands: before an instruction, within the blocks around it, outermost first. A
/// value that was not computed has no elements.
struct Moment {
  const Kernel& kernel;
  const Inst& inst;
  int64_t program = 0;
  Agent agent = 0;
  std::span<const Frame> frames;
  std::span<const TileValue> values;
  const CheckedMemory& memory;
};

class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;
  virtual void before(const Moment& moment) = 0;
  virtual void fault(const Moment& moment, const std::string& message) = 0;
};

/// Runs a kernel as interpret does, in one order of its roles and programs, while `observer` looks on.
void interpret_observed(const Kernel& kernel, std::span<const HostBuffer> buffers, std::span<const int64_t> symbols,
                        int64_t grid, std::span<const Ref> results, Observer& observer);

}  // namespace weft::kernel
