// Rules of rows groups: the domain, each root's index in it, and where the roots read each other.
#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "compiler/fusion/group_check.h"

namespace weft::compiler {

using graph::Op;
using ix::Expr;

std::vector<int64_t> sample(size_t number, std::span<const int64_t> highest) {
  std::vector<int64_t> values;
  uint64_t state = 0x9e3779b97f4a7c15 * (number + 1);
  for (const int64_t top : highest) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;  // xorshift
    const auto extent = static_cast<uint64_t>(std::max<int64_t>(top, 0)) + 1;
    values.push_back(number == 0 ? 0 : number == 1 ? std::max<int64_t>(top, 0) : static_cast<int64_t>(state % extent));
  }
  return values;
}

namespace {

class RowsVerifier {
 public:
  explicit RowsVerifier(const GroupCheck& check) : c_(check), ir_(check.ir), group_(check.group()) {}

  void run() {
    domain();
    for (const Root& root : group_.roots) {
      bounds(root);
      if (root.kind == RootKind::reduce) reduction(root);
      else if (root.kind == RootKind::column) column(root);
      else map(root);
    }
  }

 private:
  /// Requires that the domain's variables are the group's own, each once over its extent, and sorts them into rows and
  /// inner ones.
  void domain() {
    const int seed = group_.roots[0].node;
    for (const DomainVariable& v : group_.domain) {
      c_.require(v.var && v.var->kind == ix::Kind::variable && group_.cx.owns(v.var),
                 "a domain variable is the group's own", seed);
      c_.require(v.var->min == 0 && v.var->max == v.extent.bound() - 1, "a domain variable runs over its extent", seed);
      c_.require(ids_.insert(v.var->value).second, "a domain variable occurs once", seed);
      highest_.resize(std::max(highest_.size(), static_cast<size_t>(v.var->value) + 1), 0);
      highest_[static_cast<size_t>(v.var->value)] = v.var->max;
      (v.inner ? inner_ : rows_).push_back(v);
    }
  }

  /// Requires an index of the right rank whose expressions' known bounds lie within the root's shape.
  void bounds(const Root& root) const {
    const Shape& shape = ir_[root.node].type.shape;
    c_.require(root.index.size() == shape.size(), "a root has an index for each axis", root.node);
    for (size_t k = 0; k < shape.size(); ++k) {
      const Expr e = root.index[k];
      c_.require(bool(e), "a root has an index for each axis", root.node);
      ix::variables(e, [&](Expr v) {
        c_.require(group_.cx.owns(v) && ids_.contains(v->value), "a root's index is over the group's domain",
                   root.node);
      });
      c_.require(volume(shape) == 0 || (e->min >= 0 && e->max < shape[k].bound()),
                 "a root's index lies within its shape", root.node);
    }
  }

  void map(const Root& root) const {
    c_.require(ir_[root.node].op != Op::reduce, "a reduction stands as one or as columns", root.node);
    // A root may be smaller than the domain: points that differ in other variables alone store the same value.
    std::set<int64_t> used;
    for (const Expr e : root.index) ix::variables(e, [&](Expr v) { used.insert(v->value); });
    std::vector<DomainVariable> over = root.kind == RootKind::row ? rows_ : group_.domain;
    std::erase_if(over, [&](const DomainVariable& v) { return !used.contains(v.var->value); });
    c_.require(covers(root, over), "a root's index runs through each of its elements once", root.node);
  }

  /// Requires that a reduction runs over the inner domain and has one value a row.
  void reduction(const Root& root) const {
    c_.require(ir_[root.node].op == Op::reduce, "only a reduction stands as one", root.node);
    const IrNode& n = ir_[root.node];
    std::vector<Dim> extents;
    for (const int64_t axis : n.attrs->axes)
      if (const Dim& extent = ir_[n.inputs[0]].type.shape[static_cast<size_t>(axis)]; !(extent == 1))
        extents.push_back(extent);
    c_.require(std::equal(inner_.begin(), inner_.end(), extents.begin(), extents.end(),
                          [](const DomainVariable& v, const Dim& d) { return v.extent == d; }),
               "a reduction runs over the group's inner domain", root.node);
    c_.require(covers(root, rows_), "a root's index runs through each of its elements once", root.node);
  }

