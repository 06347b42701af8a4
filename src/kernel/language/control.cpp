// Control flow of the kernel language. A loop carries all variables that live; `without_unchanged` drops those that it
// does not change.
#include <algorithm>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "kernel/language/trace.h"
#include "kernel/op_info.h"
#include "kernel/rules.h"

namespace weft::k {

using kernel::Type;
using kernel::Value;

namespace {

Value bool_scalar(Trace& t, std::string_view what, const Any& condition, Line at) {
  const Value v = t.value(condition, at);
  if (!(t.builder.type(v) == Type{bool_, {}}))
    t.refuse(at,
             fmt::format("{}: the condition is {}, not a bool scalar: reduce a tile by all() or any(), or choose by "
                         "where()",
                         what, text(t.builder.type(v))));
  return v;
}

Value index_scalar(Trace& t, std::string_view what, const Any& v, Line at) {
  const Value n = t.value(v, at);
  if (!(t.builder.type(n) == Type{int64, {}}))
    t.refuse(at, fmt::format("{}: a bound is {}, no int64 scalar: cast it to int64", what, text(t.builder.type(n))));
  return n;
}

/// Throws where a block has changed variables that it only reads.
void check_unchanged(Trace& t, std::string_view what, const std::vector<size_t>& slots,
                     const std::vector<Value>& before, Line at) {
  if (t.variables(slots) != before) t.refuse(at, fmt::format("{} assigns a variable: assign it in the body", what));
}

}  // namespace

Cell::Cell(const Any& initial, Line at) {
  Trace& t = Trace::current("Mut", at);
  trace_ = t.serial;
  slot_ = t.cells.size();
  t.cells.push_back({t.value(initial, at)});
}

Cell::~Cell() {
  if (Trace* t = Trace::of_thread(); t && t->serial == trace_) t->cells[slot_].lives = false;
}

namespace {

/// Returns a variable of the trace whose block is open.
Trace::Variable& variable(Trace& t, uint64_t trace, size_t slot, Line at) {
  if (t.serial != trace) t.refuse(at, "a variable of another kernel is used: declare one in this kernel");
  if (t.cells[slot].left)
    t.refuse(at, "a variable that a loop or a condition made is used after it: declare it before the loop");
  return t.cells[slot];
}

}  // namespace

Any Cell::get(Line at) const {
  Trace& t = Trace::current("Mut", at, true);
  t.check_role_variable(slot_, at);
  return t.any(variable(t, trace_, slot_, at).value);
}

void Cell::set(const Any& v, Line at) {
  Trace& t = Trace::current("an assignment to a variable", at);
  Trace::Variable& own = variable(t, trace_, slot_, at);
  const Value next = t.value(v, at);
  if (!(t.builder.type(next) == t.builder.type(own.value)))
    t.refuse(at, fmt::format("a variable of {} is assigned {}: a variable keeps its shape and dtype",
                             text(t.builder.type(own.value)), text(t.builder.type(next))));
  own.value = next;
}

/// The state of a loop or a condition while its body is traced.
struct Scope::State {
  enum class Kind : uint8_t { loop, parallel, when } kind;
  Trace& trace;
  std::vector<size_t> slots;  // of the variables that live, and their values before
  std::vector<Value> before;
  Trace::OpenBlock block = {};
  kernel::Builder::OpenLoop own = {};
  Value condition = kernel::no_value;
  Any index = {};
  bool runs = true, open = true;

