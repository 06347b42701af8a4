#pragma once
// What happens before what within a program that copies asynchronously, has roles or parallel iterations: vector
// clocks, barriers, and copies under way. The interpreter asks it at every access of memory that such work may touch.
// Throws MemoryFault.
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernel/checked_memory.h"

namespace weft::kernel {

/// What one after the other does: the program (0), or one of its roles or iterations (1, 2, …).
using Agent = size_t;

/// A copy under way: elements of a parameter, each to an element of a local buffer; -1: `other`.
struct CopyUnderWay {
  const Inst* inst = nullptr;
  Agent agent = 0;
  int64_t time = 0;                                        // of the agent, when it began
  std::vector<std::pair<int64_t, int64_t>> elements = {};  // (to, from)
};

/// Returns "file:line" of an instruction, or its text.
std::string source_line_of(const Kernel& kernel, const Inst& inst);

class Orders {
 public:
  Orders(const Kernel& kernel, CheckedMemory& memory);

  /// Begins a program: barriers are in phase 0, nothing is under way.
  void begin();
  /// Begins roles 1 … count, or iterations of a parallel loop, after all that the program did; ends them.
  enum class Kind : uint8_t { roles, iterations };
  void fork(size_t count, Kind kind = Kind::roles);
  void join();
  /// Throws where a copy of the program was never waited for.
  void finish() const;

  void read(Agent agent, const Inst& inst, Ref ref, int64_t index);
  void write(Agent agent, const Inst& inst, Ref ref, int64_t index);

  void copy(Agent agent, const Inst& inst, std::vector<std::pair<int64_t, int64_t>> elements, int64_t index);
  void commit(Agent agent);
  void wait(Agent agent, int64_t left);
  void arrive(Agent agent, Ref barriers, int64_t index);
  /// Returns whether phase `phase` has ended; then what came before its arrivals came before what follows.
  bool await(Agent agent, Ref barriers, int64_t index, int64_t phase);

  /// Returns "phase 2 of barrier l1[0], which has 1 of 2 arrivals".
  std::string awaited(Ref barriers, int64_t index, int64_t phase) const;
  /// Returns "the program", "role 0", ….
  static std::string name(Agent agent) { return agent == 0 ? "the program" : "role " + std::to_string(agent - 1); }
  /// Returns "file:line" of an instruction, or its text.
  std::string where(const Inst& inst) const { return source_line_of(kernel_, inst); }

 private:
  using Clock = std::vector<int64_t>;  // by agent: its time that is known
  struct Touch {
    Agent agent = 0;
    int64_t time = 0;  // 0: none
    const Inst* inst = nullptr;
  };
  struct Element {
    Touch written;
    std::vector<Touch> read;       // the last one of each agent
    const Inst* filled = nullptr;  // the copy under way that writes it
    const Inst* copied = nullptr;  // one that reads it
  };
  struct Barrier {
    int64_t phase = 0, arrived = 0;
    Clock clock, ended;                      // what came before the arrivals of the present phase; of the one before
    std::vector<CopyUnderWay> copies, late;  // of the present phase; of those before, as yet not waited for
  };
  struct Groups {
    std::vector<CopyUnderWay> open;
    std::vector<std::vector<CopyUnderWay>> committed;
  };

  std::vector<Element>* elements(Ref ref);
  bool before(const Touch& touch, Agent agent) const { return touch.time <= clocks_[agent][touch.agent]; }
  static void merge(Clock& into, const Clock& from);
  void complete(const CopyUnderWay& copy, const Touch& by);
  Barrier& barrier(Ref barriers, int64_t index);
  std::string doer(Agent agent) const {
    return agent > 0 && kind_ == Kind::iterations ? "iteration " + std::to_string(agent - 1) : name(agent);
  }
  void check_order(const Touch& other, Agent agent, int64_t index, const char* does, const char* did) const;

  const Kernel& kernel_;
  CheckedMemory& memory_;
  std::vector<Clock> clocks_;
  std::map<Ref, std::vector<Element>> touched_;
  std::map<std::pair<Ref, int64_t>, Barrier> barriers_;
  std::vector<Groups> groups_;
  Kind kind_ = Kind::roles;  // that were begun last
};

}  // namespace weft::kernel
