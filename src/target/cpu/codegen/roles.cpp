// Fibers of one thread: roles of a program, and programs that meet.
#include "target/cpu/codegen/roles.h"

#include <ucontext.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "target/cpu/codegen/programs.h"
#include "target/cpu/codegen/report.h"

namespace weft::target {
namespace {

constexpr size_t stack_bytes = size_t{256} << 10;

#if defined(__SANITIZE_ADDRESS__)
extern "C" {
void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom, size_t size);
void __sanitizer_finish_switch_fiber(void* fake_stack, const void** bottom, size_t* size);
}
#endif
#if defined(__SANITIZE_THREAD__)
extern "C" {
void* __tsan_get_current_fiber(void);
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
}
#endif

/// What a sanitizer has to know of a stack before code runs on it.
struct Sanitized {
  void* fake_stack = nullptr;  // of AddressSanitizer
  const void* bottom = nullptr;
  size_t size = 0;
  void* fiber = nullptr;  // of ThreadSanitizer
};

struct RoleFiber {
  ucontext_t context = {};
  Sanitized sanitized = {};
  std::unique_ptr<char[]> stack;
  std::function<void()> body;
  std::vector<void*> locals = {};  // of a program, by number
  bool ended = false;
};

/// The roles or programs that run on a thread.
struct RoleTurns {
  ucontext_t scheduler = {};
  Sanitized sanitized = {};  // of the scheduler
  std::deque<RoleFiber> fibers = {};
  RoleFiber* running = nullptr;
  bool programs = false;   // they are programs
  size_t come = 0;         // of those, to where all meet
  uint64_t meetings = 0;   // to which all have come
  bool progress = false;   // since the last round, a role has ended or arrived, or a wait is over
  std::string waits = {};  // where one of them waits
};

thread_local RoleTurns* turns = nullptr;
thread_local std::deque<std::unique_ptr<char[]>> spare_stacks;

/// Goes on on another stack; `from` is the present one.
void change(ucontext_t& from, [[maybe_unused]] Sanitized& own, ucontext_t& to, [[maybe_unused]] Sanitized& other) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&own.fake_stack, other.bottom, other.size);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(other.fiber, 0);
#endif
  swapcontext(&from, &to);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(own.fake_stack, nullptr, nullptr);
#endif
}

void give_way(RoleTurns& all) { change(all.running->context, all.running->sanitized, all.scheduler, all.sanitized); }

void role_main() {
  RoleTurns& all = *turns;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &all.sanitized.bottom, &all.sanitized.size);
#endif
  all.running->body();
  all.running->ended = true;
  all.progress = true;
  give_way(all);
}

void begin_role(RoleTurns& all, std::function<void()> body) {
  RoleFiber& fiber = all.fibers.emplace_back();
  fiber.body = std::move(body);
  if (spare_stacks.empty()) {
    fiber.stack = std::make_unique_for_overwrite<char[]>(stack_bytes);
  } else {
    fiber.stack = std::move(spare_stacks.back());
    spare_stacks.pop_back();
  }
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = stack_bytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, role_main, 0);
  fiber.sanitized.bottom = fiber.stack.get(), fiber.sanitized.size = stack_bytes;
#if defined(__SANITIZE_THREAD__)
  fiber.sanitized.fiber = __tsan_create_fiber(0);
#endif
}

bool ended(const int64_t* barrier, int64_t phase) { return phase < (*barrier >> 32); }

/// Runs fibers to their ends, in turns. Where all wait it notes a failure that ends with `stuck`.
void run_all(RoleTurns& all, const char* stuck) {
#if defined(__SANITIZE_THREAD__)
  all.sanitized.fiber = __tsan_get_current_fiber();
#endif
  RoleTurns* const outer = turns;
  turns = &all;
  for (bool left = true; left;) {
    left = all.progress = false;
    for (RoleFiber& fiber : all.fibers) {
      if (fiber.ended) continue;
      all.running = &fiber;
      change(all.scheduler, all.sanitized, fiber.context, fiber.sanitized);
      left = left || !fiber.ended;
    }
    if (left && !all.progress) {
      report_failure((all.waits + "deadlock: " + stuck).c_str());
      break;
    }
  }
  turns = outer;
  for (RoleFiber& fiber : all.fibers) {
#if defined(__SANITIZE_THREAD__)
    __tsan_destroy_fiber(fiber.sanitized.fiber);
#endif
    spare_stacks.push_back(std::move(fiber.stack));
  }
}

}  // namespace

void run_roles(const RoleBody* bodies, int64_t count, void* frame) {
  RoleTurns all;
  for (int64_t k = 0; k < count; ++k) begin_role(all, [body = bodies[k], frame] { body(frame); });
  run_all(all, "all roles wait for phases that none of them ends");
}

void run_programs(int64_t count, const std::function<void(int64_t)>& body) {
  RoleTurns all;
  all.programs = true;
  for (int64_t k = 0; k < count; ++k) begin_role(all, [&body, k] { body(k); });
  run_all(all, "programs wait for others that have ended, or wait as well");
}

void wait_for_programs() {
  if (turns && turns->programs) give_way(*turns);
  else std::this_thread::yield();
}

void share_local(int64_t index, void* local) {
  std::vector<void*>& all = turns->running->locals;
  all.resize(std::max(all.size(), static_cast<size_t>(index) + 1));
  all[static_cast<size_t>(index)] = local;
}

void* neighbour_local(int64_t index, int64_t rank) {
  const bool exists = rank >= 0 && rank < static_cast<int64_t>(turns->fibers.size());
  if (!exists) report_failure("a cluster has no program of this number");
  const RoleFiber& owner = exists ? turns->fibers[static_cast<size_t>(rank)] : *turns->running;
  return owner.locals.at(static_cast<size_t>(index));
}

void meet_programs(const char* where) {
  if (!turns || !turns->programs) return report_failure((std::string(where) + "the program runs alone").c_str());
  RoleTurns& all = *turns;
  const uint64_t before = all.meetings;
  all.progress = true;
  if (++all.come == all.fibers.size()) all.come = 0, ++all.meetings;
  while (all.meetings == before) {
    all.waits = where;
    give_way(all);
  }
  all.progress = true;
}

void arrive_at_barrier(int64_t* barrier, int64_t arrivals) {
  const int64_t phase = *barrier >> 32, arrived = (*barrier & 0xffffffff) + 1;
  *barrier = arrived < arrivals ? *barrier + 1 : (phase + 1) << 32;
  if (turns) turns->progress = true;
}

void await_phase(const int64_t* barrier, int64_t phase, const char* where) {
  if (!turns) {
    if (!ended(barrier, phase)) report_failure((std::string(where) + "deadlock: nobody ends the phase").c_str());
    return;
  }
  while (!ended(barrier, phase)) {
    RoleTurns& all = *turns;
    all.waits = where;
    give_way(all);
  }
  turns->progress = true;
}

}  // namespace weft::target
