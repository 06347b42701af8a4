#pragma once
// Emits the value of a graph node at an index as tile instructions: elementwise nodes inline, movement as index
// expressions, roots as loads. Index variables are bound to program ids, loop counters, or the lane variable, along
// which a tile runs.
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "compiler/lower/lower.h"

namespace weft::compiler {

/// Returns the dtype in which values of dtype `t` are computed: low-precision floats are widened to float32 when
/// loaded, and rounded when stored or cast.
Dtype compute_dtype(Dtype t);

class Emitter {
  struct Key;

 public:
  /// Values that are already emitted, by node and index.
  using Scope = std::map<Key, kernel::Value>;

  Emitter(const LowerContext& cx, Group& group, std::string name);

  kernel::Builder& builder() { return b_; }
  ix::Context& index_context() { return *group_.cx; }

  /// Declares the buffer of a root or leaf as a parameter. Declare all written ones before the first load.
  kernel::Ref param(NodeId node, bool written);
  /// Declares a buffer that belongs to no node: its place among the parameters is -1.
  kernel::Ref scratch_param(Dtype dtype, bool written);
  /// Returns a symbol argument of the kernel; equal arguments are shared.
  kernel::Value argument(const std::string& name, SymbolArgument value);
  kernel::Value extent(const Dim& dim);  // a constant, or the symbol's run-time value

  /// Bind index variables. `bind` binds one to a scalar. `bind_lanes` binds the lane variable to base + 0 … width-1;
  /// lanes from `limit` on do not exist (no_value: all do).
  void bind(ix::Expr variable, kernel::Value scalar);
  void bind_lanes(ix::Expr variable, kernel::Value base, int64_t width, kernel::Value limit);
  int64_t width() const { return width_; }
  kernel::Value limit() const { return limit_; }
  /// Returns bool [width]: which lanes exist. Requires a limit.
  kernel::Value lane_mask();

  /// Values computed between push and pop, as in the body of a loop, are forgotten at pop.
  void push_scope() { scopes_.emplace_back(); }
  void pop_scope() { scopes_.pop_back(); }
  /// Enter and leave a scope that is kept, such as one of several rows that are computed alternately.
  void enter_scope(Scope scope) { scopes_.push_back(std::move(scope)); }
  Scope leave_scope() {
    Scope scope = std::move(scopes_.back());
    pop_scope();
    return scope;
  }

  /// Returns a node's value: a scalar or a tile, in the node's compute dtype.
  kernel::Value value(NodeId node, const std::vector<ix::Expr>& index) { return value(node, index, {}); }
  /// Returns the same, but computes a root of this group instead of loading it.
  kernel::Value make(NodeId node, const std::vector<ix::Expr>& index) { return compute(node, index, {}); }
  /// Returns whether readers load the node instead of computing it: leaves and roots, except a map of this group
  /// without a buffer, which a later pass computes again.
  bool is_memory(NodeId node) const;
  /// Makes readers compute a root of this group, a map, until the kernel has stored it.
  void compute_until_stored(NodeId root) { not_stored_.insert(root); }
  /// Makes later loads issue where they are emitted and mark their data as read once.
  void set_streaming(bool on) { streaming_ = on; }
  /// Walks the nodes that the value of `node` is computed from unconditionally. visit(node, index) returns whether to
  /// continue to the node's operands.
  void walk(NodeId node, const std::vector<ix::Expr>& index,
            const std::function<bool(int, const std::vector<ix::Expr>&)>& visit);
  /// Records a value until the scope ends.
  void remember(NodeId node, const std::vector<ix::Expr>& index, kernel::Value v) {
    scopes_.back()[key(node, index, {})] = v;
  }
  bool on_lanes(ix::Expr e) const;
  /// Prefetches the data of `node` that the next value of `program` will read, if it lies at a fixed distance from what
  /// this one reads on its lanes.
  void prefetch(NodeId node, const std::vector<ix::Expr>& index, ix::Expr program) {
    prefetch(node, index, program, width_);
  }
  void prefetch(NodeId node, const std::vector<ix::Expr>& index, ix::Expr program, int64_t count);
  /// Makes reads of `node` at `offset` load their lanes from `scratch`, from element `at` on.
  void take_staged(NodeId node, ix::Expr offset, kernel::Ref scratch, kernel::Value at) {
    staged_[{node, offset.get()}] = {scratch, at};
  }
  /// Makes reads of `node` at `offset` return this tile. If it has two axes, so has everything computed from it.
  void take_tile(NodeId node, ix::Expr offset, kernel::Value tile) { tiles_[{node, offset.get()}] = tile; }
  kernel::Value lane_base() const { return lanes_.base; }
  /// Loads the current contents of a root's buffer.
  kernel::Value load_result(NodeId node, const std::vector<ix::Expr>& index) { return load(node, index, {}); }
  /// Returns sum + the value of `product`. If that is a multiplication that is not in memory, emits one fused
  /// multiply-add with one rounding.
  kernel::Value fused_multiply_add(NodeId product, const std::vector<ix::Expr>& index, ix::Expr valid,
                                   kernel::Value sum);
  /// Records the value of a root that this group has computed, for later readers.
  void define(NodeId node, kernel::Value v);
  /// Forgets a root's value in this scope, before its readers move on to another element.
  void forget(NodeId node) { scopes_.back().erase(key(node, {}, {})); }
  /// Stores a root's value (compute dtype) at its index.
  void store(NodeId node, const std::vector<ix::Expr>& index, kernel::Value v, bool streaming);
  /// Returns what readers of a stored value see: rounded to the node's dtype, in its compute dtype.
  kernel::Value rounded(NodeId node, kernel::Value v) { return narrowed(v, cx_.ir[node].type.dtype); }
  /// Emits now, before the loops to come, the parts of the value that do not depend on `varying`.
  void hoist(NodeId node, const std::vector<ix::Expr>& index, const std::vector<ix::Expr>& varying);
  /// A value that a gather moves, at the index that it moves it from.
  struct Gathered {
    NodeId node;
    std::vector<ix::Expr> index;
  };
  /// Emits now the indices of the first gathers that the value goes through, and returns what they move. Readers that
  /// load several values call this for all of them first, so that no load waits for the index of another.
  std::vector<Gathered> begin_gathers(NodeId node, const std::vector<ix::Expr>& index);

