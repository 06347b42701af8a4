// The forms of the dot class in which a program computes one tile of C, with the whole of K in one loop. Limits guard
// the edges; in the inner form a column past the end repeats the last one and is not stored.
#include <algorithm>

#include "base/error.h"
#include "compiler/lower/dot/dot.h"

#include "compiler/region/matmul_work.h"
#include "compiler/schedule/steps/product.h"

namespace weft::compiler {

using kernel::no_value;
using kernel::Reducer;
using kernel::ScalarOp;
using kernel::Value;

Value DotLowering::batch_offset(Value batch, const std::vector<int64_t>& strides) {
  Value offset = b_.index(0);
  for (size_t k = strides.size(); k-- > 0;) {
    Value n = b_.index(d_.batch[k]);
    Value digit = k == 0 ? batch : b_.scalar(ScalarOp::mod, {batch, n});
    offset = b_.add(offset, b_.mul(digit, b_.index(strides[k])));
    batch = b_.scalar(ScalarOp::floordiv, {batch, n});
  }
  return offset;
}

/// Sets where the arrays of a batch begin.
void DotLowering::begin_batch(Value batch) {
  batch_ = batch;
  a_.base = b_.add(batch_offset(batch_, d_.a_batch), b_.index(plan_.a.offset));
  bb_.base = b_.add(batch_offset(batch_, d_.b_batch), b_.index(plan_.b.offset));
  for (Side* side : {&a_, &bb_})
    for (size_t k = 0; k < side->prologue.operands.size(); ++k)
      side->bases.push_back(b_.add(batch_offset(batch_, side->prologue.steps.operands[k].batch),
                                   b_.index(side->prologue.operands[k].offset)));
  c_base_ = batch_offset(batch_, d_.c_batch);
}

/// Binds the program id to a batch, and computes the first row and column of its tile.
void DotLowering::tiles(int64_t bm, int64_t bn, Value& m0, Value& n0) {
  int64_t tiles_m = (d_.m + bm - 1) / bm, tiles_n = (d_.n + bn - 1) / bn, batches = 1;
  for (int64_t n : d_.batch) batches *= n;
  grid_ = batches * tiles_m * tiles_n;
  const Value pid = b_.program_id(), rest = b_.scalar(ScalarOp::floordiv, {pid, b_.index(tiles_n)});
  m0 = b_.mul(b_.scalar(ScalarOp::mod, {rest, b_.index(tiles_m)}), b_.index(bm));
  n0 = b_.mul(b_.scalar(ScalarOp::mod, {pid, b_.index(tiles_n)}), b_.index(bn));
  begin_batch(b_.scalar(ScalarOp::floordiv, {rest, b_.index(tiles_m)}));
  // The programs of the first row (column) of tiles also sum the operand along k.
  if (d_.sum == kernel::OperandSum::a)
    b_.when(b_.scalar(ScalarOp::eq, {n0, b_.index(0)}), [&] { add_up(a_, m0, bm, m_); });
  if (d_.sum == kernel::OperandSum::b)
    b_.when(b_.scalar(ScalarOp::eq, {m0, b_.index(0)}), [&] { add_up(bb_, n0, bn, n_); });
}

void DotLowering::add_up(const Side& side, Value first, int64_t count, Value extent) {
  const int64_t lanes = std::min<int64_t>(cx_.target.machine().lanes(size_of(t_)), count);
  b_.loop(b_.index(0), b_.index(count), b_.index(lanes), {}, [&](Value i, const std::vector<Value>&) {
    Value at = b_.add(first, i), limit = b_.min(b_.sub(extent, at), b_.sub(b_.index(count), i));
    Value total =
        b_.loop(b_.index(0), k_, b_.index(1), {b_.real(t_, 0, {lanes})}, [&](Value k, const std::vector<Value>& sum) {
          return std::vector<Value>{b_.add(sum[0], load(side, at, k, {lanes}, {Along::row}, {limit}))};
        })[0];
    b_.store(emit_.param(plan_.sum, true), b_.cast(total, d_.c), at, {1}, {limit});
    return std::vector<Value>{};
  });
}

Value DotLowering::load(const Side& side, Value row, Value depth, std::vector<int64_t> dims,
                        const std::vector<Along>& axes, std::vector<Value> limits) {
  if (!side.prologue.empty()) return load_computed(side, row, depth, dims, axes, limits);
  Value at = b_.add(side.base, b_.mul(row, b_.index(side.row)));
  at = b_.add(at, b_.mul(depth, b_.index(side.depth)));
  std::vector<int64_t> strides;
  for (const Along axis : axes) strides.push_back(axis == Along::row ? side.row : side.depth);
  Value v = b_.load(side.ref, at, std::move(dims), std::move(strides), std::move(limits));
  return b_.cast(v, t_);
}

/// Loads what an operand's prologue reads, and computes it. Past the end of k the result is 0, as that of a plain load.
Value DotLowering::load_computed(const Side& side, Value row, Value depth, const std::vector<int64_t>& dims,
                                 const std::vector<Along>& axes, const std::vector<Value>& limits) {
  const kernel::Epilogue& e = side.prologue.steps;
  std::vector<Value> values;
  for (const kernel::EpilogueStep& s : e.steps) {
    if (s.kind != kernel::EpilogueStep::Kind::operand) {
      values.push_back(step(s, values, dims));
      continue;
    }
    values.push_back(load_source(side, static_cast<size_t>(s.operand), row, depth, dims, axes, limits));
  }
  Value v = b_.cast(values[static_cast<size_t>(e.result)], t_);
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (axes[axis] != Along::depth || limits[axis] == no_value) continue;
    std::vector<int64_t> line(dims.size(), 1);
    line[axis] = dims[axis];
    const Value k = b_.broadcast(b_.reshape(b_.arange(dims[axis]), line), dims);
    v = b_.select(b_.lt(k, b_.broadcast(limits[axis], dims)), v, nothing(dims));
  }
  return v;
}

