#include "compiler/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "compiler/dot_plan.h"
#include "graph/table.h"

namespace weft::compiler {

using graph::Op;
using ix::Expr;

bool Group::has_fold() const {
  return std::any_of(roots.begin(), roots.end(), [](const Root& r) { return r.kind == RootKind::fold; });
}

namespace {

// A value that costs more than this to make again from what lies in memory is kept, once several groups want it.
constexpr double recompute_flops = 64;
constexpr size_t recompute_loads = 2;
constexpr size_t recompute_scalars = 4;

/// Where a group reads a root: at one index, or (`same` false) at several or under a condition.
struct Request {
  std::vector<Expr> index;
  bool same = true;
};

struct Work {
  Group group;
  std::map<int, Request> requests;       // roots and leaves that the group's roots read
  std::set<int> inlined;                 // nodes computed inline
  std::set<int> consumers;               // groups that read this one's roots
};

class Grouper {
 public:
  Grouper(const Ir& ir, const std::vector<Layout>& layouts) : ir_(ir), users_(users(ir)), strides_(ir.nodes.size()), base_root_(ir.nodes.size()) {
    for (size_t k = 0; k < ir.inputs.size(); ++k) {
      auto id = static_cast<size_t>(ir.inputs[k]);
      bool given = k < layouts.size() && !layouts[k].strides.empty();
      strides_[id] = given ? layouts[k].strides : row_major_strides(ir.nodes[id].type.shape);
    }
    find_roots();
  }

  Grouping run() {
    form();
    if (promote_shared()) form();
    return finish();
  }

 private:
  void find_roots();
  void form();
  bool promote_shared();
  Grouping finish();

  void place(int node);
  void place_dot(int node);
  void place_scatter(int node);
  bool join_consumer(int node);
  bool join_sibling(int node);
  std::vector<int> sibling_candidates(int node) const;
  void begin_group(int node);
  void offer_to_folds(int g);
  void append_root(int g, Root root);
  void collect(int g, int node, std::vector<Expr> index, bool conditional);
  void request(int g, int node, std::vector<Expr> index, bool conditional);
  bool reaches(int from, int to) const;
  std::set<int> sources(int node, std::set<int>* inlined = nullptr) const;
  bool rows_compute(int node) const;
  bool aligned(const Group& group, int node, const std::vector<Expr>& index, Root& root, std::vector<DomainVariable>& domain) const;
  bool covers(const std::vector<Expr>& index, const Shape& shape, const std::vector<DomainVariable>& vars, ix::Context& cx) const;

  bool is_root(int node) const { return base_root_[static_cast<size_t>(node)] || promoted_.contains(node); }

