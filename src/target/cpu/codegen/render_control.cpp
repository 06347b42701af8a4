// Renders control flow with results, atomics that return what was there, and what a kernel reports.
#include <algorithm>
#include <array>

#include "target/cpu/codegen/renderer.h"

namespace weft::target {

using namespace kernel;

Rows Renderer::rows_of_all(std::span<const Value> values) const {
  Rows all;
  for (Value v : values) all.insert(all.end(), rows(v).begin(), rows(v).end());
  return all;
}

void Renderer::branch(const Inst& inst) {
  const LLVMBasicBlockRef then = ir_.block("then"), otherwise = ir_.block("otherwise"), after = ir_.block("after");
  LLVMBuildCondBr(ir_.b, single(inst.args[0]), then, otherwise);
  Rows yielded[2];
  LLVMBasicBlockRef ends[2];
  for (size_t arm = 0; arm < 2; ++arm) {
    ir_.go(arm == 0 ? then : otherwise);
    yielded[arm] = block(inst.blocks[arm]);
    ends[arm] = ir_.here();
    LLVMBuildBr(ir_.b, after);
  }
  ir_.go(after);
  Rows joined;
  for (size_t k = 0; k < yielded[0].size(); ++k) {
    joined.push_back(LLVMBuildPhi(ir_.b, LLVMTypeOf(yielded[0][k]), ""));
    IrValue from[] = {yielded[0][k], yielded[1][k]};
    LLVMAddIncoming(joined.back(), from, ends, 2);
  }
  assign_rows(inst.results, joined);
}

void Renderer::while_loop(const Inst& inst) {
  const Rows initial = rows_of_all(inst.args);
  const LLVMBasicBlockRef before = ir_.here(), test = ir_.block("while"), body = ir_.block("body"),
                          exit = ir_.block("done");
  LLVMBuildBr(ir_.b, test);
  ir_.go(test);
  Rows phis;
  for (IrValue v : initial) phis.push_back(LLVMBuildPhi(ir_.b, LLVMTypeOf(v), ""));
  assign_rows(inst.blocks[0].arguments, phis);
  const Rows holds = block(inst.blocks[0]);
  LLVMBuildCondBr(ir_.b, holds[0], body, exit);
  ir_.go(body);
  assign_rows(inst.blocks[1].arguments, phis);
  const Rows next = block(inst.blocks[1]);
  const LLVMBasicBlockRef latch = ir_.here();
  LLVMBuildBr(ir_.b, test);
  for (size_t k = 0; k < phis.size(); ++k) {
    IrValue from[] = {initial[k], next[k]};
    LLVMBasicBlockRef blocks[] = {before, latch};
    LLVMAddIncoming(phis[k], from, blocks, 2);
  }
  LLVMMoveBasicBlockAfter(exit, latch);
  ir_.go(exit);
  assign_rows(inst.results, phis);
}

/// Updates elements one after the other; lanes that are masked out update a spare slot.
void Renderer::update(const Inst& inst) {
  const size_t first = inst.op == Op::compare_exchange ? 1 : 0;
  const Dtype t = inst.type.dtype;
  Rows out;
  for (size_t r = 0; r < rows(inst.args[first]).size(); ++r) {
    const IrValue value = to_memory(rows(inst.args[first])[r], t);
    const IrValue expected = first == 1 ? to_memory(rows(inst.args[0])[r], t) : nullptr;
    IrValue addresses =
        ir_.at(memory_element(t), buffers_[static_cast<size_t>(inst.ref)], rows(inst.args[first + 1])[r]);
    const int64_t n = ir_.lanes(value);
    const Value mask = inst.args[first + 2];
    if (mask != no_value) addresses = ir_.select(rows(mask)[r], addresses, ir_.splat(spare(t, true), n));
    IrValue old = n == 1 ? nullptr : LLVMGetPoison(LLVMTypeOf(value));
    for (int64_t k = 0; k < n; ++k) {
      const IrValue lane = update_lane(inst, t, ir_.extract(addresses, k), ir_.extract(value, k),
                                       expected ? ir_.extract(expected, k) : nullptr);
      old = n == 1 ? lane : ir_.insert(old, lane, k);
    }
    if (mask != no_value) old = ir_.select(rows(mask)[r], old, LLVMConstNull(LLVMTypeOf(old)));
    out.push_back(from_memory(old, t));
  }
  define(inst, std::move(out));
}

/// Renders a compare-and-exchange loop on the bits of one element, and returns the element before.
IrValue Renderer::update_lane(const Inst& inst, Dtype t, IrValue address, IrValue value, IrValue expected) {
  const IrType bits = ir_.integer(t.size() * 8);
  const auto as_bits = [&](IrValue v) { return LLVMTypeOf(v) == bits ? v : LLVMBuildBitCast(ir_.b, v, bits, ""); };
  const auto from_bits = [&](IrValue v) {
    return memory_element(t) == bits ? v : LLVMBuildBitCast(ir_.b, v, memory_element(t), "");
  };
  const LLVMAtomicOrdering orders[] = {LLVMAtomicOrderingMonotonic, LLVMAtomicOrderingAcquire,
                                       LLVMAtomicOrderingRelease, LLVMAtomicOrderingAcquireRelease};
  const LLVMAtomicOrdering order = orders[static_cast<size_t>(inst.ordering.order)],
                           failed = inst.ordering.acquires() ? LLVMAtomicOrderingAcquire : LLVMAtomicOrderingMonotonic;
  if (inst.op == Op::exchange_memory)
    return from_bits(LLVMBuildAtomicRMW(ir_.b, LLVMAtomicRMWBinOpXchg, address, as_bits(value), order, 0));
  if (inst.op == Op::compare_exchange)
    return from_bits(LLVMBuildExtractValue(
        ir_.b, LLVMBuildAtomicCmpXchg(ir_.b, address, as_bits(expected), as_bits(value), order, failed, 0), 0, ""));
  const LLVMBasicBlockRef before = ir_.here(), again = ir_.block("retry"), done = ir_.block("updated");
  const IrValue first = ir_.load(bits, address, t.size());
  LLVMSetOrdering(first, LLVMAtomicOrderingMonotonic);
  LLVMBuildBr(ir_.b, again);
  ir_.go(again);
  const IrValue old = LLVMBuildPhi(ir_.b, bits, "");
  const std::array<IrValue, 2> args{from_bits(old), value};
  const IrValue next = as_bits(apply(inst.scalar_op, t, args));
  const LLVMBasicBlockRef latch = ir_.here();
  const IrValue pair = LLVMBuildAtomicCmpXchg(ir_.b, address, old, next, order, failed, 0);
  IrValue from[] = {first, LLVMBuildExtractValue(ir_.b, pair, 0, "")};
  LLVMBasicBlockRef blocks[] = {before, latch};
  LLVMAddIncoming(old, from, blocks, 2);
  LLVMBuildCondBr(ir_.b, LLVMBuildExtractValue(ir_.b, pair, 1, ""), done, again);
  ir_.go(done);
  return from_bits(old);
}

/// Calls weft_print with pairs of words: whether a value is a float, and its bits as int64 or double.
void Renderer::print(const Inst& inst) {
  const auto count = static_cast<int64_t>(inst.args.size());
  const IrValue words = ir_.local(ir_.i64, std::max<int64_t>(2 * count, 1), 8);
  for (int64_t k = 0; k < count; ++k) {
    const Value v = inst.args[static_cast<size_t>(k)];
    const Dtype t = type(v).dtype;
    const bool real = is_float(t);
    const IrValue wide = convert(single(v), t, real ? float64 : int64);
    ir_.store(ir_.index(real ? 1 : 0), ir_.at(ir_.i64, words, ir_.index(2 * k)), 8);
    ir_.store(real ? LLVMBuildBitCast(ir_.b, wide, ir_.i64, "") : wide, ir_.at(ir_.i64, words, ir_.index(2 * k + 1)),
              8);
  }
  const IrValue args[] = {LLVMBuildGlobalStringPtr(ir_.b, inst.text.c_str(), ""), ir_.index(count), words};
  ir_.call_external("weft_print", LLVMVoidTypeInContext(ir_.context), args);
}

void Renderer::check_condition(const Inst& inst) {
  IrValue holds = nullptr;
  for (IrValue row : rows(inst.args[0]))
    for (int64_t k = 0; k < ir_.lanes(row); ++k) {
      const IrValue lane = ir_.extract(row, k);
      holds = holds ? ir_.bit_and(holds, lane) : lane;
    }
  const LLVMBasicBlockRef fails = ir_.block("fails"), after = ir_.block("holds");
  LLVMBuildCondBr(ir_.b, holds, after, fails);
  ir_.go(fails);
  const IrValue text[] = {LLVMBuildGlobalStringPtr(ir_.b, inst.text.c_str(), "")};
  ir_.call_external("weft_fail", LLVMVoidTypeInContext(ir_.context), text);
  LLVMBuildBr(ir_.b, after);
  ir_.go(after);
}

}  // namespace weft::target