/// Loads a tile of array `k` of a prologue in its compute dtype. A tile that is more than one long on an axis along
/// which the array jumps is gathered.
Value DotLowering::load_source(const Side& side, size_t k, Value row, Value depth, const std::vector<int64_t>& dims,
                               const std::vector<Along>& axes, const std::vector<Value>& limits) {
  const kernel::EpilogueOperand& x = side.prologue.steps.operands[k];
  const kernel::Ref ref = emit_.param(side.prologue.operands[k].node, false);
  const auto stride = [&](Along a) { return a == Along::row ? x.m : x.n; };
  const auto jump = [&](Along a) { return a == Along::row ? x.m_jump : x.n_jump; };
  const auto first = [&](Along a) { return a == Along::row ? row : depth; };
  Value at = b_.add(side.bases[k], b_.mul(row, b_.index(x.m)));
  at = b_.add(at, b_.mul(depth, b_.index(x.n)));
  bool gathers = false;
  for (const Along a : {Along::row, Along::depth}) {
    const auto axis = std::find(axes.begin(), axes.end(), a);
    const bool tiled = axis != axes.end() && dims[static_cast<size_t>(axis - axes.begin())] > 1;
    if (jump(a).period > 0 && tiled) gathers = true;
    else at = b_.add(at, jumped(first(a), jump(a)));
  }
  if (!gathers) {
    std::vector<int64_t> strides;
    for (const Along axis : axes) strides.push_back(stride(axis));
    return load_view(ref, at, dims, strides, limits);
  }
  Value index = b_.broadcast(at, dims), mask = no_value;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    std::vector<int64_t> line(dims.size(), 1);
    line[axis] = dims[axis];
    const Value i = b_.broadcast(b_.reshape(b_.arange(dims[axis]), line), dims);
    index = b_.add(index, b_.mul(i, b_.index(stride(axes[axis]))));
    if (dims[axis] > 1) index = b_.add(index, jumped(b_.add(i, first(axes[axis])), jump(axes[axis])));
    if (limits[axis] == no_value) continue;
    const Value inside = b_.lt(i, b_.broadcast(limits[axis], dims));
    mask = mask == no_value ? inside : b_.scalar(ScalarOp::bit_and, {mask, inside});
  }
  const Value loaded = b_.gather(ref, index, mask);
  return b_.cast(loaded, compute_dtype(b_.type(loaded).dtype));
}

/// Returns what a jump adds at an index, or at a tile of indices.
Value DotLowering::jumped(Value index, const kernel::Jump& jump) {
  if (jump.period == 0) return b_.index(0);
  return b_.mul(b_.scalar(ScalarOp::floordiv, {index, b_.index(jump.period)}), b_.index(jump.by));
}