  const Ir& ir_;
  std::vector<std::vector<int>> users_;
  std::vector<Strides> strides_;
  std::vector<bool> base_root_;
  std::set<int> promoted_;
  std::vector<std::unique_ptr<Work>> groups_;
  std::vector<int> group_of_;
  std::map<int, std::vector<int>> readers_;              // root → groups that read it
  std::map<std::string, std::vector<int>> by_signature_;
  std::map<int, int> dot_result_;                        // dot or bias add → dot
  std::set<int> fused_dots_;                             // dots computed as part of their bias add
};

// ---------------------------------------------------------------- roots

void Grouper::find_roots() {
  auto mark = [&](int node) {
    if (!is_leaf(ir_, node)) base_root_[static_cast<size_t>(node)] = true;
  };
  for (int id : ir_.outputs) {
    int node = output_node(ir_, id);
    mark(node);
    if (!is_leaf(ir_, node)) strides_[static_cast<size_t>(node)] = row_major_strides(ir_[node].type.shape);
  }
  for (int id = 0; id < ir_.size(); ++id) {
    Op op = ir_[id].op;
    if (op == Op::fold || op == Op::dot || op == Op::scatter) mark(id);
  }
  for (int id = 0; id < ir_.size(); ++id) {
    if (ir_[id].op != Op::dot) continue;
    std::optional<int> add = bias_add(ir_, users_, id);
    int result = add.value_or(id);
    if (add) {
      base_root_[static_cast<size_t>(id)] = false;
      fused_dots_.insert(id);
      mark(result);
    }
    dot_result_[result] = id;
    if (strides_[static_cast<size_t>(result)].empty()) strides_[static_cast<size_t>(result)] = preferred_strides(ir_, users_, result);
  }
  for (int id = 0; id < ir_.size(); ++id) {
    const IrNode& node = ir_[id];
    if (node.op == Op::dot)
      for (int operand : node.inputs) mark(operand_base(ir_, strides_, base_root_, operand));
    if (node.op == Op::scatter) mark(memory_of(ir_, strides_, base_root_, node.inputs[0]));  // updated in its own memory, or copied whole
    if (node.op == Op::gather) {
      int base = operand_base(ir_, strides_, base_root_, node.inputs[0]);
      if (is_elementwise(ir_[base].op) || ir_[base].op == Op::gather || ir_[base].op == Op::random_bits) mark(base);
    }
  }
  for (const auto& [result, dot] : dot_result_) {
    if (result == dot) continue;
    const IrNode& add = ir_[result];
    ix::Context cx;
    int other = add.inputs[0] == dot ? add.inputs[1] : add.inputs[0];
    mark(peel(cx, ir_, other, domain(cx, add.type.shape, "i")).node);
  }
  for (int id = 0; id < ir_.size(); ++id)
    if (strides_[static_cast<size_t>(id)].empty()) strides_[static_cast<size_t>(id)] = row_major_strides(ir_[id].type.shape);
}

// ---------------------------------------------------------------- groups

void Grouper::form() {
  groups_.clear();
  readers_.clear();
  by_signature_.clear();
  group_of_.assign(ir_.nodes.size(), -1);
  for (int id = ir_.size(); id-- > 0;)
    if (is_root(id)) place(id);
}

void Grouper::place(int node) {
  if (dot_result_.contains(node)) return place_dot(node);
  if (ir_[node].op == Op::scatter) return place_scatter(node);
  if (join_consumer(node) || join_sibling(node)) return;
  begin_group(node);
}

void Grouper::request(int g, int node, std::vector<Expr> index, bool conditional) {
  Work& work = *groups_[static_cast<size_t>(g)];
  auto [it, fresh] = work.requests.try_emplace(node, Request{index, !conditional});
  if (fresh) {
    readers_[node].push_back(g);
    if (group_of_[static_cast<size_t>(node)] >= 0 && group_of_[static_cast<size_t>(node)] != g)
      groups_[static_cast<size_t>(group_of_[static_cast<size_t>(node)])]->consumers.insert(g);
  } else if (conditional || it->second.index != index) {
    it->second.same = false;
  }
}

/// Records what the value of `node` at `index` is computed from, down to roots and leaves.
void Grouper::collect(int g, int node, std::vector<Expr> index, bool conditional) {
  std::vector<std::tuple<int, std::vector<Expr>, bool>> pending{{node, std::move(index), conditional}};
  std::set<std::tuple<int, std::vector<const ix::Node*>, bool>> seen;
  ix::Context& cx = *groups_[static_cast<size_t>(g)]->group.cx;
  bool first = true;
  while (!pending.empty()) {
    auto [id, at, guarded] = std::move(pending.back());
    pending.pop_back();
    bool body = std::exchange(first, false);
    std::vector<const ix::Node*> key;
    for (Expr e : at) key.push_back(e.get());
    if (!seen.insert({id, std::move(key), guarded}).second) continue;
    if (!body && (is_leaf(ir_, id) || is_root(id))) {
      request(g, id, std::move(at), guarded);
      continue;
    }
    groups_[static_cast<size_t>(g)]->inlined.insert(id);
    const IrNode& n = ir_[id];
    if (n.op == Op::concat) {
      for (Access& access : push_concat(cx, ir_, id, at)) pending.emplace_back(access.node, std::move(access.index), true);
    } else if (is_movement(n.op)) {
      Access access = push(cx, ir_, id, at);
      pending.emplace_back(access.node, std::move(access.index), guarded || access.valid);
    } else if (n.op == Op::gather) {
      size_t rank = index_rank(ir_, id);
      std::vector<Expr> prefix(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(rank));
      for (size_t k = 0; k < n.attrs.axes.size(); ++k) pending.emplace_back(n.inputs[k + 1], prefix, guarded);
      std::vector<Expr> inside(at.begin() + static_cast<std::ptrdiff_t>(rank), at.end());
      for (int64_t axis : n.attrs.axes) {
        int64_t range = ir_[n.inputs[0]].type.shape[static_cast<size_t>(axis)].bound() - n.attrs.shape[static_cast<size_t>(axis)].bound();
        inside[static_cast<size_t>(axis)] = inside[static_cast<size_t>(axis)] + cx.variable("gathered", 0, std::max<int64_t>(0, range));
      }
      pending.emplace_back(n.inputs[0], std::move(inside), true);
    } else if (n.op == Op::random_bits) {
      pending.emplace_back(n.inputs[0], std::vector<Expr>{cx.constant(0)}, true);
    } else {
      check(is_elementwise(n.op) || n.inputs.empty(), "group", "cannot be computed inline: " + print(ir_, id));
      for (int input : n.inputs) pending.emplace_back(input, at, guarded);
    }
  }
}

void Grouper::append_root(int g, Root root) {
  Work& work = *groups_[static_cast<size_t>(g)];
  group_of_[static_cast<size_t>(root.node)] = g;
  for (int reader : readers_[root.node])
    if (reader != g) work.consumers.insert(reader);
  const IrNode& node = ir_[root.node];
  if (root.kind == RootKind::fold) {
    // The operand's index: the fold's own, with the inner variables put in at the folded axes.
    std::vector<Expr> inner;
    for (const DomainVariable& v : work.group.domain)
      if (v.inner) inner.push_back(v.var);
    std::vector<Expr> index;
    size_t next_inner = 0, next_kept = 0;
    const Shape& shape = ir_[node.inputs[0]].type.shape;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      bool folded = std::count(node.attrs.axes.begin(), node.attrs.axes.end(), static_cast<int64_t>(axis)) > 0;
      if (!folded) index.push_back(root.index[next_kept++]);
      else index.push_back(shape[axis] == 1 ? work.group.cx->constant(0) : inner.at(next_inner++));
    }
    int input = node.inputs[0];
    if (is_leaf(ir_, input) || is_root(input)) request(g, input, std::move(index), false);
    else collect(g, input, std::move(index), false);
  } else {
    collect(g, root.node, root.index, false);
  }
  work.group.roots.insert(work.group.roots.begin(), std::move(root));
}

/// Is there a way from what `from` computes to what `to` reads?
bool Grouper::reaches(int from, int to) const {
  if (from == to) return true;
  std::vector<int> pending{from};
  std::set<int> seen{from};
  while (!pending.empty()) {
    int g = pending.back();
    pending.pop_back();
    for (int next : groups_[static_cast<size_t>(g)]->consumers) {
      if (next == to) return true;
      if (seen.insert(next).second) pending.push_back(next);
    }
  }
  return false;
}

/// Does `index` into `shape` run through each element once as `vars` run through theirs? (Variables in any order, or their row-major number.)
bool Grouper::covers(const std::vector<Expr>& index, const Shape& shape, const std::vector<DomainVariable>& vars, ix::Context& cx) const {
  int64_t count = 1;
  for (const DomainVariable& v : vars) count *= v.extent.bound();
  if (count != volume(shape)) return false;
  std::set<const ix::Node*> used;
  bool plain = true;
  for (size_t k = 0; k < index.size(); ++k) {
    if (index[k].is_constant()) {
      plain = plain && shape[k] == 1;
      continue;
    }
    auto v = std::find_if(vars.begin(), vars.end(), [&](const DomainVariable& d) { return d.var == index[k]; });
    plain = plain && v != vars.end() && v->extent == shape[k] && used.insert(index[k].get()).second;
  }
  if (plain) return true;
  std::vector<Expr> all;
  Shape extents;
  for (const DomainVariable& v : vars) {
    if (!v.extent.is_static()) return false;
    all.push_back(v.var);
    extents.push_back(v.extent);
  }
  return ix::linear(cx, index, row_major_strides(shape)) == ix::linear(cx, all, row_major_strides(extents));
}

/// Extents of the axes that a fold runs over, those of 1 left out.
std::vector<Dim> folded_extents(const Ir& ir, int fold) {
  std::vector<Dim> extents;
  for (int64_t axis : ir[fold].attrs.axes) {
    Dim extent = ir[ir[fold].inputs[0]].type.shape[static_cast<size_t>(axis)];
    if (!(extent == 1)) extents.push_back(extent);
  }
  return extents;
}

/// Can `node`, read at `index`, be computed where the group stands? Fills in the root, and the domain with which the group goes on.
bool Grouper::aligned(const Group& group, int node, const std::vector<Expr>& index, Root& root, std::vector<DomainVariable>& domain) const {
  const Shape& shape = ir_[node].type.shape;
  bool is_fold = ir_[node].op == Op::fold;
  domain = group.domain;
  bool split = group.has_fold() || std::any_of(domain.begin(), domain.end(), [](const auto& v) { return v.inner; });
  auto part = [&](bool inner) {
    std::vector<DomainVariable> vars;
    std::copy_if(domain.begin(), domain.end(), std::back_inserter(vars), [&](const auto& v) { return v.inner == inner; });
    return vars;
  };
  root = {node, is_fold ? RootKind::fold : RootKind::full, index};
  if (!is_fold) {
    if (covers(index, shape, domain, *group.cx)) return true;
    root.kind = RootKind::row;
    return split && covers(index, shape, part(false), *group.cx);
  }
  std::vector<Dim> extents = folded_extents(ir_, node);
  if (!split) {  // the variables that the fold does not depend on become the inner domain
    for (DomainVariable& v : domain)
      v.inner = std::none_of(index.begin(), index.end(), [&](Expr e) { return ix::depends_on(e, v.var); });
    bool none = std::none_of(domain.begin(), domain.end(), [](const auto& v) { return v.inner; });
    if (none)  // a map over rows alone: the fold brings its own inner domain
      for (size_t k = 0; k < extents.size(); ++k)
        domain.push_back({group.cx->variable("k" + std::to_string(k), 0, extents[k].bound() - 1), extents[k], true});
  }
  std::vector<DomainVariable> inner = part(true);
  bool same = inner.size() == extents.size() &&
              std::equal(inner.begin(), inner.end(), extents.begin(), [](const DomainVariable& v, const Dim& d) { return v.extent == d; });
  return same && covers(index, shape, part(false), *group.cx);
}

/// A fold over outer axes walks down columns. An array that has to be made anyway is made faster along its rows, and read again.
bool against_the_grain(const std::vector<DomainVariable>& domain, const std::vector<Expr>& index) {
  bool has_inner = std::any_of(domain.begin(), domain.end(), [](const auto& v) { return v.inner; });
  auto last = std::find_if(index.rbegin(), index.rend(), [](Expr e) { return !e.is_constant(); });
  if (!has_inner || last == index.rend()) return false;
  return std::none_of(domain.begin(), domain.end(), [&](const auto& v) { return v.inner && ix::depends_on(*last, v.var); });
}

bool Grouper::join_consumer(int node) {
  auto readers = readers_.find(node);
  if (readers == readers_.end()) return false;
  // The nearest reader first: it comes last among those placed.
  std::vector<int> candidates = readers->second;
  std::sort(candidates.rbegin(), candidates.rend());
  for (int g : candidates) {
    Work& work = *groups_[static_cast<size_t>(g)];
    if (work.group.kind != Group::Kind::rows) continue;
    const Request& request = work.requests.at(node);
    Root root;
    std::vector<DomainVariable> domain;
    if (!request.same || !aligned(work.group, node, request.index, root, domain)) continue;
    if (root.kind == RootKind::full && against_the_grain(domain, request.index)) continue;
    bool cycle = std::any_of(candidates.begin(), candidates.end(), [&](int other) { return other != g && reaches(other, g); });
    if (cycle) continue;
    // Maps over the whole domain that became rows × inner need no change: their index says where they stand.
    bool was_split = std::any_of(work.group.domain.begin(), work.group.domain.end(), [](const auto& v) { return v.inner; });
    work.group.domain = domain;
    if (!was_split) offer_to_folds(g);
    if (!was_split)
      for (Root& other : work.group.roots) {
        bool on_inner = std::any_of(other.index.begin(), other.index.end(), [&](Expr e) {
          return std::any_of(domain.begin(), domain.end(), [&](const auto& v) { return v.inner && ix::depends_on(e, v.var); });
        });
        if (other.kind == RootKind::full && !on_inner && std::any_of(domain.begin(), domain.end(), [](const auto& v) { return v.inner; }))
          other.kind = RootKind::row;
      }
    work.requests.erase(node);
    append_root(g, std::move(root));
    return true;
  }
  return false;
}

std::string signature_of(const Ir& ir, int node) {
  const IrNode& n = ir[node];
  if (n.op != Op::fold) return "map " + to_string(n.type.shape);
  std::string text = "fold " + to_string(ir[n.inputs[0]].type.shape) + " over";
  for (int64_t axis : n.attrs.axes) text += fmt::format(" {}", axis);
  return text;
}

/// Roots and leaves that the value of `node` is computed from; `inlined` takes up what lies between.
std::set<int> Grouper::sources(int node, std::set<int>* inlined) const {
  std::set<int> found, seen;
  std::vector<int> pending(ir_[node].inputs.begin(), ir_[node].inputs.end());
  while (!pending.empty()) {
    int id = pending.back();
    pending.pop_back();
    if (!seen.insert(id).second) continue;
    if (is_leaf(ir_, id) || is_root(id)) found.insert(id);
    else {
      pending.insert(pending.end(), ir_[id].inputs.begin(), ir_[id].inputs.end());
      if (inlined) inlined->insert(id);
    }
  }
  return found;
}

/// A map that became rows × inner is a sibling of folds over the same inner axes.
void Grouper::offer_to_folds(int g) {
  const Group& group = groups_[static_cast<size_t>(g)]->group;
  Shape shape;
  std::string axes;
  for (size_t axis = 0; axis < group.seed_index.size(); ++axis) {
    auto v = std::find_if(group.domain.begin(), group.domain.end(), [&](const auto& d) { return d.var == group.seed_index[axis]; });
    shape.push_back(v == group.domain.end() ? Dim(1) : v->extent);
    if (v != group.domain.end() && v->inner) axes += fmt::format(" {}", axis);
  }
  if (!axes.empty()) by_signature_["fold " + to_string(shape) + " over" + axes].push_back(g);
}

/// Groups over the domain of `node`, the nearest first: further ones rarely share data that is still in the cache. A fold also fits a map over its operand's
/// shape, which then becomes rows × inner.
std::vector<int> Grouper::sibling_candidates(int node) const {
  constexpr size_t considered = 8;
  std::vector<int> candidates;
  auto add = [&](const std::string& signature, bool maps) {
    auto it = by_signature_.find(signature);
    if (it == by_signature_.end()) return;
    for (size_t k = 0; k < std::min(considered, it->second.size()); ++k) {
      int g = it->second[it->second.size() - 1 - k];
      const auto& domain = groups_[static_cast<size_t>(g)]->group.domain;
      if (!maps || std::none_of(domain.begin(), domain.end(), [](const auto& v) { return v.inner; })) candidates.push_back(g);
    }
  };
  const IrNode& n = ir_[node];
  add(signature_of(ir_, node), false);
  if (n.op == Op::fold) add("map " + to_string(ir_[n.inputs[0]].type.shape), true);
  return candidates;
}

bool Grouper::join_sibling(int node) {
  const IrNode& n = ir_[node];
  std::vector<int> candidates = sibling_candidates(node);
  if (candidates.empty()) return false;
  std::set<int> reads = sources(node);
  const std::vector<int>& read_by = readers_[node];
  for (int g : candidates) {
    Work& work = *groups_[static_cast<size_t>(g)];
    bool shares = volume(n.type.shape) == 1 && n.op != Op::fold;
    shares = shares || std::any_of(reads.begin(), reads.end(), [&](int id) { return work.requests.contains(id) && volume(ir_[id].type.shape) > 1; });
    // The group's roots come after `node`, so only a reader of `node` could make the group wait for itself.
    if (!shares || std::any_of(read_by.begin(), read_by.end(), [&](int reader) { return reaches(reader, g); })) continue;
    Root root{node, n.op == Op::fold ? RootKind::fold : RootKind::full, {}};
    bool split = false;
    for (size_t axis = 0; axis < work.group.seed_index.size(); ++axis) {
      bool folded = n.op == Op::fold && std::count(n.attrs.axes.begin(), n.attrs.axes.end(), static_cast<int64_t>(axis));
      if (!folded) root.index.push_back(work.group.seed_index[axis]);
      for (DomainVariable& v : work.group.domain)
        if (folded && v.var == work.group.seed_index[axis] && !v.inner) v.inner = split = true;
    }
    if (split) offer_to_folds(g);
    append_root(g, std::move(root));
    return true;
  }
  return false;
}

void Grouper::begin_group(int node) {
  auto work = std::make_unique<Work>();
  work->group.cx = std::make_unique<ix::Context>();
  work->group.signature = signature_of(ir_, node);
  const IrNode& n = ir_[node];
  bool is_fold = n.op == Op::fold;
  const Shape& shape = is_fold ? ir_[n.inputs[0]].type.shape : n.type.shape;
  work->group.seed_index = domain(*work->group.cx, shape, "i");
  Root root{node, is_fold ? RootKind::fold : RootKind::full, {}};
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    bool folded = is_fold && std::count(n.attrs.axes.begin(), n.attrs.axes.end(), static_cast<int64_t>(axis)) > 0;
    if (!work->group.seed_index[axis].is_constant()) work->group.domain.push_back({work->group.seed_index[axis], shape[axis], folded});
    if (!folded) root.index.push_back(work->group.seed_index[axis]);
  }
  int g = static_cast<int>(groups_.size());
  by_signature_[work->group.signature].push_back(g);
  groups_.push_back(std::move(work));
  append_root(g, std::move(root));
}

