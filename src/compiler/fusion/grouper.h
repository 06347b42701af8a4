#pragma once
// The state of grouping. Private to group*.cpp and scatter_rows.cpp: group_roots.cpp finds roots, group.cpp forms
// groups, group_join.cpp decides which roots join which groups, group_states.cpp keeps the components of a state
// in one, group_share.cpp materializes values that several groups read.
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/flat_set.h"
#include "compiler/fusion/group.h"
#include "compiler/region/attention_plan.h"
#include "compiler/region/dot_plan.h"
#include "compiler/region/dot_prologue.h"

namespace weft::compiler {

/// The index at which a group reads a root. `same` is false where it reads it at several indices or under a condition.
struct Request {
  std::vector<ix::Expr> index;
  bool same = true;
};

/// A group under construction.
struct Work {
  Group group;
  std::map<NodeId, Request> requests;  // reads: roots and leaves, with their indices
  std::vector<NodeId> inlined;         // nodes computed inline; some may be listed twice
  std::map<NodeId, std::vector<ix::Expr>>
      first_index;                 // by inlined node that is broadcast: the index at which its first reader reads it
  std::vector<GroupId> consumers;  // groups that read this one's roots, each once
  std::vector<GroupId> producers;  // the same edges, backwards
  int64_t rank = 0;                // topological order: smaller than that of every consumer
  mutable int64_t seen = 0;        // the last search that visited this group
};

/// Predicted seconds of a dot with its region, and of what makes its operands.
struct DotTimes {
  double library = std::numeric_limits<double>::infinity();   // a library's matmul, and a kernel for what that leaves
  double stored = std::numeric_limits<double>::infinity();    // generated code that reads its operands from memory
  double computed = std::numeric_limits<double>::infinity();  // generated code that computes operands as it loads them
};

class Grouper {
 public:
  Grouper(const Ir& ir, const std::vector<Layout>& layouts, const Policy& policy, const target::Target* target,
          const std::vector<Update>& updates);
  Grouping run();

 private:
  void find_roots();
  void mark(NodeId node);
  void mark_outputs();
  void mark_operators();
  void number_calls();
  bool read_whole(NodeId node) const;
  void pad_rows();
  void lay_out_attention();
  void find_region(NodeId dot, const NodeCounts& outputs);
  void mark_operands_of(const DotRegion& region);
  void mark_operands(NodeId id);
  bool computed_where_gathered(NodeId base) const;
  void mark_gathered(NodeId id);
  void count_gathered_points();
  void mark_gemv_vector(NodeId reduction);
  void mark_gemv_result(NodeId reduction, const NodeCounts& outputs);
  void mark_scatter_rows();
  void find_sorted_rows();
  void mark_sorted_rows();
  void form();
  bool promote_shared(const NodeCounts& groups_using, bool scalars_only);
  void list_inlining_groups();
  NodeCounts count_uses() const;
  NodeCounts count_readers_of_scalars() const;
  int64_t repeats_of(NodeId node) const;
  double operations_of_storing() const;
  bool replaces_reduction(NodeId node) const;
  bool narrowed_later(NodeId node, const NodeCounts& groups_using) const;
  Grouping finish();

