#include "kernel/legalize/plan.h"

#include <algorithm>

#include "kernel/rules.h"

namespace weft::kernel {
namespace {

constexpr int most_recomputed = 6;  // basic operations for one element that are done twice rather than stored
constexpr int most_repeated = 2;    // that are done again and again: for each column of a broadcast, in a loop
constexpr int32_t none = -1, several = -2;

class Plan {
 public:
  explicit Plan(const Kernel& kernel)
      : kernel_(kernel), cost_(kernel.types.size(), 0), root_(kernel.types.size(), none),
        depth_(kernel.types.size(), 0), stored_(kernel.types.size(), 0), repeated_(kernel.types.size(), 0) {}

  std::vector<char> run() {
    costs(kernel_.body, 0);
    roots(kernel_.body, 0);
    return std::move(stored_);
  }

 private:
  const Type& type(Value v) const { return kernel_.types[static_cast<size_t>(v)]; }
  template <class T>
  T& of(std::vector<T>& list, Value v) const {
    return list[static_cast<size_t>(v)];
  }

  /// Computes for each value the operations that computing one element takes, if nothing below it is stored.
  void costs(const Block& block, int depth) {
    for (const Value v : block.arguments) of(depth_, v) = depth;
    for (const Inst& inst : block.insts) {
      int sum = inst.op == Op::scalar ? 1 : inst.op == Op::gather ? 4 : inst.op == Op::load ? 1 : 0;
      if (is_lazy(kernel_, inst))
        for (const Value v : inst.args)
          if (v != no_value && type(v).rank() > 0) sum += of(cost_, v);
      for (const Block& b : inst.blocks) {
        costs(b, depth + (inst.op == Op::loop || inst.op == Op::while_loop ? 1 : 0));
        if (inst.op == Op::when && !inst.results.empty()) sum += static_cast<int>(b.insts.size());
      }
      for (const Value v : inst.results) of(depth_, v) = depth, of(cost_, v) = std::min(sum, 1000);
    }
  }

  /// Records that the computation `root` reads `v`; `repeats`: for one element of v several times.
  void reach(Value v, int32_t root, int depth, bool repeats) {
    if (v == no_value || type(v).rank() == 0) return;
    int32_t& known = of(root_, v);
    known = known == none || known == root ? root : several;
    if (repeats || depth > of(depth_, v)) of(repeated_, v) = 1;
  }

  /// Walks from readers to what they read. A stored value is the root of what it is computed from.
  void roots(const Block& block, int depth) {
    for (size_t k = block.insts.size(); k-- > 0;) {
      const Inst& inst = block.insts[k];
      const bool region = inst.op == Op::loop || inst.op == Op::while_loop;
      for (const Block& b : inst.blocks) roots(b, depth + (region ? 1 : 0));
      int32_t root = next_--;
      bool repeats = false;
      if (is_lazy(kernel_, inst) && !inst.results.empty()) {
        const Value v = inst.results[0];
        bool store = false;
        for (const Value result : inst.results) {
          const int cost = of(cost_, result);
          store = store || (of(root_, result) == several && cost > most_recomputed) ||
                  (of(repeated_, result) && cost > most_repeated);
          if (of(root_, result) != none && !store) root = of(root_, result);
        }
        for (const Value result : inst.results) of(stored_, result) = store;
        // What repeats an element reads its argument repeatedly, and so does what is itself read so.
        repeats = !store && ((inst.op == Op::broadcast && type(inst.args[0]).size() > 1) || of(repeated_, v));
        if (!store && root == several) {
          for (const Value arg : inst.args)
            reach(arg, next_ - 1, depth, repeats), reach(arg, next_ - 2, depth, repeats);
          next_ -= 2;
          continue;
        }
      }
      for (const Value arg : inst.args) reach(arg, root, depth, repeats);
    }
  }

  const Kernel& kernel_;
  std::vector<int> cost_;
  std::vector<int32_t> root_;  // by value: the computation that reads it, none, or several
  std::vector<int> depth_;     // loops around its definition
  std::vector<char> stored_, repeated_;
  int32_t next_ = -3;
};

}  // namespace

std::vector<char> stored_values(const Kernel& kernel) { return Plan(kernel).run(); }

bool is_lazy(const Kernel& kernel, const Inst& inst) {
  if (inst.results.empty() || kernel.types[static_cast<size_t>(inst.results[0])].rank() == 0) return false;
  switch (inst.op) {
    case Op::constant:
    case Op::arange:
    case Op::scalar:
    case Op::cast:
    case Op::bitcast:
    case Op::broadcast:
    case Op::reshape:
    case Op::permute:
    case Op::slice:
    case Op::take: return true;
    case Op::when: return !inst.results.empty();
    case Op::load:
    case Op::gather: return !is_local(kernel, inst.ref) && !kernel.params[static_cast<size_t>(inst.ref)].written;
    default: return false;
  }
}

}  // namespace weft::kernel
