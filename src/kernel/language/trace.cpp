#include "kernel/language/trace.h"

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

Trace::Trace(const std::string& kernel_name, std::vector<Param> kernel_params, const Grid& kernel_grid)
    : builder(kernel_name), name(kernel_name), params(std::move(kernel_params)), grid(kernel_grid),
      serial(next_serial()) {}

Trace* Trace::of_thread() { return trace_of_thread; }

Trace& Trace::current(std::string_view what) {
  if (!trace_of_thread)
    throw_invalid(fmt::format("kernel: {}", what),
                  "there is no kernel being traced on this thread: call it inside the function of a kernel");
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
           "a value of another kernel, or of another thread's, is used: values live within the trace that made them");
  if (std::find(open_.begin(), open_.end(), v.block()) == open_.end())
    refuse(at, "a value that a loop or a condition made is used after it: carry it in a Mut");
  return v.id();
}

Any Trace::any(Value v) const { return {v, serial, open_.back()}; }

kernel::Builder& Trace::at(Line at) {
  if (at.number > 0) last_ = at;
  builder.at(last_.file, last_.number);
  return builder;
}

Value Trace::whole(ScalarOp op, Value a, Value b) {
  const Known what = known_of(op, known(a), known(b));
  const Value v = builder.scalar(op, {a, b});
  learn(v, what);
  return v;
}

Known Trace::known(Value v) const {
  int64_t number = 0;
  if (builder.known(v, number)) return {number, number, number == 0 ? int64_t{1} << 32 : std::abs(number)};
  return static_cast<size_t>(v) < known_.size() ? known_[static_cast<size_t>(v)] : Known{};
}

void Trace::learn(Value v, const Known& what) {
  if (static_cast<size_t>(v) >= known_.size()) known_.resize(static_cast<size_t>(v) + 1);
  Known& now = known_[static_cast<size_t>(v)];
  now = {std::max(now.low, what.low), std::min(now.high, what.high), std::lcm(now.divisor, what.divisor)};
}

void Trace::in_block(const std::function<void()>& body) {
  open_.push_back(++blocks_);
  body();
  open_.pop_back();
}

std::vector<Value> Trace::variables() const {
  std::vector<Value> out;
  for (const Variable& cell : cells)
    if (cell.lives) out.push_back(cell.value);
  return out;
}

void Trace::set_variables(const std::vector<Value>& values) {
  size_t next = 0;
  for (Variable& cell : cells)
    if (cell.lives && next < values.size()) cell.value = values[next++];
}

std::string text(const kernel::Type& type) { return kernel::to_string(type); }

}  // namespace weft::k
