#include "compiler/rewrite/simplify.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "graph/control/control.h"
#include "graph/table.h"

namespace weft::compiler {

using graph::Attrs;
using graph::Op;
using kernel::Reducer;

namespace {

/// Rebuilds a graph node by node: `add` returns an existing equal node, the result of a rule, or a new node.
class Rebuilder {
 public:
  explicit Rebuilder(Ir source) : source_(std::move(source)), map_(source_.nodes.size(), -1) {}

  Ir run() {
    out_.nodes.reserve(source_.nodes.size());
    known_.reserve(source_.nodes.size());
    auto take = [&](int id) { return std::move(source_.nodes[static_cast<size_t>(id)]); };
    auto mapped = [&](int id) -> int& { return map_[static_cast<size_t>(id)]; };
    for (int id : source_.inputs) out_.inputs.push_back(mapped(id) = append(take(id)));
    for (int id = 0; id < source_.size(); ++id) {
      if (mapped(id) >= 0) continue;
      IrNode node = take(id);
      for (int& input : node.inputs) input = mapped(input);
      mapped(id) = add(std::move(node));
    }
    for (int id : source_.outputs) out_.outputs.push_back(mapped(id));
    return eliminate_dead_code(std::move(out_));
  }

  int add(IrNode node) {
    if (std::optional<int> better = rewrite(node)) return *better;
    Digest key = hash(node);
    auto [it, fresh] = known_.try_emplace(key, out_.size());
    if (fresh) append(std::move(node));
    return it->second;
  }

  const IrNode& operator[](int id) const { return out_[id]; }

  // Short forms in which the rules are written.
  int make(Op op, std::vector<int> inputs, graph::Type type, Attrs attrs = {}) {
    return add({op, std::move(inputs), std::move(attrs), std::move(type), true});
  }
  int broadcast_to(int id, const Shape& shape) {
    Attrs attrs;
    attrs.shape = shape;
    return make(Op::broadcast, {id}, {shape, (*this)[id].type.dtype}, attrs);
  }
  int constant(Dtype dtype, Number number) {
    Attrs attrs;
    attrs.dtype = dtype;
    attrs.number = kernel::round_to(number, dtype);
    return make(Op::constant, {}, {{}, dtype}, attrs);
  }
  int constant_like(const graph::Type& type, Number number) {
    int scalar = constant(type.dtype, number);
    return type.shape.empty() ? scalar : broadcast_to(scalar, type.shape);
  }
  /// The number of which every element of `id` is a copy.
  std::optional<Number> splat(int id) const {
    while ((*this)[id].op == Op::broadcast || (*this)[id].op == Op::reshape) id = (*this)[id].inputs[0];
    if ((*this)[id].op == Op::constant) return (*this)[id].attrs->number;
    return std::nullopt;
  }
  bool is_splat(int id, double value) const {
    auto number = splat(id);
    return number && number->real() == value && !std::signbit(number->real());
  }

 private:
  int append(IrNode node) {
    out_.nodes.push_back(std::move(node));
    return out_.size() - 1;
  }
  std::optional<int> rewrite(const IrNode& node);  // `node` is not in the graph yet: rules append to that
  static Digest hash(const IrNode& node);

