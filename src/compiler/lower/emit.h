#pragma once
// Writes the value of a graph node at an index as tile instructions: elementwise nodes inline, movement as index
// expressions, roots as loads. Index variables are bound to program ids, loop counters, or the lane variable, along
// which a tile runs.
#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "compiler/lower/lower.h"

namespace weft::compiler {

/// The dtype in which values of `t` are computed: float16 and bfloat16 are widened when loaded and rounded when stored
/// or cast.
Dtype compute_dtype(Dtype t);

class Emitter {
  struct Key;

 public:
  /// What is known: values by node and index.
  using Scope = std::map<Key, kernel::Value>;

  Emitter(const LowerContext& cx, Group& group, std::string name);

  kernel::Builder& builder() { return b_; }
  ix::Context& index_context() { return *group_.cx; }

  /// Declares the buffer of a root or leaf as a parameter; all written ones before the first load.
  kernel::Ref param(int node, bool written);
  /// A symbol argument of the kernel; equal arguments are shared.
  kernel::Value argument(const std::string& name, SymbolArgument value);
  kernel::Value extent(const Dim& dim);  // a constant, or the symbol's run-time value

  /// Scalar variables. The lane variable stands at base + 0 … width-1; lanes from `limit` on do not exist (no_value:
  /// all do).
  void bind(ix::Expr variable, kernel::Value scalar);
  void bind_lanes(ix::Expr variable, kernel::Value base, int64_t width, kernel::Value limit);
  int64_t width() const { return width_; }
  kernel::Value limit() const { return limit_; }
  /// bool [width]: which lanes exist. Only where there is a limit.
  kernel::Value lane_mask();

  /// What is computed between push and pop is forgotten at pop: the body of a loop.
  void push_scope() { scopes_.emplace_back(); }
  void pop_scope() { scopes_.pop_back(); }
  /// A scope that can be left and entered again: of one row beside that of another.
  void enter_scope(Scope scope) { scopes_.push_back(std::move(scope)); }
  Scope leave_scope() {
    Scope scope = std::move(scopes_.back());
    pop_scope();
    return scope;
  }

  /// Scalar or tile, in the compute dtype of the node.
  kernel::Value value(int node, const std::vector<ix::Expr>& index) { return value(node, index, {}); }
  /// The same, but computes a root of this group instead of loading it.
  kernel::Value make(int node, const std::vector<ix::Expr>& index) { return compute(node, index, {}); }
  /// Loaded where it is wanted, not computed: leaves and roots, but for a map of this group that nobody else reads,
  /// which a later pass computes again.
  bool is_memory(int node) const;
  /// Loads from now on begin where they stand, and bring what is read once.
  void set_streaming(bool on) { streaming_ = on; }
  /// Goes through what the value of `node` is computed from wherever it is wanted: visit(node, index) says whether to
  /// go on to its operands.
  void walk(int node, const std::vector<ix::Expr>& index,
            const std::function<bool(int, const std::vector<ix::Expr>&)>& visit);
  /// Makes a value known until the scope ends.
  void remember(int node, const std::vector<ix::Expr>& index, kernel::Value v) {
    scopes_.back()[key(node, index, {})] = v;
  }
  bool on_lanes(ix::Expr e) const;
  /// Asks for the data that the next value of `program` will read where this one reads `node` on its lanes, if that
  /// lies at a fixed distance.
  void prefetch(int node, const std::vector<ix::Expr>& index, ix::Expr program) {
    prefetch(node, index, program, width_);
  }
  void prefetch(int node, const std::vector<ix::Expr>& index, ix::Expr program, int64_t count);
  /// `node`, where it is read at `offset`, lies in scratch: its lanes from `at` on.
  void take_staged(int node, ix::Expr offset, kernel::Ref scratch, kernel::Value at) {
    staged_[{node, offset.get()}] = {scratch, at};
  }
  /// `node`, where it is read at `offset`, is this tile, which may have two axes (then all that is computed from it has
  /// them).
  void take_tile(int node, ix::Expr offset, kernel::Value tile) { tiles_[{node, offset.get()}] = tile; }
  kernel::Value lane_base() const { return lanes_.base; }
  /// What a root's buffer holds now.
  kernel::Value load_result(int node, const std::vector<ix::Expr>& index) { return load(node, index, {}); }
  /// The sum and the node's value: where that is a product that does not lie in memory, in one step with one rounding.
  kernel::Value fused_multiply_add(int product, const std::vector<ix::Expr>& index, ix::Expr valid, kernel::Value sum);
  /// Gives a root that this group has computed: later readers find it.
  void define(int node, kernel::Value v);
  /// Makes a root's value unknown again in this scope: its readers come to another element of it.
  void forget(int node) { scopes_.back().erase(key(node, {}, {})); }
  /// Stores a root's value (compute dtype) at its index.
  void store(int node, const std::vector<ix::Expr>& index, kernel::Value v, bool streaming);
  /// What readers of a stored value see: rounded to the node's dtype, in its compute dtype.
  kernel::Value rounded(int node, kernel::Value v) { return narrowed(v, cx_.ir[node].type.dtype); }
  /// Computes now, outside the loops to come, whatever part of the value does not depend on `varying`.
  void hoist(int node, const std::vector<ix::Expr>& index, const std::vector<ix::Expr>& varying);

