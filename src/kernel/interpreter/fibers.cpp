#include "kernel/interpreter/fibers.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace weft::kernel {

FiberRunner::FiberRunner(const Kernel& kernel, std::span<const HostBuffer> buffers, uint64_t seed)
    : kernel_(kernel), memory_(kernel, buffers), values_(kernel.types.size()), random_(seed) {
  const bool parallel =
      std::any_of(kernel.body.insts.begin(), kernel.body.insts.end(), [](const Inst& i) { return i.parallel; });
  if (parallel || has_op(kernel.body, is_asynchronous)) orders_ = std::make_unique<Orders>(kernel, memory_);
}

void FiberRunner::begin(int64_t program) {
  program_ = program;
  memory_.begin(program);
  if (observer_) std::fill(values_.begin(), values_.end(), TileValue());  // what another program computed
  if (orders_) orders_->begin();
  fibers_.clear();
  fibers_.push_back({0, 0, {{&kernel_.body}}});
}

void FiberRunner::run(int64_t program) {
  begin(program);
  if (!advance()) refuse_deadlock(waits());
}

/// Runs the program as far as it goes. False: it waits for others, or gives way to them.
bool FiberRunner::advance() {
  for (;;) {
    if (fibers_.size() > 1) {
      if (!turn_of_roles()) return false;
      continue;
    }
    if (go(fibers_.front())) break;
    if (fibers_.size() == 1) return false;
  }
  guarded(nullptr, [&] {
    if (orders_) orders_->finish();
    memory_.end();
  });
  return true;
}

void FiberRunner::fail(const Inst* inst, const MemoryFault& fault) const {
  const SourceLine& source = kernel_.lines[inst ? static_cast<size_t>(inst->line) : 0];
  const std::string where = source.line > 0 ? fmt::format("{}:{}: ", source.file, source.line) : "",
                    text = inst ? print_inst(kernel_, *inst) + ": " : "";
  if (observer_ && inst) observer_->fault(moment(*inst), fault.what());
  throw_failure("kernel " + kernel_.name, fmt::format("{}program {}: {}{}", where, program_, text, fault.what()));
}

/// Runs a fiber until it ends (true), or waits for others or gives way to them (false).
bool FiberRunner::go(Fiber& fiber) {
  agent_ = fiber.iteration > 0 ? fiber.iteration : fiber.agent;
  now_ = &fiber;
  while (!fiber.frames.empty()) {
    Frame& top = fiber.frames.back();
    const Inst& inst = top.block->insts[top.next];
    bool goes_on = true;
    if (observer_ && inst.op != Op::yield) observer_->before(moment(inst));
    guarded(&inst, [&] {
      if (inst.op != Op::yield) return void(goes_on = enter(fiber, inst));
      leave(fiber);
      ++steps_;
    });
    if (!goes_on) return false;
  }
  return true;
}

/// Begins a block, or runs an instruction without one. False: the fiber waits, and tries it again, or gives way.
bool FiberRunner::enter(Fiber& fiber, const Inst& inst) {
  if (inst.op == Op::await) {
    if (!orders_->await(agent_, inst.ref, whole(inst.args[0]), whole(inst.args[1]))) return false;
    ++fiber.frames.back().next, ++steps_;
    return true;
  }
  if (waits_for_programs(inst.op)) {
    if (!(inst.op == Op::wait_until ? found(inst) : all_came())) return false;
    ++fiber.frames.back().next, ++steps_;
    return true;
  }
  ++fiber.frames.back().next, ++steps_;
  const auto begin = [&](const Block& b) { fiber.frames.push_back({&b, &inst}); };
  switch (inst.op) {
    case Op::roles: return roles(inst), false;
    case Op::loop: return begin_loop(fiber, inst), true;
    case Op::branch: return begin(inst.blocks[whole(inst.args[0]) != 0 ? 0 : 1]), true;
    case Op::while_loop: return define(inst.blocks[0].arguments, copies(inst.args)), begin(inst.blocks[0]), true;
    case Op::when:
      if (!inst.results.empty()) break;
      if (whole(inst.args[0]) != 0) begin(inst.blocks[0]);
      return true;
    default: break;
  }
  step(inst);
  // Where roles may disturb each other, or programs, they do so in some order.
  const bool meets =
      fiber.agent != 0 ? is_asynchronous(inst.op) : programs_ > 0 && info(inst.op).access == Access::updates;
  return !meets || random_() % 2 == 0;
}

/// Ends a block: a loop goes on, other instructions have their results.
void FiberRunner::leave(Fiber& fiber) {
  const Frame frame = fiber.frames.back();
  fiber.frames.pop_back();
  const std::vector<Value>& yielded = frame.block->insts.back().args;
  if (!frame.owner) return;
  const Inst& inst = *frame.owner;
  switch (inst.op) {
    case Op::loop: return next_iteration(fiber, frame, copies(yielded));
    case Op::while_loop:
      if (frame.block == &inst.blocks[1]) {
        define(inst.blocks[0].arguments, copies(yielded));
        return fiber.frames.push_back({&inst.blocks[0], &inst});
      }
      if (whole(yielded[0]) == 0) return define(inst.results, copies(inst.blocks[0].arguments));
      define(inst.blocks[1].arguments, copies(inst.blocks[0].arguments));
      return fiber.frames.push_back({&inst.blocks[1], &inst});
    case Op::branch: return define(inst.results, copies(yielded));
    default: return;
  }
}

