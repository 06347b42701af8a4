#pragma once
// Lowers the groups of a program: each becomes code, a library call or a nested program.
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "compiler/lower/memo.h"
#include "compiler/plan/passes.h"
#include "compiler/schedule/work.h"

namespace weft::compiler {

class StepMaker {
 public:
  StepMaker(const Ir& ir, const Grouping& grouping, const Ordering& ordering, const TunedGroups& tuned,
            target::Target& target, const Policy& policy)
      : ir_(ir), grouping_(grouping), ordering_(ordering), tuned_(tuned), target_(target), policy_(policy),
        memo_(tuned.memo), next_pseudo_(ir.size()) {}

  StepPlan run();

 private:
  void find_padding();
  void save_inputs();
  void find_outputs();
  void lower(GroupId g);
  void lower_launch(GroupId g, const Lowering& lowering);
  Lowering alone(Lowered lowered) const;
  bool call_library(GroupId g);
  bool call_attention(GroupId g);
  bool launch_attention(GroupId g);
  void call_routine(GroupId g);
  void launch_kernel(GroupId g);
  bool call_scatter_rows(GroupId g);
  bool call_sorted_scatter(GroupId g);
  bool call_table_scatter(GroupId g);
  void add_routine(GroupId g, LoweredRoutine lowered, std::string name = {});
  NodeId scratch(int64_t bytes);
  /// The work of a group's code, with the bytes of each of the code's buffers.
  struct CodeWork {
    GroupWork work;
    std::vector<double> bytes;
  };
  void add(GroupId g, Step step, const Lowering* lowering = nullptr);
  CodeWork work(GroupId g, const std::vector<NodeId>& nodes, const Lowering* lowering);
  void copy(NodeId from, NodeId to);
  void last_copies();
  NodeId owner(NodeId node) const { return ordering_.buffer_owner[node]; }
  int64_t bytes(NodeId node) const { return buffer_bytes(plan_, ir_, node); }
  LowerContext context() const {
    return {ir_, grouping_, ordering_.buffer_owner, ordering_.has_buffer, ordering_.streamed, target_};
  }

  const Ir& ir_;
  const Grouping& grouping_;
  const Ordering& ordering_;
  const TunedGroups& tuned_;
  target::Target& target_;
  const Policy& policy_;
  StepPlan plan_;
  LoweringMemo memo_;
  std::unordered_map<std::shared_ptr<const Lowered>, CodeWork> works_;
  std::unordered_map<Digest, size_t> kernel_ids_;
  std::map<NodeId, NodeId> saved_;  // inputs whose old value is needed at the end → the buffer of a copy
  NodeId next_pseudo_;              // the number of the next buffer beside nodes
};

}  // namespace weft::compiler
