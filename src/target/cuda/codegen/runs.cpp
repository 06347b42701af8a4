#include "target/cuda/codegen/runs.h"

#include <algorithm>

namespace weft::target::cuda {

using kernel::Block;
using kernel::Inst;
using kernel::Op;
using kernel::ScalarOp;
using kernel::Value;

namespace {

constexpr int64_t largest = int64_t{1} << 30;

/// Returns the largest power of two that divides `v`, at most `largest`. Unsigned: the least integer has no negative.
int64_t power_of_two_of(uint64_t v) {
  const uint64_t lowest_bit = v & (~v + 1);
  return lowest_bit == 0 ? largest : static_cast<int64_t>(std::min(static_cast<uint64_t>(largest), lowest_bit));
}

int64_t power_of_two_of(int64_t v) { return power_of_two_of(static_cast<uint64_t>(v)); }

}  // namespace

Runs::Runs(const kernel::Kernel& kernel, int64_t length)
    : length_(length), facts_(kernel.types.size()), kernel_(kernel) {
  for (size_t v = 0; v < facts_.size(); ++v)
    if (kernel.types[v].rank() == 0) facts_[v].form = Form::uniform;
  visit(kernel.body);
}

void Runs::visit(const Block& block) {
  for (const Inst& inst : block.insts) {
    if (inst.op == Op::loop) {  // the counter
      Fact& counter = facts_[static_cast<size_t>(inst.blocks[0].arguments[0])];
      counter.divisor = std::min(fact(inst.args[0]).divisor, fact(inst.args[2]).divisor);
    }
    for (const Block& inner : inst.blocks) visit(inner);
    if (inst.results.size() != 1 || inst.op == Op::loop || inst.op == Op::when) continue;
    const Value result = inst.results[0];
    const kernel::Type& type = kernel_.types[static_cast<size_t>(result)];
    if (type.rank() > 1 || !(is_integer(type.dtype) || type.dtype == bool_ || inst.op == Op::gather)) continue;
    Fact& found = facts_[static_cast<size_t>(result)];
    const Form before = found.form;
    found = of(inst);
    if (before == Form::uniform) found.form = Form::uniform;
  }
}

Runs::Fact Runs::of(const Inst& inst) const {
  switch (inst.op) {
    case Op::constant: return {Form::uniform, power_of_two_of(inst.number.i), inst.number.i};
    case Op::arange: return {Form::consecutive, length_, {}};
    case Op::broadcast: return fact(inst.args[0]).form == Form::uniform ? fact(inst.args[0]) : Fact();
    case Op::cast: {
      const kernel::Type& from = kernel_.types[static_cast<size_t>(inst.args[0])];
      return is_integer(from.dtype) && from.dtype.size() <= inst.type.dtype.size() ? fact(inst.args[0]) : Fact();
    }
    case Op::scalar: return scalar(inst);
    case Op::gather: {  // one element of memory for all
      const bool masked = inst.args[1] != kernel::no_value;
      return {uniform(inst.args[0]) && (!masked || uniform(inst.args[1])) ? Form::uniform : Form::varying, 1, {}};
    }
    default: return {};
  }
}

Runs::Fact Runs::scalar(const Inst& inst) const {
  const auto argument = [&](size_t k) -> const Fact& { return fact(inst.args[k]); };
  const bool uniform = std::all_of(inst.args.begin(), inst.args.end(), [&](Value v) { return this->uniform(v); });
  Fact out{uniform ? Form::uniform : Form::varying, 1, {}};
  switch (inst.scalar_op) {
    case ScalarOp::add: return sum(argument(0), argument(1), false);
    case ScalarOp::sub: return sum(argument(0), argument(1), true);
    case ScalarOp::floordiv: return quotient(argument(0), argument(1));
    case ScalarOp::mod: return remainder(argument(0), argument(1));
    case ScalarOp::lt: return less(argument(0), argument(1));
    case ScalarOp::mul:
      if (uniform) out.divisor = std::min(largest, argument(0).divisor * argument(1).divisor);
      return out;
    case ScalarOp::min:
    case ScalarOp::max: out.divisor = std::min(argument(0).divisor, argument(1).divisor); return out;
    case ScalarOp::select:  // both sides of one form, and one condition for the chunk
      if (argument(0).form == Form::uniform && argument(1).form == argument(2).form) out.form = argument(1).form;
      out.divisor = std::min(argument(1).divisor, argument(2).divisor);
      return out;
    default: return out;
  }
}

Runs::Fact Runs::sum(const Fact& a, const Fact& b, bool minus) const {
  Fact out{Form::varying, std::min(a.divisor, b.divisor), {}};
  if (b.form == Form::uniform) out.form = a.form;
  else if (a.form == Form::uniform && !minus) out.form = b.form;
  return out;
}

/// Returns a / b: consecutive elements that lie between two multiples of b have one quotient.
Runs::Fact Runs::quotient(const Fact& a, const Fact& b) const {
  if (a.form == Form::uniform && b.form == Form::uniform) {
    // Only powers of two leave something of a's divisor for sure: 8 / 3 is 2.
    const bool exact = b.known && *b.known > 0 && power_of_two_of(*b.known) == *b.known;
    return {Form::uniform, exact ? std::max<int64_t>(1, a.divisor / *b.known) : 1, {}};
  }
  const bool within =
      a.form == Form::consecutive && a.divisor >= length_ && b.known && *b.known > 0 && *b.known % length_ == 0;
  return {within ? Form::uniform : Form::varying, 1, {}};
}

/// Returns a mod b, which stays consecutive where a chunk lies between two multiples of b.
Runs::Fact Runs::remainder(const Fact& a, const Fact& b) const {
  const int64_t divisor = b.known && *b.known > 0 ? std::min(a.divisor, power_of_two_of(*b.known)) : 1;
  if (a.form == Form::uniform && b.form == Form::uniform) return {Form::uniform, divisor, {}};
  const bool within = a.form == Form::consecutive && a.divisor >= length_ && divisor >= length_;
  return {within ? Form::consecutive : Form::varying, divisor, {}};
}

/// Returns a < b: one truth for a chunk that lies on one side of a border.
Runs::Fact Runs::less(const Fact& a, const Fact& b) const {
  const auto before = [&](const Fact& x, const Fact& border) {
    return x.form == Form::consecutive && x.divisor >= length_ && border.form == Form::uniform &&
           border.divisor >= length_;
  };
  Fact next = a;  // a < b is a + 1 <= b
  if (a.known) next.divisor = power_of_two_of(static_cast<uint64_t>(*a.known) + 1);
  const bool both = a.form == Form::uniform && b.form == Form::uniform;
  const bool one_side = before(a, b) || (a.known && before(b, next));
  return {both || one_side ? Form::uniform : Form::varying, 1, {}};
}

}  // namespace weft::target::cuda
