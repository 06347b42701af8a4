// Renders atomic instructions that return what was there before. Integers and floats of 32 and 64 bits have
// instructions; others are replaced by compare-and-swap on the word around them. The instruction that adds float32 in
// global memory flushes subnormal numbers to 0.
#include <fmt/format.h>

#include <algorithm>

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

/// Returns the fence that makes what a thread has done, or sees, hold for a scope.
const char* Renderer::fence_of(kernel::MemoryScope scope) {
  switch (scope) {
    case kernel::MemoryScope::block: return "__threadfence_block();";
    case kernel::MemoryScope::system: return "__threadfence_system();";
    default: return "__threadfence();";
  }
}

static bool reads_value(const kernel::Block& block, kernel::Value v) {
  return std::any_of(block.insts.begin(), block.insts.end(), [&](const kernel::Inst& i) {
    return std::find(i.args.begin(), i.args.end(), v) != i.args.end() ||
           std::any_of(i.blocks.begin(), i.blocks.end(), [&](const kernel::Block& b) { return reads_value(b, v); });
  });
}

/// Renders additions of floats whose old values nobody reads, several neighbours at once. False: they are not such.
bool Renderer::add_neighbours(const Inst& inst) {
  const Dtype t = dtype_of(inst.ref);
  const bool packed = t == bfloat16 || t == float16;
  if (inst.op != Op::atomic || inst.scalar_op != ScalarOp::add || !features_.clusters || !(packed || t == float32))
    return false;
  const int64_t length = run_of(inst);
  if (length < 2) return false;
  const kernel::Value v = inst.args[0], mask = inst.args[2];
  const Layout s = layout_of(v);
  adds_neighbours_ = true;
  const std::string from = in_array(v, memory_type(inst.ref), s.registers()), first = fmt::format("(c * {})", length);
  const std::string call = fmt::format("{}<{}>({} + {}, {} + {});",
                                       t == float32    ? "add_vector"
                                       : t == bfloat16 ? "add_bf16"
                                                       : "add_f16",
                                       length, buffer(inst.ref), at(inst.args[1], first), from, first);
  open(fmt::format("EACH (int c = 0; c < {}; ++c)", s.registers() / length));
  add(mask == kernel::no_value ? call : fmt::format("if ({}) {}", at(mask, first), call));
  close();
  return true;
}

/// Renders an atomic instruction. Each element is updated by one thread; where several hold it, they learn of the old
/// value through shared memory. What a release orders is everything that threads of the program did before; after an
/// acquire all of them see.
void Renderer::update(const Inst& inst) {
  const size_t index = inst.op == Op::compare_exchange ? 2 : 1;
  const Value result = inst.results[0], mask = inst.args[index + 1];
  const bool flag = inst.type.dtype == bool_, wanted = reads_value(kernel_.body, result);
  const Layout s = layout_of(inst.type);
  const char* const fence = fence_of(inst.ordering.scope);
  before_read(inst.ref);
  before_write(inst.ref);
  if (inst.ordering.releases()) sync(), add(fence);
  if (wanted || !add_neighbours(inst)) {
    const std::string old = inst.type.rank() > 0 ? fresh(result) + "[r]" : fresh(result);
    if (wanted) declare(result);
    open(fmt::format("EACH (int r = 0; r < {}; ++r)", s.registers()));
    if (wanted) add(fmt::format("{} = 0;", old));
    add(fmt::format(
        "if ({}{}) {}{}{};", owner(s), mask == kernel::no_value ? "" : " && " + at(mask), wanted ? old + " = " : "",
        replaced_by(inst, fmt::format("{} + {}", buffer(inst.ref), placed_at(inst.ref, at(inst.args[index])))),
        flag && wanted ? " != 0" : ""));
    close();
    if (wanted && s.repeated()) {
      const std::string space = exchange(inst.type.dtype, s.size);
      if (inst.ordering.acquires()) add(fence);
      sync();
      put_text(s, space, old);
      sync();
      return add(fmt::format("EACH (int r = 0; r < 1; ++r) {} = {}[{}];", old, space, s.element("r")));
    }
  }
  if (inst.ordering.acquires()) add(fence), sync();
}

}  // namespace weft::target::cuda
