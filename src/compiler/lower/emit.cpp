#include "compiler/lower/emit.h"

#include <algorithm>

#include "base/error.h"
#include "compiler/rewrite/framed_sums.h"
#include "graph/table.h"

namespace weft::compiler {

using graph::Op;
using ix::Expr;
using kernel::no_value;
using kernel::ScalarOp;
using kernel::Value;

Dtype compute_dtype(Dtype t) { return is_low_float(t) ? float32 : t; }

Emitter::Emitter(const LowerContext& cx, Group& group, std::string name) : cx_(cx), group_(group), b_(std::move(name)) {
  for (const Root& root : group.roots) own_.insert(root.node);
  push_scope();
}

/// Returns the key under which a node's value at an index is recorded. A root of this group has one value wherever it
/// is read: fusion requires that.
Emitter::Key Emitter::key(NodeId node, const std::vector<Expr>& index, Expr valid) const {
  Key key{node, {}, nullptr};
  if (own_.contains(node)) return key;
  for (Expr e : index) key.index.push_back(e.get());
  key.valid = valid.get();
  return key;
}

const Value* Emitter::find(const Key& key) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (auto it = scope->find(key); it != scope->end()) return &it->second;
  return nullptr;
}

kernel::Ref Emitter::param(NodeId node, bool written) {
  NodeId owner = cx_.buffer_owner[node];
  auto [it, fresh] = refs_.try_emplace(owner, 0);
  if (fresh) {
    it->second = b_.param("p" + std::to_string(params_.size()), cx_.ir[node].type.dtype, written);
    params_.push_back(owner);
  }
  return it->second;
}

kernel::Ref Emitter::scratch_param(Dtype dtype, bool written) {
  params_.push_back(-1);
  return b_.param("p" + std::to_string(params_.size() - 1), dtype, written);
}

Value Emitter::argument(const std::string& name, SymbolArgument argument) {
  auto [it, fresh] = argument_values_.try_emplace(name, no_value);
  if (fresh) {
    it->second = b_.symbol(name);
    arguments_.push_back(argument);
  }
  return it->second;
}

Value Emitter::extent(const Dim& dim) {
  if (dim.is_static()) return b_.index(dim.bound());
  return argument(dim.symbol()->name, {0, dim.symbol()});
}

void Emitter::bind(Expr variable, Value scalar) { bound_[variable.get()] = scalar; }

void Emitter::bind_lanes(Expr variable, Value base, int64_t width, Value limit) {
  lanes_ = {variable, base};
  width_ = width;
  limit_ = limit;
}

Value Emitter::lane_mask() { return b_.lt(b_.arange(width_), b_.broadcast(limit_, {width_})); }

Value Emitter::broadcast_lanes(Value v) { return b_.broadcast(v, {width_}); }

bool Emitter::on_lanes(Expr e) const {
  bool found = false;
  ix::variables(e, [&](Expr v) { found = found || v == lanes_.variable || lane_bound_.contains(v.get()); });
  return found;
}

/// Returns e as base + c · lane variable, if nothing else in it differs between lanes.
std::optional<ix::Affine> Emitter::lane_form(Expr e) const {
  auto form = ix::affine(e, std::span<const Expr>(&lanes_.variable, 1));
  if (!form || on_lanes(form->base)) return {};
  return form;
}

// ---------------------------------------------------------------- index expressions

Value Emitter::predicate(Expr e) {
  switch (e->kind) {
    case ix::Kind::constant: return b_.constant(bool_, Number::of_int(e->value != 0));
    case ix::Kind::less: return b_.lt(index_value(Expr(e->a)), index_value(Expr(e->b)));
    case ix::Kind::both: return b_.scalar(ScalarOp::bit_and, {predicate(Expr(e->a)), predicate(Expr(e->b))});
    case ix::Kind::either: return b_.scalar(ScalarOp::bit_or, {predicate(Expr(e->a)), predicate(Expr(e->b))});
    default: return b_.scalar(ScalarOp::ne, {index_value(e), b_.index(0)});
  }
}

