#pragma once
// Builds a Program's steps: each group becomes code, a library call or a nested program; launches of one kernel are
// merged, single programs are joined, and every buffer gets a location.
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "compiler/lower/memo.h"
#include "compiler/plan/steps.h"
#include "compiler/tune/cost.h"
#include "compiler/tune/groups.h"

namespace weft::compiler {

/// A group as code or a call, or a copy. `nodes`: the buffers that it touches, in the order of its operands.
struct PendingStep {
  Step step;
  std::vector<std::vector<NodeId>> nodes;  // for each segment (or for the call): owners of its buffers
  std::vector<int64_t> offsets;            // library: bytes added to each operand
  std::vector<GroupId> groups;
  Digest digest;
};

class StepMaker {
 public:
  StepMaker(const Ir& ir, const Grouping& grouping, const Ordering& ordering, target::Target& target,
            const Policy& policy)
      : ir_(ir), grouping_(grouping), ordering_(ordering), target_(target), policy_(policy),
        position_(grouping.groups.size(), -1), code_(grouping.groups.size()) {}

  StepPlan run();

 private:
  void lower(GroupId g);
  void lower_launch(GroupId g, const Lowering& lowering);
  Lowering alone(Lowered lowered) const;
  bool merge(GroupId g, PendingStep& pending);
  bool fills_device(GroupId g, const kernel::Kernel& kernel) const;
  bool follow(PendingStep& first, PendingStep& second);
  void join_single_programs();
  void drop_unused_kernels();
  bool call_library(GroupId g);
  bool call_attention(GroupId g);
  void call_routine(GroupId g);
  bool call_scatter_rows(GroupId g);
  NodeId scratch(int64_t bytes);
  void add(GroupId g, PendingStep pending);
  void copy(NodeId from, NodeId to);
  void assign_outputs();
  void plan_arena();
  NodeId owner(NodeId node) const { return ordering_.buffer_owner[node]; }
  int64_t bytes(NodeId node) const { return volume(ir_[node].type.shape) * ir_[node].type.dtype.size(); }
  Location location(NodeId node) const;
  LowerContext context() const {
    return {ir_, grouping_, ordering_.buffer_owner, ordering_.has_buffer, ordering_.streamed, target_};
  }
  void before_copies();
  void last_copies();
  void mark_constants();
  std::set<NodeId> updated_inputs() const;
  void add_costs(const PendingStep& pending, Step& step);
  Cost cost(GroupId g);

  const Ir& ir_;
  const Grouping& grouping_;
  const Ordering& ordering_;
  target::Target& target_;
  const Policy& policy_;
  StepPlan plan_;
  LoweringMemo memo_;
  IndexedVector<GroupId, Variant> variants_;  // by group: what the tuner chose
  std::vector<PendingStep> pending_;
  IndexedVector<GroupId, int> position_;                         // by group: its pending step
  IndexedVector<GroupId, std::shared_ptr<const Lowered>> code_;  // by group, if its code is generated
  std::unordered_map<const Lowered*, Cost> costs_;
  std::unordered_map<Digest, size_t> kernel_ids_;
  std::unordered_map<Digest, int> latest_;  // kernel → pending step that a sibling may join
  std::map<NodeId, NodeId> saved_;          // inputs whose old value is needed at the end → the buffer of a copy
  NodeId next_pseudo_ = 0;                  // the id of the next buffer without a node
};

}  // namespace weft::compiler