/// Loads a tile of an array in its compute dtype. Axes that the array does not have (stride 0) are loaded once and
/// repeated.
Value DotLowering::load_view(kernel::Ref ref, Value at, const std::vector<int64_t>& dims,
                             const std::vector<int64_t>& strides, const std::vector<Value>& limits) {
  std::vector<int64_t> shape(dims.size(), 1), extents, steps;
  std::vector<Value> ends;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (strides[axis] == 0) continue;
    shape[axis] = dims[axis];
    extents.push_back(dims[axis]), steps.push_back(strides[axis]), ends.push_back(limits[axis]);
  }
  const bool whole = extents.size() == dims.size(), one = extents.empty();
  const Value loaded = b_.load(ref, at, std::move(extents), std::move(steps), std::move(ends));
  const Value v = b_.cast(loaded, compute_dtype(b_.type(loaded).dtype));
  if (whole) return v;
  return b_.broadcast(one ? v : b_.reshape(v, shape), dims);
}

/// Applies the epilogue to `c` and stores its results. `c` is [m, n], or [n, m] with `n_first`.
void DotLowering::store(Value c, Value m, Value n, std::vector<int64_t> strides, std::vector<Value> limits,
                        bool n_first) {
  const kernel::Epilogue& e = plan_.epilogue;
  const EpilogueTile tile{m, n, limits, b_.type(c).dims, n_first};
  std::vector<Value> values{c};
  for (size_t k = 1; k < e.steps.size(); ++k) {
    const bool reads = e.steps[k].kind == kernel::EpilogueStep::Kind::operand;
    values.push_back(reads ? operand(e.steps[k].operand, tile) : step(e.steps[k], values, tile.dims));
  }
  Value at = b_.add(c_base_, b_.mul(m, b_.index(d_.c_m)));
  at = b_.add(at, b_.mul(n, b_.index(d_.c_n)));
  const auto put = [&](kernel::Ref ref, int value) {
    const Dtype dtype = e.steps[static_cast<size_t>(value)].dtype;
    b_.store(ref, b_.cast(values[static_cast<size_t>(value)], dtype), at, strides, limits);
  };
  for (size_t k = 0; k < e.stored.size(); ++k) put(emit_.param(plan_.stored[k], true), e.stored[k]);
  put(c_, e.result);
}

/// Emits a step of an epilogue or prologue that reads no array, as a tile in the compute dtype of its own.
Value DotLowering::step(const kernel::EpilogueStep& s, const std::vector<Value>& values,
                        const std::vector<int64_t>& dims) {
  using Kind = kernel::EpilogueStep::Kind;
  const Dtype t = compute_dtype(s.dtype);
  std::vector<Value> args;
  for (const int input : s.inputs) args.push_back(values[static_cast<size_t>(input)]);
  if (s.kind == Kind::constant) return b_.constant(t, s.number, dims);
  if (s.kind == Kind::cast) return b_.cast(b_.cast(args[0], s.dtype), t);
  return b_.scalar(s.op, args);
}

/// Loads a tile of an operand of the epilogue.
Value DotLowering::operand(int k, const EpilogueTile& tile) {
  const kernel::EpilogueOperand& x = plan_.epilogue.operands[static_cast<size_t>(k)];
  const OperandView& view = plan_.operands[static_cast<size_t>(k)];
  Value at = b_.add(batch_offset(batch_, x.batch), b_.index(view.offset));
  at = b_.add(at, b_.mul(tile.m, b_.index(x.m)));
  at = b_.add(at, b_.mul(tile.n, b_.index(x.n)));
  const std::vector<int64_t> strides = tile.n_first ? std::vector<int64_t>{x.n, x.m} : std::vector<int64_t>{x.m, x.n};
  return load_view(emit_.param(view.node, false), at, tile.dims, strides, tile.limits);
}

