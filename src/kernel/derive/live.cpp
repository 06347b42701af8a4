#include "kernel/derive/live.h"

#include <algorithm>
#include <map>

#include "kernel/derive/copier.h"
#include "kernel/op_info.h"

namespace weft::kernel {
namespace {

/// Returns whether an instruction lives whatever its results are for.
bool is_checked(const Inst& inst) {
  return inst.op == Op::assert_ || inst.op == Op::print || waits_for_programs(inst.op);
}

/// Marks by repeated walks: an instruction lives if one of its results does, if it stores to a buffer that lives, or if
/// an instruction inside it does. A buffer lives if it is wanted, or a living instruction reads it.
class Marking {
 public:
  Marking(const Kernel& kernel, const std::vector<char>& wanted) : kernel_(kernel) {
    live_.values.assign(kernel.types.size(), 0);
    live_.refs = wanted;
    live_.refs.resize(kernel.params.size() + kernel.locals.size(), 0);
  }

  Live run() {
    do {
      changed_ = false;
      block(kernel_.body);
    } while (changed_);
    return std::move(live_);
  }

 private:
  bool is(Value v) const { return live_.values[static_cast<size_t>(v)] != 0; }
  void mark(Value v) {
    if (v == no_value || is(v)) return;
    live_.values[static_cast<size_t>(v)] = 1;
    changed_ = true;
  }
  void mark(const std::vector<Value>& list) {
    for (const Value v : list) mark(v);
  }
  void mark_ref(Ref ref) {
    char& live = live_.refs[static_cast<size_t>(ref)];
    changed_ = changed_ || !live;
    live = 1;
  }

  /// Marks what the instructions of a block need, the last one first; returns whether one has an effect that counts.
  bool block(const Block& b) {
    bool effects = false;
    for (size_t k = b.insts.size(); k-- > 0;) effects = visit(b.insts[k]) || effects;
    return effects;
  }

  /// Of each value k that is carried or yielded: what it depends on, where it lives.
  void carried(const Inst& inst) {
    const size_t first = inst.op == Op::loop ? 3 : inst.op == Op::when ? 1 : 0, before = inst.op == Op::loop ? 1 : 0;
    const bool loops = inst.op == Op::loop || inst.op == Op::while_loop;
    for (size_t k = 0; k < inst.results.size(); ++k) {
      bool live = is(inst.results[k]);
      for (const Block& b : inst.blocks) live = live || (loops && is(b.arguments[before + k]));
      if (!live) continue;
      mark(inst.results[k]);
      if (inst.op != Op::branch) mark(inst.args[first + k]);
      for (const Block& b : inst.blocks) {
        if (loops) mark(b.arguments[before + k]);
        if (inst.op != Op::while_loop || &b == &inst.blocks.back()) mark(b.insts.back().args[k]);
      }
    }
  }

  bool visit(const Inst& inst) {
    if (inst.op == Op::yield || inst.op == Op::alloc) return false;
    const bool control =
        inst.op == Op::loop || inst.op == Op::when || inst.op == Op::branch || inst.op == Op::while_loop;
    bool effect = is_checked(inst);
    const Access access = info(inst.op).access;
    if (access == Access::writes || access == Access::updates)
      effect = effect || live_.refs[static_cast<size_t>(inst.ref)] != 0;
    if (control)
      for (const Block& b : inst.blocks) effect = block(b) || effect;
    if (control) carried(inst);
    bool live = effect;
    for (const Value v : inst.results) live = live || is(v);
    if (!live) return false;
    if (inst.op == Op::loop) mark({inst.args[0], inst.args[1], inst.args[2]});
    else if (inst.op == Op::when || inst.op == Op::branch) mark(inst.args[0]);
    else if (inst.op == Op::while_loop) mark(inst.blocks[0].insts.back().args[0]);
    else mark(inst.args);
    if (!inst.results.empty() && (access == Access::reads || access == Access::updates)) mark_ref(inst.ref);
    // The block of a reduction lives as a whole: it works on all its tiles.
    if (!control)
      for (const Block& b : inst.blocks)
        each_inst(b, [&](const Inst& inner) { mark(inner.args), mark(inner.results); });
    return effect;
  }

