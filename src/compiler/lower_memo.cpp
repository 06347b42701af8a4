#include "compiler/lower_memo.h"

#include <algorithm>

namespace weft::compiler {

namespace {

/// Writes down all that lowering a group looks at, with nodes, buffers and variables numbered in the order in which they are met.
class GroupKey {
 public:
  GroupKey(const LowerContext& cx, const Group& group, Variant variant) : cx_(cx), group_(group) {
    h_.number(variant);
    for (const DomainVariable& v : group.domain) {
      variables_.push_back(v.var->value);
      dim(v.extent);
      h_.number(v.inner);
    }
    for (const Root& root : group.roots) {
      h_.number(root.kind).number(root.index.size());
      for (ix::Expr e : root.index) expression(e.get());
      node(root.node);
    }
    for (const Root& root : group.roots) h_.number(position(root.node));  // which of the nodes are this group's own
  }

  Digest digest() const { return h_.finish(); }
  /// Homes of the nodes met, in order.
  const std::vector<int>& homes() const { return homes_; }

 private:
  void dim(const Dim& d) { h_.number(d.bound()).number(reinterpret_cast<uintptr_t>(d.symbol())); }

  void expression(const ix::Node* e) {
    auto [it, fresh] = expressions_.try_emplace(e, static_cast<int>(expressions_.size()));
    h_.number(fresh).number(it->second);
    if (!fresh) return;
    h_.number(e->kind);
    if (e->kind == ix::Kind::variable)
      h_.number(std::find(variables_.begin(), variables_.end(), e->value) - variables_.begin());
    else
      h_.number(e->value);
    if (e->a) expression(e->a);
    if (e->b) expression(e->b);
  }

  int position(int id) const { return nodes_.at(id); }

  void node(int id) {
    auto [it, fresh] = nodes_.try_emplace(id, static_cast<int>(nodes_.size()));
    h_.number(it->second);
    if (!fresh) return;
    const IrNode& n = cx_.ir[id];
    auto at = static_cast<size_t>(id);
    bool root = cx_.grouping.is_root[at], in_memory = is_leaf(cx_.ir, id) || root;
    bool own = std::any_of(group_.roots.begin(), group_.roots.end(), [&](const Root& r) { return r.node == id; });
    h_.number(root).number(in_memory).number(n.type.dtype.val).number(n.type.shape.size());
    for (const Dim& d : n.type.shape) dim(d);
    if (in_memory) {
      const int home = cx_.home[at];
      h_.number(static_cast<bool>(cx_.stored[at])).number(static_cast<bool>(cx_.streamed[at])).number(buffers_.try_emplace(home, buffers_.size()).first->second);
      for (int64_t s : cx_.grouping.strides[at]) h_.number(s);
      homes_.push_back(home);
      if (!own) return;
    } else {
      homes_.push_back(-1);
    }
    h_.number(n.op);
    hash(h_, n.attrs);
    h_.number(n.inputs.size());
    for (int input : n.inputs) node(input);
  }

  const LowerContext& cx_;
  const Group& group_;
  Hasher h_;
  std::vector<int64_t> variables_;
  std::unordered_map<const ix::Node*, int> expressions_;
  std::unordered_map<int, int> nodes_;
  std::unordered_map<int, size_t> buffers_;
  std::vector<int> homes_;
};

}  // namespace

std::optional<Lowering> LoweringMemo::rows(const LowerContext& cx, Group& group, Variant variant) {
  const GroupKey key(cx, group, variant);
  const std::vector<int>& homes = key.homes();
  if (auto it = entries_.find(key.digest()); it != entries_.end()) {
    Lowering result{it->second.code, it->second.digest, {}};
    for (int at : it->second.params) result.params.push_back(homes[static_cast<size_t>(at)]);
    return result;
  }
  std::optional<Lowered> lowered = lower_rows(cx, group, variant);
  if (!lowered) return {};
  auto code = std::make_shared<const Lowered>(std::move(*lowered));
  Entry entry{code, kernel::digest(code->kernel), {}};
  for (int param : code->params) entry.params.push_back(static_cast<int>(std::find(homes.begin(), homes.end(), param) - homes.begin()));
  entries_.emplace(key.digest(), entry);
  return Lowering{code, entry.digest, code->params};
}

}  // namespace weft::compiler
