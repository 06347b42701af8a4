#include "kernel/legalize/iterations.h"

#include <algorithm>
#include <utility>

#include "kernel/rules.h"

namespace weft::kernel {

void walk(const Block& block, const std::function<void(const Inst&)>& visit) {
  for (const Inst& inst : block.insts) {
    visit(inst);
    for (const Block& inner : inst.blocks) walk(inner, visit);
  }
}

bool is_plain_loop(const Inst& inst) {
  return inst.op == Op::loop && inst.results.empty() && inst.args.size() == 3 && !inst.parallel;
}

Value append_index(std::vector<Type>& types, std::vector<Inst>& to, ScalarOp op, Value a, Value b) {
  const bool compares = op == ScalarOp::lt;
  Inst inst{.op = Op::scalar, .type = {compares ? bool_ : int64, {}}, .args = {a, b}, .scalar_op = op};
  const auto v = static_cast<Value>(types.size());
  types.push_back(inst.type);
  inst.results = {v};
  to.push_back(std::move(inst));
  return v;
}

Definitions::Definitions(const Kernel& kernel) : by_value_(kernel.types.size(), nullptr) {
  walk(kernel.body, [&](const Inst& inst) {
    for (const Value v : inst.results) by_value_[static_cast<size_t>(v)] = &inst;
  });
}

bool Definitions::equal(Value a, Value b, const std::map<Value, Value>& replaced) const {
  if (const auto found = replaced.find(b); found != replaced.end()) b = found->second;
  if (a == b) return true;
  const Inst *x = a == no_value ? nullptr : of(a), *y = b == no_value ? nullptr : of(b);
  if (!x || !y || x->op != y->op || !(x->type == y->type)) return false;
  if (x->op == Op::constant) return x->number == y->number;
  if (x->op != Op::scalar || x->scalar_op != y->scalar_op) return false;
  return std::equal(x->args.begin(), x->args.end(), y->args.begin(), y->args.end(),
                    [&](Value p, Value q) { return equal(p, q, replaced); });
}

bool Definitions::depends(Value v, Value variable) const {
  if (v == variable) return true;
  const Inst* inst = v == no_value ? nullptr : of(v);
  if (!inst) return false;
  const std::vector<Value> list = reads(*inst);
  return std::any_of(list.begin(), list.end(), [&](Value arg) { return depends(arg, variable); });
}

bool Definitions::is_index_of(Value v, Value variable) const {
  if (!depends(v, variable) || v == variable) return true;
  const Inst* inst = of(v);
  return inst->op == Op::scalar && inst->type.rank() == 0 && inst->type.dtype == int64 &&
         std::all_of(inst->args.begin(), inst->args.end(), [&](Value arg) { return is_index_of(arg, variable); });
}

Inst InstCopier::copy(const Inst& inst) {
  Inst out = inst;
  for (Value& v : out.args)
    if (v != no_value) v = now(v);
  for (Value& v : out.results) {
    const auto fresh = static_cast<Value>(types_.size());
    types_.push_back(Type(types_[static_cast<size_t>(v)]));
    now_[v] = fresh;
    v = fresh;
  }
  for (Block& b : out.blocks) b = copy(b);
  return out;
}

Block InstCopier::copy(const Block& block) {
  Block out;
  for (const Value v : block.arguments) {
    if (const auto found = now_.find(v); found != now_.end()) {  // the variable of a loop that this one joins
      out.arguments.push_back(found->second);
      continue;
    }
    const auto fresh = static_cast<Value>(types_.size());
    types_.push_back(Type(types_[static_cast<size_t>(v)]));
    now_[v] = fresh;
    out.arguments.push_back(fresh);
  }
  for (const Inst& inst : block.insts) out.insts.push_back(copy(inst));
  return out;
}

Value InstCopier::copy_index(const Definitions& made, Value v, Value variable, std::vector<Inst>& to) {
  if (now_.contains(v) || !made.depends(v, variable)) return now(v);
  const Inst& inst = *made.of(v);
  for (const Value arg : inst.args) copy_index(made, arg, variable, to);
  to.push_back(copy(inst));
  return now(v);
}

}  // namespace weft::kernel