Value Emitter::index_value(Expr e) {
  const Key index_key{-1, {e.get()}, nullptr};
  if (const Value* known = find(index_key)) return *known;
  auto binary = [&](ScalarOp op) {
    Value a = index_value(Expr(e->a));
    return b_.scalar(op, {a, index_value(Expr(e->b))});
  };
  Value v = no_value;
  switch (e->kind) {
    case ix::Kind::constant: return b_.index(e->value);
    case ix::Kind::variable:
      if (lanes_.variable && e == lanes_.variable) {
        v = b_.add(b_.arange(width_), broadcast_lanes(lanes_.base));
      } else {
        auto it = bound_.find(e.get());
        if (it == bound_.end()) throw_internal("emit", "an index variable is not bound: " + ix::to_string(e));
        return it->second;
      }
      break;
    case ix::Kind::add: v = binary(ScalarOp::add); break;
    case ix::Kind::mul: v = binary(ScalarOp::mul); break;
    case ix::Kind::floordiv: v = binary(ScalarOp::floordiv); break;
    case ix::Kind::mod: v = binary(ScalarOp::mod); break;
    case ix::Kind::min: v = binary(ScalarOp::min); break;
    case ix::Kind::max: v = binary(ScalarOp::max); break;
    default: {
      Value c = predicate(e);
      v = b_.cast(c, int64);
    }
  }
  scopes_.back()[index_key] = v;
  return v;
}

/// Emits the values of e along the lanes in dtype: arange + base if it has that form.
Value Emitter::iota(Expr e, Dtype dtype) {
  Dtype t = compute_dtype(dtype);
  if (!on_lanes(e)) return narrowed(b_.cast(index_value(e), t), dtype);
  auto form = lane_form(e);
  bool small = t == int32 && form && form->coefficients[0] == 1;
  if (!small) return narrowed(b_.cast(index_value(e), t), dtype);
  Value base = b_.add(index_value(form->base), lanes_.base);
  return b_.add(b_.arange(width_, int32), broadcast_lanes(b_.cast(base, int32)));
}

Value Emitter::narrowed(Value v, Dtype dtype) {
  return compute_dtype(dtype) == dtype ? v : b_.cast(b_.cast(v, dtype), compute_dtype(dtype));
}

// ---------------------------------------------------------------- nodes

Value Emitter::value(NodeId node, const std::vector<Expr>& index, Expr valid) {
  if (const Value* known = find(key(node, index, valid))) return *known;
  if (valid)  // an unconditional value serves a conditional reader
    if (const Value* known = find(key(node, index, {}))) return *known;
  Value v = is_memory(node) ? load(node, index, valid) : compute(node, index, valid);
  scopes_.back()[key(node, index, valid)] = v;
  return v;
}

bool Emitter::is_memory(NodeId node) const {
  if (is_leaf(cx_.ir, node)) return true;
  if (!cx_.grouping.is_root[node] || not_stored_.contains(node)) return false;
  return cx_.has_buffer[node] || cx_.ir[node].op == Op::reduce;
}

void Emitter::define(NodeId node, Value v) { scopes_.back()[key(node, {}, {})] = v; }

Value Emitter::compute(NodeId node, const std::vector<Expr>& index, Expr valid) {
  const IrNode& n = cx_.ir[node];
  if (n.op == Op::constant) return b_.constant(compute_dtype(n.type.dtype), n.attrs->number);
  if (n.op == Op::iota) return iota(index[static_cast<size_t>(n.attrs->axes[0])], n.type.dtype);
  if (n.op == Op::concat) return concat(node, index, valid);
  if (n.op == Op::gather) return value(n.inputs[0], gathered_index(node, index, valid), valid);
  if (n.op == Op::random_bits) return random_bits(node, index, valid);
  if (is_movement(n.op)) return movement(node, index, valid);
  return elementwise(node, index, valid);
}

