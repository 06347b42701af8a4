// Attention of one query a head (decode) by the kernel of kernels/attention/decode.h, on the arrays of a plan as they
// lie. The number of keys may be an integer in memory, so that a program of static shapes serves a cache that fills up.
// Where a launch also appends the newest key and value to the cache (region/kv_append.h), it computes them, and the
// query, from the graph.
#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "compiler/ir/index_map.h"
#include "compiler/lower/emit.h"
#include "compiler/region/kv_append.h"
#include "kernel/language/trace.h"
#include "kernels/attention/decode.h"
#include "target/target.h"

namespace weft::compiler {

using ix::Expr;
using kernel::no_value;
using kernel::Value;

namespace {

class SingleQuery {
 public:
  SingleQuery(const LowerContext& cx, Group& group)
      : cx_(cx), group_(group), plan_(group.attention), node_(cx.ir[group.roots[0].node]),
        heads_(std::accumulate(plan_.batch.begin(), plan_.batch.end(), int64_t{1}, std::multiplies<>())),
        emit_(cx, group, describe()), b_(emit_.builder()) {}

  Lowered run() {
    describe_arrays();
    const k::Grid grid = plan_.join ? kernels::decode_join_grid(d_) : kernels::decode_grid(d_);
    k::Trace trace("decode", b_, grid);
    const k::TraceScope scope(trace);
    if (plan_.cache >= 0) d_.append = [&](const std::vector<k::Index>& batch) { return newest(trace, batch); };
    std::vector<k::AnyRef> memory;
    for (const kernel::Param& p : b_.kernel().params)
      memory.push_back({static_cast<kernel::Ref>(memory.size()), trace.serial, p.dtype});
    if (plan_.join) kernels::decode_join(d_, memory);
    else kernels::decode(d_, memory, keys(trace));
    const double pairs = static_cast<double>(heads_) * static_cast<double>(plan_.tk.bound());
    return emit_.finish(heads_ * std::max<int64_t>(1, plan_.splits),
                        2 * pairs * static_cast<double>(plan_.width + plan_.value_width));
  }

 private:
  /// Returns a kernel name: "attention_row_48x1x64x32" for heads, queries, keys, width.
  std::string describe() const {
    return fmt::format("attention_row_{}x{}x{}x{}", heads_, plan_.tq.bound(), plan_.tk.bound(), plan_.width);
  }

  /// Declares the parameters, results before operands: the number of an array's buffer is that of its parameter.
  void describe_arrays() {
    const auto array = [&](const AttentionOperand& x, bool written) {
      if (x.node < 0) return kernels::AttentionArray{};
      return kernels::AttentionArray{emit_.param(x.node, written), x.dtype, x.offset, x.batch, x.row, x.column};
    };
    kernels::Attention& a = d_.a;
    a.batch = plan_.batch, a.scale = plan_.region.scale;
    a.queries = 1, a.keys = plan_.tk;
    a.width = plan_.width, a.value_width = plan_.value_width;
    d_.splits = plan_.join ? plan_.tk.bound() : plan_.splits, d_.split_keys = plan_.join ? 1 : plan_.split_keys;
    const bool parts = plan_.splits > 0;
    (parts ? d_.part_o : a.o) = array(plan_.o, true), (parts ? d_.part_lse : a.lse) = array(plan_.lse, true);
    if (plan_.cache >= 0) emit_.param(plan_.cache, true);
    if (plan_.join) {
      d_.part_lse = array(plan_.k, false), d_.part_o = array(plan_.v, false);
      return;
    }
    a.q = array(plan_.q, false), a.k = array(plan_.k, false), a.v = array(plan_.v, false);
    a.mask = array(plan_.mask, false);
    if (plan_.cache >= 0)
      for (const NodeId node : group_.reads) emit_.param(node, false);
    d_.blocks = kernels::decode_blocks(a, parts ? 1 : cx_.target.machine().cluster);
  }

  /// Returns how many keys there are.
  k::Index keys(k::Trace& trace) {
    const Value v = emit_.extent(plan_.tk);
    if (!plan_.tk.is_static()) trace.learn(v, {0, plan_.tk.bound(), 1});
    return k::Index(trace.any(v));
  }

  /// Computes the query, key and value of the newest position as rows.
  kernels::DecodeRows newest(k::Trace& trace, const std::vector<k::Index>& batch) {
    emit_.push_scope();  // the program may compute them in an iteration
    ix::Context& icx = *group_.cx;
    std::vector<Expr> heads;
    for (size_t axis = 0; axis < batch.size(); ++axis) {
      const int64_t n = plan_.batch[axis];
      heads.push_back(n == 1 ? icx.constant(0) : icx.variable("h", 0, n - 1));
      if (n > 1) emit_.bind(heads.back(), trace.value(batch[axis].any(), {}));
    }
    const int64_t columns = kernels::decode_columns(plan_.width);
    const Expr lane = icx.variable("x", 0, plan_.width - 1);
    emit_.bind_lanes(lane, b_.index(0), columns, columns == plan_.width ? no_value : b_.index(plan_.width));
    const auto row = [&](NodeId node, const std::vector<Expr>& at) {
      return k::Tile<float, 1>(trace.any(b_.broadcast(b_.cast(emit_.value(node, at), float32), {columns})));
    };
    std::vector<Expr> query = heads;
    query.insert(query.end(), {icx.constant(0), lane});
    const NodeId update = cx_.ir[plan_.cache].inputs.back();
    kernels::DecodeRows out;
    out.query = row(node_.inputs[0], query);
    out.key = row(update, updated(node_.inputs[1], heads, lane));
    out.value = row(update, updated(node_.inputs[2], heads, lane));
    emit_.pop_scope();
    return out;
  }

  /// Returns where the scatter's update has the row of these heads that becomes the newest one of `operand`.
  std::vector<Expr> updated(NodeId operand, std::vector<Expr> there, Expr lane) {
    ix::Context& icx = *group_.cx;
    const IrNode& cache = cx_.ir[plan_.cache];
    there.insert(there.end(), {icx.variable("j", 0, plan_.tk.bound() - 1), lane});
    const Access access = peel(icx, cx_.ir, operand, there);
    check(access.node == plan_.cache, "attention_row", "keys or values are no view of their cache");
    std::vector<Expr> to = access.index;
    to[static_cast<size_t>(cache.attrs->axes[0])] = icx.constant(0);
    const size_t points = static_cast<size_t>(cx_.ir[cache.inputs.back()].type.rank()) - to.size();
    to.insert(to.begin(), points, icx.constant(0));
    return to;
  }

  const LowerContext& cx_;
  Group& group_;
  const AttentionPlan& plan_;
  const IrNode& node_;
  const int64_t heads_;
  Emitter emit_;
  kernel::Builder& b_;
  kernels::Decode d_;
};

}  // namespace

Lowered lower_single_query(const LowerContext& cx, const Group& fused) {
  Group group = fused.copy();
  return SingleQuery(cx, group).run();
}

}  // namespace weft::compiler
