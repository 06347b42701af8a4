#include "kernel/language/trace.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "kernel/rules.h"

namespace weft::k {

using kernel::ScalarOp;
using kernel::Value;

namespace {

thread_local Trace* trace_of_thread = nullptr;

uint64_t next_serial() {
  static std::atomic<uint64_t> serials{0};
  return ++serials;
}

/// Returns a result of 128-bit arithmetic as a bound, as far as int64 holds it.
__extension__ typedef __int128 Wide;
Known bounded(Wide low, Wide high, int64_t divisor) {
  if (low < INT64_MIN || high > INT64_MAX) return {INT64_MIN, INT64_MAX, 1};
  return {static_cast<int64_t>(low), static_cast<int64_t>(high), divisor};
}

bool unbounded(const Known& a) { return a.low == INT64_MIN || a.high == INT64_MAX; }

Known product(const Known& a, const Known& b) {
  const Wide ends[] = {Wide{a.low} * b.low, Wide{a.low} * b.high, Wide{a.high} * b.low, Wide{a.high} * b.high};
  int64_t divisor = 1;
  if (__builtin_mul_overflow(a.divisor, b.divisor, &divisor)) divisor = 1;
  return bounded(*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4), divisor);
}

/// Returns what is known of floor(a / n) or of its remainder, n a positive constant.
Known quotient(const Known& a, int64_t n, bool remainder) {
  const auto floor_of = [&](int64_t v) { return v / n - (v % n < 0 ? 1 : 0); };
  if (remainder) {
    if (a.low >= 0 && a.high < n) return a;
    return {0, n - 1, std::gcd(a.divisor, n)};
  }
  return {floor_of(a.low), floor_of(a.high), a.divisor % n == 0 ? a.divisor / n : 1};
}

}  // namespace

Known known_of(ScalarOp op, const Known& a, const Known& b) {
  const int64_t common = std::gcd(a.divisor, b.divisor);
  switch (op) {
    case ScalarOp::add:
      return unbounded(a) || unbounded(b) ? Known{INT64_MIN, INT64_MAX, common}
                                          : bounded(Wide{a.low} + b.low, Wide{a.high} + b.high, common);
    case ScalarOp::sub:
      return unbounded(a) || unbounded(b) ? Known{INT64_MIN, INT64_MAX, common}
                                          : bounded(Wide{a.low} - b.high, Wide{a.high} - b.low, common);
    case ScalarOp::mul: return product(a, b);
    case ScalarOp::min: return {std::min(a.low, b.low), std::min(a.high, b.high), common};
    case ScalarOp::max: return {std::max(a.low, b.low), std::max(a.high, b.high), common};
    case ScalarOp::floordiv:
    case ScalarOp::mod:
      if (b.low == b.high && b.low > 0) return quotient(a, b.low, op == ScalarOp::mod);
      return {};
    default: return {};
  }
}

Trace::Trace(const std::string& kernel_name, std::vector<Param> kernel_params)
    : own_(std::in_place, kernel_name), builder(*own_), name(kernel_name), params(std::move(kernel_params)),
      serial(next_serial()) {}

Trace::Trace(const std::string& kernel_name, kernel::Builder& into, const Grid& kernel_grid)
    : builder(into), name(kernel_name), grid(kernel_grid), serial(next_serial()) {
  declare_ids({});
}

Trace* Trace::of_thread() { return trace_of_thread; }

Trace& Trace::current(std::string_view what, Line at, bool scalars_alone) {
  if (!trace_of_thread)
    throw_invalid("kernel", fmt::format("{}{}: there is no kernel being traced on this thread: call it inside the "
                                        "function of a kernel, on the thread that traces it",
                                        at.number > 0 ? fmt::format("{}:{}: ", at.file, at.number) : "", what));
  if (trace_of_thread->combining_ && !scalars_alone)
    trace_of_thread->refuse(
        at,
        fmt::format("{} in the function of a reduction or scan, or the condition of a wait: it computes scalars from "
                    "scalars, without tiles, arrays, variables and control flow",
                    what));
  return *trace_of_thread;
}

TraceScope::TraceScope(Trace& trace) : before_(std::exchange(trace_of_thread, &trace)) {}
TraceScope::~TraceScope() { trace_of_thread = before_; }

void Trace::refuse(Line at, const std::string& message) const {
  if (at.number == 0) at = last_;
  throw_invalid("kernel " + name, at.number > 0 ? fmt::format("{}:{}: {}", at.file, at.number, message) : message);
}