/// Emits a movement: the operand at the moved index, or the fill value outside the operand (padding).
Value Emitter::movement(NodeId node, const std::vector<Expr>& index, Expr valid) {
  Access access = push(*group_.cx, cx_.ir, node, index);
  if (!access.valid) return value(access.node, access.index, valid);
  Expr both = valid ? group_.cx->both(valid, access.valid) : access.valid;
  Dtype t = compute_dtype(cx_.ir[node].type.dtype);
  Value other = b_.constant(t, access.other);
  if (access.valid.is_constant(0)) return other;
  // SIMT loads return zero where the condition is false, so no select is needed, unless the element was already read
  // unconditionally.
  const bool zero = cx_.target.machine().masks_loads() && !valid && is_memory(access.node) &&
                    (access.other == Number::of_real(0) || access.other == Number()) &&
                    !find(key(access.node, access.index, {}));
  Value inside = value(access.node, access.index, both);
  return zero ? inside : b_.select(predicate(access.valid), inside, other);
}

Value Emitter::concat(NodeId node, const std::vector<Expr>& index, Expr valid) {
  Value result = no_value;
  for (const Access& access : push_concat(*group_.cx, cx_.ir, node, index)) {
    if (access.valid.is_constant(0)) continue;
    if (access.valid.is_constant(1)) return value(access.node, access.index, valid);
    Value v = value(access.node, access.index, valid ? group_.cx->both(valid, access.valid) : access.valid);
    result = result == no_value ? v : b_.select(predicate(access.valid), v, result);
  }
  return result;
}

/// Emits the indices of a gather and returns the index at which it reads its operand. Negative indices count from the
/// end; others are clamped, so that no address lies outside the operand. An index that is emitted already keeps its
/// variable, so that what it leads to is known, too.
std::vector<Expr> Emitter::gathered_index(NodeId node, const std::vector<Expr>& index, Expr valid) {
  const IrNode& n = cx_.ir[node];
  auto rank = static_cast<std::ptrdiff_t>(index_rank(cx_.ir, node));
  std::vector<Expr> prefix(index.begin(), index.begin() + rank), inside(index.begin() + rank, index.end());
  for (size_t k = 0; k < n.attrs->axes.size(); ++k) {
    auto axis = static_cast<size_t>(n.attrs->axes[k]);
    const Dim& dim = cx_.ir[n.inputs[0]].type.shape[axis];
    int64_t range = std::max<int64_t>(0, dim.bound() - n.attrs->shape[axis].bound());
    NodeId indices = n.inputs[k + 1];
    Value i = b_.cast(value(indices, prefix, valid), int64);
    const auto [known, fresh] = gathered_.try_emplace({node, k, i});
    if (fresh) known->second = group_.cx->variable("gathered", 0, range);
    if (!is_unsigned(cx_.ir[indices].type.dtype)) i = b_.select(b_.lt(i, b_.index(0)), b_.add(i, extent(dim)), i);
    i = b_.max(b_.min(i, b_.index(range)), b_.index(0));
    bind(known->second, i);
    if (b_.type(i).rank() > 0) lane_bound_.insert(known->second.get());
    inside[axis] = inside[axis] + known->second;
  }
  return inside;
}

std::vector<Emitter::Gathered> Emitter::begin_gathers(NodeId node, const std::vector<Expr>& index) {
  std::vector<Gathered> moved;
  walk(node, index, [&](NodeId id, const std::vector<Expr>& at) {
    if (cx_.ir[id].op == Op::gather && !is_memory(id))
      moved.push_back({cx_.ir[id].inputs[0], gathered_index(id, at, {})});
    return true;
  });
  return moved;
}

/// Emits word `at` of the Philox stream: one of the four words of block at / 4.
Value Emitter::philox(Value key0, Value key1, Expr at) {
  Value block = index_value(at / 4), position = index_value(at % 4);
  Value low = b_.cast(block, uint32), high = b_.cast(b_.scalar(ScalarOp::shr, {block, b_.index(32)}), uint32),
        zero = b_.constant(uint32, Number::of_int(0));
  auto word = [&](ScalarOp op) { return b_.scalar(op, {key0, key1, low, high, zero, zero}); };
  auto is = [&](int64_t k) { return b_.scalar(ScalarOp::eq, {position, b_.index(k)}); };
  Value first = b_.select(is(0), word(ScalarOp::philox0), word(ScalarOp::philox1));
  return b_.select(b_.lt(position, b_.index(2)), first,
                   b_.select(is(2), word(ScalarOp::philox2), word(ScalarOp::philox3)));
}