/// The form for GPUs: square tiles of C, and slices of K in shared memory.
void DotLowering::shared_form() {
  const auto tile = [](int64_t extent, int64_t most) {
    int64_t size = 16;
    while (size < most && size < extent) size *= 2;
    return size;
  };
  const int64_t bm = tile(d_.m, 64), bn = tile(d_.n, 64), bk = 16;
  Value m0, n0;
  tiles(bm, bn, m0, n0);
  const Value m_limit = b_.sub(m_, m0), n_limit = b_.sub(n_, n0);
  const Value c =
      b_.loop(b_.index(0), k_, b_.index(bk), {nothing({bm, bn})}, [&](Value k, const std::vector<Value>& sums) {
        const Value k_limit = b_.sub(k_, k);
        // Rows run along the contiguous axis, so that adjacent threads read adjacent elements.
        Value l = a_.depth == 1 || a_.row != 1
                      ? load(a_, m0, k, {bm, bk}, {Along::row, Along::depth}, {m_limit, k_limit})
                      : b_.transpose(load(a_, m0, k, {bk, bm}, {Along::depth, Along::row}, {k_limit, m_limit}));
        Value r = bb_.row == 1 || bb_.depth != 1
                      ? load(bb_, n0, k, {bk, bn}, {Along::depth, Along::row}, {k_limit, n_limit})
                      : b_.transpose(load(bb_, n0, k, {bn, bk}, {Along::row, Along::depth}, {n_limit, k_limit}));
        return std::vector<Value>{b_.dot(l, r, sums[0])};
      })[0];
  store(c, m0, n0, {d_.c_m, d_.c_n}, {m_limit, n_limit}, false);
}

/// The form with lanes along the columns of the right operand. With `exchanged`, A is the right operand, and C is
/// computed as [n, m].
void DotLowering::outer_form(bool exchanged) {
  const int64_t lanes = cx_.target.machine().lanes(size_of(t_));
  const int64_t rows_extent = exchanged ? d_.n : d_.m, columns_extent = exchanged ? d_.m : d_.n;
  int64_t columns = std::min<int64_t>(2 * lanes, std::max<int64_t>(1, columns_extent));
  int64_t width = 1;
  while (width < columns) width *= 2;
  int64_t rows = std::min<int64_t>(8, rows_extent);
  Value m0, n0;
  tiles(exchanged ? width : rows, exchanged ? rows : width, m0, n0);
  const Side& left = exchanged ? bb_ : a_;
  const Side& right = exchanged ? a_ : bb_;
  Value r0 = exchanged ? n0 : m0, c0 = exchanged ? m0 : n0;
  Value row_limit = no_value, column_limit = no_value;
  const Dim& row_dim = *(plan_.extents.end() - (exchanged ? 2 : 3));
  const Dim& column_dim = *(plan_.extents.end() - (exchanged ? 3 : 2));
  if (!row_dim.is_static() || rows_extent % rows) row_limit = b_.sub(exchanged ? n_ : m_, r0);
  if (!column_dim.is_static() || columns_extent % width) column_limit = b_.sub(exchanged ? m_ : n_, c0);
  Value zero = nothing({rows, width});
  Value c = b_.loop(b_.index(0), k_, b_.index(1), {zero}, [&](Value k, const std::vector<Value>& sums) {
    Value l = load(left, r0, k, {rows, 1}, {Along::row, Along::depth}, {row_limit, no_value});
    Value r = load(right, c0, k, {1, width}, {Along::depth, Along::row}, {no_value, column_limit});
    return std::vector<Value>{b_.dot(l, r, sums[0])};
  })[0];
  std::vector<int64_t> strides =
      exchanged ? std::vector<int64_t>{d_.c_n, d_.c_m} : std::vector<int64_t>{d_.c_m, d_.c_n};
  store(c, m0, n0, strides, {row_limit, column_limit}, exchanged);
}

