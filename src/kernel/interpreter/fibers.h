#pragma once
// Runs the blocks of a kernel for the interpreter: control flow, roles, which take turns in an order that a seed
// chooses, and the accesses that asynchronous work may disturb; programs that wait for each other take turns too. What
// single instructions compute is the interpreter's.
#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernel/checked_memory.h"
#include "kernel/interpreter/observer.h"
#include "kernel/interpreter/orders.h"
#include "kernel/op_info.h"
#include "kernel/rules.h"
#include "kernel/tile_values.h"

namespace weft::kernel {

/// Returns whether a block has an instruction of a kind, at any depth.
template <class Is>
bool has_op(const Block& b, const Is& is) {
  return std::any_of(b.insts.begin(), b.insts.end(), [&](const Inst& i) {
    return is(i.op) ||
           std::any_of(i.blocks.begin(), i.blocks.end(), [&](const Block& inner) { return has_op(inner, is); });
  });
}

/// What runs by itself: a program, or one of its roles.
struct Fiber {
  Agent agent = 0;
  Agent iteration = 0;  // of a parallel loop, from 1 on
  std::vector<Frame> frames = {};
};

class FiberRunner {
 public:
  FiberRunner(const Kernel& kernel, std::span<const HostBuffer> buffers, uint64_t seed);
  FiberRunner(const FiberRunner&) = delete;
  FiberRunner& operator=(const FiberRunner&) = delete;
  virtual ~FiberRunner() = default;

  const CheckedMemory& memory() const { return memory_; }
  /// Lets somebody look on; null: nobody.
  void observe(Observer* observer) { observer_ = observer; }
  /// Runs a program from begin to end.
  void run(int64_t program);
  /// Runs all programs. They begin in order; up to `most` of them are under way at a time, and take turns.
  void run_at_once(int64_t programs, int64_t most) { run_at_once(0, programs, most); }
  /// Runs all programs, cluster by cluster.
  void run_clusters(int64_t programs) {
    for (int64_t k = 0; k < programs; k += kernel_.cluster) run_at_once(k, kernel_.cluster, kernel_.cluster);
  }

 protected:
  using Tile = TileValue;
  /// Runs an instruction that has no blocks, or whose blocks compute values from values.
  virtual void step(const Inst& inst) = 0;
  /// Runs a block that computes values from values, and returns what its yield carries on.
  virtual const std::vector<Value>& block(const Block& b) = 0;

  const Tile& tile(Value v) const { return values_[static_cast<size_t>(v)]; }
  const Type& type(Value v) const { return kernel_.types[static_cast<size_t>(v)]; }
  int64_t whole(Value v) const { return tile(v)[0].i; }

  /// Runs `body`; a fault names the kernel, the line and the instruction.
  template <class Body>
  void guarded(const Inst* inst, const Body& body) const {
    try {
      body();
    } catch (const MemoryFault& fault) {
      fail(inst, fault);
    }
  }
  [[noreturn]] void fail(const Inst* inst, const MemoryFault& fault) const;

  void define(std::span<const Value> results, std::vector<Tile> tiles) {
    for (size_t k = 0; k < results.size(); ++k) values_[static_cast<size_t>(results[k])] = std::move(tiles[k]);
  }

  std::vector<Tile> copies(std::span<const Value> list) const {
    std::vector<Tile> out;
    for (const Value v : list) out.push_back(tile(v));
    return out;
  }

  /// Accesses of memory, which asynchronous work may disturb.
  Number load_element(const Inst& inst, Ref ref, int64_t index) {
    if (orders_) orders_->read(agent_, inst, ref, index);
    return memory_.load(ref, index);
  }
  void store_element(const Inst& inst, int64_t index, Number v) {
    if (orders_) orders_->write(agent_, inst, inst.ref, index);
    memory_.store(inst.ref, index, v);
  }

  Number update_element(const Inst& inst, int64_t index, const std::function<Number(Number)>& change) {
    if (orders_) orders_->read(agent_, inst, inst.ref, index);
    return memory_.update(inst.ref, index, inst.ordering, change);
  }
  void copy_async(const Inst& inst);
  int64_t neighbour(const Inst& inst, Value v) const;

  const Kernel& kernel_;
  CheckedMemory memory_;
  std::vector<Tile> values_;
  std::unique_ptr<Orders> orders_;  // of a kernel that works asynchronously, or has parallel iterations
  Agent agent_ = 0;                 // that runs
  int64_t program_ = 0;
  Observer* observer_ = nullptr;
  const Fiber* now_ = nullptr;  // that runs

 private:
  /// What a program has of its own while others run.
  struct State {
    int64_t program = 0;
    std::deque<Fiber> fibers = {};
    std::vector<Tile> values = {};
    std::unique_ptr<Orders> orders = {};
    CheckedMemory::State memory = {};
    int64_t barriers = 0;  // of the grid, that it has come to
    bool came = false;     // to one that it has not left
  };
  void exchange(State& own);
  void run_at_once(int64_t first, int64_t programs, int64_t most);
  void begin(int64_t program);
  bool advance();
  bool turn_of_roles();
  bool found(const Inst& inst);
  bool all_came();
  bool waits_for_earlier() const;
  std::string awaited(const Inst& inst) const;
  std::vector<std::string> waits() const;
  Moment moment(const Inst& inst) const {
    return {kernel_, inst,   program_, agent_, now_ ? std::span<const Frame>(now_->frames) : std::span<const Frame>(),
            values_, memory_};
  }
  [[noreturn]] void refuse_deadlock(std::vector<std::string> waits) const;
  bool go(Fiber& fiber);
  bool enter(Fiber& fiber, const Inst& inst);
  void leave(Fiber& fiber);
  void begin_loop(Fiber& fiber, const Inst& inst);
  void next_iteration(Fiber& fiber, Frame frame, std::vector<Tile> carried);
  void iterate(Fiber& fiber, const Frame& frame, std::vector<Tile> carried, bool goes_on);
  void roles(const Inst& inst);

  std::mt19937_64 random_;
  uint64_t steps_ = 0;               // that were made
  std::deque<Fiber> fibers_ = {};    // of the program: its own, and behind it those of its roles
  int64_t barriers_ = 0;             // of the grid, that the program has come to
  bool came_ = false;                // to one that it has not left
  int64_t programs_ = 0;             // that run at once; 0: each runs alone
  int64_t arrived_ = 0, ended_ = 0;  // of those, at the next barrier of the grid; at their end
  int64_t meetings_ = 0;             // barriers of the grid that all have come to
};

}  // namespace weft::kernel