void Grouper::place_dot(int node) {
  auto work = std::make_unique<Work>();
  work->group.kind = Group::Kind::dot;
  work->group.cx = std::make_unique<ix::Context>();
  work->group.dot = plan_dot(ir_, strides_, base_root_, dot_result_.at(node), node);
  work->group.roots.push_back({node, RootKind::full, {}});
  int g = static_cast<int>(groups_.size());
  const DotPlan plan = work->group.dot;
  groups_.push_back(std::move(work));
  group_of_[static_cast<size_t>(node)] = g;
  for (int reader : readers_[node]) groups_[static_cast<size_t>(g)]->consumers.insert(reader);
  for (int operand : {plan.a, plan.b, plan.bias})
    if (operand >= 0) request(g, operand, {}, true);
}

void Grouper::place_scatter(int node) {
  auto work = std::make_unique<Work>();
  work->group.kind = Group::Kind::scatter;
  work->group.cx = std::make_unique<ix::Context>();
  work->group.roots.push_back({node, RootKind::full, {}});
  int g = static_cast<int>(groups_.size());
  groups_.push_back(std::move(work));
  group_of_[static_cast<size_t>(node)] = g;
  for (int reader : readers_[node]) groups_[static_cast<size_t>(g)]->consumers.insert(reader);
  std::set<int> inlined;
  for (int id : sources(node, &inlined)) request(g, id, {}, true);
  groups_[static_cast<size_t>(g)]->inlined = std::move(inlined);
}