  kernel::Value index_value(ix::Expr e);  // int64 scalar, or [width] where e depends on lanes
  kernel::Value predicate(ix::Expr e);    // bool
  Lowered finish(int64_t grid, double work);

 private:
  struct Key {
    int node;
    std::vector<const ix::Node*> index;
    const ix::Node* valid;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Lanes {
    ix::Expr variable;
    kernel::Value base;
  };

  Key key(int node, const std::vector<ix::Expr>& index, ix::Expr valid) const;
  const kernel::Value* find(const Key& key) const;
  kernel::Value value(int node, const std::vector<ix::Expr>& index, ix::Expr valid);
  kernel::Value compute(int node, const std::vector<ix::Expr>& index, ix::Expr valid);
  kernel::Value movement(int node, const std::vector<ix::Expr>& index, ix::Expr valid);
  kernel::Value concat(int node, const std::vector<ix::Expr>& index, ix::Expr valid);
  kernel::Value gather(int node, const std::vector<ix::Expr>& index, ix::Expr valid);
  kernel::Value random_bits(int node, const std::vector<ix::Expr>& index, ix::Expr valid);
  kernel::Value philox(kernel::Value key0, kernel::Value key1, ix::Expr at);
  kernel::Value elementwise(int node, const std::vector<ix::Expr>& index, ix::Expr valid);
  kernel::Value load(int node, const std::vector<ix::Expr>& index, ix::Expr valid);
  kernel::Value iota(ix::Expr e, Dtype dtype);
  kernel::Value narrowed(kernel::Value v, Dtype dtype);  // rounded to dtype, in its compute dtype
  kernel::Value broadcast_lanes(kernel::Value v);        // to [width]
  std::optional<ix::Affine> lane_form(ix::Expr e) const;

  const LowerContext& cx_;
  Group& group_;
  kernel::Builder b_;
  std::set<int> own_;                // roots of the group
  std::map<int, kernel::Ref> refs_;  // by owner
  std::vector<int> params_;
  std::vector<SymbolArgument> arguments_;
  std::map<std::string, kernel::Value> argument_values_;
  std::unordered_map<const ix::Node*, kernel::Value> bound_;  // variables → scalar or tile
  std::set<const ix::Node*> lane_bound_;                      // variables bound to tiles (gathered indices)
  Lanes lanes_{};
  int64_t width_ = 0;
  kernel::Value limit_ = kernel::no_value;
  bool streaming_ = false;
  std::map<std::pair<int, const ix::Node*>, std::pair<kernel::Ref, kernel::Value>> staged_;
  std::map<std::pair<int, const ix::Node*>, kernel::Value> tiles_;
  std::vector<Scope> scopes_;
};

}  // namespace weft::compiler
