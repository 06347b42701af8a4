// Counterparts in place of code: their instructions move into the block around them, and their arguments and results
// become those of the instruction.
#include "kernel/code/counterpart.h"

#include <map>
#include <utility>

#include "kernel/rules.h"

namespace weft::kernel {

namespace {

class Replacement {
 public:
  explicit Replacement(Kernel kernel) : out_(std::move(kernel)) {}

  Kernel run() {
    block(out_.body);
    return std::move(out_);
  }

 private:
  Value named(Value v) const {
    const auto found = names_.find(v);
    return found == names_.end() ? v : named(found->second);
  }

  void block(Block& b) {
    std::vector<Inst> before = std::exchange(b.insts, {});
    append(b.insts, std::move(before));
  }

  void append(std::vector<Inst>& to, std::vector<Inst> insts) {
    for (Inst& inst : insts) {
      for (Value& v : inst.args) v = named(v);
      if (inst.op == Op::source || (inst.op == Op::inline_code && inst.blocks.empty())) refuse_code(out_, inst);
      if (inst.op != Op::inline_code) {
        for (Block& inner : inst.blocks) block(inner);
        to.push_back(std::move(inst));
        continue;
      }
      Block body = std::move(inst.blocks[0]);
      for (size_t k = 0; k < body.arguments.size(); ++k) names_[body.arguments[k]] = inst.args[k];
      const std::vector<Value> made = std::move(body.insts.back().args);
      body.insts.pop_back();
      append(to, std::move(body.insts));
      for (size_t k = 0; k < made.size(); ++k) names_[inst.results[k]] = named(made[k]);
    }
  }

  Kernel out_;
  std::map<Value, Value> names_;  // values that others stand for
};

void drop_counterparts(Block& block) {
  for (Inst& inst : block.insts) {
    if (inst.op == Op::inline_code) inst.blocks.clear();
    for (Block& inner : inst.blocks) drop_counterparts(inner);
  }
}

}  // namespace

Kernel with_counterparts(Kernel kernel) {
  return has_code(kernel.body) ? Replacement(std::move(kernel)).run() : kernel;
}

Kernel without_counterparts(Kernel kernel) {
  drop_counterparts(kernel.body);
  return kernel;
}

}  // namespace weft::kernel
