#include "target/cpu/codegen/roles.h"

#include <ucontext.h>

#include <deque>
#include <memory>
#include <string>

#include "target/cpu/codegen/report.h"

namespace weft::target {
namespace {

constexpr size_t stack_bytes = size_t{256} << 10;

struct RoleFiber {
  ucontext_t context = {};
  std::unique_ptr<char[]> stack;
  RoleBody body = nullptr;
  bool ended = false;
};

/// The roles that run on a thread.
struct RoleTurns {
  ucontext_t scheduler = {};
  std::deque<RoleFiber> fibers = {};
  void* frame = nullptr;
  RoleFiber* running = nullptr;
  bool progress = false;   // since the last round, a role has ended or arrived, or a wait is over
  std::string waits = {};  // where one of them waits
};

thread_local RoleTurns* turns = nullptr;
thread_local std::deque<std::unique_ptr<char[]>> spare_stacks;

void role_main() {
  RoleTurns& all = *turns;
  all.running->body(all.frame);
  all.running->ended = true;
  all.progress = true;
  swapcontext(&all.running->context, &all.scheduler);
}

void begin_role(RoleTurns& all, RoleBody body) {
  RoleFiber& fiber = all.fibers.emplace_back();
  fiber.body = body;
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
}

bool ended(const int64_t* barrier, int64_t phase) { return phase < (*barrier >> 32); }

}  // namespace

void run_roles(const RoleBody* bodies, int64_t count, void* frame) {
  RoleTurns all;
  all.frame = frame;
  for (int64_t k = 0; k < count; ++k) begin_role(all, bodies[k]);
  RoleTurns* const outer = turns;
  turns = &all;
  for (bool left = true; left;) {
    left = all.progress = false;
    for (RoleFiber& fiber : all.fibers) {
      if (fiber.ended) continue;
      all.running = &fiber;
      swapcontext(&all.scheduler, &fiber.context);
      left = left || !fiber.ended;
    }
    if (left && !all.progress) {
      report_failure((all.waits + "deadlock: all roles wait for phases that none of them ends").c_str());
      break;
    }
  }
  turns = outer;
  for (RoleFiber& fiber : all.fibers) spare_stacks.push_back(std::move(fiber.stack));
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
    swapcontext(&all.running->context, &all.scheduler);
  }
  turns->progress = true;
}

}  // namespace weft::target