/// Returns the two counter words of a Threefry call. `low`: the first. `words`: of the whole array; where it is odd,
/// the middle word's call has a second counter of 0.
std::pair<Value, Value> Emitter::threefry_counters(Value low, int64_t words) {
  const Dtype t = b_.type(low).dtype;
  const auto number = [&](int64_t v) { return b_.constant(t, Number::of_int(v)); };
  Value high = b_.add(low, number(words - words / 2));
  if (words % 2 == 1) high = b_.select(b_.scalar(ScalarOp::eq, {low, number(words / 2)}), number(0), high);
  return {b_.cast(low, uint32), b_.cast(high, uint32)};
}

/// Emits Threefry words in MLX's layout: of N words, with h = N/2 rounded up, a counter pairs words i and i + h. Where
/// the index says which word of its counter an element is, that word alone is emitted: the elements of a tile then
/// have consecutive counters, and the expansion of both words of a counter shares their rounds.
Value Emitter::threefry(Value key0, Value key1, Expr at, int64_t words) {
  const int64_t cut = std::max<int64_t>(1, words - words / 2);
  const Dtype t = words <= INT32_MAX ? int32 : int64;
  const auto drawn = [&](ScalarOp op, const std::pair<Value, Value>& counters) {
    return b_.scalar(op, {key0, key1, counters.first, counters.second});
  };
  const Expr half = at / cut;
  if (on_lanes(half)) {
    const Value i = iota(at, t), end = b_.constant(t, Number::of_int(cut)), first = b_.lt(i, end);
    const auto counters = threefry_counters(b_.select(first, i, b_.sub(i, end)), words);
    return b_.select(first, drawn(ScalarOp::threefry0, counters), drawn(ScalarOp::threefry1, counters));
  }
  const Expr low = at % cut, size = group_.cx->constant(words);
  // Rows that a program computes together may have both words of a counter.
  const Key keys[] = {{-1, {low.get(), size.get()}, nullptr}, {-1, {low.get(), size.get(), low.get()}, nullptr}};
  const Value *first = find(keys[0]), *second = find(keys[1]);
  if (!first || !second) {
    const auto made = threefry_counters(iota(low, t), words);
    first = &(scopes_.back()[keys[0]] = made.first);
    second = &(scopes_.back()[keys[1]] = made.second);
  }
  const std::pair<Value, Value> counters(*first, *second);
  if (half.is_constant(0)) return drawn(ScalarOp::threefry0, counters);
  if (half.is_constant(1)) return drawn(ScalarOp::threefry1, counters);
  return b_.select(predicate(half), drawn(ScalarOp::threefry1, counters), drawn(ScalarOp::threefry0, counters));
}

/// Emits random bits: a function of the key and of the element's position in what the key draws.
Value Emitter::random_bits(NodeId node, const std::vector<Expr>& index, Expr valid) {
  const IrNode& n = cx_.ir[node];
  ix::Context& icx = *group_.cx;
  auto lead = static_cast<std::ptrdiff_t>(index.size() - n.attrs->shape.size());  // axes of the keys
  Expr at = ix::linear(icx, std::vector<Expr>(index.begin() + lead, index.end()), row_major_strides(n.attrs->shape));
  std::vector<Expr> word(index.begin(), index.begin() + lead);
  word.push_back(icx.constant(0));
  Value key0 = value(n.inputs[0], word, valid);
  word.back() = icx.constant(1);
  Value key1 = value(n.inputs[0], word, valid);
  if (n.attrs->generator == graph::Generator::philox) return philox(key0, key1, at);
  return threefry(key0, key1, at, volume(n.attrs->shape));
}

