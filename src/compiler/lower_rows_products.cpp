// Products with one row (few_rows.h), for devices of many threads. A program has a few rows of the matrix and goes through them side by side: the vector is read once
// for all of them, and so many loads are under way that memory is never idle. It is as small as a warp, so that nobody waits for anybody else's part of a sum.
#include <algorithm>

#include "compiler/lower_rows.h"

namespace weft::compiler {

using kernel::no_value;
using kernel::Reducer;
using kernel::ScalarOp;
using kernel::Value;

bool products_only(const Ir& ir, const Group& group) {
  bool any = false;
  for (const Root& root : group.roots) {
    if (root.kind == RootKind::full) return false;
    if (root.kind == RootKind::fold && !ir[root.node].product) return false;
    any = any || root.kind == RootKind::fold;
  }
  return any;
}

/// One pass over the matrix: no product reads another one's result. Its rows and their length are known.
bool RowLowering::side_by_side() const {
  return schedule_.rows > 0 && schedule_.kind == RowClass::row && is_static(group_.domain) &&
         std::none_of(stages_.begin(), stages_.end(), [](const Stage& s) { return s.root.kind == RootKind::fold && s.pass > 0; });
}

/// A tile of every row of the program into its sums.
std::vector<Value> RowLowering::product_step(Value at, Value limit, const std::vector<Value>& rows, std::vector<Value> sums) {
  kernel::Builder& b = emit_.builder();
  const auto each = [&](auto&& body) {  // every factor of every product
    for (const Stage& stage : stages_)
      if (stage.root.kind == RootKind::fold) body(stage, cx_.ir[cx_.ir[stage.root.node].inputs[0]].inputs);
  };
  emit_.push_scope();
  emit_.bind_lanes(lane_, at, schedule_.width, limit);
  emit_.bind(program_, rows[0]);
  each([&](const Stage& stage, const std::vector<int>& factors) { emit_.value(factors[0], stage.operand); });  // the same for all rows
  size_t k = 0;
  for (Value row : rows) {
    emit_.push_scope();
    emit_.bind(program_, row);
    each([&](const Stage& stage, const std::vector<int>& factors) {
      const Value x = b.broadcast(emit_.value(factors[0], stage.operand), {schedule_.width}), y = b.broadcast(emit_.value(factors[1], stage.operand), {schedule_.width});
      sums[k] = b.scalar(ScalarOp::fma, {x, y, sums[k]});
      ++k;
    });
    emit_.pop_scope();
  }
  emit_.pop_scope();
  return sums;
}

void RowLowering::product_rows() {
  kernel::Builder& b = emit_.builder();
  const int64_t count = extent_of(outer_), width = schedule_.width, length = schedule_.lane_extent;
  const auto rows = std::min(schedule_.rows, count);
  grid_ = (count + rows - 1) / rows;
  const Value first = b.mul(b.program_id(), b.index(rows));
  std::vector<Value> numbers, sums;
  for (int64_t r = 0; r < rows; ++r) {
    const Value row = b.add(first, b.index(r));
    numbers.push_back(count % rows == 0 ? row : b.min(row, b.index(count - 1)));  // past the end: the last row again, which is not stored
    for (Value v : identities(0)) sums.push_back(v);
  }
  for (int node : group_.reads) emit_.param(node, false);
  const int64_t together = std::max<int64_t>(1, 8 / static_cast<int64_t>(sums.size())), step = together * width, whole = length / step * step;
  sums = b.loop(b.index(0), b.index(whole), b.index(step), sums, [&](Value at, std::vector<Value> next) {
    for (int64_t u = 0; u < together; ++u) next = product_step(b.add(at, b.index(u * width)), no_value, numbers, next);
    return next;
  });
  for (int64_t at = whole; at < length; at += width) sums = product_step(b.index(at), at + width <= length ? no_value : b.index(length - at), numbers, sums);
  for (Value& sum : sums) sum = b.reduce(Reducer::sum, sum, 0);

  const size_t folds = sums.size() / numbers.size();
  for (size_t r = 0; r < numbers.size(); ++r) {
    const auto finish_row = [&] {
      size_t k = r * folds;
      emit_.push_scope();
      emit_.bind(program_, numbers[r]);
      row_roots(0);
      for (const Stage& stage : stages_)
        if (stage.root.kind == RootKind::fold) finish_root(stage, sums[k++]);
      for (int p = 1; p <= passes_; ++p) row_roots(p);
      emit_.pop_scope();
    };
    if (count % rows == 0 || r == 0) finish_row();
    else b.when(b.lt(b.add(first, b.index(static_cast<int64_t>(r))), b.index(count)), finish_row);
  }
}

}  // namespace weft::compiler
