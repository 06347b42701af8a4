// Products under way as products: a target ends one where its result is read, which is behind the wait for it.
#include "kernel/expand/flights.h"

#include <map>
#include <utility>

#include "kernel/rules.h"

namespace weft::kernel {
namespace {

void land(Block& block, std::map<Value, Value>& landed) {
  for (Inst& inst : std::exchange(block.insts, {})) {
    for (Value& v : inst.args)
      if (const auto found = landed.find(v); found != landed.end()) v = found->second;
    if (inst.op == Op::wait_dot) {
      landed[inst.results[0]] = inst.args[0];
      continue;
    }
    if (inst.op == Op::dot_async) inst.op = Op::dot;
    for (Block& inner : inst.blocks) land(inner, landed);
    block.insts.push_back(std::move(inst));
  }
}

}  // namespace

bool has_flights(const Kernel& kernel) { return has_instruction(kernel.body, Op::dot_async); }

Kernel without_flights(Kernel kernel) {
  std::map<Value, Value> landed;  // results of waits, by what stands for them
  land(kernel.body, landed);
  return kernel;
}

}  // namespace weft::kernel