  State(Kind k, Trace& t) : kind(k), trace(t), slots(t.living()), before(t.variables(slots)) {}
};

bool Scope::runs() const { return state_->runs; }
const Any& Scope::index() const { return state_->index; }

Scope Scope::loop(const Any& lo, const Any& hi, int64_t step, Line at) {
  Trace& t = Trace::current("loop", at);
  if (step < 1) t.refuse(at, fmt::format("loop: the step is {}: give 1 or more", step));
  const Value from = index_scalar(t, "loop", lo, at), to = index_scalar(t, "loop", hi, at);
  const Known begin = t.known(from), end = t.known(to);
  auto state = std::make_shared<State>(State::Kind::loop, t);
  state->own = t.at(at).begin_loop(from, to, t.index(step), state->before);
  state->runs = state->own.runs;
  if (!state->runs) return Scope(std::move(state));
  const Value i = state->own.index;
  t.set_variables(state->slots, state->own.carried);
  const int64_t divisor = std::gcd(begin.low == begin.high ? begin.low : begin.divisor, step);
  t.learn(i, {begin.low, end.high == INT64_MAX ? INT64_MAX : end.high - 1, std::max<int64_t>(divisor, 1)});
  if (begin.low == begin.high && end.low == end.high && end.high > begin.low)
    t.learn(i, {begin.low, begin.low + (end.high - 1 - begin.low) / step * step, 1});
  t.learn(i, {INT64_MIN, INT64_MAX, 1, to});
  state->block = t.open_block();
  state->index = t.any(i);
  return Scope(std::move(state));
}

void loop(const Any& lo, const Any& hi, int64_t step, const std::function<void(Any)>& body, Line at) {
  Scope scope = Scope::loop(lo, hi, step, at);
  if (scope.runs()) body(scope.index());
  scope.close(at);
}

namespace {

/// Calls visit(inst) for an instruction and those of the blocks inside of it.
void each_inst(const kernel::Inst& inst, const std::function<void(const kernel::Inst&)>& visit) {
  visit(inst);
  for (const kernel::Block& block : inst.blocks)
    for (const kernel::Inst& inner : block.insts) each_inst(inner, visit);
}

/// Throws where a parallel loop of n iterations cannot follow what stands before it.
void check_before_iterations(const Trace& t, int64_t n, Line at) {
  const bool sequential =
      std::any_of(t.grid.begin(), t.grid.end(), [](const GridAxis& axis) { return axis.order == Order::sequential; });
  if (t.in_nested_block() || sequential)
    t.refuse(at, "parallel: it stands in a loop, a condition or a grid with a sequential axis: let it stand outermost");
  if (t.cluster() > 0)
    t.refuse(at, "parallel: the programs of this grid are clusters, as iterations may be: divide the work among them");
  for (const kernel::Inst& before : t.builder.open_block().insts) {
    if (before.op == kernel::Op::loop && before.parallel) {
      int64_t iterations = n;
      t.builder.known(before.args[1], iterations);
      if (iterations != n)
        t.refuse(at, fmt::format("parallel: {} iterations follow a parallel loop of {}: make them equally many", n,
                                 iterations));
      continue;
    }
    each_inst(before, [&](const kernel::Inst& inst) {
      const kernel::Access access = kernel::info(inst.op).access;
      const bool writes = access == kernel::Access::writes || access == kernel::Access::updates;
      if (writes && !kernel::is_local(t.builder.kernel(), inst.ref))
        t.refuse(at,
                 "parallel: an array is written before it, but by no iteration: write it behind the loop, or in it");
    });
  }
}

/// Throws where iterations do what has to do with other programs, or works asynchronously.
void check_iterations(const Trace& t, const kernel::Inst& loop, Line at) {
  each_inst(loop, [&](const kernel::Inst& inst) {
    if (!kernel::is_asynchronous(inst.op) && !kernel::waits_for_programs(inst.op)) return;
    t.refuse(at, fmt::format("parallel: an iteration works asynchronously or waits ({}): do it outside of the loop",
                             kernel::info(inst.op).name));
  });
}

}  // namespace

Scope Scope::parallel(int64_t n, Line at) {
  Trace& t = Trace::current("parallel", at);
  if (n < 1) t.refuse(at, fmt::format("parallel: there are {} iterations: give 1 or more", n));
  check_before_iterations(t, n, at);
  auto state = std::make_shared<State>(State::Kind::parallel, t);
  state->own = t.at(at).begin_loop(t.index(0), t.index(n), t.index(1), {});
  t.learn(state->own.index, {0, n - 1, 1});
  state->block = t.open_block();
  state->index = t.any(state->own.index);
  return Scope(std::move(state));
}

void parallel(int64_t n, const std::function<void(Any)>& body, Line at) {
  Scope scope = Scope::parallel(n, at);
  body(scope.index());
  scope.close(at);
}

Scope Scope::when(const Any& condition, Line at) {
  Trace& t = Trace::current("when", at);
  const Value chosen = bool_scalar(t, "when", condition, at);
  auto state = std::make_shared<State>(State::Kind::when, t);
  state->condition = chosen;
  t.at(at).begin_branch();
  t.enter_condition();
  state->block = t.open_block();
  return Scope(std::move(state));
}

void Scope::close(Line at) {
  State& s = *state_;
  Trace& t = Trace::current("the end of a block", at);
  if (!s.open) return;
  s.open = false;
  if (!s.runs) return;
  if (&t != &s.trace || t.innermost() != s.block.number)
    t.refuse(at, "a loop or a condition ends while another one in it is open: let blocks end one in the other");
  t.close_block(s.block);
  const std::vector<Value> after = t.variables(s.slots);
  if (s.kind == State::Kind::when) {
    t.leave_condition();
    return t.set_variables(s.slots, t.builder.end_branch(s.condition, after, s.before));
  }
  if (s.kind == State::Kind::loop) return t.set_variables(s.slots, t.builder.end_loop(s.own, after));
  if (after != s.before)
    t.refuse(at, "parallel: an iteration assigns a variable of the outside: store what it makes in scratch");
  t.builder.end_loop(s.own, {});
  if (s.own.once) return;
  t.builder.mark_parallel();
  check_iterations(t, t.builder.open_block().insts.back(), at);
}

void when(const Any& condition, const std::function<void()>& body, Line at) {
  bool_scalar(Trace::current("when", at), "when", condition, at);
  if_else(
      condition,
      [&] {
        body();
        return std::vector<Any>{};
      },
      [] { return std::vector<Any>{}; }, at);
}

std::vector<Any> if_else(const Any& condition, const std::function<std::vector<Any>()>& then,
                         const std::function<std::vector<Any>()>& otherwise, Line at) {
  Trace& t = Trace::current("if_else", at);
  const Value chosen = bool_scalar(t, "if_else", condition, at);
  const std::vector<size_t> slots = t.living();
  const std::vector<Value> before = t.variables(slots);
  std::optional<std::vector<Type>> types;  // of the values of the function that ran first
  const auto run = [&](const std::function<std::vector<Any>()>& body) {
    t.set_variables(slots, before);
    std::vector<Value> out;
    std::vector<Type> own;
    t.in_conditional([&] {
      for (const Any& v : body()) out.push_back(t.value(v, at)), own.push_back(t.builder.type(out.back()));
    });
    if (!types) types = own;
    const auto type_of = [](const std::vector<Type>& list, size_t k) {
      return k < list.size() ? text(list[k]) : "missing";
    };
    for (size_t k = 0; k < std::max(own.size(), types->size()); ++k)
      if (k >= own.size() || k >= types->size() || !(own[k] == (*types)[k]))
        t.refuse(at, fmt::format("if_else: value {} is {} or {}: both functions return the same types", k,
                                 type_of(*types, k), type_of(own, k)));
    const std::vector<Value> after = t.variables(slots);
    out.insert(out.end(), after.begin(), after.end());
    return out;
  };
  const std::vector<Value> results = t.at(at).branch(
      chosen, [&] { return run(then); }, [&] { return run(otherwise); });
  const size_t given = types->size();
  t.set_variables(slots, {results.begin() + static_cast<std::ptrdiff_t>(given), results.end()});
  std::vector<Any> out;
  for (size_t k = 0; k < given; ++k) out.push_back(t.any(results[k]));
  return out;
}

void while_(const std::function<Any()>& condition, const std::function<void()>& body, Line at) {
  Trace& t = Trace::current("while_", at);
  const std::vector<size_t> slots = t.living();
  const std::vector<Value> initial = t.variables(slots);
  const std::vector<Value> last = t.at(at).while_loop(
      initial,
      [&](const std::vector<Value>& carried) {
        t.set_variables(slots, carried);
        Value holds = kernel::no_value;
        t.in_conditional([&] { holds = bool_scalar(t, "while_", condition(), at); });
        check_unchanged(t, "while_: the condition", slots, carried, at);
        return holds;
      },
      [&](const std::vector<Value>& carried) {
        t.set_variables(slots, carried);
        t.in_conditional(body);
        return t.variables(slots);
      });
  t.set_variables(slots, last);
}

void print(const std::string& message, std::span<const Any> values, Line at) {
  Trace& t = Trace::current("print", at);
  std::vector<Value> list;
  for (const Any& v : values) list.push_back(t.value(v, at));
  t.at(at).print(message, list);
}

void assert_(const Any& condition, const std::string& message, Line at) {
  Trace& t = Trace::current("assert_", at);
  const Value v = t.value(condition, at);
  if (!(t.builder.type(v).dtype == bool_))
    t.refuse(at, fmt::format("assert_: the condition is {}, not a bool: compare it", text(t.builder.type(v))));
  t.at(at).assert_(v, message);
}

namespace {

const GridAxis& axis_of_grid(Trace& t, const char* what, int axis, Line at) {
  if (axis < 0 || static_cast<size_t>(axis) >= t.grid.size())
    t.refuse(at, fmt::format("{}: the grid has no axis {}: give one of its {}, from 0 on", what, axis, t.grid.size()));
  return t.grid[static_cast<size_t>(axis)];
}

}  // namespace

Any program(int axis, Line at) {
  Trace& t = Trace::current("program_id", at);
  axis_of_grid(t, "program_id", axis, at);
  return {t.ids[static_cast<size_t>(axis)], t.serial, 0};
}

int64_t num_programs(int axis, Line at) {
  Trace& t = Trace::current("num_programs", at);
  const GridAxis& own = axis_of_grid(t, "num_programs", axis, at);
  if (own.count)
    t.refuse(at, fmt::format("num_programs: axis {} of the grid has a run-time number of programs: "
                             "program_count({}) is its value",
                             axis, axis));
  return own.extent;
}

Any programs_along(int axis, Line at) {
  Trace& t = Trace::current("program_count", at);
  const GridAxis& own = axis_of_grid(t, "program_count", axis, at);
  return own.count ? own.count : t.any(t.index(own.extent));
}

}  // namespace weft::k