Value Trace::value(const Any& v, Line at) const {
  if (!v) refuse(at, "a value was never assigned: it is used before it has one");
  if (v.trace() != serial)
    refuse(at,
           "a value of another kernel, or of another thread's, is used: values live within the trace that made them: "
           "compute it anew in this kernel");
  const auto block = std::find(open_.begin(), open_.end(), v.block());
  if (block == open_.end()) refuse(at, "a value that a loop or a condition made is used after it: carry it in a Mut");
  check_role(v.id(), static_cast<size_t>(block - open_.begin()), at);
  return v.id();
}

Any Trace::any(Value v) const { return {v, serial, open_.back()}; }

kernel::Builder& Trace::at(Line at) {
  if (at.number > 0 && !choosing_grid_) last_ = at;  // a kernel begins where its function does
  builder.at(last_.file, last_.number);
  return builder;
}

Value Trace::whole(ScalarOp op, Value a, Value b) {
  const Known what = known_of(op, known(a), known(b));
  const Value v = builder.scalar(op, {a, b});
  learn(v, what);
  bound(v, op, a, b);
  compare(v, op, a, b);
  if (choosing_grid_ && kernel::Length::takes(op))
    if (const kernel::Length left = length(a), right = length(b); left && right)
      lengths_.emplace(v, kernel::Length::apply(op, left, right));
  return v;
}

std::vector<Value> Trace::ends_of(Value v) const {
  const auto found = ends_.find(v);
  std::vector<Value> out = found == ends_.end() ? std::vector<Value>{} : found->second;
  out.push_back(v);
  return out;
}

bool Trace::at_most(Value v, Value end) const {
  const std::vector<Value> ends = ends_of(v);
  return std::find(ends.begin(), ends.end(), end) != ends.end();
}

