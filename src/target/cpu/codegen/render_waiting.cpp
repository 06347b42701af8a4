// Renders what programs wait for: an element of memory, and each other. What they call is in programs.h.
#include <utility>

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

/// Lets the programs of a cluster know each other's local buffers.
void Renderer::share_locals() {
  const auto first = static_cast<std::ptrdiff_t>(kernel_.params.size());
  for (size_t k = 0; k < kernel_.locals.size(); ++k) {
    const IrValue args[] = {ir_.index(static_cast<int64_t>(k)),
                            *(buffers_.begin() + first + static_cast<std::ptrdiff_t>(k))};
    ir_.call_external("weft_share", LLVMVoidTypeInContext(ir_.context), args);
  }
}

/// Loads or stores in the local buffer of a neighbour, as in one of the program's own.
void Renderer::reach(const Inst& inst) {
  const size_t first = inst.op == Op::store_neighbour ? 1 : 0;
  const IrValue args[] = {ir_.index(static_cast<int64_t>(inst.ref) - static_cast<int64_t>(kernel_.params.size())),
                          single(inst.args[first])};
  IrValue& buffer = buffers_[static_cast<size_t>(inst.ref)];
  const IrValue before = std::exchange(buffer, ir_.call_external("weft_neighbour", ir_.ptr, args));
  Inst access = inst;
  access.op = first == 1 ? Op::store : Op::load;
  access.args.erase(access.args.begin() + static_cast<std::ptrdiff_t>(first));
  access.args.resize(access.args.size() + inst.strides.size(), no_value);
  if (first == 1) store(access);
  else access.number = round_to({}, inst.type.dtype), load(access);
  buffers_[static_cast<size_t>(inst.ref)] = before;
}

void Renderer::meet(const Inst& inst) {
  const SourceLine& source = kernel_.lines[static_cast<size_t>(inst.line)];
  const std::string where =
      fmt::format("[kernel {}] {}", kernel_.name,
                  source.line > 0 ? fmt::format("{}:{}: ", source.file, source.line) : std::string());
  const IrValue args[] = {LLVMBuildGlobalStringPtr(ir_.b, where.c_str(), "")};
  ir_.call_external("weft_meet", LLVMVoidTypeInContext(ir_.context), args);
}

}  // namespace weft::target