// ---------------------------------------------------------------- sharing between groups

struct Cost {
  double flops = 0;
  std::set<int> loads;    // of arrays
  std::set<int> scalars;  // of single elements
};

/// Nodes that several groups would compute again from more than a few loads or operations get memory of their own.
bool Grouper::promote_shared() {
  std::vector<int> groups_using(ir_.nodes.size());
  for (const auto& work : groups_)
    for (int id : work->inlined) ++groups_using[static_cast<size_t>(id)];
  std::vector<Cost> costs(ir_.nodes.size());
  size_t before = promoted_.size();
  for (int id = 0; id < ir_.size(); ++id) {
    const IrNode& n = ir_[id];
    Cost& cost = costs[static_cast<size_t>(id)];
    if (is_leaf(ir_, id) || is_root(id)) {
      (volume(n.type.shape) > 1 ? cost.loads : cost.scalars) = {id};
      continue;
    }
    for (int input : n.inputs) {
      const Cost& c = costs[static_cast<size_t>(input)];
      cost.flops += c.flops;
      if (cost.loads.size() <= recompute_loads) cost.loads.insert(c.loads.begin(), c.loads.end());
      if (cost.scalars.size() <= recompute_scalars) cost.scalars.insert(c.scalars.begin(), c.scalars.end());
    }
    int scalar = graph::row(n.op).scalar;
    cost.flops += n.op == Op::random_bits ? 120 : scalar >= 0 ? kernel::info(static_cast<kernel::ScalarOp>(scalar)).flops : 0;
    // A value that is computed once and read many times by broadcasting is worth keeping, too.
    double repeats = 1;
    for (int user : users_[static_cast<size_t>(id)])
      if (ir_[user].op == Op::broadcast) repeats = std::max(repeats, static_cast<double>(volume(ir_[user].type.shape)) / static_cast<double>(std::max<int64_t>(1, volume(n.type.shape))));
    bool costly = cost.flops > recompute_flops || cost.loads.size() > recompute_loads || cost.scalars.size() > recompute_scalars;
    bool repeated = repeats >= 64 && cost.flops >= 16 && volume(n.type.shape) >= 64 && !rows_compute(id);
    bool shared = groups_using[static_cast<size_t>(id)] > 1 && costly;
    if ((shared || repeated) && (is_elementwise(n.op) || n.op == Op::gather || n.op == Op::random_bits) && volume(n.type.shape) > 0) {
      promoted_.insert(id);
      cost = volume(n.type.shape) > 1 ? Cost{0, {id}, {}} : Cost{0, {}, {id}};
    }
  }
  return promoted_.size() != before;
}

