// Renders what programs wait for: an element of memory, and each other. What they call is in programs.h.
#include <fmt/format.h>

#include "target/cpu/codegen/renderer.h"

namespace weft::target {

using namespace kernel;

/// Reads an element until the block says that it is what the program waits for.
void Renderer::wait_until(const Inst& inst) {
  const Dtype t = inst.type.dtype;
  const Block& holds = inst.blocks[0];
  const IrType bits = ir_.integer(t.size() * 8);
  const IrValue address = ir_.at(memory_element(t), buffers_[static_cast<size_t>(inst.ref)], single(inst.args[0]));
  const LLVMBasicBlockRef again = ir_.block("look"), other = ir_.block("wait"), done = ir_.block("found");
  LLVMBuildBr(ir_.b, again);
  ir_.go(again);
  const IrValue word = ir_.load(bits, address, t.size());
  LLVMSetOrdering(word, inst.ordering.acquires() ? LLVMAtomicOrderingAcquire : LLVMAtomicOrderingMonotonic);
  const IrValue element = memory_element(t) == bits ? word : LLVMBuildBitCast(ir_.b, word, memory_element(t), "");
  const Rows found{from_memory(element, t)};
  assign_rows(holds.arguments, found);
  LLVMBuildCondBr(ir_.b, block(holds)[0], done, other);
  ir_.go(other);
  ir_.call_external("weft_wait", LLVMVoidTypeInContext(ir_.context), {});
  LLVMBuildBr(ir_.b, again);
  ir_.go(done);
  define(inst, found);
}

void Renderer::grid_barrier(const Inst& inst) {
  const SourceLine& source = kernel_.lines[static_cast<size_t>(inst.line)];
  const std::string where =
      fmt::format("[kernel {}] {}", kernel_.name,
                  source.line > 0 ? fmt::format("{}:{}: ", source.file, source.line) : std::string());
  const IrValue args[] = {LLVMBuildGlobalStringPtr(ir_.b, where.c_str(), "")};
  ir_.call_external("weft_meet", LLVMVoidTypeInContext(ir_.context), args);
}

}  // namespace weft::target
