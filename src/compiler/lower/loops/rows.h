#pragma once
// Lowers the classes map, row and column by one walk over the roots of a group in passes. A pass is one loop over the
// inner domain. Reductions that depend on other reductions of the group run in a later pass, and full roots in the pass
// after the last reduction that they need.
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/lower/emit.h"
#include "compiler/schedule/rows.h"
#include "kernel/states.h"

namespace weft::compiler {

struct Statement {
  bool reduces() const { return root.kind == RootKind::reduce || root.kind == RootKind::column; }
  /// Returns whether it carries the state of a reduction.
  bool carries() const { return root.kind == RootKind::reduce && first_result < 0; }

  Root root;                      // index expressions use the program, lane and loop variables
  std::vector<ix::Expr> operand;  // reductions and columns: index of the operand
  int pass = 0;
  int first_result = -1;  // of another component of a state: the statement that carries it
};

class RowLowering {
 public:
  RowLowering(const LowerContext& cx, Group& group, const Schedule& schedule)
      : cx_(cx), group_(group), schedule_(schedule), emit_(cx, group, kernel_name()) {}

  Lowered run();

 private:
  Lowered finish();
  std::string kernel_name() const;
  int64_t reduction_order() const;
  void order_passes();
  void split_domain();
  void substitute_domain();
  std::vector<Statement> substituted(ix::Expr program, ix::Expr lane, ix::Expr loop, int64_t part = 0);
  std::vector<ix::Expr> digits(const std::vector<DomainVariable>& vars, ix::Expr linear);
  void bind_programs();
  kernel::Value lane_count();
  kernel::Value points_of(const std::vector<DomainVariable>& vars);
  bool one_tile() const;
  void passes();
  void pass(int p);
  void lane_loop(int p);
  bool whole_blocks() const;
  void tiles_of_block();
  void inner_loop(int p);
  size_t parts_of(size_t reductions) const;
  bool batches_loads(int p);
  bool sums_products(const Statement& statement) const;
  size_t unroll_of(size_t reductions) const;
  void load_unrolled(int p, const std::vector<std::vector<Statement>>& elements);
  std::vector<kernel::Value> unrolled_loop(int p, const std::vector<kernel::Value>& initial, size_t unroll,
                                           size_t parts, kernel::Value first, kernel::Value last);
  std::vector<kernel::Value> combine_parts(int p, std::vector<kernel::Value> carried, size_t parts);
  void hoist(int p, const std::vector<ix::Expr>& varying);
  std::vector<kernel::Value> identities(int p);
  std::vector<kernel::Value> step(int p, const std::vector<kernel::Value>& carried);
  int64_t tiles_of_pass(int p) const;
  kernel::State element_of(const Statement& statement);
  using Stores = std::vector<std::pair<const Statement*, kernel::Value>>;
  void full_root(const Statement& statement, Stores& stores);
  void store(const Stores& stores);
  bool has_frames(int p) const;
  std::vector<kernel::Value> step_of_several(int p, size_t count, const std::vector<kernel::Value>& carried,
                                             const std::function<void(size_t, const std::function<void()>&)>& at);
  kernel::State combined(const Statement& statement, const kernel::State& state);
  std::vector<kernel::Value> whole_tiles(int p, kernel::Value lo, kernel::Value hi,
                                         kernel::Value base = kernel::no_value);
  const IrNode& node_of(const Statement& statement) const { return cx_.ir[statement.root.node]; }
  std::vector<Dtype> state_dtypes(const Statement& statement) const;
  kernel::State state_of(const Statement& statement, const std::vector<kernel::Value>& carried, size_t& next) const;
  void finish_reductions(int p, const std::vector<kernel::Value>& carried);
  void finish_reduction(const Statement& statement, const kernel::State& state);
  void allocate_parts(int64_t elements);
  void store_part(const Statement& statement, const kernel::State& state, kernel::Value at,
                  const std::vector<int64_t>& strides);
  void finish_parts(const Statement& statement, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides);
  void finish_root(const Statement& statement, kernel::Value v);
  void row_roots(int p);

  // lower/loops/rows_reuse.cpp: values that several passes need
  /// A value that a later pass needs again, kept in scratch as wide as the row.
  struct Reused {
    NodeId node;
    std::vector<ix::Expr> index;
    int made;              // pass that computes it; -1: loaded before all passes
    std::set<int> wanted;  // later passes that read it
    kernel::Ref scratch = -1;
  };
  using Reads = std::vector<std::pair<NodeId, std::vector<ix::Expr>>>;
  Reads reads_of(const Statement& statement);
  void load_early();
  void find_reused();
  void ask_for_row();
  void examine(int p, NodeId node, const std::vector<ix::Expr>& index);
  double cost(NodeId node);
  Dtype reused_dtype(const Reused& reused) const;
  void recall(int p);
  void keep(int p);
  void prefetch_next(int p);
  int64_t scratch_share() const;
  kernel::Value scratch_offset();

