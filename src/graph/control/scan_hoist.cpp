// Moves out of the step of a scan what does not depend on the carry.
#include <algorithm>
#include <unordered_set>

#include "graph/build.h"
#include "graph/control/scan_form.h"
#include "graph/derive/derive.h"

namespace weft::graph {
namespace {

using Nodes = std::unordered_set<const Node*>;

Nodes depending(const Values& roots, const Values& targets) {
  Nodes out;
  for (const Step& s : history(roots, targets))
    if (s.depends) out.insert(s.node.get());
  return out;
}

/// Operators that are launches of their own: elementwise ones join the kernels of the step and cost nothing there.
bool costly(Op op) { return op == Op::dot || op == Op::reduce || op == Op::cumulative; }

/// Operators that are left where they are. Random bits are drawn in the kernel that uses them, without memory.
bool stays(Op op) { return is_control(op) || op == Op::call || op == Op::random_bits || op == Op::depends; }

bool moves_only(Op op) {
  return op == Op::reshape || op == Op::permute || op == Op::broadcast || op == Op::slice || op == Op::pad ||
         op == Op::concat || op == Op::window;
}

class Hoist {
 public:
  explicit Hoist(ScanForm& scan)
      : scan_(scan), with_carry_(depending(scan.roots(), scan.carry_parameters())),
        with_x_(depending(scan.roots(), scan.parameters(scan.xs))), room_(most_growth * scan.stacked_bytes()) {}

  bool run() {
    Values waiting = scan_.roots();
    std::unordered_set<const Node*> seen;
    while (!waiting.empty()) {
      const Value v = waiting.back();
      waiting.pop_back();
      if (std::find(from_.begin(), from_.end(), v) != from_.end() || v.node->inputs().empty()) continue;
      if (!with_carry_.contains(v.node.get()) && (with_x_.contains(v.node.get()) ? to_all_steps(v) : to_front(v)))
        continue;
      if (seen.insert(v.node.get()).second)
        waiting.insert(waiting.end(), v.node->inputs().begin(), v.node->inputs().end());
    }
    if (!from_.empty()) scan_.replace_in_step(from_, to_);
    return !from_.empty();
  }

 private:
  /// What a value is computed from.
  struct Cone {
    bool works = false, stays = false;
    int64_t bytes = 0;  // of the parameters
  };

  Cone cone(const Value& v) const {
    Cone out;
    for (const auto& node : topological(std::span(&v, 1))) {
      out.works = out.works || costly(node->op());
      out.stays = out.stays || graph::stays(node->op());
      if (node->op() == Op::parameter) out.bytes += bytes_of(node->types()[0]);
    }
    return out;
  }

  /// Computes a value for all steps in front of the scan.
  bool to_all_steps(const Value& v) {
    const Cone from = cone(v);
    const int64_t bytes = scan_.length() * bytes_of(v.type());
    if (moves_only(v.node->op()) || !from.works || from.stays || bytes > room_) return false;
    room_ -= bytes;
    Values elements;
    std::vector<Batched> all;
    for (const ScanForm::Input& i : scan_.constants) {
      elements.push_back(i.parameter);
      all.push_back({i.given, -1});
    }
    for (const ScanForm::Input& i : scan_.xs) {
      elements.push_back(i.parameter);
      all.push_back({i.given, 0});
    }
    scan_.xs.push_back({batch(std::span(&v, 1), elements, all)[0].value, parameter(v.type())});
    replace(v, scan_.xs.back().parameter);
    return true;
  }

  /// Computes a value of constants once. Elementwise work moves where its result is no larger than what it reads.
  bool to_front(const Value& v) {
    const Cone from = cone(v);
    if (moves_only(v.node->op()) || from.stays || from.bytes == 0 || (!from.works && bytes_of(v.type()) > from.bytes))
      return false;
    scan_.constants.push_back({scan_.outside(v), parameter(v.type())});
    replace(v, scan_.constants.back().parameter);
    return true;
  }

  void replace(const Value& v, const Value& by) {
    from_.push_back(v);
    to_.push_back(by);
  }

  ScanForm& scan_;
  Nodes with_carry_, with_x_;
  int64_t room_;  // bytes that may still be stacked
  Values from_, to_;
};

}  // namespace

bool hoist(ScanForm& scan) { return Hoist(scan).run(); }

}  // namespace weft::graph