void FiberRunner::begin_loop(Fiber& fiber, const Inst& inst) {
  Frame frame{&inst.blocks[0], &inst, 0, whole(inst.args[0]), whole(inst.args[1]), whole(inst.args[2])};
  if (frame.by <= 0) throw MemoryFault(fmt::format("the step is {}: it must be positive", frame.by));
  if (inst.parallel) orders_->fork(static_cast<size_t>(frame.hi), Orders::Kind::iterations);
  iterate(fiber, frame, copies(std::span(inst.args).subspan(3)), frame.i < frame.hi);
}

void FiberRunner::next_iteration(Fiber& fiber, Frame frame, std::vector<TileValue> carried) {
  const bool over = __builtin_add_overflow(frame.i, frame.by, &frame.i) || frame.i >= frame.hi;
  frame.next = 0;
  iterate(fiber, frame, std::move(carried), !over);
}

void FiberRunner::iterate(Fiber& fiber, const Frame& frame, std::vector<TileValue> carried, bool goes_on) {
  const bool parallel = frame.owner->parallel;
  if (!goes_on && parallel) {
    orders_->join();
    fiber.iteration = 0, agent_ = fiber.agent;
  }
  if (!goes_on) return define(frame.owner->results, std::move(carried));
  const std::span<const Value> arguments(frame.block->arguments);
  // The last of parallel iterations comes first: one that reads what those before it store finds nothing there.
  const int64_t number = parallel ? frame.hi - 1 - frame.i : frame.i;
  if (parallel) agent_ = fiber.iteration = static_cast<Agent>(number) + 1;
  values_[static_cast<size_t>(arguments[0])] = {Number::of_int(number)};
  define(arguments.subspan(1), std::move(carried));
  fiber.frames.push_back(frame);
}

/// Begins the roles of a program, which goes on behind them.
void FiberRunner::roles(const Inst& inst) {
  orders_->fork(inst.blocks.size());
  for (const Block& b : inst.blocks) fibers_.push_back({fibers_.size(), 0, {{&b}}});
}

/// Lets the roles of a program go on, in a random order. False: none of them can.
bool FiberRunner::turn_of_roles() {
  const uint64_t before = steps_;
  std::shuffle(fibers_.begin() + 1, fibers_.end(), random_);
  for (size_t k = 1; k < fibers_.size(); ++k) go(fibers_[k]);
  std::erase_if(fibers_, [](const Fiber& f) { return f.agent != 0 && f.frames.empty(); });
  if (fibers_.size() == 1) orders_->join();
  return steps_ != before;
}

/// Returns who waits for what, in the program: "role 1 waits at a.cpp:3 for …".
std::vector<std::string> FiberRunner::waits() const {
  std::vector<std::string> out;
  for (const Fiber& f : fibers_) {
    if (f.frames.empty() || (f.agent == 0 && fibers_.size() > 1)) continue;
    const Inst& inst = f.frames.back().block->insts[f.frames.back().next];
    std::string what;
    if (inst.op == Op::await) what = orders_->awaited(inst.ref, whole(inst.args[0]), whole(inst.args[1]));
    else if (is_barrier_of_programs(inst.op))
      what = fmt::format("the barrier of the {}, to which {} of {} programs have come{}",
                         inst.op == Op::grid_barrier ? "grid" : "cluster", arrived_, programs_,
                         ended_ > 0 ? fmt::format(", and {} have ended", ended_) : "");
    else if (inst.op == Op::wait_until) what = awaited(inst);
    else continue;
    out.push_back(fmt::format("{} waits at {} for {}", Orders::name(f.agent), source_line_of(kernel_, inst), what));
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// Reports that nobody can go on.
void FiberRunner::refuse_deadlock(std::vector<std::string> all) const {
  throw_failure("kernel " + kernel_.name, fmt::format("program {}: deadlock: {}", program_, fmt::join(all, "; ")));
}

/// Begins a copy: which elements it takes where.
void FiberRunner::copy_async(const Inst& inst) {
  const auto rank = static_cast<size_t>(inst.type.rank());
  std::vector<std::pair<int64_t, int64_t>> elements;
  each_element(inst.type.dims, [&](size_t, const std::vector<int64_t>& position) {
    int64_t to = whole(inst.args[0]), from = whole(inst.args[1]);
    bool inside = true;
    for (size_t k = 0; k < rank; ++k) {
      const Value limit = inst.args[2 + k];
      inside = inside && (limit == no_value || position[k] < whole(limit));
      to += position[k] * inst.strides[k], from += position[k] * inst.strides[rank + k];
    }
    memory_.check(inst.ref, to);
    if (inside) memory_.check(inst.left, from);
    elements.emplace_back(to, inside ? from : -1);
  });
  orders_->copy(agent_, inst, std::move(elements), inst.right < 0 ? 0 : whole(inst.args.back()));
}

}  // namespace weft::kernel