  /// Requires that a column root's index is the part of the rows, then the inner variables.
  void column(const Root& root) const {
    constexpr const char* rule = "a column root has a value for each part of the rows and each column";
    const IrNode& n = ir_[root.node];
    c_.require(
        n.op == Op::reduce && !has_results(n) && n.attrs->axes == std::vector<int64_t>{1} && !n.type.shape.empty(),
        rule, root.node);
    const Shape& shape = ir_[n.inputs[0]].type.shape;
    const int64_t each = shape[1].bound();
    int64_t rows = 1;
    for (const DomainVariable& v : rows_) rows *= v.extent.bound();
    c_.require(rows == shape[0].bound() * each, rule, root.node);
    for (size_t number = 0; number < samples; ++number) {
      const std::vector<int64_t> at = sample(number, highest_);
      int64_t row = 0;
      for (const DomainVariable& v : rows_) row = row * v.extent.bound() + at[static_cast<size_t>(v.var->value)];
      c_.require(ix::evaluate(root.index[0], at) == row / each, rule, root.node);
    }
    Shape columns(n.type.shape.begin() + 1, n.type.shape.end());
    c_.require(covers({root.index.begin() + 1, root.index.end()}, columns, inner_), rule, root.node);
  }

  bool covers(const Root& root, const std::vector<DomainVariable>& vars) const {
    return covers(root.index, ir_[root.node].type.shape, vars);
  }

  /// Returns whether the index visits each element of the shape once as the variables run over their extents: its
  /// row-major offset must be a sum of variables times strides that number the elements without gaps.
  bool covers(const std::vector<Expr>& index, const Shape& shape, const std::vector<DomainVariable>& vars) const {
    if (volume(shape) == 0) return true;
    if (is_plain(index, shape, vars)) return true;
    const Strides strides = row_major_strides(shape);
    std::vector<int64_t> at(highest_.size(), 0);
    const auto number = [&] {
      int64_t n = 0;
      for (size_t k = 0; k < index.size(); ++k) n += ix::evaluate(index[k], at) * strides[k];
      return n;
    };
    if (number() != 0) return false;
    std::vector<std::pair<int64_t, int64_t>> axes;  // stride, extent
    std::vector<std::pair<size_t, int64_t>> terms;  // variable, stride
    for (const DomainVariable& v : vars) {
      if (!v.extent.is_static()) return false;
      if (v.extent == 1) continue;
      const auto id = static_cast<size_t>(v.var->value);
      at[id] = 1;
      terms.emplace_back(id, number());
      axes.emplace_back(terms.back().second, v.extent.bound());
      at[id] = 0;
    }
    std::sort(axes.begin(), axes.end());
    int64_t expected = 1;
    for (const auto& [stride, extent] : axes) {
      if (stride != expected) return false;
      expected *= extent;
    }
    if (expected != volume(shape)) return false;
    for (size_t k = 0; k < samples; ++k) {
      at = sample(k, highest_);
      int64_t sum = 0;
      for (const auto& [id, stride] : terms) sum += at[id] * stride;
      if (number() != sum) return false;
    }
    return true;
  }

  /// Returns whether each axis has a variable of its own, and each variable an axis.
  static bool is_plain(const std::vector<Expr>& index, const Shape& shape, const std::vector<DomainVariable>& vars) {
    size_t used = 0;
    std::set<const ix::Node*> seen;
    for (size_t k = 0; k < index.size(); ++k) {
      if (index[k].is_constant(0) && shape[k] == 1) continue;
      const auto v = std::find_if(vars.begin(), vars.end(), [&](const DomainVariable& d) { return d.var == index[k]; });
      if (v == vars.end() || !(v->extent == shape[k]) || !seen.insert(v->var.get()).second) return false;
      ++used;
    }
    return used == vars.size();
  }