  const Kernel& kernel_;
  Live live_;
  bool changed_ = false;
};

class Sweeping {
 public:
  Sweeping(Kernel& kernel, const Live& live) : kernel_(kernel), live_(live) {}
  void run(const std::vector<Ref>& refs) {
    refs_ = refs;
    block(kernel_.body);
  }

 private:
  bool is(Value v) const { return live_.values[static_cast<size_t>(v)] != 0; }

  bool keeps(const Inst& inst) const {
    if (inst.op == Op::yield || is_checked(inst)) return true;
    if (inst.op == Op::alloc || inst.op == Op::prefetch) return live_.refs[static_cast<size_t>(inst.ref)] != 0;
    const Access access = info(inst.op).access;
    if ((access == Access::writes || access == Access::updates) && live_.refs[static_cast<size_t>(inst.ref)] != 0)
      return true;
    if (std::any_of(inst.results.begin(), inst.results.end(), [&](Value v) { return is(v); })) return true;
    return std::any_of(inst.blocks.begin(), inst.blocks.end(), [&](const Block& b) {
      return std::any_of(b.insts.begin(), b.insts.end(), [&](const Inst& i) { return i.op != Op::yield && keeps(i); });
    });
  }

  void block(Block& b) {
    std::erase_if(b.insts, [&](const Inst& inst) { return !keeps(inst); });
    for (Inst& inst : b.insts) {
      if (inst.ref >= 0 && inst.op != Op::symbol) inst.ref = refs_[static_cast<size_t>(inst.ref)];
      const bool carries =
          inst.op == Op::loop || inst.op == Op::when || inst.op == Op::branch || inst.op == Op::while_loop;
      if (!carries) continue;
      for (size_t k = inst.results.size(); k-- > 0;)
        if (!is(inst.results[k])) drop(inst, k);
      inst.type = inst.results.empty() ? Type{} : kernel_.types[static_cast<size_t>(inst.results[0])];
      for (Block& inner : inst.blocks) block(inner);
    }
  }

  /// Drops value k of what a loop carries or a condition yields. A `when` keeps one value at least.
  static void drop(Inst& inst, size_t k) {
    const auto erase = [](auto& list, size_t at) { list.erase(list.begin() + static_cast<std::ptrdiff_t>(at)); };
    if (inst.op == Op::when && inst.results.size() == 1) return;
    erase(inst.results, k);
    if (inst.op != Op::branch) erase(inst.args, k + (inst.op == Op::loop ? 3 : inst.op == Op::when ? 1 : 0));
    for (Block& b : inst.blocks) {
      if (inst.op == Op::loop || inst.op == Op::while_loop) erase(b.arguments, k + (inst.op == Op::loop ? 1 : 0));
      if (inst.op != Op::while_loop || &b == &inst.blocks.back()) erase(b.insts.back().args, k);
    }
  }

  Kernel& kernel_;
  const Live& live_;
  std::vector<Ref> refs_;
};

}  // namespace

Live live_of(const Kernel& kernel, const std::vector<char>& wanted) { return Marking(kernel, wanted).run(); }

Kernel without_dead(Kernel kernel, const Live& live, std::vector<size_t>& kept) {
  kept.clear();
  std::vector<Ref> refs(live.refs.size(), -1);
  std::vector<Param> params;
  std::vector<Local> locals;
  for (size_t k = 0; k < live.refs.size(); ++k) {
    if (!live.refs[k]) continue;
    refs[k] = static_cast<Ref>(params.size() + locals.size());
    if (k >= kernel.params.size()) locals.push_back(kernel.locals[k - kernel.params.size()]);
    else params.push_back(kernel.params[k]), kept.push_back(k);
  }
  Sweeping(kernel, live).run(refs);
  kernel.params = std::move(params);
  kernel.locals = std::move(locals);
  verify(kernel);
  return kernel;
}

}  // namespace weft::kernel
