// Renders roles: each becomes a function on a frame of the values that it takes from outside. The runtime (roles.h)
// runs these functions as fibers.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "target/cpu/codegen/renderer.h"

namespace weft::target {

using namespace kernel;

/// Sets the barriers of a buffer to phase 0.
void Renderer::make_barriers(const Inst& alloc) {
  for (int64_t k = 0; k < alloc.number.i; ++k)
    ir_.store(ir_.index(0), ir_.at(ir_.i64, buffers_[static_cast<size_t>(alloc.ref)], ir_.index(k)), 8);
}

void Renderer::arrive(const Inst& inst) {
  const int64_t arrivals = kernel_.locals[static_cast<size_t>(inst.ref) - kernel_.params.size()].arrivals;
  const IrValue args[] = {ir_.at(ir_.i64, buffers_[static_cast<size_t>(inst.ref)], single(inst.args[0])),
                          ir_.index(arrivals)};
  ir_.call_external("weft_arrive", LLVMVoidTypeInContext(ir_.context), args);
}

void Renderer::await(const Inst& inst) {
  const SourceLine& source = kernel_.lines[static_cast<size_t>(inst.line)];
  const std::string where =
      fmt::format("[kernel {}] {}", kernel_.name,
                  source.line > 0 ? fmt::format("{}:{}: ", source.file, source.line) : std::string());
  const IrValue args[] = {ir_.at(ir_.i64, buffers_[static_cast<size_t>(inst.ref)], single(inst.args[0])),
                          single(inst.args[1]), LLVMBuildGlobalStringPtr(ir_.b, where.c_str(), "")};
  ir_.call_external("weft_await", LLVMVoidTypeInContext(ir_.context), args);
}

/// Adds the values of the enclosing function that a body reads; constants are the same in all functions.
void Renderer::collect_captured(const Block& body, std::vector<IrValue*>& captured) {
  for (const Inst& inst : body.insts) {
    for (const Value v : inst.args) {
      if (v == no_value) continue;
      for (IrValue& row : values_[static_cast<size_t>(v)]) {
        if (LLVMIsConstant(row) || std::find(captured.begin(), captured.end(), &row) != captured.end()) continue;
        check(ir_.lanes(row) == 1, "cpu render", "a role takes a tile from outside");
        captured.push_back(&row);
      }
    }
    for (const Block& inner : inst.blocks) collect_captured(inner, captured);
  }
}

/// Renders a body as a function on a frame, in which `captured` lie as words. Returns the function.
IrValue Renderer::role(const Block& body, const std::string& name, std::vector<IrValue*> captured) {
  const IrValue outer = ir_.function;
  const LLVMBasicBlockRef back = ir_.here();
  const auto spares = std::exchange(spares_, {});
  const auto spare_rows = std::exchange(spare_rows_, {});
  std::vector<IrValue> before;
  ir_.function =
      LLVMAddFunction(ir_.module, name.c_str(), LLVMFunctionType(LLVMVoidTypeInContext(ir_.context), &ir_.ptr, 1, 0));
  LLVMSetLinkage(ir_.function, LLVMInternalLinkage);
  attributes();
  ir_.go(ir_.block("entry"));
  for (size_t k = 0; k < captured.size(); ++k) {
    before.push_back(*captured[k]);
    const IrValue word = ir_.at(ir_.i64, LLVMGetParam(ir_.function, 0), ir_.index(static_cast<int64_t>(k)));
    *captured[k] = ir_.load(LLVMTypeOf(before.back()), word, 8);
  }
  block(body);
  LLVMBuildRetVoid(ir_.b);
  for (size_t k = 0; k < captured.size(); ++k) *captured[k] = before[k];
  const IrValue made = ir_.function;
  ir_.function = outer, spares_ = spares, spare_rows_ = spare_rows;
  ir_.go(back);
  return made;
}

void Renderer::roles(const Inst& inst) {
  std::vector<IrValue*> captured{&program_};
  for (IrValue& v : buffers_) captured.push_back(&v);
  for (IrValue& v : symbols_) captured.push_back(&v);
  for (const Block& body : inst.blocks) collect_captured(body, captured);
  const auto words = static_cast<int64_t>(captured.size()), count = static_cast<int64_t>(inst.blocks.size());
  const IrValue frame = ir_.local(ir_.i64, words, 8), bodies = ir_.local(ir_.ptr, count, 8);
  for (int64_t k = 0; k < words; ++k)
    ir_.store(*captured[static_cast<size_t>(k)], ir_.at(ir_.i64, frame, ir_.index(k)), 8);
  for (int64_t k = 0; k < count; ++k) {
    const std::string name = fmt::format("{}_role{}", LLVMGetValueName(ir_.function), roles_++);
    ir_.store(role(inst.blocks[static_cast<size_t>(k)], name, captured), ir_.at(ir_.ptr, bodies, ir_.index(k)), 8);
  }
  const IrValue args[] = {bodies, ir_.index(count), frame};
  ir_.call_external("weft_roles", LLVMVoidTypeInContext(ir_.context), args);
}

}  // namespace weft::target