/// Is the node computed in groups with folds only? There a row's value is computed once for the row.
bool Grouper::rows_compute(int node) const {
  for (const auto& work : groups_)
    if (work->inlined.contains(node) && !work->group.has_fold()) return false;
  return true;
}

// ---------------------------------------------------------------- result

Grouping Grouper::finish() {
  Grouping result;
  // Producers first: groups were begun consumers first, but joins may have moved work; order by dependences, nearest to program order.
  std::vector<int> waiting(groups_.size());
  for (const auto& work : groups_)
    for (int consumer : work->consumers) ++waiting[static_cast<size_t>(consumer)];
  auto first_root = [&](int g) {
    int id = ir_.size();
    for (const Root& root : groups_[static_cast<size_t>(g)]->group.roots) id = std::min(id, root.node);
    return id;
  };
  std::set<std::pair<int, int>> ready;
  for (size_t g = 0; g < groups_.size(); ++g)
    if (waiting[g] == 0) ready.insert({first_root(static_cast<int>(g)), static_cast<int>(g)});
  std::vector<int> new_number(groups_.size(), -1);
  while (!ready.empty()) {
    int g = ready.begin()->second;
    ready.erase(ready.begin());
    new_number[static_cast<size_t>(g)] = static_cast<int>(result.groups.size());
    Work& work = *groups_[static_cast<size_t>(g)];
    for (const auto& [id, request] : work.requests) work.group.reads.push_back(id);
    for (int consumer : work.consumers)
      if (--waiting[static_cast<size_t>(consumer)] == 0) ready.insert({first_root(consumer), consumer});
    result.groups.push_back(std::move(work.group));
  }
  check(result.groups.size() == groups_.size(), "group", "groups wait for each other");
  result.is_root.resize(ir_.nodes.size());
  for (int id = 0; id < ir_.size(); ++id) result.is_root[static_cast<size_t>(id)] = is_root(id);
  result.group_of = group_of_;
  for (int& g : result.group_of)
    if (g >= 0) g = new_number[static_cast<size_t>(g)];
  result.strides = strides_;
  return result;
}

}  // namespace

