// Removes what tracing leaves over: loops and conditions carry all variables of the user's function, most of which they
// do not change; instructions without effects whose results nobody reads.
#include <algorithm>
#include <utility>

#include "kernel/language/trace.h"
#include "kernel/op_info.h"

namespace weft::k {
namespace {

using kernel::Block;
using kernel::Inst;
using kernel::Op;
using kernel::Value;

class Cleaner {
 public:
  explicit Cleaner(kernel::Kernel kernel) : kernel_(std::move(kernel)) {
    for (Value v = 0; v < static_cast<Value>(kernel_.types.size()); ++v) same_.push_back(v);
  }

  kernel::Kernel run(std::span<NamedValue> names) {
    block(kernel_.body);
    for (NamedValue& n : names) n.value = renamed(n.value);
    std::vector<bool> read(kernel_.types.size(), false);
    dead(kernel_.body, read);
    verify(kernel_);
    return std::move(kernel_);
  }

 private:
  Value renamed(Value v) const {
    while (v != kernel::no_value && same_[static_cast<size_t>(v)] != v) v = same_[static_cast<size_t>(v)];
    return v;
  }

  void block(Block& b) {
    for (Inst& inst : b.insts) visit(inst);
  }

  void visit(Inst& inst) {
    for (Value& v : inst.args) v = renamed(v);
    if (inst.op != Op::loop && inst.op != Op::branch && inst.op != Op::while_loop) {
      for (Block& b : inst.blocks) block(b);
      return;
    }
    if (inst.op != Op::branch)
      // An inner loop may turn out to change nothing: what is carried is looked at until nothing more goes.
      for (bool again = true; again;) {
        again = unchanged(inst);
      }
    for (Block& b : inst.blocks) block(b);
    if (inst.op == Op::branch) same_on_both_ways(inst);
    else
      while (unchanged(inst))
        for (Block& b : inst.blocks) block(b);
  }

  /// Drops one value that a loop carries without changing it. Returns whether there was one.
  bool unchanged(Inst& inst) {
    const size_t first = inst.op == Op::loop ? 3 : 0, offset = inst.op == Op::loop ? 1 : 0;
    Block& body = inst.blocks.back();
    for (size_t k = 0; k < inst.results.size(); ++k) {
      if (renamed(body.insts.back().args[k]) != body.arguments[k + offset]) continue;
      const Value initial = inst.args[first + k];
      same_[static_cast<size_t>(inst.results[k])] = initial;
      for (Block& b : inst.blocks) same_[static_cast<size_t>(b.arguments[k + offset])] = initial;
      erase(inst, k, first, offset);
      return true;
    }
    return false;
  }

  /// Drops value k of what a loop carries, or of what a condition yields.
  void erase(Inst& inst, size_t k, size_t first, size_t offset) {
    const auto drop = [](auto& list, size_t at) { list.erase(list.begin() + static_cast<std::ptrdiff_t>(at)); };
    drop(inst.results, k);
    if (inst.op != Op::branch) drop(inst.args, first + k);
    for (Block& b : inst.blocks) {
      if (inst.op != Op::branch) drop(b.arguments, k + offset);
      const bool condition = inst.op == Op::while_loop && &b == &inst.blocks.front();
      if (!condition) drop(b.insts.back().args, k);
    }
    inst.type = inst.results.empty() ? kernel::Type{} : kernel_.types[static_cast<size_t>(inst.results[0])];
  }

  void same_on_both_ways(Inst& inst) {
    for (size_t k = inst.results.size(); k-- > 0;) {
      const Value then = renamed(inst.blocks[0].insts.back().args[k]),
                  otherwise = renamed(inst.blocks[1].insts.back().args[k]);
      if (then != otherwise) continue;
      same_[static_cast<size_t>(inst.results[k])] = then;
      erase(inst, k, 0, 0);
    }
  }

  /// Removes instructions from the last to the first; returns nothing, marks what is read.
  void dead(Block& b, std::vector<bool>& read) {
    for (size_t k = b.insts.size(); k-- > 0;) {
      Inst& inst = b.insts[k];
      const bool wanted = has_effect(inst) || std::any_of(inst.results.begin(), inst.results.end(),
                                                          [&](Value v) { return read[static_cast<size_t>(v)]; });
      if (!wanted) {
        b.insts.erase(b.insts.begin() + static_cast<std::ptrdiff_t>(k));
        continue;
      }
      for (Block& inner : inst.blocks) dead(inner, read);
      for (const Value v : inst.args)
        if (v != kernel::no_value) read[static_cast<size_t>(v)] = true;
    }
  }

  static bool has_effect(const Inst& inst) {
    const kernel::OpInfo& row = kernel::info(inst.op);
    if (row.access == kernel::Access::writes || row.access == kernel::Access::updates) return true;
    if (inst.op == Op::inline_code && inst.code->effects) return true;
    if (inst.op == Op::dot_async || inst.op == Op::wait_dot) return true;  // check_waits looks at both
    if (inst.op == Op::alloc || inst.op == Op::yield || inst.op == Op::print || inst.op == Op::assert_ ||
        inst.op == Op::prefetch || inst.op == Op::while_loop || kernel::is_asynchronous(inst.op) ||
        kernel::waits_for_programs(inst.op))
      return true;
    return std::any_of(inst.blocks.begin(), inst.blocks.end(), [](const Block& b) {
      return std::any_of(b.insts.begin(), b.insts.end(),
                         [](const Inst& i) { return i.op != Op::yield && has_effect(i); });
    });
  }

  kernel::Kernel kernel_;
  std::vector<Value> same_;  // by value: the one that stands for it
};

}  // namespace

kernel::Kernel without_unchanged(kernel::Kernel kernel, std::span<NamedValue> names) {
  return Cleaner(std::move(kernel)).run(names);
}

}  // namespace weft::k
