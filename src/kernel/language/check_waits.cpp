#include "kernel/language/check_waits.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernel/op_info.h"
#include "kernel/rules.h"
#include "kernel/tile_values.h"

namespace weft::kernel {
namespace {

class Waits {
 public:
  explicit Waits(const Kernel& kernel) : kernel_(kernel), known_(kernel.types.size()) {}

  std::optional<WaitComplaint> run() {
    count(kernel_.body, false);
    Pending pending;
    straight(kernel_.body, pending);
    arrivals();
    for (const auto& [flight, dot] : flights_)
      if (!landed_.contains(flight)) complain(*dot, "nothing waits for the product: wait for it, or compute it by dot");
    if (copy_ && !commits_)
      complain(*copy_, "the copy belongs to no group: commit_copies() after it, or give a barrier");
    if (copy_ && !waits_) complain(*copy_, "nothing waits for the copy: wait_copies() before its elements are read");
    return complaint_;
  }

 private:
  /// Copies that are under way at a point of a block.
  struct Pending {
    std::vector<const Inst*> open, by_barrier;
    std::vector<std::vector<const Inst*>> groups;
  };
  struct Arrivals {
    const Inst* first_wait = nullptr;
    int64_t count = 0;
    bool repeated = false;
  };

  void complain(const Inst& inst, std::string text) {
    if (!complaint_) complaint_ = {inst.line, std::move(text)};
  }

  std::string where(const Inst& inst) const {
    const SourceLine& line = kernel_.lines[static_cast<size_t>(inst.line)];
    return line.line > 0 ? fmt::format("{}:{}", line.file, line.line) : print_inst(kernel_, inst);
  }

  void count(const Block& b, bool repeated) {
    for (const Inst& inst : b.insts) {
      if (inst.op == Op::constant && inst.type.rank() == 0 && inst.number.integral)
        known_[static_cast<size_t>(inst.results[0])] = inst.number.i;
      if (inst.op == Op::copy_async && inst.right < 0 && !copy_) copy_ = &inst;
      commits_ = commits_ || inst.op == Op::commit_copies;
      waits_ = waits_ || inst.op == Op::wait_copies;
      if (inst.op == Op::dot_async) flights_[inst.results[0]] = &inst;
      if (inst.op == Op::wait_dot) landed_.insert(inst.args[0]);
      if (inst.op == Op::arrive) ++barriers_[inst.ref].count, barriers_[inst.ref].repeated |= repeated;
      if (inst.op == Op::await && !barriers_[inst.ref].first_wait) barriers_[inst.ref].first_wait = &inst;
      for (const Block& inner : inst.blocks) count(inner, repeated || inst.op == Op::loop || inst.op == Op::while_loop);
    }
  }

  void arrivals() {
    for (const auto& [ref, b] : barriers_) {
      const int64_t wanted = kernel_.locals[static_cast<size_t>(ref) - kernel_.params.size()].arrivals;
      const auto phase = b.first_wait ? known_[static_cast<size_t>(b.first_wait->args[1])] : std::nullopt;
      if (!b.first_wait || b.repeated || b.count >= wanted || (phase && *phase < 0)) continue;
      complain(*b.first_wait, fmt::format("the wait never ends: a phase of the barrier ends with {} arrivals, and the "
                                          "kernel has {}",
                                          wanted, b.count));
    }
  }

  static bool works_asynchronously(const Inst& inst) {
    return std::any_of(inst.blocks.begin(), inst.blocks.end(), [](const Block& b) {
      return std::any_of(b.insts.begin(), b.insts.end(),
                         [](const Inst& i) { return is_asynchronous(i.op) || works_asynchronously(i); });
    });
  }

  /// Follows the instructions of a block, one after the other.
  void straight(const Block& b, Pending& pending) {
    for (const Inst& inst : b.insts) {
      if (works_asynchronously(inst)) {
        pending = {};
        for (const Block& inner : inst.blocks) {
          Pending own;
          straight(inner, own);
        }
        continue;
      }
      follow(inst, pending);
      for (const Block& inner : inst.blocks) straight(inner, pending);
    }
  }

  void follow(const Inst& inst, Pending& pending) {
    switch (inst.op) {
      case Op::copy_async: (inst.right < 0 ? pending.open : pending.by_barrier).push_back(&inst); return;
      case Op::commit_copies: pending.groups.push_back(std::exchange(pending.open, {})); return;
      case Op::wait_copies:
        while (pending.groups.size() > static_cast<size_t>(inst.number.i)) pending.groups.erase(pending.groups.begin());
        return;
      case Op::await:
        std::erase_if(pending.by_barrier, [&](const Inst* copy) { return copy->right == inst.ref; });
        return;
      case Op::load: break;
      default: return;
    }
    const auto check = [&](const std::vector<const Inst*>& copies) {
      for (const Inst* copy : copies)
        if (copy->ref == inst.ref && meets(*copy, inst))
          complain(inst, fmt::format("reads what the copy at {} still writes: wait for the copy before", where(*copy)));
    };
    check(pending.open), check(pending.by_barrier);
    for (const auto& group : pending.groups) check(group);
  }

  /// Returns whether the first element of a load is surely one that a copy writes.
  bool meets(const Inst& copy, const Inst& load) const {
    if (copy.args[0] == load.args[0]) return true;
    const auto to = known_[static_cast<size_t>(copy.args[0])], from = known_[static_cast<size_t>(load.args[0])];
    if (!to || !from) return false;
    bool found = false;
    each_element(copy.type.dims, [&](size_t, const std::vector<int64_t>& position) {
      int64_t at = *to;
      for (size_t k = 0; k < position.size(); ++k) at += position[k] * copy.strides[k];
      found = found || at == *from;
    });
    return found;
  }

  const Kernel& kernel_;
  std::vector<std::optional<int64_t>> known_;
  std::map<Ref, Arrivals> barriers_;
  std::map<Value, const Inst*> flights_;  // products under way, and those that are waited for
  std::set<Value> landed_;
  const Inst* copy_ = nullptr;  // the first one without a barrier
  bool commits_ = false, waits_ = false;
  std::optional<WaitComplaint> complaint_;
};

}  // namespace

std::optional<WaitComplaint> wrong_waits(const Kernel& kernel) { return Waits(kernel).run(); }

}  // namespace weft::kernel