  void assign(NodeId node);
  void assign_dot(size_t number);
  const DotPlan& plan_of(size_t dot);
  void assign_alone(NodeId node);
  void assign_call(NodeId node);
  void assign_attention(NodeId node);
  void assign_with_kv_append(std::unique_ptr<Work> work, std::vector<NodeId> results, NodeId cache);
  DotRegion region_of(NodeId dot, const NodeCounts& outputs);
  const DotRegion* library_region(std::vector<DotRegion>& all);
  DotRegion with_prologues(const ComputedOperands& computed, DotRegion region) const;
  Strides layout_of(const DotRegion& region) const;
  bool library_takes(DotRegion& region);
  bool on_tensor_cores(NodeId dot) const;
  std::optional<DotTimes> dot_times(const DotRegion& generated, const DotRegion* asked,
                                    const ComputedOperands& computed) const;
  double epilogue_seconds(const DotRegion& region) const;
  void pack_results(const std::vector<NodeId>& results);
  GroupId assign_results(std::unique_ptr<Work> work, const std::vector<NodeId>& results,
                         const std::vector<NodeId>& operands);
  std::string signature_of(NodeId node) const;
  bool takes_reduction(const Group& group, NodeId node) const;
  bool overwrites_early(GroupId g, const std::vector<GroupId>& readers) const;
  bool reads_overwritten(const Group& group) const;
  bool join_consumer(NodeId node);
  bool multiplies_matrix_of(const Group& group, NodeId node) const;
  bool join_sibling(NodeId node);
  bool join_reduction_reader(NodeId node);
  std::vector<NodeId> components_with(NodeId node) const;
  std::vector<std::pair<GroupId, std::vector<ix::Expr>>> groups_at(const std::vector<NodeId>& reductions) const;
  bool join_state(NodeId node);
  bool join_state_reader(NodeId node);
  bool short_rows(NodeId node, const std::vector<DomainVariable>& domain) const;
  std::vector<GroupId> sibling_candidates(NodeId node) const;
  void begin_group(NodeId node);
  void offer_to_reductions(GroupId g);
  using Reads = std::map<NodeId, std::vector<ix::Expr>>;
  void join_columns();
  bool join_columns(int columns, int rows);
  bool plain_reads(Group& group, NodeId node, std::vector<ix::Expr> index, Reads& reads) const;
  void leave(GroupId g);
  void append_root(GroupId g, Root root);
  void collect(GroupId g, NodeId node, std::vector<ix::Expr> index, bool conditional);
  void request(GroupId g, NodeId node, const std::vector<ix::Expr>& index, bool conditional);
  GroupId add_group(std::unique_ptr<Work> work);
  void connect(GroupId producer, GroupId consumer);
  std::vector<GroupId> search(GroupId from, bool forward, int64_t limit) const;
  void wait_for(GroupId g, int depends);
  void wait_along(GroupId g, int view, NodeId base);
  bool reaches(GroupId from, GroupId to) const;
  SortedSet<NodeId> sources(NodeId node, std::vector<NodeId>* inlined = nullptr) const;
  bool rows_compute(NodeId node) const;
  bool depends_on_reduction(NodeId node, const std::vector<DomainVariable>& domain) const;
  bool aligned(Group& group, NodeId node, const std::vector<ix::Expr>& index, Root& root,
               std::vector<DomainVariable>& domain) const;
  bool covers(const std::vector<ix::Expr>& index, const Shape& shape, const std::vector<DomainVariable>& vars,
              ix::Context& cx) const;

  int phase_of(const Work& work) const { return ir_[work.group.roots[0].node].phase; }
  bool is_root(NodeId node) const { return base_root_[node] || promoted_[node]; }

  const Ir& ir_;
  const Policy& policy_;
  const target::Target* target_;
  Users users_;
  NodeStrides strides_;
  NodeFlags base_root_;
  NodeFlags promoted_;             // roots that promote_shared found
  std::set<NodeId> gemv_results_;  // last values of elementwise chains after GEMVs (mark_gemv_result)
  std::set<NodeId> cut_;           // promoted because the expression grew too long; they start groups of their own
  IndexedVector<GroupId, std::unique_ptr<Work>> groups_;
  IndexedVector<NodeId, GroupId> group_of_;
  Lists<NodeId, GroupId> inlining_;             // by node: the groups that compute it inline, ascending
  mutable IndexedVector<NodeId, int> visited_;  // by node: the last walk of `sources` that came there
  mutable int walks_ = 0;
  mutable int64_t searches_ = 0;
  std::map<NodeId, NodeId> updated_;                     // new value of a state → its old value, an input
  IndexedVector<NodeId, std::vector<GroupId>> readers_;  // by root: groups that read it
  std::map<std::string, std::vector<GroupId>> by_signature_;
  std::vector<DotRegion> dots_;                    // each dot with what its kernel computes besides
  std::vector<std::optional<DotPlan>> dot_plans_;  // of each of these, once it was assigned to a group
  std::map<NodeId, size_t> dot_of_;                // by result of one of these: its number
  std::map<NodeId, ScatterRows> scatter_rows_;     // by scatter
  std::map<NodeId, int64_t> gathered_points_;      // by what gathers read: the elements that they take of it
  std::set<NodeId> sorted_rows_;                   // gathers of rows that sorted scatters alone read
  std::vector<std::vector<NodeId>> calls_;         // by call: the nodes of its results, ascending
  IndexedVector<NodeId, int> call_of_;             // by node; -1 for others
  std::map<NodeId, PackedResult> packed_;          // results of attention stored as parts of one array
  std::map<NodeId, NodeId> packs_;                 // that array → the first of those results
  std::map<NodeId, NodeId> kv_caches_;             // attention with a fused append (region/kv_append.h) → the scatter
  std::set<NodeId> appends_;                       // those scatters
  std::vector<std::vector<NodeId>> call_operands_;  // by call: the nodes whose buffers hold its operands
};

}  // namespace weft::compiler
