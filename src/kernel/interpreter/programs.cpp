// Programs that wait for each other: they begin in order, and those under way take turns in an order that a seed
// chooses, so that waits are seen both where there is something to wait for and where there is not.
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "kernel/interpreter/fibers.h"

namespace weft::kernel {

/// Goes on with another program. `own` has what that one has, and then what the present one has.
void FiberRunner::exchange(State& own) {
  std::swap(program_, own.program);
  fibers_.swap(own.fibers);
  values_.swap(own.values);
  orders_.swap(own.orders);
  memory_.exchange(own.memory);
  std::swap(barriers_, own.barriers);
  std::swap(came_, own.came);
}

void FiberRunner::run_at_once(int64_t first, int64_t programs, int64_t most) {
  programs_ = programs, arrived_ = ended_ = meetings_ = 0;
  std::deque<State> under_way;
  int64_t next = 0;
  const auto begin_next = [&] {
    State& own = under_way.emplace_back();
    own.values.resize(kernel_.types.size());
    if (orders_) own.orders = std::make_unique<Orders>(kernel_, memory_);
    exchange(own);
    begin(first + next++);
    exchange(own);
  };
  while (next < programs || !under_way.empty()) {
    while (next < programs && static_cast<int64_t>(under_way.size()) < most) begin_next();
    std::vector<size_t> turns(under_way.size());
    std::iota(turns.begin(), turns.end(), size_t{0});
    std::shuffle(turns.begin(), turns.end(), random_);
    const uint64_t before = steps_;
    std::vector<std::string> waiting(under_way.size());
    bool stuck = false;
    for (const size_t k : turns) {
      const uint64_t own_before = steps_;
      exchange(under_way[k]);
      const bool ended = advance();
      if (!ended) waiting[k] = fmt::format("program {}: {}", program_, fmt::join(waits(), "; "));
      // Those before the first one under way have ended: nobody is left for whom it may wait.
      stuck = stuck || (k == 0 && !ended && steps_ == own_before && waits_for_earlier());
      exchange(under_way[k]);
      if (ended) ++ended_, under_way[k].fibers.clear();
    }
    if (stuck || steps_ == before) {
      std::erase(waiting, std::string());
      throw_failure("kernel " + kernel_.name,
                    fmt::format("deadlock: {}{}", fmt::join(waiting, "; "),
                                stuck ? ": all programs before it have ended, and later ones may never begin" : ""));
    }
    std::erase_if(under_way, [](const State& own) { return own.fibers.empty(); });
  }
  programs_ = 0;
}

/// Returns whether the program stands at a wait for another one.
bool FiberRunner::waits_for_earlier() const {
  return std::any_of(fibers_.begin(), fibers_.end(), [](const Fiber& f) {
    return !f.frames.empty() && f.frames.back().block->insts[f.frames.back().next].op == Op::wait_until;
  });
}

/// Returns the number of a program of the cluster.
int64_t FiberRunner::neighbour(const Inst& inst, Value v) const {
  const int64_t rank = whole(v);
  if (rank < 0 || rank >= kernel_.cluster)
    throw MemoryFault(
        fmt::format("{}: there is no program {} in a cluster of {}", info(inst.op).name, rank, kernel_.cluster));
  return rank;
}

/// Looks at an element. True: it is what the program waits for.
bool FiberRunner::found(const Inst& inst) {
  const int64_t index = whole(inst.args[0]);
  const Tile element{memory_.watched(inst.ref, index)};
  define(inst.blocks[0].arguments, {element});
  if (whole(block(inst.blocks[0])[0]) == 0) return false;
  memory_.found(inst.ref, index, inst.ordering);
  define(inst.results, {element});
  return true;
}

/// Comes to a barrier of the grid. True: so have all.
bool FiberRunner::all_came() {
  const int64_t number = (program_ / programs_) << 32;  // of those before the first one of the cluster, or of the grid
  if (!came_) {
    came_ = true;
    memory_.come(number + barriers_++);
    ++steps_;
    if (++arrived_ == programs_) arrived_ = 0, ++meetings_;
  }
  if (meetings_ < barriers_) return false;
  memory_.leave(number + barriers_ - 1);
  came_ = false;
  return true;
}

/// Returns "element 3 of p1, which is 0".
std::string FiberRunner::awaited(const Inst& inst) const {
  const Tile& now = tile(inst.blocks[0].arguments[0]);
  const std::string& name = kernel_.params[static_cast<size_t>(inst.ref)].name;
  return fmt::format("element {} of {}, which is {}", whole(inst.args[0]),
                     name.empty() ? fmt::format("p{}", inst.ref) : name,
                     now.empty()       ? "unknown"
                     : now[0].integral ? fmt::format("{}", now[0].i)
                                       : fmt::format("{}", now[0].f));
}

}  // namespace weft::kernel
