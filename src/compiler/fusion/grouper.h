#pragma once
// The state of grouping. Private to group.cpp (finds roots, forms groups), group_share.cpp (materializes values that
// several groups read) and group_join.cpp (decides which groups may merge).
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "compiler/fusion/group.h"
#include "compiler/region/attention_plan.h"
#include "compiler/region/dot_plan.h"

namespace weft::compiler {

/// The index at which a group reads a root. `same` is false where it reads it at several indices or under a condition.
struct Request {
  std::vector<ix::Expr> index;
  bool same = true;
};

struct Work {
  Group group;
  std::map<int, Request> requests;  // roots and leaves that the group's roots read
  std::set<int> inlined;            // nodes computed inline
  std::map<int, std::vector<ix::Expr>>
      first_index;             // by inlined node that is broadcast: the index at which its first reader reads it
  std::vector<int> consumers;  // groups that read this one's roots, each once
  std::vector<int> producers;  // the same edges, backwards
  int64_t rank = 0;            // a topological order: less than every consumer's
  mutable int64_t seen = 0;    // the last search that came here
};

class Grouper {
 public:
  Grouper(const Ir& ir, const std::vector<Layout>& layouts, const Policy& policy, const target::Target* target,
          const std::vector<Update>& updates);
  Grouping run();

 private:
  void find_roots();
  void mark_gemv_vector(int reduction);
  void mark_gemv_result(int reduction, const std::vector<int>& outputs);
  void mark_scatter_rows();
  void form();
  bool promote_shared(const std::vector<int>& groups_using, bool scalars_only);
  std::vector<int> count_uses() const;
  std::vector<int> count_readers_of_scalars() const;
  int64_t repeats_of(int node) const;
  bool replaces_reduction(int node) const;
  bool narrowed_later(int node, const std::vector<int>& groups_using) const;
  Grouping finish();

  void assign(int node);
  void assign_dot(int node);
  void assign_alone(int node);
  void assign_call(int node);
  void assign_attention(int node);
  void assign_with_kv_append(std::unique_ptr<Work> work, std::vector<int> results, int cache);
  DotChain chain_of(int dot, const std::vector<int>& outputs);
  bool library_takes(const DotChain& chain);
  void pack_results(const std::vector<int>& results);
  int assign_results(std::unique_ptr<Work> work, const std::vector<int>& results, const std::vector<int>& operands);
  std::string signature_of(int node) const;
  bool takes_reduction(const Group& group, int node) const;
  bool overwrites_early(int g, const std::vector<int>& readers) const;
  bool reads_overwritten(const Group& group) const;
  bool join_consumer(int node);
  bool join_sibling(int node);
  bool join_reduction_reader(int node);
  bool short_rows(int node, const std::vector<DomainVariable>& domain) const;
  std::vector<int> sibling_candidates(int node) const;
  void begin_group(int node);
  void offer_to_reductions(int g);
  using Reads = std::map<int, std::vector<ix::Expr>>;
  void join_columns();
  bool join_columns(int columns, int rows);
  bool plain_reads(Group& group, int node, std::vector<ix::Expr> index, Reads& reads) const;
  void leave(int g);
  void append_root(int g, Root root);
  void collect(int g, int node, std::vector<ix::Expr> index, bool conditional);
  void request(int g, int node, std::vector<ix::Expr> index, bool conditional);
  int add_group(std::unique_ptr<Work> work);
  void connect(int producer, int consumer);
  std::vector<int> search(int from, bool forward, int64_t limit) const;
  void wait_for(int g, int depends);
  void wait_along(int g, int view, int base);
  bool reaches(int from, int to) const;
  std::set<int> sources(int node, std::set<int>* inlined = nullptr) const;
  bool rows_compute(int node) const;
  bool depends_on_reduction(int node, const std::vector<DomainVariable>& domain) const;
  bool aligned(Group& group, int node, const std::vector<ix::Expr>& index, Root& root,
               std::vector<DomainVariable>& domain) const;
  bool covers(const std::vector<ix::Expr>& index, const Shape& shape, const std::vector<DomainVariable>& vars,
              ix::Context& cx) const;

  int phase_of(const Work& work) const { return ir_[work.group.roots[0].node].phase; }
  bool is_root(int node) const { return base_root_[static_cast<size_t>(node)] || promoted_.contains(node); }

  const Ir& ir_;
  const Policy& policy_;
  const target::Target* target_;
  Users users_;
  std::vector<Strides> strides_;
  std::vector<bool> base_root_;
  std::set<int> promoted_;
  std::set<int> gemv_results_;  // what is made of GEMVs: computed with them
  std::set<int> cut_;           // promoted because the expression grew too long: not fused with their readers
  std::vector<std::unique_ptr<Work>> groups_;
  std::vector<int> group_of_;
  mutable int64_t searches_ = 0;
  std::map<int, int> updated_;             // new value of a state → the old one
  std::vector<std::vector<int>> readers_;  // by root: groups that read it
  std::map<std::string, std::vector<int>> by_signature_;
  std::map<int, DotChain> dot_result_;           // by the last node of the chain
  std::map<int, int> pre_activation_of_;         // what an activation behind a dot is applied to → the dot's result
  std::map<int, ScatterRows> scatter_rows_;      // by scatter
  std::map<int, int> sum_of_;                    // reductions computed with a dot → its result
  std::vector<std::vector<int>> calls_;          // by call: the nodes of its results, ascending
  std::vector<int> call_of_;                     // by node; -1 for others
  std::map<int, PackedResult> packed_;           // results of attention that lie side by side in one array
  std::map<int, int> packs_;                     // that array → the first of them
  std::map<int, int> kv_caches_;                 // attention that appends its row (region/kv_append.h) → the scatter
  std::set<int> appends_;                        // those scatters
  std::vector<std::vector<int>> call_operands_;  // by call: the nodes in whose memory its operands lie
};

}  // namespace weft::compiler