int output_node(const Ir& ir, int output) {
  int node = output;
  while (ir[node].op == Op::reshape) node = ir[node].inputs[0];
  if (node != output && !ir[node].row_major) return output;
  return is_movement(ir[node].op) || ir[node].op == Op::constant || ir[node].op == Op::iota ? output : node;
}

Grouping group(const Ir& ir, const std::vector<Layout>& layouts, const Policy&) { return Grouper(ir, layouts).run(); }

std::string print(const Ir& ir, const Grouping& grouping) {
  std::string text;
  for (size_t g = 0; g < grouping.groups.size(); ++g) {
    const Group& group = grouping.groups[g];
    const char* kinds[] = {"rows", "dot", "scatter"};
    text += fmt::format("group {} {}", g, kinds[static_cast<int>(group.kind)]);
    for (const DomainVariable& v : group.domain)
      text += fmt::format(" {}{}<{}", v.inner ? "inner " : "", ix::to_string(v.var), v.extent.symbol() ? v.extent.symbol()->name : std::to_string(v.extent.bound()));
    if (group.kind == Group::Kind::dot) text += " " + group.dot.desc.to_string();
    text += fmt::format(" reads %{}\n", fmt::join(group.reads, " %"));
    const char* root_kinds[] = {"fold", "full", "row"};
    for (const Root& root : group.roots) text += fmt::format("  {} {}\n", root_kinds[static_cast<int>(root.kind)], print(ir, root.node));
  }
  return text;
}

}  // namespace weft::compiler
