#include "compiler/lower/attention/tiles.h"

#include <fmt/format.h>

namespace weft::compiler {

using kernel::ScalarOp;
using kernel::Value;

namespace {

/// Returns a kernel name: "attention_48x64x64x32" for heads, queries, keys, width.
std::string describe(const char* name, const AttentionPlan& plan) {
  int64_t heads = 1;
  for (int64_t extent : plan.batch) heads *= extent;
  return fmt::format("{}_{}x{}x{}x{}", name, heads, plan.tq.bound(), plan.tk.bound(), plan.width);
}

}  // namespace

AttentionTiles::AttentionTiles(const LowerContext& cx, Group& group, const char* name)
    : cx_(cx), plan_(group.attention), emit_(cx, group, describe(name, group.attention)), b_(emit_.builder()) {}

int64_t AttentionTiles::batches() const {
  int64_t n = 1;
  for (int64_t extent : plan_.batch) n *= extent;
  return n;
}

Value AttentionTiles::batch_index(int64_t blocks, Value& block) {
  Value pid = b_.program_id();
  block = b_.scalar(ScalarOp::mod, {pid, b_.index(blocks)});
  return b_.scalar(ScalarOp::floordiv, {pid, b_.index(blocks)});
}

Matrix AttentionTiles::matrix(const AttentionOperand& x, Value batch) {
  if (x.node < 0) return {};
  Value offset = b_.index(x.offset);
  for (size_t k = x.batch.size(); k-- > 0;) {
    Value n = b_.index(plan_.batch[k]);
    Value digit = k == 0 ? batch : b_.scalar(ScalarOp::mod, {batch, n});
    offset = b_.add(offset, b_.mul(digit, b_.index(x.batch[k])));
    batch = b_.scalar(ScalarOp::floordiv, {batch, n});
  }
  return {emit_.param(x.node, false), offset, x.row, x.column};
}

}  // namespace weft::compiler