  const GroupCheck& c_;
  const Ir& ir_;
  const Group& group_;
  std::vector<DomainVariable> rows_, inner_;
  std::set<int64_t> ids_;
  std::vector<int64_t> highest_;  // by variable of the group's context: its largest value; 0 outside the domain
};

}  // namespace

void verify_rows(const GroupCheck& check) { RowsVerifier(check).run(); }

void verify_alignment(const GroupCheck& check) {
  PointWalk walk(check);
  for (const PointWalk::Read& read : walk.reads()) {
    const std::vector<Root>& roots = check.group().roots;
    const auto own = std::find_if(roots.begin(), roots.end(), [&](const Root& r) { return r.node == read.node; });
    if (own == roots.end()) continue;
    check.require(own->kind != RootKind::column, "no root of a group reads its columns", read.node);
    check.require(!read.conditional && walk.same(read.index, walk.copy(own->index)),
                  "a root is read in its own group where it stands", read.node);
  }
}

// ---------------------------------------------------------------- the walk

PointWalk::PointWalk(const GroupCheck& check) : check_(check) {
  for (size_t k = 0; k < check.group().roots.size(); ++k) walk(k);
}

Expr PointWalk::variable(int64_t min, int64_t max) {
  highest_.push_back(max);
  return cx_.variable("v", min, max);
}

Expr PointWalk::copy(Expr e) {
  if (const auto known = copies_.find(e.get()); known != copies_.end()) return known->second;
  const auto operand = [&](const ix::Node* n) { return copy(Expr(n)); };
  Expr out;
  switch (e->kind) {
    case ix::Kind::constant: out = cx_.constant(e->value); break;
    case ix::Kind::variable: out = variable(e->min, e->max); break;
    case ix::Kind::add: out = cx_.add(operand(e->a), operand(e->b)); break;
    case ix::Kind::mul: out = cx_.mul(operand(e->a), e->b->value); break;
    case ix::Kind::floordiv: out = cx_.floordiv(operand(e->a), e->b->value); break;
    case ix::Kind::mod: out = cx_.mod(operand(e->a), e->b->value); break;
    case ix::Kind::min: out = cx_.min(operand(e->a), operand(e->b)); break;
    case ix::Kind::max: out = cx_.max(operand(e->a), operand(e->b)); break;
    case ix::Kind::less: out = cx_.less(operand(e->a), operand(e->b)); break;
    case ix::Kind::both: out = cx_.both(operand(e->a), operand(e->b)); break;
    case ix::Kind::either: out = cx_.either(operand(e->a), operand(e->b)); break;
  }
  return copies_[e.get()] = out;
}

std::vector<Expr> PointWalk::copy(const std::vector<Expr>& index) {
  std::vector<Expr> out;
  for (const Expr e : index) out.push_back(copy(e));
  return out;
}

bool PointWalk::same(Expr a, Expr b) const {
  if (a == b) return true;
  for (size_t number = 0; number < samples; ++number) {
    const std::vector<int64_t> at = sample(number, highest_);
    if (ix::evaluate(a, at) != ix::evaluate(b, at)) return false;
  }
  return true;
}

bool PointWalk::same(const std::vector<Expr>& a, const std::vector<Expr>& b) const {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](Expr x, Expr y) { return same(x, y); });
}

bool PointWalk::in_pair(Expr read, Expr store) {
  const std::vector<DomainVariable>& domain = check_.group().domain;
  const bool map = std::none_of(domain.begin(), domain.end(), [](const DomainVariable& v) { return v.inner; });
  if (!map || domain.empty() || !(domain.back().extent == 2)) return false;
  const auto last = static_cast<size_t>(copy(domain.back().var)->value);
  for (size_t number = 0; number < samples; ++number) {
    std::vector<int64_t> at = sample(number, highest_);
    const int64_t wanted = ix::evaluate(read, at);
    at[last] = 0;
    const bool first = ix::evaluate(store, at) == wanted;
    at[last] = 1;
    if (!first && ix::evaluate(store, at) != wanted) return false;
  }
  return true;
}

