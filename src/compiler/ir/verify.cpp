// Each rule is a method, and the message names the rule. Types are derived again from the operator table: a pass that
// drops a node or takes another operand is found at the first node whose type no longer follows.
#include "compiler/ir/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "compiler/ir/index_map.h"
#include "graph/rows.h"
#include "graph/table.h"

namespace weft::compiler {

using graph::Op;
using graph::Type;

namespace {

class IrVerifier {
 public:
  explicit IrVerifier(const Ir& ir) : ir_(ir) {}

  void run() {
    for (NodeId id = 0; id < ir_.size(); ++id) {
      operands(id);
      result(id);
      attributes(id);
      type(id);
      flags(id);
    }
    inputs();
    outputs();
    regions();
  }

 private:
  [[noreturn]] void fail(std::string_view rule, NodeId id) const {
    throw_internal("verify", fmt::format("{}: {}", rule, print(ir_, id)));
  }
  void require(bool ok, std::string_view rule, NodeId id) const {
    if (!ok) fail(rule, id);
  }

  void operands(NodeId id) const {
    const IrNode& n = ir_[id];
    if (n.op >= Op::count_) throw_internal("verify", fmt::format("the operator exists: %{}", id));
    for (const NodeId input : n.inputs) {
      require(input >= 0 && input < ir_.size(), "every operand exists", id);
      require(input < id, "operands come before their user", id);
    }
    const graph::Row& row = graph::row(n.op);
    const auto count = static_cast<int>(n.inputs.size());
    require(count >= row.min_inputs && (row.max_inputs < 0 || count <= row.max_inputs),
            "the number of operands is the operator's", id);
  }

  /// The nodes of a call, or of a reduction of states with several components, each are one of its results; any other
  /// operator has one.
  void result(NodeId id) const {
    const IrNode& n = ir_[id];
    if (!has_results(n))
      return require(n.output == 0 && n.results.empty(), "only calls and states of reducers have several results", id);
    require(n.output >= 0 && n.output < static_cast<int>(n.results.size()), "the call has this result", id);
    require(n.results[static_cast<size_t>(n.output)] == n.type, "a call's node has its result's type", id);
  }

  /// Nodes of split attention carry the part in `integers`, which no region has.
  void attributes(NodeId id) const {
    const IrNode& n = ir_[id];
    const std::string_view unread = graph::unread_attribute(n.op, n.attrs);
    if (unread.empty() || (is_attention(n) && unread == "integers")) return;
    fail(fmt::format("the operator reads its attributes, but not {}", unread), id);
  }

  std::vector<Type> operand_types(const IrNode& n) const {
    std::vector<Type> types;
    for (const NodeId input : n.inputs) types.push_back(ir_[input].type);
    return types;
  }

  void type(NodeId id) {
    const IrNode& n = ir_[id];
    if (n.op == Op::parameter) return;
    if (is_attention(n) && !n.attrs->integers.empty()) return attention_part(id);
    if (is_call(n.op) && same_call(id)) return;
    std::vector<Type> expected;
    try {
      expected = derived(n);
    } catch (const std::invalid_argument& e) {
      fail(fmt::format("attributes and operands fit the operator ({})", e.what()), id);
    } catch (const std::out_of_range& e) {
      fail(fmt::format("attributes and operands fit the operator ({})", e.what()), id);
    }
    if (has_results(n)) {
      require(expected == n.results, "a call's results follow from its rule", id);
      if (is_call(n.op)) derived_call_ = id;
    } else if (!(expected[0] == n.type)) {
      fail(fmt::format("the type follows from the operator's row, which gives {}", graph::to_string(expected[0])), id);
    }
  }

  std::vector<Type> derived(const IrNode& n) const {
    const std::vector<Type> types = operand_types(n);
    if (n.op == Op::composite && !n.attrs->composite) throw_invalid("composite", "has no region");
    if (n.op == Op::composite) return graph::composite_types(n.attrs, types);
    const graph::Row& row = graph::row(n.op);
    std::vector<Shape> shapes = row.shape(n.attrs, types);
    const std::vector<Dtype> dtypes = row.dtype(n.attrs, types);
    check(!shapes.empty() && shapes.size() == dtypes.size(), "verify", "a row gives a dtype for each shape");
    std::vector<Type> out;
    for (size_t k = 0; k < shapes.size(); ++k) out.push_back({std::move(shapes[k]), dtypes[k]});
    return out;
  }

  /// Returns whether the node is a result of the call whose rule was evaluated last: results of one call are usually
  /// adjacent, so that the rule is evaluated once for all of them.
  bool same_call(NodeId id) const {
    if (derived_call_ < 0) return false;
    const IrNode &n = ir_[id], &known = ir_[derived_call_];
    return n.op == known.op && n.inputs == known.inputs && &*n.attrs == &*known.attrs && n.results == known.results;
  }

