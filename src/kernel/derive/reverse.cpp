// Reverse mode: the arrays of the result, its programs, and control flow.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "kernel/derive/live.h"
#include "kernel/derive/reverser.h"
#include "kernel/expand/flights.h"
#include "kernel/op_info.h"

namespace weft::kernel {
namespace {

constexpr int64_t most_parts = 128, most_part_bytes = int64_t{64} << 20;
constexpr int64_t most_tape = int64_t{1} << 26;  // elements

int64_t size_of(const std::vector<int64_t>& dims) {
  int64_t out = 1;
  for (const int64_t d : dims) out *= d;
  return out;
}

std::vector<int64_t> row_major(const std::vector<int64_t>& dims) {
  std::vector<int64_t> out(dims.size(), 1);
  for (size_t k = dims.size(); k-- > 1;) out[k - 1] = out[k] * dims[k];
  return out;
}

bool is_atomic(Op op) {
  return op == Op::atomic_add || op == Op::atomic || op == Op::exchange_memory || op == Op::compare_exchange;
}

/// How the instructions of a kernel access one buffer.
struct Uses {
  bool loads = false, stores = false, atomics = false;
  const Inst* atomic = nullptr;
};
Uses uses_of(const Kernel& kernel, Ref ref) {
  Uses out;
  each_inst(kernel.body, [&](const Inst& inst) {
    if (inst.ref != ref || info(inst.op).access == Access::none || inst.op == Op::prefetch) return;
    if (is_atomic(inst.op)) out.atomics = true, out.atomic = &inst;
    else (info(inst.op).access == Access::reads ? out.loads : out.stores) = true;
  });
  return out;
}

}  // namespace

Reverser::Reverser(const Source& source, const Kernel& kernel, const Activity& active, const std::vector<char>& given)
    : Copier(kernel, kernel.name + "_vjp"), source_(source), active_(active), given_(given),
      footprints_(kernel, source.programs, !source.count, source.bounds), cotangents_(kernel.types.size(), no_value),
      buffers_(kernel.params.size() + kernel.locals.size()) {
  find_changes(kernel.body, -1);
}

Derivative Reverser::run() {
  each_inst(from_.body, [&](const Inst& inst) {
    if (waits_for_programs(inst.op))
      refuse(inst, "programs that wait for each other do not run backwards: give the derivative by custom_function");
  });
  declare();
  if (parts_ > 1 || share_ > 1 || (parts_ > 0 && source_.count)) group();
  else program();
  Kernel kernel = b_.finish();
  std::vector<char> wanted;
  for (size_t k = 0; k < arrays_.size(); ++k)
    wanted.push_back(arrays_[k].role == Role::cotangent && source_.begins[arrays_[k].source] != 0 &&
                     uses_of(kernel, static_cast<Ref>(k)).stores);
  const Live live = live_of(kernel, wanted);
  check_replayed(live);
  std::vector<size_t> kept;
  Derivative out{without_dead(std::move(kernel), live, kept), {}, parts_ > 0 ? parts_ : source_.programs};
  if (parts_ == 0) out.count = source_.count;
  out.kernel.any_size = true;
  for (size_t k = 0; k < kept.size(); ++k) {
    DerivedArray array = arrays_[kept[k]];
    const Uses uses = uses_of(out.kernel, static_cast<Ref>(k));
    array.written = out.kernel.params[k].written = uses.stores || uses.atomics;
    out.arrays.push_back(array);
  }
  return out;
}

void Reverser::declare() {
  for (size_t k = 0; k < from_.params.size(); ++k) {
    const Param& p = from_.params[k];
    refs_.push_back(b_.param(p.name, p.dtype, p.written));
    arrays_.push_back({k, Role::value, source_.begins[k] != 0, p.written, p.dtype});
  }
  declare_cotangents();
  declare_locals();
  for (size_t k = 0; k < from_.locals.size(); ++k) {
    const size_t r = from_.params.size() + k;
    if (!active_.refs[r]) continue;
    const Local& local = from_.locals[k];
    const Dtype t = sum_dtype(local.dtype);
    buffers_[r] = {b_.reserve(t, local.elements), t};
  }
}

void Reverser::declare_cotangents() {
  for (size_t k = 0; k < from_.params.size(); ++k) {
    if (!active_.refs[k]) continue;
    DerivedArray array{k, Role::cotangent, true, true, from_.params[k].dtype};
    Cotangent c = from_.params[k].written ? cotangent_of_result(k, array) : cotangent_of_param(k, array);
    if (from_.params[k].written && !given_[k] && !uses_of(from_, static_cast<Ref>(k)).loads) {
      c.reads = false;
      buffers_[k] = c;
      continue;
    }
    c.dtype = array.dtype;
    c.ref = b_.param("g_" + from_.params[k].name, array.dtype, array.written);
    buffers_[k] = c;
    arrays_.push_back(array);
  }
  plan_parts();
}

/// Of an array that the source reads alone.
Reverser::Cotangent Reverser::cotangent_of_param(size_t k, DerivedArray& array) {
  const Footprint f = footprints_.of(static_cast<Ref>(k), source_.dims[k], Footprints::Which::loads);
  Cotangent c;
  c.adds = !f.once;
  array.begins = !f.all;
  if (c.adds) array.dtype = sum_dtype(array.dtype);
  if (!f.apart) part_sizes_[static_cast<Ref>(k)] = size_of(source_.dims[k]);
  return c;
}

/// Of an array that the source writes.
Reverser::Cotangent Reverser::cotangent_of_result(size_t k, DerivedArray& array) {
  const auto ref = static_cast<Ref>(k);
  const Uses uses = uses_of(from_, ref);
  if (uses.atomics && (uses.loads || uses.stores))
    refuse(*uses.atomic, fmt::format("array {} is also loaded or stored: give the derivative by custom_function",
                                     from_.params[k].name));
  const bool apart =
      !uses.loads || !source_.begins[k] || footprints_.of(ref, source_.dims[k], Footprints::Which::both).apart;
  if (!apart)
    throw_invalid("kernel " + from_.name,
                  fmt::format("array {} is read and written, and its elements are not known to belong to one program "
                              "each: give the derivative by custom_function",
                              from_.params[k].name));
  const bool once = footprints_.of(ref, source_.dims[k], Footprints::Which::stores).once;
  Cotangent c;
  c.clears = uses.stores && (!once || uses.loads || source_.begins[k]);
  array.written = c.clears || uses.loads;
  if (uses.loads) array.dtype = sum_dtype(array.dtype);
  return c;
}

/// Decides how many programs share the arrays to which several of the source's programs add.
void Reverser::plan_parts() {
  if (part_sizes_.empty()) return;
  int64_t bytes = 0;
  for (const auto& [ref, size] : part_sizes_)
    bytes += std::max<int64_t>(size, 1) * buffers_[static_cast<size_t>(ref)].dtype.size();
  parts_ = std::clamp<int64_t>(std::min(most_parts, most_part_bytes / bytes), 1, source_.programs);
  share_ = (source_.programs - 1) / parts_ + 1;
  parts_ = (source_.programs - 1) / share_ + 1;
  for (DerivedArray& a : arrays_)
    if (a.role == Role::cotangent && part_sizes_.contains(static_cast<Ref>(a.source)) && parts_ > 1) a.parts = parts_;
}

/// Sets cotangents of scratch to zero.
void Reverser::clear_locals() {
  constexpr int64_t chunk = 1024;
  for (size_t k = 0; k < from_.locals.size(); ++k) {
    const Cotangent& c = buffers_[from_.params.size() + k];
    if (c.ref < 0) continue;
    const int64_t n = from_.locals[k].elements, width = std::min(n, chunk);
    b_.loop(b_.index(0), b_.index(n), b_.index(width), {}, [&](Value i, const Values&) {
      b_.store(c.ref, zeros({c.dtype, {width}}), i, {1}, {b_.sub(b_.index(n), i)});
      return Values{};
    });
  }
}

/// The programs of the source that one program of the result runs, one after the other.
void Reverser::group() {
  part_ = b_.program_id();
  const Value first = b_.mul(part_, b_.index(share_));
  b_.loop(b_.index(0), b_.index(share_), b_.index(1), {}, [&](Value k, const Values&) {
    program_ = b_.add(first, k);
    if (source_.count) b_.when(b_.lt(program_, length(source_.count)), [&] { program(); });
    else if (parts_ * share_ == source_.programs) program();
    else b_.when(b_.lt(program_, b_.index(source_.programs)), [&] { program(); });
    return Values{};
  });
}

void Reverser::program() {
  clear_locals();
  block(from_.body);
  backward(from_.body);
}

void Reverser::add(Value v, Value g) {
  if (!active_(v)) return;
  g = b_.cast(g, sum_dtype(type(v).dtype));
  Value& sum = cotangents_[static_cast<size_t>(v)];
  sum = sum == no_value ? g : b_.add(sum, g);
}

Value Reverser::cotangent_or_zero(Value v) {
  return cotangent(v) == no_value ? zeros({sum_dtype(type(v).dtype), type(v).dims}) : cotangent(v);
}

// ---- the source's instructions ----

/// Records where each access stands, and where buffers change last. Of what is in a loop: where the loop begins.
void Reverser::find_changes(const Block& b, int64_t outermost) {
  for (const Inst& inst : b.insts) {
    const int64_t here = next_++, at = outermost >= 0 ? outermost : here;
    order_[&inst] = at;
    const Access access = info(inst.op).access;
    if (access == Access::writes || access == Access::updates) last_change_[inst.ref] = here;
    const bool loops = inst.op == Op::loop || inst.op == Op::while_loop;
    for (const Block& inner : inst.blocks) find_changes(inner, loops && outermost < 0 ? here : outermost);
  }
}

/// Returns whether what a load reads may have changed at the end of the program.
bool Reverser::changes_later(const Inst& inst) const {
  const auto last = last_change_.find(inst.ref);
  return last != last_change_.end() && last->second > order_.at(&inst);
}

Value Reverser::fragile(const Inst& inst, Value v) {
  fragile_.emplace_back(v, &inst);
  return v;
}

void Reverser::check_replayed(const Live& live) const {
  for (const auto& [v, inst] : fragile_)
    if (live.values[static_cast<size_t>(v)])
      refuse(*inst, inst->op == Op::loop || inst->op == Op::while_loop
                        ? "what it carries is needed again, and its iterations have no known bound, or are too many to "
                          "keep: give the derivative by custom_function"
                        : "a loop or condition reads what is stored later, and needs it again: give the derivative by "
                          "custom_function");
}

void Reverser::visit(const Inst& inst) {
  if (inst.op == Op::loop) return forward_loop(inst);
  if (inst.op == Op::print || (inst.op == Op::assert_ && replaying_)) return;
  const Access access = info(inst.op).access;
  if (!replaying_ || access == Access::none) {
    copy(inst);
    if (replaying_ && inst.op == Op::while_loop)
      for (const Value v : inst.results) fragile(inst, now(v));
    return;
  }
  if (inst.op == Op::load || inst.op == Op::gather) {
    copy(inst);
    if (changes_later(inst)) fragile(inst, now(inst.results[0]));
  } else if (!inst.results.empty()) {
    const bool compares = inst.op == Op::compare_exchange;
    set(inst.results[0], fragile(inst, b_.gather(ref(inst.ref), now(inst.args[compares ? 2 : 1]))));
  }
}

/// Runs a loop and keeps what it carries into each iteration.
void Reverser::forward_loop(const Inst& inst) {
  const Values a = now(inst.args);
  const Block& body = inst.blocks[0];
  std::vector<Ref>& tape = tapes_[&inst];
  const std::optional<int64_t> most = footprints_.iterations(inst);
  if (tape.empty())
    for (const Value v : inst.results) {
      const Type& t = type(v);
      const bool fits = most && *most <= most_tape / t.size();
      tape.push_back(fits ? b_.reserve(t.dtype, std::max<int64_t>(*most, 1) * t.size()) : -1);
    }
  set(inst.results, b_.loop(a[0], a[1], a[2], {a.begin() + 3, a.end()}, [&](Value i, const Values& carried) {
    set(body.arguments[0], i);
    const Value round = b_.scalar(ScalarOp::floordiv, {b_.sub(i, a[0]), a[2]});
    for (size_t k = 0; k < carried.size(); ++k) {
      set(body.arguments[k + 1], carried[k]);
      const Type& t = type(inst.results[k]);
      if (tape[k] >= 0) b_.store(tape[k], carried[k], b_.mul(round, b_.index(t.size())), row_major(t.dims));
    }
    return block(body);
  }));
}

// ---- backwards ----

void Reverser::replay(const Block& b) {
  const bool before = std::exchange(replaying_, true);
  block(b);
  replaying_ = before;
}

void Reverser::backward(const Block& b) {
  for (size_t k = b.insts.size(); k-- > 0;) {
    at(b.insts[k]);
    backward(b.insts[k]);
  }
}

void Reverser::backward(const Inst& inst) {
  if (info(inst.op).access != Access::none) return memory_rule(inst);
  bool arrives = false, touches = false;
  for (const Value v : inst.results) arrives = arrives || (active_(v) && cotangent(v) != no_value);
  for (const Block& b : inst.blocks)
    each_inst(b, [&](const Inst& i) {
      touches = touches || (info(i.op).access != Access::none && i.ref >= 0 && active_.holds(i.ref));
    });
  if (!arrives && !touches) {
    if (inst.op == Op::bitcast && !inst.args.empty() && active_(inst.args[0]))
      refuse(inst, "the bits of a number have no derivative: give one by custom_function");
    return;
  }
  switch (inst.op) {
    case Op::loop: return backward_loop(inst);
    case Op::branch: return backward_condition(inst);
    case Op::when:
      if (inst.results.empty()) return backward_condition(inst);
      break;
    case Op::while_loop: break;
    default: return rule(inst);
  }
  refuse(inst, "runs as often as its condition says: give the derivative by custom_function");
}

/// Returns the active values from outside that the blocks of an instruction read.
Reverser::Values Reverser::outer_values(const Inst& inst) const {
  std::set<Value> own, seen;
  Values out;
  for (const Block& b : inst.blocks) {
    own.insert(b.arguments.begin(), b.arguments.end());
    each_inst(b, [&](const Inst& i) {
      own.insert(i.results.begin(), i.results.end());
      for (const Block& inner : i.blocks) own.insert(inner.arguments.begin(), inner.arguments.end());
    });
  }
  for (const Block& b : inst.blocks)
    each_inst(b, [&](const Inst& i) {
      for (const Value v : i.args)
        if (active_(v) && !own.contains(v) && seen.insert(v).second) out.push_back(v);
    });
  return out;
}

/// Drops cotangents of what a block makes: it is about to be reversed once more.
void Reverser::forget(const Block& b) {
  for (const Value v : b.arguments) cotangents_[static_cast<size_t>(v)] = no_value;
  each_inst(b, [&](const Inst& i) {
    for (const Value v : i.results) cotangents_[static_cast<size_t>(v)] = no_value;
    for (const Block& inner : i.blocks)
      for (const Value v : inner.arguments) cotangents_[static_cast<size_t>(v)] = no_value;
  });
}

/// Iterations from the last to the first, carrying the cotangents of what the loop carries and of what it reads from
/// outside.
void Reverser::backward_loop(const Inst& inst) {
  const Block& body = inst.blocks[0];
  const Values a = now(inst.args), outer = outer_values(inst);
  std::vector<size_t> carried;
  Values initial;
  for (size_t k = 0; k < inst.results.size(); ++k)
    if (active_(inst.results[k])) carried.push_back(k), initial.push_back(cotangent_or_zero(inst.results[k]));
  for (const Value v : outer) initial.push_back(cotangent_or_zero(v));
  const Value span = b_.add(b_.sub(a[1], a[0]), b_.sub(a[2], b_.index(1)));
  const Value rounds = b_.max(b_.scalar(ScalarOp::floordiv, {span, a[2]}), b_.index(0));
  const Values out = b_.loop(b_.index(0), rounds, b_.index(1), initial, [&](Value back, const Values& g) {
    forget(body);
    for (size_t k = 0; k < outer.size(); ++k) cotangents_[static_cast<size_t>(outer[k])] = g[carried.size() + k];
    const Value round = b_.sub(b_.sub(rounds, b_.index(1)), back);
    set(body.arguments[0], b_.add(a[0], b_.mul(round, a[2])));
    for (size_t k = 0; k < inst.results.size(); ++k) {
      const Type& t = type(inst.results[k]);
      Ref tape = tapes_.at(&inst)[k];
      const bool lost = tape < 0;
      if (lost) tape = b_.reserve(t.dtype, t.size());
      const Value at = lost ? b_.index(0) : b_.mul(round, b_.index(t.size()));
      const Value v = b_.load(tape, at, t.dims, row_major(t.dims));
      set(body.arguments[k + 1], lost ? fragile(inst, v) : v);
    }
    replay(body);
    for (size_t k = 0; k < carried.size(); ++k) add(body.insts.back().args[carried[k]], g[k]);
    backward(body);
    Values next;
    for (const size_t k : carried) next.push_back(cotangent_or_zero(body.arguments[k + 1]));
    for (const Value v : outer) next.push_back(cotangent_or_zero(v));
    return next;
  });
  for (size_t k = 0; k < outer.size(); ++k) cotangents_[static_cast<size_t>(outer[k])] = out[carried.size() + k];
  for (size_t k = 0; k < carried.size(); ++k) add(inst.args[carried[k] + 3], out[k]);
}

void Reverser::backward_condition(const Inst& inst) {
  const Values outer = outer_values(inst);
  Values initial, g;
  for (const Value v : outer) initial.push_back(cotangent_or_zero(v));
  for (const Value v : inst.results) g.push_back(active_(v) ? cotangent_or_zero(v) : no_value);
  const auto reversed = [&](size_t which) {
    for (size_t k = 0; k < outer.size(); ++k) cotangents_[static_cast<size_t>(outer[k])] = initial[k];
    Values next;
    if (which < inst.blocks.size()) {
      const Block& b = inst.blocks[which];
      forget(b);
      replay(b);
      for (size_t k = 0; k < g.size(); ++k)
        if (g[k] != no_value) add(b.insts.back().args[k], g[k]);
      backward(b);
    }
    for (const Value v : outer) next.push_back(cotangent_or_zero(v));
    return next;
  };
  const Value condition = now(inst.args[0]);
  if (outer.empty() && inst.op == Op::when) return b_.when(condition, [&] { reversed(0); });
  const Values out = b_.branch(
      condition, [&] { return reversed(0); }, [&] { return reversed(1); });
  for (size_t k = 0; k < outer.size(); ++k) cotangents_[static_cast<size_t>(outer[k])] = out[k];
}

Derivative reverse_derivative(const Source& source, const std::vector<char>& given) {
  if (has_flights(source.kernel)) {
    const Kernel landed = without_flights(source.kernel);
    return reverse_derivative({landed, source.dims, source.begins, source.programs, source.count, source.bounds},
                              given);
  }
  std::vector<char> seeds;
  for (size_t k = 0; k < source.kernel.params.size(); ++k)
    seeds.push_back(source.begins[k] && is_float(source.kernel.params[k].dtype));
  const Kernel steps = with_steps(source.kernel, activity_of(source.kernel, seeds));
  const Activity active = activity_of(steps, seeds);
  return Reverser(source, steps, active, given).run();
}

}  // namespace weft::kernel
