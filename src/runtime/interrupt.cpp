#include "runtime/interrupt.h"

#include <atomic>
#include <chrono>

namespace weft::runtime {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds between_checks{20};
enum Ending : int { not_said, may_end, may_not };

std::atomic<void (*)()> check_function{nullptr};
thread_local int ending = not_said;
thread_local Clock::time_point last_check;

}  // namespace

void set_interrupt_check(void (*check)()) { check_function = check; }

void check_interrupt() {
  void (*const check)() = check_function.load(std::memory_order_relaxed);
  if (!check || ending != may_end) return;
  const Clock::time_point now = Clock::now();
  if (now - last_check < between_checks) return;
  last_check = now;
  check();
}

bool ends_waits() { return ending != may_not && check_function.load(std::memory_order_relaxed); }

MayEnd::MayEnd(bool may) : before_(ending) {
  if (ending == may_not) return;
  if (ending == not_said && may && check_function.load(std::memory_order_relaxed)) last_check = Clock::now();
  ending = may ? may_end : may_not;
}
MayEnd::~MayEnd() { ending = before_; }

}  // namespace weft::runtime
