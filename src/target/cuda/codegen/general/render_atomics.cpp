// Renders atomic instructions that return what was there before. Integers and floats of 32 and 64 bits have
// instructions; others are replaced by compare-and-swap on the word around them. The instruction that adds float32 in
// global memory flushes subnormal numbers to 0.
#include <fmt/format.h>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Op;
using kernel::ScalarOp;
using kernel::Type;

/// Returns the text of the condition that a register holds an element that no other thread holds as well.
std::string Renderer::owner(const Layout& s) {
  const std::string condition = s.owner("r");
  return condition.empty() ? "true" : condition;
}

namespace {

const char* bits_of(Dtype t) { return t.size() == 8 ? "u64" : "u32"; }

/// Returns the name of the instruction for an operator on numbers of 32 or 64 bits; null where there is none.
const char* instruction(ScalarOp op, Dtype t) {
  if (op == ScalarOp::add) return "atomicAdd";
  if (is_float(t)) return nullptr;
  switch (op) {
    case ScalarOp::min: return "atomicMin";
    case ScalarOp::max: return "atomicMax";
    case ScalarOp::bit_and: return "atomicAnd";
    case ScalarOp::bit_or: return "atomicOr";
    case ScalarOp::bit_xor: return "atomicXor";
    default: return nullptr;
  }
}

/// Returns the text of an operator on what is in memory; low floats compute in float32.
std::string combined(ScalarOp op, Dtype t, const std::string& a, const std::string& b) {
  const Dtype in = is_low_float(t) ? float32 : t;
  const std::string args[] = {conversion(a, t, in), conversion(b, t, in)};
  return conversion(fmt::format("({})", expression(op, in, args)), in, t);
}

}  // namespace

/// Returns the text of an update of the element at `place`, which is what was there.
std::string Renderer::replaced_by(const Inst& inst, const std::string& place) const {
  const Dtype t = dtype_of(inst.ref);
  const bool compares = inst.op == Op::compare_exchange;
  const std::string value = at(inst.args[compares ? 1 : 0]), memory = memory_type(inst.ref);
  if (t.size() < 4 || t == bool_) {
    const std::string next = inst.op == Op::exchange_memory ? value
                             : compares ? fmt::format("old == ({}){} ? {} : old", memory, at(inst.args[0]), value)
                                        : combined(inst.scalar_op, t, "old", value);
    return fmt::format("atomic_update({}, [&]({} old) {{ return ({})({}); }})", place, memory, memory, next);
  }
  const Dtype word = t.size() == 8 ? uint64 : uint32;
  const auto as_word = [&](const std::string& v) { return reinterpretation(v, t, word); };
  if (inst.op == Op::exchange_memory)
    return reinterpretation(fmt::format("atomicExch(({}*)({}), {})", bits_of(t), place, as_word(value)), word, t);
  if (compares)
    return reinterpretation(
        fmt::format("atomicCAS(({}*)({}), {}, {})", bits_of(t), place, as_word(at(inst.args[0])), as_word(value)), word,
        t);
  const char* const name = instruction(inst.scalar_op, t);
  if (!name)
    return fmt::format("atomic_update({}, [&]({} old) {{ return {}; }})", place, memory,
                       combined(inst.scalar_op, t, "old", value));
  const bool extreme = inst.scalar_op == ScalarOp::min || inst.scalar_op == ScalarOp::max;
  if (is_float(t) || extreme) return fmt::format("{}({}, {})", name, place, value);
  return reinterpretation(fmt::format("{}(({}*)({}), {})", name, bits_of(t), place, as_word(value)), word, t);
}

/// Renders an atomic instruction. Each element is updated by one thread; where several hold it, they learn of the old
/// value through shared memory.
void Renderer::update(const Inst& inst) {
  const size_t index = inst.op == Op::compare_exchange ? 2 : 1;
  const Value result = inst.results[0], mask = inst.args[index + 1];
  const bool flag = inst.type.dtype == bool_;
  const Layout s = layout_of(inst.type);
  before_read(inst.ref);
  before_write(inst.ref);
  const std::string old = inst.type.rank() > 0 ? fresh(result) + "[r]" : fresh(result);
  declare(result);
  open(fmt::format("EACH (int r = 0; r < {}; ++r)", s.registers()));
  add(fmt::format("{} = 0;", old));
  add(fmt::format(
      "if ({}{}) {} = {}{};", owner(s), mask == kernel::no_value ? "" : " && " + at(mask), old,
      replaced_by(inst, fmt::format("{} + {}", buffer(inst.ref), placed_at(inst.ref, at(inst.args[index])))),
      flag ? " != 0" : ""));
  close();
  if (!s.repeated()) return;
  const std::string space = exchange(inst.type.dtype, s.size);
  sync();
  put_text(s, space, old);
  sync();
  add(fmt::format("EACH (int r = 0; r < 1; ++r) {} = {}[{}];", old, space, s.element("r")));
}

}  // namespace weft::target::cuda