Value Emitter::elementwise(NodeId node, const std::vector<Expr>& index, Expr valid) {
  const IrNode& n = cx_.ir[node];
  if (n.op == Op::add && n.fused)
    return fused_multiply_add(n.inputs[1], index, valid, value(n.inputs[0], index, valid));
  std::vector<Value> args;
  for (NodeId input : n.inputs) args.push_back(value(input, index, valid));
  Dtype from = cx_.ir[n.inputs[0]].type.dtype, to = n.type.dtype;
  if (n.op == Op::cast) {
    if (compute_dtype(to) != to) return b_.cast(b_.cast(args[0], to), compute_dtype(to));
    return b_.cast(args[0], to);
  }
  if (n.op == Op::bitcast) return b_.cast(b_.bitcast(b_.cast(args[0], from), to), compute_dtype(to));
  // The exponential of a softmax takes fewer operations where its code shows that the argument is at most 0.
  if (n.op == Op::exp && from != float64 && !cx_.target.machine().simt && is_below_maximum(cx_.ir, n.inputs[0])) {
    const kernel::Type& t = b_.type(args[0]);
    args[0] = b_.min(args[0], b_.constant(t.dtype, Number::of_int(0), t.dims));
  }
  return b_.scalar(static_cast<ScalarOp>(graph::row(n.op).scalar), args);
}

Value Emitter::fused_multiply_add(NodeId product, const std::vector<Expr>& index, Expr valid, Value sum) {
  const IrNode& n = cx_.ir[product];
  if (is_memory(product)) return b_.add(sum, value(product, index, valid));
  if (is_movement(n.op) && n.op != Op::concat) {
    const Access access = push(*group_.cx, cx_.ir, product, index);
    if (!access.valid) return fused_multiply_add(access.node, access.index, valid, sum);
  }
  if (n.type.dtype != float32 || (n.op != Op::mul && n.op != Op::square))
    return b_.add(sum, value(product, index, valid));
  const Value a = value(n.inputs.front(), index, valid), b = value(n.inputs.back(), index, valid);
  return b_.scalar(ScalarOp::fma, {a, b, sum});
}

Value Emitter::inside(NodeId node, Expr offset) {
  const Shape& shape = cx_.ir[node].type.shape;
  int64_t first = 0, last = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const int64_t reach = (shape[axis].bound() - 1) * cx_.grouping.strides[node][axis];
    (reach < 0 ? first : last) += reach;
  }
  Value at = index_value(offset);
  if (offset->max > last) at = b_.min(at, b_.index(last));
  if (offset->min < first) at = b_.max(at, b_.index(first));
  return at;
}

Value Emitter::load(NodeId node, const std::vector<Expr>& index, Expr valid) {
  const IrNode& n = cx_.ir[node];
  kernel::Ref ref = param(node, false);
  Expr offset = ix::linear(*group_.cx, index, cx_.grouping.strides[node]);
  Value v = no_value;
  if (auto tile = tiles_.find({node, offset.get()}); tile != tiles_.end())
    return b_.cast(tile->second, compute_dtype(n.type.dtype));
  if (auto staged = staged_.find({node, offset.get()}); staged != staged_.end() && !valid) {
    v = b_.load(staged->second.first, staged->second.second, {width_}, {1});
  } else if (!on_lanes(offset)) {
    // One element for all lanes. If it may not exist, SIMT lanes do not read, and a CPU reads element 0 instead, whose
    // value is unused. If only some lanes want it, all read it, or another element where none does.
    const bool guarded = valid && !on_lanes(valid);
    Value at = valid && !guarded ? inside(node, offset) : index_value(offset);
    if (guarded && cx_.target.machine().masks_loads()) v = b_.gather(ref, at, predicate(valid));
    else v = b_.load(ref, guarded ? b_.select(predicate(valid), at, b_.index(0)) : at, {}, {}, {}, {}, streaming_);
  } else if (auto form = lane_form(offset); form && (!valid || !on_lanes(valid))) {
    int64_t stride = form->coefficients[0];
    Value at = b_.add(index_value(form->base), b_.mul(lanes_.base, b_.index(stride)));
    Value limit = limit_;
    if (valid) limit = b_.select(predicate(valid), limit == no_value ? b_.index(width_) : limit, b_.index(0));
    v = b_.load(ref, at, {width_}, {stride}, {limit}, {}, streaming_);
  } else {
    Value mask = valid ? predicate(valid) : no_value;
    if (mask != no_value && b_.type(mask).rank() == 0) mask = broadcast_lanes(mask);
    if (limit_ != no_value) mask = mask == no_value ? lane_mask() : b_.scalar(ScalarOp::bit_and, {mask, lane_mask()});
    v = b_.gather(ref, index_value(offset), mask);
  }
  return b_.cast(v, compute_dtype(n.type.dtype));
}