  // lower/loops/rows_overlap.cpp: the last pass of a row merged with the last but one of the next
  int64_t rows_of_program() const;
  void overlapped_passes(int64_t rows);
  std::vector<kernel::Value> overlapped_row(kernel::Value row, const std::vector<kernel::Value>& previous);
  std::vector<kernel::Value> row_values();
  void define_row_values(const std::vector<kernel::Value>& values);

  // lower/loops/map_parts.cpp: maps whose programs compute all parts of the domain at one position
  void make_parts(bool halves);
  void step_parts();
  void hoist_parts(const std::vector<ix::Expr>& varying);

  // lower/loops/map_loop.cpp: maps with a loop inside of each program
  void hoist_operands(const Statement& statement);
  void map_with_loop();

  // lower/loops/gemv.cpp: a few rows of a matrix at a time
  bool side_by_side();
  void norm_of_row(kernel::Value row);
  bool is_same_for_all(const Statement& statement) const;
  using Scopes = std::vector<Emitter::Scope>;
  Scopes matrix_tiles(kernel::Value at, kernel::Value limit, const std::vector<kernel::Value>& rows);
  std::vector<kernel::Value> gemv_step(kernel::Value at, kernel::Value limit, const std::vector<kernel::Value>& rows,
                                       std::vector<kernel::Value> sums, Scopes tiles, Emitter::Scope row = {});
  size_t gemvs() const;
  size_t matrix_arrays();
  void gemv_rows();

  // lower/loops/rows_cluster.cpp: a row shared by the blocks of a cluster
  int64_t part() const;
  std::vector<kernel::Value> part_loop(int p, kernel::Value first, kernel::Value count);
  void pass_by_cluster(int p, bool first);
  void rows_by_cluster();

  // lower/loops/rows_columns.cpp: row kernels that also sum columns
  void rows_of_parts();
  size_t column_of(const Statement& statement) const;
  std::vector<kernel::Value> fetch(const Reads& reads, kernel::Value row);
  void prefetch_after(const Reads& reads, kernel::Value row);

  // lower/loops/columns.cpp: column reductions in wide panels or shared by warps
  std::vector<kernel::Value> step_of_row(kernel::Value j, const std::vector<kernel::Value>& sums);
  std::vector<kernel::Value> block_of_rows(kernel::Value first, int64_t count, std::vector<kernel::Value> sums);
  void panel_passes();
  size_t unroll_of_columns(int p, int64_t parts);
  std::vector<kernel::Value> part_of_columns(int p, kernel::Value part, int64_t count);
  void columns_by_warps();

  struct Seen {
    int pass;
    size_t reused = SIZE_MAX;
  };
  const LowerContext& cx_;
  Group& group_;
  Schedule schedule_;
  Emitter emit_;
  std::vector<Statement> statements_, other_half_;  // the latter where a program computes two rows (halves)
  std::vector<std::vector<Statement>> parts_;       // of a map, where a program computes several (parts, halves)
  size_t unroll_of_parts_ = 0;                      // of columns: elements that are loaded at once
  int passes_ = 0;
  std::vector<DomainVariable> outer_, lanes_, serial_;  // the domain: program axes, lane axes, axes of the serial loop
  ix::Expr program_, lane_, loop_;
  kernel::Value first_lane_ = kernel::no_value;
  int64_t grid_ = 1, blocks_ = 1;
  bool dynamic_extent_ = false;
  bool overlapped_ = false;
  int gemv_pass_ = 0;                   // GEMVs: the pass after those of the vector's norm
  std::vector<Emitter::Scope> normed_;  // GEMVs: by tile of the vector, the values that the norm computed
  // Rows shared by a cluster: elements of the current part, and how much further its scratch begins than its lanes.
  kernel::Value part_count_ = kernel::no_value, scratch_shift_ = kernel::no_value;
  std::vector<std::vector<kernel::Ref>> sums_;  // by statement: scratch for the components of all parts' states
  Stores late_stores_;                          // stored after the last parallel loop
  std::vector<Reused> reused_;
  std::map<std::pair<NodeId, std::vector<const ix::Node*>>, Seen> seen_;
  std::vector<std::pair<NodeId, std::vector<ix::Expr>>> first_loads_;  // loads of pass 0
  std::vector<kernel::Value> column_sums_;  // sums of the columns, by column statement, up to the current row
};

}  // namespace weft::compiler
