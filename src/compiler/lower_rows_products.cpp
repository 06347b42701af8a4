// Products with one row (few_rows.h), for devices of many threads. A program has a few rows of the matrix and goes through them side by side: the vector is read once
// for all of them, and so many loads are under way that memory is never idle. It is as small as a warp, so that nobody waits for anybody else's part of a sum.
#include <algorithm>
#include <utility>

#include "compiler/lower_rows.h"

namespace weft::compiler {

namespace {

// Of a larger matrix most comes in while the kernel runs anyway; what is asked for early would push itself out of the cache again.
constexpr int64_t most_asked_for = 16 << 20;
// Words of the matrix that each lane has on their way to it.
constexpr int64_t loads_at_once = 16;

}  // namespace

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

/// A sum over the row alone, such as that of its squares: one of them does for all rows of the matrix.
bool RowLowering::is_same_for_all(const Stage& stage) const {
  const std::vector<int>& factors = cx_.ir[cx_.ir[stage.root.node].inputs[0]].inputs;
  return factors[0] == factors[1] && cx_.ir[factors[0]].op == graph::Op::broadcast;
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
  const size_t each_row = sums.size() / rows.size();
  size_t k = 0;
  for (Value row : rows) {
    emit_.push_scope();
    emit_.bind(program_, row);
    each([&](const Stage& stage, const std::vector<int>& factors) {
      if (k >= each_row && is_same_for_all(stage)) {
        ++k;
        return;
      }
      const Value x = b.broadcast(emit_.value(factors[0], stage.operand), {schedule_.width}), y = b.broadcast(emit_.value(factors[1], stage.operand), {schedule_.width});
      sums[k] = b.scalar(ScalarOp::fma, {x, y, sums[k]});
      ++k;
    });
    emit_.pop_scope();
  }
  emit_.pop_scope();
  return sums;
}

/// A row of the matrix that lies in one piece: it may come in before anything else can begin.
void RowLowering::ask_for_row(const Stage& stage, Value row) {
  int matrix = cx_.ir[cx_.ir[stage.root.node].inputs[0]].inputs[1];
  std::vector<ix::Expr> index = stage.operand;
  while (!emit_.is_memory(matrix)) {
    const IrNode& node = cx_.ir[matrix];
    if (node.op == graph::Op::cast) matrix = node.inputs[0];
    else if (is_movement(node.op) && node.op != graph::Op::concat && node.op != graph::Op::depends) {
      Access access = push(*group_.cx, cx_.ir, matrix, index);
      if (access.valid) return;
      matrix = access.node, index = std::move(access.index);
    } else {
      return;
    }
  }
  if (volume(cx_.ir[matrix].type.shape) * cx_.ir[matrix].type.dtype.size > most_asked_for) return;
  emit_.push_scope();
  emit_.bind(program_, row);
  ask_for(matrix, index);
  emit_.pop_scope();
}

/// The lanes of an input of the program, if they lie side by side: nothing that this program computes has to be waited for.
void RowLowering::ask_for(int leaf, const std::vector<ix::Expr>& index) {
  const auto form = ix::affine(ix::linear(*group_.cx, index, cx_.grouping.strides[static_cast<size_t>(leaf)]), std::span<const ix::Expr>(&lane_, 1));
  if (form && form->coefficients[0] == 1 && is_leaf(cx_.ir, leaf)) emit_.builder().prefetch(emit_.param(leaf, false), emit_.index_value(form->base), schedule_.lane_extent);
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
  for (const Stage& stage : stages_)
    if (stage.root.kind == RootKind::fold)
      for (Value row : numbers) ask_for_row(stage, row);
  // What is made of the sums reads memory as well, which need not be waited for then.
  std::vector<Emitter::Scope> scopes;
  for (Value row : numbers) {
    emit_.push_scope();
    emit_.bind(program_, row);
    for (const Stage& stage : stages_)
      if (stage.root.kind == RootKind::row)
        for (const auto& [node, index] : reads_of(stage)) emit_.value(node, index);
    scopes.push_back(emit_.leave_scope());
  }
  const int64_t together = std::max<int64_t>(1, loads_at_once / static_cast<int64_t>(sums.size())), step = together * width, whole = length / step * step;
  sums = b.loop(b.index(0), b.index(whole), b.index(step), sums, [&](Value at, std::vector<Value> next) {
    for (int64_t u = 0; u < together; ++u) next = product_step(b.add(at, b.index(u * width)), no_value, numbers, next);
    return next;
  });
  for (int64_t at = whole; at < length; at += width) sums = product_step(b.index(at), at + width <= length ? no_value : b.index(length - at), numbers, sums);
  const size_t folds = sums.size() / numbers.size();
  size_t which = 0;
  for (const Stage& stage : stages_) {
    if (stage.root.kind != RootKind::fold) continue;
    for (size_t r = 0; r < numbers.size(); ++r) {
      Value& sum = sums[r * folds + which];
      sum = r > 0 && is_same_for_all(stage) ? sums[which] : b.reduce(Reducer::sum, sum, 0);
    }
    ++which;
  }
  for (size_t r = 0; r < numbers.size(); ++r) {
    const auto finish_row = [&] {
      size_t k = r * folds;
      emit_.enter_scope(std::move(scopes[r]));
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