  kernel::Value index_value(ix::Expr e);  // int64 scalar, or [width] where e depends on lanes
  kernel::Value predicate(ix::Expr e);    // bool
  Lowered finish(int64_t grid, double work);

 private:
  struct Key {
    NodeId node;
    std::vector<const ix::Node*> index;
    const ix::Node* valid;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Lanes {
    ix::Expr variable;
    kernel::Value base;
  };

  Key key(NodeId node, const std::vector<ix::Expr>& index, ix::Expr valid) const;
  const kernel::Value* find(const Key& key) const;
  kernel::Value value(NodeId node, const std::vector<ix::Expr>& index, ix::Expr valid);
  kernel::Value compute(NodeId node, const std::vector<ix::Expr>& index, ix::Expr valid);
  kernel::Value movement(NodeId node, const std::vector<ix::Expr>& index, ix::Expr valid);
  kernel::Value concat(NodeId node, const std::vector<ix::Expr>& index, ix::Expr valid);
  std::vector<ix::Expr> gathered_index(NodeId node, const std::vector<ix::Expr>& index, ix::Expr valid);
  kernel::Value random_bits(NodeId node, const std::vector<ix::Expr>& index, ix::Expr valid);
  std::pair<kernel::Value, kernel::Value> threefry_counters(kernel::Value low, int64_t words);
  kernel::Value threefry(kernel::Value key0, kernel::Value key1, ix::Expr at, int64_t words);
  kernel::Value philox(kernel::Value key0, kernel::Value key1, ix::Expr at);
  kernel::Value elementwise(NodeId node, const std::vector<ix::Expr>& index, ix::Expr valid);
  kernel::Value load(NodeId node, const std::vector<ix::Expr>& index, ix::Expr valid);
  kernel::Value inside(NodeId node, ix::Expr offset);  // moved into the node's memory where it may lie outside
  kernel::Value iota(ix::Expr e, Dtype dtype);
  kernel::Value narrowed(kernel::Value v, Dtype dtype);  // rounded to dtype, in its compute dtype
  kernel::Value broadcast_lanes(kernel::Value v);        // to [width]
  std::optional<ix::Affine> lane_form(ix::Expr e) const;

  const LowerContext& cx_;
  Group& group_;
  kernel::Builder b_;
  std::set<NodeId> own_;                // roots of the group
  std::set<NodeId> not_stored_;         // those that are computed, since their memory holds nothing yet
  std::map<NodeId, kernel::Ref> refs_;  // by owner
  std::vector<NodeId> params_;
  std::vector<SymbolArgument> arguments_;
  std::map<std::string, kernel::Value> argument_values_;
  std::unordered_map<const ix::Node*, kernel::Value> bound_;  // variables → scalar or tile
  std::set<const ix::Node*> lane_bound_;                      // variables bound to tiles (gathered indices)
  std::map<std::tuple<NodeId, size_t, kernel::Value>, ix::Expr> gathered_;  // gather, index array, index → variable
  Lanes lanes_{};
  int64_t width_ = 0;
  kernel::Value limit_ = kernel::no_value;
  bool streaming_ = false;
  std::map<std::pair<NodeId, const ix::Node*>, std::pair<kernel::Ref, kernel::Value>> staged_;
  std::map<std::pair<NodeId, const ix::Node*>, kernel::Value> tiles_;
  std::vector<Scope> scopes_;
};

}  // namespace weft::compiler