/// The form with lanes along K: sums[j][i, lane] over the k of one lane, for a block of rows i and a few columns j.
void DotLowering::inner_form() {
  const int64_t lanes = cx_.target.machine().lanes(size_of(t_));
  int64_t bm = d_.m >= 4 ? 4 : d_.m >= 2 ? 2 : 1, bn = std::min<int64_t>(4, d_.n);
  while (bn & (bn - 1)) --bn;
  Value m0, n0;
  tiles(bm, bn, m0, n0);
  Value m_limit = b_.sub(m_, m0), n_left = b_.sub(n_, n0);
  Value full = b_.mul(b_.scalar(ScalarOp::floordiv, {k_, b_.index(lanes)}), b_.index(lanes));
  // With few rows, loading B is the limit: the next program's part of it is prefetched.
  const bool few_rows = cx_.target.machine().prefetches() && d_.m <= 8 && bb_.row * bn * d_.b.size() <= 64 << 10;
  std::vector<Value> sums(static_cast<size_t>(bn), nothing({bm, lanes}));
  auto step = [&](Value k, const std::vector<Value>& carried, Value limit) {
    Value a = load(a_, m0, k, {bm, lanes}, {Along::row, Along::depth}, {m_limit, limit});
    std::vector<Value> next;
    for (int64_t j = 0; j < bn; ++j) {
      // Past the end: repeat the last column, which is not stored.
      Value n = b_.min(b_.add(n0, b_.index(j)), b_.sub(n_, b_.index(1)));
      if (few_rows && limit == no_value)
        b_.prefetch(bb_.ref, b_.add(b_.add(bb_.base, b_.mul(b_.add(n, b_.index(bn)), b_.index(bb_.row))), k), lanes);
      Value v = b_.broadcast(load(bb_, n, k, {1, lanes}, {Along::row, Along::depth}, {no_value, limit}), {bm, lanes});
      const Value sum = carried[static_cast<size_t>(j)];
      next.push_back(t_ == int32 ? b_.add(b_.mul(a, v), sum) : b_.scalar(ScalarOp::fma, {a, v, sum}));
    }
    return next;
  };
  sums = b_.loop(b_.index(0), full, b_.index(lanes), sums,
                 [&](Value k, const std::vector<Value>& carried) { return step(k, carried, no_value); });
  int64_t extent = 0, whole = 0;
  if (!(b_.known(k_, extent) && b_.known(full, whole) && extent == whole)) sums = step(full, sums, b_.sub(k_, full));
  for (int64_t j = 0; j < bn; ++j) {
    Value column = b_.reshape(b_.reduce(Reducer::sum, sums[static_cast<size_t>(j)], 1), {bm, 1});
    b_.when(b_.lt(b_.index(j), n_left), [&] {
      store(column, m0, b_.add(n0, b_.index(j)), {d_.c_m, 1}, {m_limit, no_value}, false);
    });
  }
}

Lowered DotLowering::run() {
  c_ = emit_.param(result_, true);
  if (plan_.sum >= 0) emit_.param(plan_.sum, true);
  for (const NodeId id : plan_.stored) emit_.param(id, true);
  a_.ref = emit_.param(plan_.a.node, false);
  bb_.ref = emit_.param(plan_.b.node, false);
  for (const NodeId id : plan_.reads()) emit_.param(id, false);
  t_ = plan_.epilogue.steps[0].dtype;
  if (t_ != float64 && t_ != int32) t_ = float32;
  auto dims = plan_.extents.end();
  m_ = emit_.extent(dims[-3]);
  n_ = emit_.extent(dims[-2]);
  k_ = emit_.extent(dims[-1]);
  if (!schedule_.rows.axes.empty()) matmul_form(stores_transposed(plan_));
  else if (cx_.target.machine().simt) shared_form();
  else if (blocks_fit()) blocks_form(d_.c_n != 1 && d_.c_m == 1);
  else if (panels_fit(false)) panels_form(false);
  else if (panels_fit(true)) panels_form(true);
  else if (d_.b_n == 1 && (d_.n > 1 || d_.b_k != 1)) outer_form(false);
  else if (d_.a_k == 1 && d_.b_k == 1) inner_form();
  else if (d_.a_m == 1 && d_.m > 1) outer_form(true);
  else outer_form(false);
  Lowered out = emit_.finish(grid_, 2 * d_.flops());
  out.kernel.any_size = any_size_;
  out.kernel.launch = launch_of(schedule_.staging);
  return out;
}

kernel::LaunchOptions launch_of(const Staging& staging) {
  kernel::LaunchOptions out;
  out.warps = staging.warps, out.stages = staging.stages, out.registers = staging.registers;
  out.specialize = staging.specialize, out.persistent = staging.persistent, out.ping_pong = staging.ping_pong;
  return out;
}

Lowered lower_dot(const LowerContext& cx, const Group& fused, const std::optional<Schedule>& given) {
  Group group = fused.copy();
  const target::Machine& machine = cx.target.machine();
  const bool tiled = given && !given->rows.axes.empty();
  Schedule schedule;
  if (tiled) schedule = *given;
  else if (takes_matmul_tiles(group.dot, machine)) schedule = product_schedule(group.dot, machine);
  return DotLowering(cx, group, std::move(schedule)).run();
}

}  // namespace weft::compiler
