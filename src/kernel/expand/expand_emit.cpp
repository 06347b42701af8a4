// Emits the instructions of expansions. Constants and repeated instructions are shared where they are visible.
#include "kernel/expand/expand_emit.h"

#include <bit>
#include <utility>

namespace weft::kernel::expansion {
namespace {

Inst make(Op op, Type type, std::vector<Value> args) {
  Inst inst{};
  inst.op = op;
  inst.type = std::move(type);
  inst.args = std::move(args);
  return inst;
}

}  // namespace

void Emitter::open_block() { scopes_.emplace_back(); }

std::vector<Inst> Emitter::close_block() {
  std::vector<Inst> insts = std::move(scopes_.back().insts);
  scopes_.pop_back();
  return insts;
}

void Emitter::keep(Inst inst) {
  note(inst);
  scopes_.back().insts.push_back(std::move(inst));
}

/// Records what is known of an instruction's result: its number, what it is at most, and which tiles are below it.
void Emitter::note(const Inst& inst) {
  if (inst.op == Op::constant) constants_.emplace(inst.results.at(0), inst.number);
  if (inst.results.empty() || inst.type.dtype != float32) return;
  const Value v = inst.results[0];
  const auto below = [&](Value other) {
    const auto found = below_.find(other);
    return found == below_.end() ? std::vector<Below>() : found->second;
  };
  switch (inst.op) {
    case Op::reduce:
      if (inst.blocks.empty() && inst.reducer == Reducer::max) below_[v] = {{inst.args[0], inst.axis, true}};
      return;
    case Op::reshape: {  // the axis comes back
      const std::vector<int64_t>& dims = inst.type.dims;
      for (const Below& b : below(inst.args[0])) {
        if (!b.gone) continue;
        std::vector<int64_t> kept = type(b.tile).dims;
        kept[static_cast<size_t>(b.axis)] = 1;
        if (kept == dims) below_[v].push_back({b.tile, b.axis, false});
      }
      return;
    }
    case Op::broadcast:  // a missing axis is the first one of the result
      for (const Below& b : below(inst.args[0]))
        if (b.axis >= 0 && type(b.tile).dims == inst.type.dims && (!b.gone || b.axis == 0))
          below_[v].push_back({b.tile, -1, false});
      return;
    case Op::scalar: break;
    default: return;
  }
  if (inst.scalar_op == ScalarOp::min)
    for (const Value arg : inst.args)
      if (const Number* limit = constant_of(arg)) limits_.emplace(v, limit->real());
  if (inst.scalar_op == ScalarOp::max)
    for (const Value arg : inst.args)
      for (const Below& b : below(arg)) below_[v].push_back(b);
  if (inst.scalar_op == ScalarOp::sub)
    for (const Below& b : below(inst.args[1]))
      if (b.tile == inst.args[0] && b.axis < 0) limits_.emplace(v, 0);
}

Value Emitter::keep_once(Inst inst) {
  Key key = key_of(inst);
  if (const auto* same = known(key)) return same->front();
  const Value v = inst.results.at(0);
  scopes_.back().known.emplace(std::move(key), inst.results);
  keep(std::move(inst));
  return v;
}

Emitter::Key Emitter::key_of(const Inst& inst) {
  Key key{static_cast<int64_t>(inst.op),
          static_cast<int64_t>(inst.scalar_op),
          static_cast<int64_t>(inst.type.dtype.val()),
          inst.number.integral,
          inst.number.i,
          std::bit_cast<int64_t>(inst.number.f),
          inst.type.rank()};
  key.insert(key.end(), inst.type.dims.begin(), inst.type.dims.end());
  key.insert(key.end(), inst.args.begin(), inst.args.end());
  return key;
}

const std::vector<Value>* Emitter::known(const Key& key) const {
  for (const Scope& scope : scopes_)
    if (auto it = scope.known.find(key); it != scope.known.end()) return &it->second;
  return nullptr;
}

Value Emitter::emit(Inst inst) {
  Key key = key_of(inst);
  if (const auto* same = known(key)) return same->front();
  const Value v = static_cast<Value>(types_.size());
  types_.push_back(inst.type);
  inst.results = {v};
  scopes_.back().known.emplace(std::move(key), inst.results);
  keep(std::move(inst));
  return v;
}

// Two `when`s are equal if their blocks are, in which values are identified by order of creation. The values of a
// duplicate block are removed.
std::vector<Value> Emitter::when(Value condition, const std::vector<Value>& otherwise,
                                 const std::function<std::vector<Value>()>& body) {
  const Value first = static_cast<Value>(types_.size());
  open_block();
  Inst yield = make(Op::yield, {}, body());
  keep(std::move(yield));
  Inst inst = make(Op::when, type(otherwise.at(0)), {condition});
  inst.args.insert(inst.args.end(), otherwise.begin(), otherwise.end());
  inst.blocks.push_back({{}, close_block()});

  Key key = key_of(inst);
  const std::function<void(const Block&)> add = [&](const Block& block) {
    for (Inst inner : block.insts) {
      for (Value& v : inner.args)
        if (v >= first) v = no_value - 1 - (v - first);
      const Key part = key_of(inner);
      key.push_back(static_cast<int64_t>(part.size()));
      key.insert(key.end(), part.begin(), part.end());
      for (const Block& b : inner.blocks) add(b);
    }
  };
  add(inst.blocks[0]);
  if (const auto* same = known(key)) {
    types_.resize(static_cast<size_t>(first));
    constants_.erase(constants_.lower_bound(first), constants_.end());
    limits_.erase(limits_.lower_bound(first), limits_.end());
    below_.erase(below_.lower_bound(first), below_.end());
    return *same;
  }
  for (Value v : otherwise) {
    inst.results.push_back(static_cast<Value>(types_.size()));
    types_.push_back(Type(type(v)));
  }
  scopes_.back().known.emplace(std::move(key), inst.results);
  std::vector<Value> results = inst.results;
  keep(std::move(inst));
  return results;
}

Value Emitter::constant(const Type& type, Number number) {
  Inst inst = make(Op::constant, type, {});
  inst.number = round_to(number, type.dtype);
  return emit(std::move(inst));
}

Value Emitter::scalar(ScalarOp op, std::vector<Value> args) {
  Type result = type(args.back());
  if (info(op).result == ScalarResult::boolean) result.dtype = bool_;
  Inst inst = make(Op::scalar, std::move(result), std::move(args));
  inst.scalar_op = op;
  return emit(std::move(inst));
}

Value Emitter::cast(Value v, Dtype to) {
  const Type from = type(v);
  if (from.dtype == to) return v;
  if (auto it = constants_.find(v); it != constants_.end()) {
    const Number held = round_to(it->second, from.dtype);
    return constant({to, from.dims}, reference_cast(held, from.dtype, to));
  }
  return emit(make(Op::cast, {to, from.dims}, {v}));
}

Value Emitter::bitcast(Value v, Dtype to) { return emit(make(Op::bitcast, {to, type(v).dims}, {v})); }

Expr apply(ScalarOp op, std::initializer_list<Operand> operands) {
  Expr like{};
  for (const Operand& o : operands)
    if (!o.is_number) like = o.expr;
  Emitter& emitter = *like.emitter;
  const Type type = emitter.type(like.value);
  std::vector<Value> args;
  for (const Operand& o : operands) {
    const Number number =
        is_float(type.dtype) ? Number::of_real(o.number) : Number::of_int(static_cast<int64_t>(o.number));
    args.push_back(o.is_number ? emitter.constant(type, number) : o.expr.value);
  }
  return {&emitter, emitter.scalar(op, std::move(args))};
}

Expr bitcast(Expr v, Dtype to) { return {v.emitter, v.emitter->bitcast(v.value, to)}; }
Expr cast(Expr v, Dtype to) { return {v.emitter, v.emitter->cast(v.value, to)}; }

std::vector<Expr> when(Expr condition, const std::vector<Expr>& otherwise,
                       const std::function<std::vector<Expr>()>& body) {
  const auto values = [](const std::vector<Expr>& exprs) {
    std::vector<Value> out;
    for (const Expr& e : exprs) out.push_back(e.value);
    return out;
  };
  std::vector<Expr> out;
  for (Value v : condition.emitter->when(condition.value, values(otherwise), [&] { return values(body()); }))
    out.push_back({condition.emitter, v});
  return out;
}

// Without ldexp: multiplies by two powers of two, the first of them exactly. Where n is not large, the first is
// 2^(n+26), a normal number for every n, and the second a constant. Else they are 2^m and 2^(n - m), m about n / 2: the
// bits of `half` are those of 2^m where they are shifted, because its low bits are m + 127; those of 2^(n - m) follow
// from both.
Expr scaled(Expr p, Expr shifted, int most) {
  const Expr n = shifted - shifter;
  if (p.emitter->has().ldexp) return apply(ScalarOp::ldexp, {p, n});
  constexpr int raised = 26, most_raised = 127 - raised;
  if (most <= most_raised) return p * power_of_two(shifted, one_bits + (raised << 23)) * 0x1p-26;
  constexpr double bias = 127, twice_bias = 254 << 23;
  const Expr half = bitcast(fma(n, 0.5, shifter + bias), int32), rest = bitcast(shifted, int32) - half;
  return p * bitcast(half << 23, float32) * bitcast((rest << 23) + twice_bias, float32);
}

Expr horner(Expr x, std::initializer_list<double> coefficients) {
  auto c = coefficients.begin();
  Expr p = fma(*c, x, *(c + 1));
  for (c += 2; c != coefficients.end(); ++c) p = fma(p, x, *c);
  return p;
}

}  // namespace weft::kernel::expansion