  Ir source_;
  Ir out_;
  std::vector<int> map_;  // by id in `source_`; -1: not yet
  std::unordered_map<Digest, int> known_;
};

Digest Rebuilder::hash(const IrNode& node) {
  Hasher h;
  h.number(static_cast<uint64_t>(node.op) | static_cast<uint64_t>(node.type.dtype.val()) << 8 |
           static_cast<uint64_t>(node.output) << 16 | static_cast<uint64_t>(node.inputs.size()) << 32);
  h.bytes(node.inputs.data(), node.inputs.size() * sizeof(int));
  for (const Dim& d : node.type.shape) h.number(d.bound()).number(reinterpret_cast<uintptr_t>(d.symbol()));
  graph::hash(h, node.attrs);
  return h.finish();
}

// ---------------------------------------------------------------- rules: each returns the id of what the node is
//   replaced by, or nothing

using Result = std::optional<int>;

/// f(constants) → constant, for elementwise operators.
Result fold_constants(Rebuilder& g, const IrNode& n) {
  if (!is_elementwise(n.op) || n.op == Op::bitcast) return {};
  std::vector<Number> numbers;
  for (int input : n.inputs) {
    auto number = g.splat(input);
    if (!number) return {};
    numbers.push_back(*number);
  }
  Dtype operand = g[n.inputs.back()].type.dtype;
  Number value = n.op == Op::cast ? kernel::reference_cast(numbers[0], operand, n.type.dtype)
                                  : kernel::reference(static_cast<kernel::ScalarOp>(graph::row(n.op).scalar), operand,
                                                      numbers.data());
  return g.constant_like(n.type, value);
}

/// Movement that moves nothing, and movement of movement.
Result merge_movement(Rebuilder& g, const IrNode& n) {
  if (!is_movement(n.op) || n.op == Op::concat) return {};
  int x = n.inputs[0];
  const IrNode& in = g[x];
  bool same_shape = in.type.shape == n.type.shape;
  switch (n.op) {
    case Op::stop_gradient: return x;
    case Op::reshape:
      if (same_shape) return x;  // reshape(x) → x
      if (in.op == Op::reshape)
        return g.make(Op::reshape, {in.inputs[0]}, n.type, n.attrs);  // reshape(reshape(x)) → reshape(x)
      if (in.op == Op::broadcast && g[in.inputs[0]].type.shape.empty())
        return g.broadcast_to(in.inputs[0], n.type.shape);
      return {};
    case Op::broadcast:
      if (same_shape) return x;
      if (in.op == Op::broadcast) return g.make(Op::broadcast, {in.inputs[0]}, n.type, n.attrs);
      return {};
    case Op::permute: {
      if (std::is_sorted(n.attrs->axes.begin(), n.attrs->axes.end())) return x;
      if (in.op == Op::broadcast && g[in.inputs[0]].type.shape.empty())
        return g.broadcast_to(in.inputs[0], n.type.shape);
      if (in.op != Op::permute) return {};
      Attrs attrs;
      for (int64_t axis : n.attrs->axes) attrs.axes.push_back(in.attrs->axes[static_cast<size_t>(axis)]);
      return g.make(Op::permute, {in.inputs[0]}, n.type, attrs);
    }
    case Op::slice:
      if (same_shape && std::all_of(n.attrs->step.begin(), n.attrs->step.end(), [](int64_t s) { return s == 1; }))
        return x;
      if (in.op == Op::broadcast && g[in.inputs[0]].type.shape.empty())
        return g.broadcast_to(in.inputs[0], n.type.shape);
      return {};
    case Op::window:
      if (in.op == Op::broadcast && g[in.inputs[0]].type.shape.empty())
        return g.broadcast_to(in.inputs[0], n.type.shape);
      return {};
    case Op::pad: return same_shape ? Result(x) : Result{};
    default: return {};
  }
}

/// concat(x) → x.
Result single_concat(Rebuilder&, const IrNode& n) {
  return n.op == Op::concat && n.inputs.size() == 1 ? Result(n.inputs[0]) : Result{};
}

/// concat(x[…, :a], x[…, a:b], x[…, b:]) → x: the parts of a complex number, put together again.
Result joined_slices(Rebuilder& g, const IrNode& n) {
  if (n.op != Op::concat) return {};
  const auto axis = static_cast<size_t>(n.attrs->axes[0]);
  int64_t next = 0;
  int whole = -1;
  for (int input : n.inputs) {
    const IrNode& part = g[input];
    if (part.op != Op::slice || (whole >= 0 && part.inputs[0] != whole)) return {};
    whole = part.inputs[0];
    const Shape& shape = g[whole].type.shape;
    for (size_t k = 0; k < shape.size(); ++k)
      if (part.attrs->step[k] != 1 || part.attrs->start[k] != (k == axis ? next : 0) ||
          (k != axis && !(part.type.shape[k] == shape[k])))
        return {};
    if (!part.type.shape[axis].is_static()) return {};
    next += part.type.shape[axis].bound();
  }
  return whole >= 0 && g[whole].type.shape[axis] == Dim(next) ? Result(whole) : Result{};
}

/// What may be added without effect: 0 for integers, but only -0.0 for floats (-0.0 + 0.0 is 0.0).
bool is_neutral_zero(const Rebuilder& g, int id, bool whole) {
  auto number = g.splat(id);
  return number && number->real() == 0 && (whole || std::signbit(number->real()));
}

/// x+0, x-0, x*1, x/1, integer x*0, --x, x&true …
Result identities(Rebuilder& g, const IrNode& n) {
  if (n.inputs.size() == 1) {
    const IrNode& in = g[n.inputs[0]];
    if (n.op == Op::neg && in.op == Op::neg) return in.inputs[0];
    if (n.op == Op::bit_not && in.op == Op::bit_not) return in.inputs[0];
    return {};
  }
  if (n.inputs.size() != 2) return {};
  int a = n.inputs[0], b = n.inputs[1];
  bool whole = is_integer(n.type.dtype);
  switch (n.op) {
    case Op::add:
      if (is_neutral_zero(g, b, whole)) return a;
      if (is_neutral_zero(g, a, whole)) return b;
      return {};
    case Op::sub: return g.is_splat(b, 0) ? Result(a) : Result{};
    case Op::mul:
      if (g.is_splat(b, 1)) return a;
      if (g.is_splat(a, 1)) return b;
      if (whole && (g.is_splat(a, 0) || g.is_splat(b, 0))) return g.constant_like(n.type, Number::of_int(0));
      return {};
    case Op::div: return g.is_splat(b, 1) ? Result(a) : Result{};
    case Op::bit_and:
      if (n.type.dtype != bool_) return {};
      return g.is_splat(b, 1) ? Result(a) : g.is_splat(a, 1) ? Result(b) : Result{};
    case Op::bit_or:
      if (n.type.dtype != bool_) return {};
      return g.is_splat(b, 0) ? Result(a) : g.is_splat(a, 0) ? Result(b) : Result{};
    default: return {};
  }
}

/// cast(x) to its own type → x; a cast there and back through a wider float → x.
Result casts(Rebuilder& g, const IrNode& n) {
  if (n.op != Op::cast) return {};
  const IrNode& in = g[n.inputs[0]];
  if (in.type.dtype == n.type.dtype) return n.inputs[0];
  bool widened = in.op == Op::cast && g[in.inputs[0]].type.dtype == n.type.dtype && is_float(n.type.dtype) &&
                 promote_types(n.type.dtype, in.type.dtype) == in.type.dtype;
  return widened ? Result(in.inputs[0]) : Result{};
}

/// select(constant, a, b) → a or b; select(c, a, a) → a.
Result selects(Rebuilder& g, const IrNode& n) {
  if (n.op != Op::select) return {};
  if (n.inputs[1] == n.inputs[2]) return n.inputs[1];
  auto condition = g.splat(n.inputs[0]);
  return condition ? Result(condition->i ? n.inputs[1] : n.inputs[2]) : Result{};
}

/// A reduction over nothing → the reducer's identity; over axes of extent 1 only → reshape.
Result trivial_reduction(Rebuilder& g, const IrNode& n) {
  if (n.op != Op::reduce) return {};
  const Shape& shape = g[n.inputs[0]].type.shape;
  for (int64_t axis : n.attrs->axes)
    if (shape[static_cast<size_t>(axis)] == 0)
      return g.constant_like(n.type, kernel::identity(n.attrs->reducer, n.type.dtype));
  for (int64_t axis : n.attrs->axes)
    if (!(shape[static_cast<size_t>(axis)] == 1)) return {};
  Attrs attrs;
  attrs.shape = n.type.shape;
  return g.make(Op::reshape, {n.inputs[0]}, n.type, attrs);
}

/// A cumulative reduction over a single element → that, or the identity.
Result trivial_cumulative(Rebuilder& g, const IrNode& n) {
  if (n.op != Op::cumulative || n.type.shape[static_cast<size_t>(n.attrs->axes[0])].bound() != 1) return {};
  if (n.attrs->integers[1] == 0) return n.inputs[0];
  return g.constant_like(
      n.type, n.attrs->integers[2] ? Number::of_real(-INFINITY) : kernel::identity(n.attrs->reducer, n.type.dtype));
}

/// A dot that contracts nothing (an axis of extent 0) → zeros.
Result empty_dot(Rebuilder& g, const IrNode& n) {
  if (n.op != Op::dot) return {};
  for (int64_t axis : n.attrs->axes)
    if (g[n.inputs[0]].type.shape[static_cast<size_t>(axis)] == 0) return g.constant_like(n.type, Number::of_real(0));
  return {};
}

/// A scatter of nothing → its operand; an assignment of everything, in order → what is assigned.
Result empty_scatter(Rebuilder& g, const IrNode& n) {
  if (!writes_operand(n.op)) return {};
  const bool whole = n.op == Op::assign && g[n.inputs[1]].type.shape == n.type.shape;
  if (whole && std::all_of(n.attrs->step.begin(), n.attrs->step.end(), [](int64_t s) { return s == 1; }))
    return n.inputs[1];
  for (const Dim& d : g[n.inputs.back()].type.shape)
    if (d == 0) return n.inputs[0];
  return {};
}

/// A reduction to few results over many elements → two reductions, so that there are programs for all threads. The cut
/// depends on the shape alone.
Result split_reduction(Rebuilder& g, const IrNode& n) {
  if (n.op != Op::reduce) return {};
  constexpr int64_t long_reduction = 1 << 17, few_rows = 8;
  const graph::Type type = g[n.inputs[0]].type;
  int64_t reduced = 1, kept = 1;
  for (const Dim& d : n.type.shape) kept *= d.bound();
  for (int64_t axis : n.attrs->axes) {
    if (!type.shape[static_cast<size_t>(axis)].is_static()) return {};
    reduced *= type.shape[static_cast<size_t>(axis)];
  }
  if (reduced < long_reduction || kept >= few_rows) return {};
  // Cut the first folded axis: into pieces if it is long, else off from the others.
  auto axis = static_cast<size_t>(n.attrs->axes[0]);
  int64_t extent = type.shape[axis], pieces = 1;
  for (int64_t p = 2; p <= 256; ++p)
    if (extent % p == 0 && reduced / p >= 1024) pieces = p;
  int x = n.inputs[0];
  Attrs first = n.attrs;
  graph::Type partial{{}, n.type.dtype};
  if (pieces > 1 && (pieces >= 8 || n.attrs->axes.size() == 1)) {
    Attrs cut;
    cut.shape = type.shape;
    cut.shape[axis] = extent / pieces;
    cut.shape.insert(cut.shape.begin() + static_cast<std::ptrdiff_t>(axis), Dim(pieces));
    x = g.make(Op::reshape, {x}, {cut.shape, type.dtype}, cut);
    for (int64_t& a : first.axes) ++a;  // all folded axes lie at or after the cut one
  } else if (n.attrs->axes.size() > 1) {
    first.axes.erase(first.axes.begin());
  } else {
    return {};
  }
  const Shape shape = g[x].type.shape;
  int64_t position = 0;  // of the remaining axis in the partial result
  for (size_t a = 0; a < shape.size(); ++a) {
    if (std::count(first.axes.begin(), first.axes.end(), static_cast<int64_t>(a))) continue;
    if (a < axis) ++position;
    partial.shape.push_back(shape[a]);
  }
  int inner = g.make(Op::reduce, {x}, partial, first);
  Attrs second = n.attrs;
  second.axes = {position};
  return g.make(Op::reduce, {inner}, n.type, second);
}

/// cast(permute(x)) → permute(cast(x)): a product then widens its result itself.
int cast_below_permute(Rebuilder& g, int id) {
  const IrNode wide = g[id];
  if (wide.op != Op::cast || g[wide.inputs[0]].op != Op::permute) return id;
  const IrNode permuted = g[wide.inputs[0]];
  const graph::Type type{g[permuted.inputs[0]].type.shape, wide.type.dtype};
  return g.make(Op::permute, {g.make(Op::cast, {permuted.inputs[0]}, type, wide.attrs)}, wide.type, permuted.attrs);
}

/// x + scatter_add(0, i, u) → scatter_add(x, i, u): the zeros are never made, nor read again.
Result add_scatter(Rebuilder& g, const IrNode& n) {
  if (n.op != Op::add) return {};
  for (int k : {0, 1}) {
    const IrNode& in = g[n.inputs[static_cast<size_t>(k)]];
    if (in.op != Op::scatter || in.attrs->mode != graph::ScatterMode::add || !g.is_splat(in.inputs[0], 0)) continue;
    std::vector<int> inputs = in.inputs;
    inputs[0] = cast_below_permute(g, n.inputs[static_cast<size_t>(1 - k)]);
    return g.make(Op::scatter, inputs, n.type, in.attrs);
  }
  return {};
}

/// y + cast(scatter_add(0, i, u)) → cast(scatter_add(y, i, u)), the sum in the wider dtype of the scatter: what two
/// uses of an embedding's weight leave of its gradient.
Result add_cast_scatter(Rebuilder& g, const IrNode& n) {
  if (n.op != Op::add || !is_float(n.type.dtype) || n.type.dtype.size() != 2) return {};
  for (int k : {0, 1}) {
    const IrNode& narrowed = g[n.inputs[static_cast<size_t>(k)]];
    if (narrowed.op != Op::cast) continue;
    const IrNode in = g[narrowed.inputs[0]];
    if (in.op != Op::scatter || in.attrs->mode != graph::ScatterMode::add || in.type.dtype != float32 ||
        !g.is_splat(in.inputs[0], 0))
      continue;
    const Attrs narrow = narrowed.attrs;
    Attrs wide;
    wide.dtype = float32;
    std::vector<int> inputs = in.inputs;
    inputs[0] = cast_below_permute(g, g.make(Op::cast, {n.inputs[static_cast<size_t>(1 - k)]}, in.type, wide));
    return g.make(Op::cast, {g.make(Op::scatter, inputs, in.type, in.attrs)}, n.type, narrow);
  }
  return {};
}

/// pad(x) + pad(y), which stand side by side along one axis → x and y joined, in what is left of the padding: the
/// gradient of what was split is never added up.
Result join_pads(Rebuilder& g, const IrNode& n) {
  if (n.op != Op::add || g[n.inputs[0]].op != Op::pad || g[n.inputs[1]].op != Op::pad) return {};
  for (const bool swapped : {false, true}) {
    const IrNode first = g[n.inputs[swapped]], second = g[n.inputs[!swapped]];
    const Shape& shape = n.type.shape;
    int64_t along = -1;
    bool fits = is_static(shape);
    for (size_t axis = 0; axis < shape.size() && fits; ++axis) {
      const Attrs &a = first.attrs, &b = second.attrs;
      if (a.low[axis] == b.low[axis] && a.high[axis] == b.high[axis]) continue;
      const int64_t end = shape[axis].bound() - a.high[axis];  // of the first one
      fits = along < 0 && end == b.low[axis];
      along = static_cast<int64_t>(axis);
    }
    if (!fits || along < 0) continue;
    Attrs joined, rest = first.attrs;
    joined.axes = {along};
    rest.high[static_cast<size_t>(along)] = second.attrs->high[static_cast<size_t>(along)];
    std::vector<int> parts;
    graph::Type type = g[first.inputs[0]].type;
    type.shape[static_cast<size_t>(along)] = shape[static_cast<size_t>(along)].bound() -
                                             rest.low[static_cast<size_t>(along)] -
                                             rest.high[static_cast<size_t>(along)];
    for (const int id : {first.inputs[0], second.inputs[0]}) {
      const IrNode& part = g[id];
      const bool flat = part.op == Op::concat && part.attrs->axes == joined.axes;
      if (flat) parts.insert(parts.end(), part.inputs.begin(), part.inputs.end());
      else parts.push_back(id);
    }
    return g.make(Op::pad, {g.make(Op::concat, parts, type, joined)}, n.type, rest);
  }
  return {};
}

/// A dot over several axes → a dot over one: both operands with the contracted axes last, flattened. Movement costs
/// nothing where it is a view.
Result merge_contraction(Rebuilder& g, const IrNode& n) {
  if (n.op != Op::dot || n.attrs->axes.size() < 2) return {};
  auto flatten = [&](int id, const std::vector<int64_t>& batch, const std::vector<int64_t>& contracted,
                     std::vector<int64_t>& new_batch) {
    graph::Type type = g[id].type;
    Attrs order, flat;
    order.axes = batch;
    for (int64_t axis = 0; axis < type.rank(); ++axis)
      if (!std::count(batch.begin(), batch.end(), axis) && !std::count(contracted.begin(), contracted.end(), axis))
        order.axes.push_back(axis);
    size_t kept = order.axes.size();
    order.axes.insert(order.axes.end(), contracted.begin(), contracted.end());
    graph::Type moved{{}, type.dtype}, merged{{}, type.dtype};
    for (int64_t axis : order.axes) moved.shape.push_back(type.shape[static_cast<size_t>(axis)]);
    merged.shape.assign(moved.shape.begin(), moved.shape.begin() + static_cast<std::ptrdiff_t>(kept));
    int64_t product = 1;
    for (size_t k = kept; k < moved.shape.size(); ++k) product *= moved.shape[k];
    merged.shape.push_back(product);
    flat.shape = merged.shape;
    new_batch.resize(batch.size());
    std::iota(new_batch.begin(), new_batch.end(), 0);
    return g.make(Op::reshape, {g.make(Op::permute, {id}, moved, order)}, merged, flat);
  };
  for (int64_t axis : n.attrs->axes)
    if (!g[n.inputs[0]].type.shape[static_cast<size_t>(axis)].is_static()) return {};
  Attrs attrs = n.attrs;
  int a = flatten(n.inputs[0], n.attrs->batch, n.attrs->axes, attrs.batch);
  int b = flatten(n.inputs[1], n.attrs->batch2, n.attrs->axes2, attrs.batch2);
  attrs.axes = {g[a].type.rank() - 1};
  attrs.axes2 = {g[b].type.rank() - 1};
  return g.make(Op::dot, {a, b}, n.type, attrs);
}

struct Rule {
  const char* name;
  Result (*apply)(Rebuilder&, const IrNode&);
};

constexpr Rule rules[] = {
    {"fold constants", fold_constants},
    {"merge movement", merge_movement},
    {"single concat", single_concat},
    {"joined slices", joined_slices},
    {"identities", identities},
    {"casts", casts},
    {"selects", selects},
    {"trivial reduction", trivial_reduction},
    {"trivial cumulative", trivial_cumulative},
    {"add scatter", add_scatter},
    {"add cast scatter", add_cast_scatter},
    {"join pads", join_pads},
    {"merge contraction", merge_contraction},
    {"empty dot", empty_dot},
    {"empty scatter", empty_scatter},
    {"split reduction", split_reduction},
};

std::optional<int> Rebuilder::rewrite(const IrNode& node) {
  if (node.op == Op::parameter || node.op == Op::constant || node.op == Op::iota) return {};
  for (const Rule& rule : rules)
    if (auto result = rule.apply(*this, node)) return result;
  return {};
}

/// What a call reads lies row-major in memory, and so does what a scatter or an assignment starts from: an input that
/// does not is copied first.
Ir with_plain_operands(Ir ir) {
  Ir result;
  result.nodes.reserve(ir.nodes.size());
  std::vector<int> renumbered;
  std::unordered_map<int, int> copies;
  for (IrNode& node : ir.nodes) {
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      int& input = node.inputs[k];
      input = renumbered[static_cast<size_t>(input)];
      const IrNode& operand = result[input];
      const bool whole = (is_call(node.op) && !is_attention(node)) || (writes_operand(node.op) && k == 0);
      if (!whole || operand.op != Op::parameter || operand.row_major) continue;
      auto [it, fresh] = copies.try_emplace(input, result.size());
      if (fresh) result.nodes.push_back({Op::stop_gradient, {input}, {}, graph::Type(operand.type), true});
      input = it->second;
    }
    renumbered.push_back(result.size());
    result.nodes.push_back(std::move(node));
  }
  for (int id : ir.inputs) result.inputs.push_back(renumbered[static_cast<size_t>(id)]);
  for (int id : ir.outputs) result.outputs.push_back(renumbered[static_cast<size_t>(id)]);
  return result;
}

}  // namespace

Ir simplify(Ir ir) {
  Ir simple = Rebuilder(std::move(ir)).run();
  const bool whole = std::any_of(simple.nodes.begin(), simple.nodes.end(),
                                 [](const IrNode& n) { return is_call(n.op) || writes_operand(n.op); });
  if (!whole) return simple;
  return with_plain_operands(std::move(simple));
}

}  // namespace weft::compiler