/// Records what a scalar does not exceed, so that whole blocks in front of a run-time extent need no guards: min(a, b),
/// and c · floor(a / c) also where the quotient is 0 at least and the end is not negative.
void Trace::bound(Value v, ScalarOp op, Value a, Value b) {
  const auto add = [](std::vector<Value>& to, const std::vector<Value>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  const Known right = known(b);
  if (op == ScalarOp::min) {
    add(ends_[v], ends_of(a)), add(ends_[v], ends_of(b));
  } else if (op == ScalarOp::floordiv && right.low == right.high && right.low > 0) {
    quotients_[v] = {ends_of(a), right.low};
  } else if (const auto quotient = quotients_.find(a); quotient == quotients_.end()) {
    return;
  } else if (op == ScalarOp::max && right.low == right.high && right.low == 0) {
    Quotient own = quotient->second;
    std::erase_if(own.ends, [&](Value end) { return known(end).low < 0; });
    quotients_[v] = std::move(own);
  } else if (op == ScalarOp::mul && right.low == right.high && right.low == quotient->second.divisor) {
    add(ends_[v], quotient->second.ends);
  }
}

/// Records that n - 1 - i lies in 0 to n - 1 where i does: programs and loops that count backwards.
void Trace::compare(Value v, ScalarOp op, Value a, Value b) {
  if (op != ScalarOp::add && op != ScalarOp::sub) return;
  const Known right = known(b);
  if (right.low == right.high && right.low != INT64_MIN) {
    const auto base = shifted_.find(a);
    const Shifted from = base == shifted_.end() ? Shifted{a, 0} : base->second;
    int64_t by = 0;
    const bool fits = !(op == ScalarOp::add ? __builtin_add_overflow(from.by, right.low, &by)
                                            : __builtin_sub_overflow(from.by, right.low, &by));
    if (fits) shifted_[v] = {from.from, by};
    return;
  }
  const auto left = shifted_.find(a);
  const Shifted from = left == shifted_.end() ? Shifted{a, 0} : left->second;
  if (op != ScalarOp::sub || right.below != from.from || from.by > 0) return;
  learn(v, {from.by + 1, INT64_MAX, 1, right.low > from.by ? from.from : kernel::no_value});
}

void Trace::choose_grid(const std::function<Grid()>& choose) {
  choosing_grid_ = true;
  grid = choose();
  choosing_grid_ = false;
}

kernel::Length Trace::length(Value v) const {
  if (int64_t number = 0; builder.known(v, number)) return kernel::Length::number(number);
  const auto found = lengths_.find(v);
  return found == lengths_.end() ? kernel::Length{} : found->second;
}

Value Trace::symbol(const Symbol* s) {
  const Value v = builder.symbol(fmt::format("{}<={}", s->name, s->bound));
  if (std::find(symbols.begin(), symbols.end(), s) == symbols.end()) {
    lengths_.emplace(v, kernel::Length::symbol(static_cast<int32_t>(symbols.size())));
    symbols.push_back(s);
  }
  learn(v, {1, s->bound, 1});
  return v;
}

Known Trace::known(Value v) const {
  int64_t number = 0;
  if (builder.known(v, number)) {
    const bool measured = number != 0 && number != INT64_MIN;
    return {number, number, measured ? std::abs(number) : int64_t{1} << 32};
  }
  return static_cast<size_t>(v) < known_.size() ? known_[static_cast<size_t>(v)] : Known{};
}

void Trace::learn(Value v, const Known& what) {
  if (static_cast<size_t>(v) >= known_.size()) known_.resize(static_cast<size_t>(v) + 1);
  Known& now = known_[static_cast<size_t>(v)];
  learned_.emplace_back(v, now);
  const int64_t common = std::gcd(now.divisor, what.divisor);
  int64_t divisor = 0;
  if (__builtin_mul_overflow(now.divisor / common, what.divisor, &divisor))
    divisor = std::max(now.divisor, what.divisor);
  now = {std::max(now.low, what.low), std::min(now.high, what.high), divisor,
         what.below == kernel::no_value ? now.below : what.below};
}

Trace::OpenBlock Trace::open_block() {
  open_.push_back(++blocks_);
  return {blocks_, cells.size(), learned_.size()};
}

void Trace::close_block(const OpenBlock& block) {
  for (size_t k = block.variables; k < cells.size(); ++k) cells[k].lives = false, cells[k].left = true;
  for (; learned_.size() > block.learned; learned_.pop_back())
    known_[static_cast<size_t>(learned_.back().first)] = learned_.back().second;
  open_.pop_back();
}

void Trace::in_block(const std::function<void()>& body) {
  const OpenBlock block = open_block();
  body();
  close_block(block);
}

void Trace::in_combine(const std::function<void()>& body) {
  const bool before = std::exchange(combining_, true);
  in_block(body);
  combining_ = before;
}

void Trace::in_conditional(const std::function<void()>& body) {
  enter_condition();
  in_block(body);
  leave_condition();
}

bool Trace::ordered() const {
  return std::any_of(grid.begin(), grid.end(), [](const GridAxis& axis) { return axis.order == Order::ordered; });
}

void Trace::in_role(const std::function<void()>& body) {
  const std::vector<size_t> outside = living();
  for (const size_t k : outside) cells[k].lives = false;  // loops in the role do not carry them
  role_block_ = open_.size(), role_cells_ = cells.size();
  in_block(body);
  role_block_ = role_cells_ = 0;
  for (const size_t k : outside) cells[k].lives = true;
}

void Trace::check_role(Value v, size_t depth, Line at) const {
  if (depth < role_block_ && builder.type(v).rank() > 0)
    refuse(at, fmt::format("a role uses the tile {} from outside: its warps do not hold it: make it in the role, or "
                           "pass it through shared memory",
                           text(builder.type(v))));
}

void Trace::check_role_variable(size_t slot, Line at) const {
  if (slot < role_cells_) check_role(cells[slot].value, 0, at);
}

void Trace::in_body(const std::function<void()>& body) {
  outer_ = open_.size();
  body();
  if (open_.size() != outer_)
    refuse({}, "a loop or a condition is left before its end: let its block end by itself, without break or return");
}

std::vector<size_t> Trace::living() const {
  std::vector<size_t> out;
  for (size_t k = 0; k < cells.size(); ++k)
    if (cells[k].lives) out.push_back(k);
  return out;
}

std::vector<Value> Trace::variables(const std::vector<size_t>& slots) const {
  std::vector<Value> out;
  for (const size_t k : slots) out.push_back(cells[k].value);
  return out;
}

void Trace::set_variables(const std::vector<size_t>& slots, const std::vector<Value>& values) {
  for (size_t k = 0; k < slots.size() && k < values.size(); ++k) cells[slots[k]].value = values[k];
}

void check_extents(const Trace& t, std::string_view what, const std::vector<int64_t>& dims, Line at) {
  if (dims.size() > kernel::most_axes)
    t.refuse(at, fmt::format("{}: a tile has at most four axes, not the {} of [{}]: work on parts of it", what,
                             dims.size(), fmt::join(dims, ",")));
  int64_t elements = 1;
  for (const int64_t d : dims) {
    if (d < 1)
      t.refuse(at,
               fmt::format("{}: extents of a tile are positive, not [{}]: give 1 or more", what, fmt::join(dims, ",")));
    if (__builtin_mul_overflow(elements, d, &elements) || elements > INT32_MAX)
      t.refuse(at, fmt::format("{}: a tile has fewer than 2^31 elements, not those of [{}]: work on parts of it", what,
                               fmt::join(dims, ",")));
  }
}

void check_dtype(const Trace& t, std::string_view what, Dtype dtype, Line at) {
  if (is_complex(dtype))
    t.refuse(at,
             fmt::format("{}: {} is no dtype of a tile: work on real and imaginary parts", what, dtype_name(dtype)));
}

std::string text(const kernel::Type& type) { return kernel::to_string(type); }

}  // namespace weft::k