void Emitter::store(NodeId node, const std::vector<Expr>& index, Value v, bool streaming) {
  not_stored_.erase(node);
  Dtype dtype = cx_.ir[node].type.dtype;
  kernel::Ref ref = param(node, true);
  Expr offset = ix::linear(*group_.cx, index, cx_.grouping.strides[node]);
  Value stored = b_.cast(v, dtype);
  if (!on_lanes(offset)) {
    if (b_.type(stored).rank() != 0) throw_internal("emit", "a tile is stored to one element: " + print(cx_.ir, node));
    b_.store(ref, stored, index_value(offset), {});
  } else if (auto form = lane_form(offset)) {
    int64_t stride = form->coefficients[0];
    Value at = b_.add(index_value(form->base), b_.mul(lanes_.base, b_.index(stride)));
    b_.store(ref, broadcast_lanes(stored), at, {stride}, {limit_}, streaming && stride == 1);
  } else {
    b_.scatter(ref, broadcast_lanes(stored), index_value(offset), limit_ == no_value ? no_value : lane_mask());
  }
}

void Emitter::hoist(NodeId node, const std::vector<Expr>& index, const std::vector<Expr>& varying) {
  walk(node, index, [&](NodeId id, const std::vector<Expr>& at) {
    bool fixed = std::none_of(at.begin(), at.end(), [&](Expr e) {
      return std::any_of(varying.begin(), varying.end(), [&](Expr v) { return ix::depends_on(e, v); });
    });
    if (!fixed || cx_.ir[id].op == Op::constant) return true;
    value(id, at);
    return false;
  });
}

void Emitter::walk(NodeId node, const std::vector<Expr>& index,
                   const std::function<bool(int, const std::vector<Expr>&)>& visit) {
  std::set<Key> seen;
  std::vector<std::pair<NodeId, std::vector<Expr>>> pending{{node, index}};
  while (!pending.empty()) {
    auto [id, at] = std::move(pending.back());
    pending.pop_back();
    if (!seen.insert(key(id, at, {})).second || !visit(id, at)) continue;
    const IrNode& n = cx_.ir[id];
    if (!is_memory(id) && n.op == Op::concat)
      for (Access& access : push_concat(*group_.cx, cx_.ir, id, at))
        if (access.valid.is_constant(1)) pending.emplace_back(access.node, std::move(access.index));
    // A value under a condition or at a gathered index may not be needed everywhere.
    if (is_memory(id) || n.op == Op::concat || n.op == Op::gather || n.op == Op::random_bits || n.inputs.empty())
      continue;
    if (is_movement(n.op)) {
      Access access = push(*group_.cx, cx_.ir, id, at);
      if (!access.valid) pending.emplace_back(access.node, std::move(access.index));
    } else {
      for (NodeId input : n.inputs) pending.emplace_back(input, at);
    }
  }
}

void Emitter::prefetch(NodeId node, const std::vector<Expr>& index, Expr program, int64_t count) {
  Expr offset = ix::linear(*group_.cx, index, cx_.grouping.strides[node]);
  const Expr vars[] = {lanes_.variable, program};
  auto both = ix::affine(offset, vars);
  auto form = lane_form(offset);
  if (!both || !form || form->coefficients[0] != 1 || both->coefficients[1] <= 0) return;
  Value next = b_.add(b_.add(index_value(form->base), lanes_.base), b_.index(both->coefficients[1]));
  b_.prefetch(param(node, false), next, count);
}

Lowered Emitter::finish(int64_t grid, double work) {
  Lowered result;
  result.kernel = b_.finish();
  result.params = params_;
  result.symbols = arguments_;
  result.grid = grid;
  result.work = work;
  return result;
}

}  // namespace weft::compiler
