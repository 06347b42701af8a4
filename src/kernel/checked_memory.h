#pragma once
// The interpreter's memory: the caller's buffers and a program's local scratch. Every access is checked against bounds
// and against the accesses of the launch's other programs. Throws MemoryFault; the interpreter adds the kernel,
// instruction and program.
#include <functional>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernel/interpret.h"

namespace weft::kernel {

struct MemoryFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Number read_element(const void* data, Dtype t, int64_t index);
void write_element(void* data, Dtype t, int64_t index, Number v);

class CheckedMemory {
 public:
  CheckedMemory(const Kernel& kernel, std::span<const HostBuffer> buffers);
  /// Poisons all local buffers. The accesses of earlier programs are kept.
  void begin(int64_t program);
  void poison(Ref local);
  /// `rank`: whose local buffer it is, of the programs of a cluster; -1: this program's.
  Number load(Ref ref, int64_t index, int64_t rank = -1);
  void store(Ref ref, int64_t index, Number v, int64_t rank = -1);
  /// Ends the program: nobody else may reach its local buffers now.
  void end();
  /// Replaces an element by change(element), as an atomic instruction does, and returns what it was. What it orders
  /// holds from then on: a program sees what others had done before a release that it acquires.
  Number update(Ref ref, int64_t index, AtomicOrder how, const std::function<Number(Number)>& change);

  /// Returns an element that other programs may change meanwhile, as an atomic instruction sees it. `found` says that
  /// this program waited for what it is now, and what that orders.
  Number watched(Ref ref, int64_t index);
  void found(Ref ref, int64_t index, AtomicOrder how);
  /// What this program has done is before what all others do when they have left barrier `number` of the grid.
  void come(int64_t number) { release(grid_barriers, number); }
  void leave(int64_t number) { acquire(grid_barriers, number); }

  /// By program: of how many of its releases it is known what was before them.
  using Clock = std::map<int64_t, int64_t>;
  /// What a program has of its own while others run.
  struct State {
    int64_t program = 0, epoch = 0;
    Clock acquired = {};
    std::vector<std::vector<char>> locals = {};
  };
  /// Goes on with another program. `own` has what that one has, and then what the present one has.
  void exchange(State& own);

  /// Throws where an element lies outside of the buffer.
  void check(Ref ref, int64_t index) { at(ref, index); }
  /// Returns an element without leaving a mark; `index` lies within the buffer.
  Number peek(Ref ref, int64_t index) const {
    const Region& region = regions_[static_cast<size_t>(ref)];
    return read_element(region.data, region.dtype, static_cast<int64_t>(element(ref, index, -1)));
  }
  int64_t elements(Ref ref) const { return regions_[static_cast<size_t>(ref)].elements; }
  /// Returns the first element of a parameter that no program has written; -1 where all are.
  int64_t first_unwritten(Ref ref) const;

 private:
  /// An access: the program (from 1 on; 0: none; `many`), and how many releases it had made before.
  struct Mark {
    int64_t program = 0, epoch = 0;
  };
  /// The last accesses of an element, none of which was before another one: the first, and where the others are.
  struct Accesses {
    Mark first = {};
    int32_t more = -1;
  };
  static constexpr int64_t many = -1;  // several programs, in a kernel that orders nothing
  struct Region {
    Dtype dtype;
    char* data;
    int64_t elements;
    // One entry per element, of written parameters only.
    std::vector<Accesses> writer = {}, adder = {}, reader = {}, watcher = {};
    std::vector<char> own = {};  // storage of a local buffer
  };

  Region& at(Ref ref, int64_t index);
  size_t element(Ref ref, int64_t index, int64_t rank) const;
  bool reached(const Region& region, size_t k) const {
    return others(region.writer[k]) || others(region.adder[k]) || others(region.reader[k]);
  }
  /// Returns whether an access was another program's, and not before all that this one does now.
  bool others(const Mark& mark) const {
    if (mark.program == 0 || mark.program == program_ + 1) return false;
    const auto seen = acquired_.find(mark.program);
    return seen == acquired_.end() || seen->second <= mark.epoch;
  }
  bool others(const Accesses& all) const;
  void note(Accesses& all);
  void acquire(Ref ref, int64_t index);
  void release(Ref ref, int64_t index);

  static constexpr Ref grid_barriers = -1;  // stands for the memory by which the barriers of a grid order
  std::vector<Region> regions_;
  size_t params_;
  int64_t cluster_;  // programs that reach each other's local buffers; 0: none do
  int64_t program_ = 0, epoch_ = 0;
  Clock acquired_;                                     // by this program
  std::map<std::pair<Ref, int64_t>, Clock> released_;  // by element
  std::vector<std::vector<Mark>> crowds_;              // accesses of elements that have several
  bool orders_;                                        // the kernel acquires or releases
};

}  // namespace weft::kernel