  /// Attention of one query, split: each piece of the keys gives its own o and logsumexp in float32, then they are
  /// joined. integers: the part; of pieces, how many there are and how many keys each has.
  void attention_part(NodeId id) const {
    constexpr const char* rule = "a part of attention has the region's shapes";
    const IrNode& n = ir_[id];
    const std::vector<int64_t>& part = n.attrs->integers;
    const bool join = part[0] == static_cast<int64_t>(AttentionPart::join);
    require(join ? part.size() == 1 && n.inputs.size() == 2
                 : part[0] == static_cast<int64_t>(AttentionPart::pieces) && part.size() == 3 && n.inputs.size() >= 3,
            rule, id);
    const Shape &first = ir_[n.inputs[0]].type.shape, &second = ir_[n.inputs[1]].type.shape;
    if (join) {  // o [batch…, pieces, width], logsumexp [batch…, pieces]
      require(first.size() >= 2 && Shape(first.begin(), first.end() - 1) == second &&
                  n.type.shape.size() == first.size() && n.type.shape.back() == first.back(),
              rule, id);
      return;
    }
    const Shape& value = ir_[n.inputs[2]].type.shape;
    require(first.size() >= 2 && second.size() >= 2 && value.size() >= 2 && part[1] > 0 && part[2] > 0, rule, id);
    Shape o(first.begin(), first.end() - 2);
    o.push_back(part[1]);
    const Shape lse = o;
    o.push_back(value.back());
    const int64_t keys = (second.end() - 2)->bound();
    require(n.results == std::vector<Type>{{o, float32}, {lse, float32}} && part[1] * part[2] >= keys &&
                (part[1] - 1) * part[2] < keys,
            rule, id);
  }

  void flags(NodeId id) const {
    const IrNode& n = ir_[id];
    require(!n.gemv || (n.op == Op::reduce && n.attrs->reducer == kernel::Reducer::sum),
            "only a sum is marked as a GEMV", id);
    require(!n.scaled || n.op == Op::reduce, "only a reduction is marked as made of a GEMV's row", id);
    require(!n.fused || (n.op == Op::add && ir_[n.inputs[1]].op == Op::mul),
            "only an addition of a product is marked as fused", id);
    require(!n.sorted || sorts_rows(n), "only a scatter-add of rows by the values of a sort is marked as sorted", id);
    require(!n.materialized || n.op != Op::parameter, "an input is not marked as materialized", id);
    require(n.row_major || n.op == Op::parameter, "only an input has a layout of its own", id);
  }

  bool sorts_rows(const IrNode& n) const {
    if (n.op != Op::scatter || n.attrs->mode != graph::ScatterMode::add || n.attrs->axes != std::vector<int64_t>{0})
      return false;
    const IrNode* ids = &ir_[n.inputs[1]];
    while (ids->op == Op::depends) ids = &ir_[ids->inputs[0]];
    return ids->op == Op::call && ids->attrs->call == "sort" && ids->output == 0 && ids->type.rank() == 1;
  }

  void inputs() const {
    NodeFlags listed(ir_.nodes.size());
    for (const NodeId id : ir_.inputs) {
      check(id >= 0 && id < ir_.size(), "verify", fmt::format("every input exists: %{}", id));
      require(ir_[id].op == Op::parameter, "an input is a parameter", id);
      require(!listed[id], "an input is listed once", id);
      listed[id] = true;
    }
    for (NodeId id = 0; id < ir_.size(); ++id)
      require(ir_[id].op != Op::parameter || listed[id], "a parameter is an input", id);
  }

  void regions() const {
    for (const InlinedRegion& region : ir_.regions) {
      const auto exists = [&](NodeId id) { return id >= 0 && id < ir_.size(); };
      check(exists(region.input) && exists(region.result), "verify",
            fmt::format("the argument and the result of an inlined region exist: {} %{} %{}", region.name, region.input,
                        region.result));
    }
    check(std::ranges::is_sorted(ir_.regions, {}, &InlinedRegion::result), "verify",
          "inlined regions are in the order of their results");
  }

  void outputs() const {
    for (const NodeId id : ir_.outputs)
      check(id >= 0 && id < ir_.size(), "verify", fmt::format("every output exists: %{}", id));
  }

  const Ir& ir_;
  int derived_call_ = -1;  // the call whose rule was asked last
};

}  // namespace

Interface interface_of(const Ir& ir) {
  Interface out;
  for (const NodeId id : ir.inputs) {
    out.inputs.push_back(ir[id].type);
    out.row_major.push_back(ir[id].row_major);
  }
  for (const NodeId id : ir.outputs) out.outputs.push_back(ir[id].type);
  return out;
}

void verify(const Ir& ir) { IrVerifier(ir).run(); }

void verify(const Ir& ir, const Interface& source) {
  verify(ir);
  const auto same = [&](const std::vector<NodeId>& ids, const std::vector<Type>& types, const char* what) {
    if (ids.size() != types.size())
      throw_internal(
          "verify", fmt::format("the number of {}s is the source's: {} instead of {}", what, ids.size(), types.size()));
    for (size_t k = 0; k < ids.size(); ++k)
      if (!(ir[ids[k]].type == types[k]))
        throw_internal("verify", fmt::format("an {} has the source's type: {} {}, which was {}: {}", what, what, k,
                                             graph::to_string(types[k]), print(ir, ids[k])));
  };
  same(ir.inputs, source.inputs, "input");
  same(ir.outputs, source.outputs, "output");
  for (size_t k = 0; k < ir.inputs.size(); ++k)
    if (ir[ir.inputs[k]].row_major != source.row_major[k])
      throw_internal("verify", fmt::format("an input keeps its layout: {}", print(ir, ir.inputs[k])));
}

}  // namespace weft::compiler
