#include "kernel/interpreter/orders.h"

#include <algorithm>

#include <fmt/format.h>

#include "kernel/rules.h"

namespace weft::kernel {

Orders::Orders(const Kernel& kernel, CheckedMemory& memory) : kernel_(kernel), memory_(memory) {}

void Orders::begin() {
  clocks_.assign(1, Clock{1});
  groups_.assign(1, {});
  touched_.clear();
  barriers_.clear();
}

void Orders::merge(Clock& into, const Clock& from) {
  into.resize(std::max(into.size(), from.size()), 0);
  for (size_t k = 0; k < from.size(); ++k) into[k] = std::max(into[k], from[k]);
}

void Orders::fork(size_t count, Kind kind) {
  kind_ = kind;
  for (Clock& c : clocks_) c.resize(std::max(c.size(), count + 1), 0);
  clocks_.resize(std::max(clocks_.size(), count + 1), Clock(count + 1, 0));
  groups_.resize(clocks_.size());
  for (Agent a = 1; a <= count; ++a) {
    merge(clocks_[a], clocks_[0]);
    ++clocks_[a][a];
  }
  ++clocks_[0][0];
}

void Orders::join() {
  for (Agent a = 1; a < clocks_.size(); ++a) merge(clocks_[0], clocks_[a]), ++clocks_[a][a];
}

std::string source_line_of(const Kernel& kernel, const Inst& inst) {
  const SourceLine& source = kernel.lines[static_cast<size_t>(inst.line)];
  return source.line > 0 ? fmt::format("{}:{}", source.file, source.line) : print_inst(kernel, inst);
}

void Orders::finish() const {
  const auto refuse = [&](const CopyUnderWay& copy) {
    throw MemoryFault(
        fmt::format("the copy at {} is never waited for: wait for it before the program ends", where(*copy.inst)));
  };
  for (const Groups& g : groups_) {
    if (!g.open.empty()) refuse(g.open[0]);
    for (const std::vector<CopyUnderWay>& group : g.committed)
      if (!group.empty()) refuse(group[0]);
  }
  for (const auto& [at, b] : barriers_) {
    if (!b.late.empty()) refuse(b.late[0]);
    if (!b.copies.empty()) refuse(b.copies[0]);
  }
}

/// Returns what is known of a buffer's elements; null of one that is only read.
std::vector<Orders::Element>* Orders::elements(Ref ref) {
  const auto k = static_cast<size_t>(ref);
  if (k < kernel_.params.size() && !kernel_.params[k].written) return nullptr;
  std::vector<Element>& all = touched_[ref];
  if (all.empty()) all.resize(static_cast<size_t>(memory_.elements(ref)));
  return &all;
}

void Orders::check_order(const Touch& other, Agent agent, int64_t index, const char* does, const char* did) const {
  if (other.time == 0 || before(other, agent)) return;
  throw MemoryFault(fmt::format("race: {} {} element {}, which {} {} at {} at the same time: {}", doer(agent), does,
                                index, doer(other.agent), did, where(*other.inst),
                                kind_ == Kind::roles
                                    ? "let a barrier order them"
                                    : "let each iteration touch elements of its own, or store nothing"));
}

void Orders::read(Agent agent, const Inst& inst, Ref ref, int64_t index) {
  std::vector<Element>* const all = elements(ref);
  if (!all || index < 0 || static_cast<size_t>(index) >= all->size()) return;  // the memory reports it
  Element& e = (*all)[static_cast<size_t>(index)];
  if (e.filled)
    throw MemoryFault(fmt::format("reads element {}, which the copy at {} still writes: wait for the copy before",
                                  index, where(*e.filled)));
  check_order(e.written, agent, index, "reads", "writes");
  const Touch touch{agent, clocks_[agent][agent], &inst};
  const auto own = std::find_if(e.read.begin(), e.read.end(), [&](const Touch& t) { return t.agent == agent; });
  if (own == e.read.end()) e.read.push_back(touch);
  else *own = touch;
}

void Orders::write(Agent agent, const Inst& inst, Ref ref, int64_t index) {
  std::vector<Element>* const all = elements(ref);
  if (!all || index < 0 || static_cast<size_t>(index) >= all->size()) return;
  Element& e = (*all)[static_cast<size_t>(index)];
  if (const Inst* const copy = e.filled ? e.filled : e.copied)
    throw MemoryFault(fmt::format("writes element {}, which the copy at {} still {}: wait for the copy before", index,
                                  where(*copy), e.filled ? "writes" : "reads"));
  check_order(e.written, agent, index, "writes", "writes");
  for (const Touch& t : e.read) check_order(t, agent, index, "writes", "reads");
  e.written = {agent, clocks_[agent][agent], &inst};
  e.read.clear();
}

void Orders::copy(Agent agent, const Inst& inst, std::vector<std::pair<int64_t, int64_t>> elements, int64_t index) {
  for (const auto& [to, from] : elements) {
    write(agent, inst, inst.ref, to);
    if (std::vector<Element>* const all = this->elements(inst.ref); to >= 0 && static_cast<size_t>(to) < all->size())
      (*all)[static_cast<size_t>(to)].filled = &inst;
    if (from < 0) continue;
    read(agent, inst, inst.left, from);
    if (std::vector<Element>* const all = this->elements(inst.left); all && static_cast<size_t>(from) < all->size())
      (*all)[static_cast<size_t>(from)].copied = &inst;
  }
  CopyUnderWay copy{&inst, agent, clocks_[agent][agent], std::move(elements)};
  if (inst.right < 0) return groups_[agent].open.push_back(std::move(copy));
  Barrier& b = barrier(inst.right, index);
  merge(b.clock, clocks_[agent]);
  ++clocks_[agent][agent];
  b.copies.push_back(std::move(copy));
}

/// Does the work of a copy: from now on its elements are written, as if `by` had written them.
void Orders::complete(const CopyUnderWay& copy, const Touch& by) {
  std::vector<Element>& to_all = *elements(copy.inst->ref);
  std::vector<Element>* const from_all = elements(copy.inst->left);
  for (const auto& [to, from] : copy.elements) {
    memory_.store(copy.inst->ref, to, from < 0 ? copy.inst->number : memory_.load(copy.inst->left, from));
    Element& e = to_all[static_cast<size_t>(to)];
    e.filled = nullptr, e.written = by;
    if (from >= 0 && from_all) (*from_all)[static_cast<size_t>(from)].copied = nullptr;
  }
}

void Orders::commit(Agent agent) {
  Groups& g = groups_[agent];
  g.committed.push_back(std::exchange(g.open, {}));
}

void Orders::wait(Agent agent, int64_t left) {
  std::vector<std::vector<CopyUnderWay>>& groups = groups_[agent].committed;
  while (groups.size() > static_cast<size_t>(left)) {
    for (const CopyUnderWay& copy : groups.front()) complete(copy, {agent, clocks_[agent][agent], copy.inst});
    groups.erase(groups.begin());
  }
}

Orders::Barrier& Orders::barrier(Ref barriers, int64_t index) {
  const int64_t count = kernel_.locals[static_cast<size_t>(barriers) - kernel_.params.size()].elements;
  if (index < 0 || index >= count)
    throw MemoryFault(fmt::format("barrier {} is outside the {} that there are", index, count));
  return barriers_[{barriers, index}];
}

void Orders::arrive(Agent agent, Ref barriers, int64_t index) {
  Barrier& b = barrier(barriers, index);
  merge(b.clock, clocks_[agent]);
  ++clocks_[agent][agent];
  if (++b.arrived < kernel_.locals[static_cast<size_t>(barriers) - kernel_.params.size()].arrivals) return;
  b.arrived = 0, ++b.phase;
  b.ended = std::exchange(b.clock, {});
  for (CopyUnderWay& copy : std::exchange(b.copies, {})) b.late.push_back(std::move(copy));
}

bool Orders::await(Agent agent, Ref barriers, int64_t index, int64_t phase) {
  Barrier& b = barrier(barriers, index);
  if (phase == b.phase) return false;
  if (phase != b.phase - 1)
    throw MemoryFault(
        fmt::format("waits for phase {} of a barrier in phase {}: wait for each phase, one after the "
                    "other",
                    phase, b.phase));
  for (const CopyUnderWay& copy : std::exchange(b.late, {})) complete(copy, {copy.agent, copy.time, copy.inst});
  merge(clocks_[agent], b.ended);
  return true;
}

std::string Orders::awaited(Ref barriers, int64_t index, int64_t phase) const {
  const auto found = barriers_.find({barriers, index});
  const auto k = static_cast<size_t>(barriers) - kernel_.params.size();
  return fmt::format("phase {} of barrier l{}[{}], which has {} of {} arrivals", phase, k, index,
                     found == barriers_.end() ? 0 : found->second.arrived, kernel_.locals[k].arrivals);
}

}  // namespace weft::kernel