Expr PointWalk::offset(NodeId node, const std::vector<Expr>& index) {
  return ix::linear(cx_, index, check_.grouping.strides[node]);
}

/// Returns the index at which a reduction reads its operand at a point of the domain.
std::vector<Expr> PointWalk::operand_index(const Root& root) {
  const Group& group = check_.group();
  const IrNode& n = check_.ir[root.node];
  const Shape& shape = check_.ir[n.inputs[0]].type.shape;
  std::vector<Expr> own = copy(root.index), index;
  if (root.kind == RootKind::column) {
    Expr row = cx_.constant(0);
    for (const DomainVariable& v : group.domain)
      if (!v.inner) row = row * v.extent.bound() + copy(v.var);
    index = {own[0], row % shape[1].bound()};
    index.insert(index.end(), own.begin() + 1, own.end());
    return index;
  }
  std::vector<Expr> inner;
  for (const DomainVariable& v : group.domain)
    if (v.inner) inner.push_back(copy(v.var));
  size_t next_inner = 0, next_own = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const bool reduced = std::count(n.attrs->axes.begin(), n.attrs->axes.end(), static_cast<int64_t>(axis)) > 0;
    index.push_back(!reduced ? own.at(next_own++) : shape[axis] == 1 ? cx_.constant(0) : inner.at(next_inner++));
  }
  return index;
}

/// Walks from a root to what it reads, down to roots and inputs, and records each read with its index.
void PointWalk::walk(size_t number) {
  const Ir& ir = check_.ir;
  const Root& root = check_.group().roots[number];
  IndexTuples positions;
  std::vector<std::tuple<int, int, bool>> pending;
  const bool reduces = root.kind == RootKind::reduce || root.kind == RootKind::column;
  if (reduces)
    for (const NodeId input : ir[root.node].inputs)
      pending.emplace_back(input, positions.of(operand_index(root)), false);
  else pending.emplace_back(root.node, positions.of(copy(root.index)), false);
  bool body = !reduces;
  while (!pending.empty()) {
    const auto [id, position, conditional] = pending.back();
    pending.pop_back();
    const bool computed = std::exchange(body, false);
    if (!positions.visit(id, position, conditional)) continue;
    const std::vector<Expr>& at = positions[position];
    if (!computed && check_.in_memory(id)) {
      reads_.push_back({static_cast<int>(number), id, at, conditional});
      continue;
    }
    const IrNode& n = ir[id];
    if (n.op == Op::concat) {
      for (Access& access : push_concat(cx_, ir, id, at))
        pending.emplace_back(access.node, positions.of(std::move(access.index)), true);
    } else if (is_movement(n.op)) {
      Access access = push(cx_, ir, id, at);
      pending.emplace_back(access.node, positions.of(std::move(access.index)), conditional || access.valid);
    } else if (n.op == Op::gather) {
      const auto rank = static_cast<std::ptrdiff_t>(index_rank(ir, id));
      std::vector<Expr> inside(at.begin() + rank, at.end());
      for (size_t k = 0; k < n.attrs->axes.size(); ++k) {
        pending.emplace_back(n.inputs[k + 1], positions.of({at.begin(), at.begin() + rank}), conditional);
        const auto axis = static_cast<size_t>(n.attrs->axes[k]);
        const int64_t range = ir[n.inputs[0]].type.shape[axis].bound() - n.attrs->shape[axis].bound();
        inside[axis] = inside[axis] + variable(0, std::max<int64_t>(0, range));
      }
      pending.emplace_back(n.inputs[0], positions.of(std::move(inside)), true);
    } else if (n.op == Op::random_bits) {
      std::vector<Expr> word(at.begin(), at.end() - static_cast<std::ptrdiff_t>(n.attrs->shape.size()));
      word.emplace_back();
      for (const int64_t k : {0, 1}) {
        word.back() = cx_.constant(k);
        pending.emplace_back(n.inputs[0], positions.of(word), true);
      }
    } else {
      for (const NodeId input : n.inputs) pending.emplace_back(input, position, conditional);
    }
  }
}

}  // namespace weft::compiler
