// What all forms of the dot class share: where the arrays of a batch begin, tiles of operands and the prologues that
// compute them, the epilogue and its stores. Limits guard the edges.
#include <algorithm>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "compiler/lower/dot/dot.h"
#include "compiler/lower/dot/exact.h"
#include "compiler/region/matmul_work.h"
#include "compiler/schedule/steps/product.h"

namespace weft::compiler {

using kernel::no_value;
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

int64_t DotLowering::batches() const {
  return std::accumulate(d_.batch.begin(), d_.batch.end(), int64_t{1}, std::multiplies<>());
}

/// Loads a tile of an operand, computed where the side has a prologue.
Value DotLowering::load(const Side& side, const Piece& piece) { return load(side, piece, t_); }
Value DotLowering::load(const Side& side, const Piece& piece, Dtype as) {
  return side.prologue.empty() ? b_.cast(load_plain(side, piece), as) : load_computed(side, piece, as);
}

/// Loads a tile of an operand without a prologue in the dtype that it is stored in.
Value DotLowering::load_plain(const Side& side, const Piece& piece) {
  Value at = b_.add(side.base, b_.mul(piece.row, b_.index(side.row)));
  at = b_.add(at, b_.mul(piece.depth, b_.index(side.depth)));
  std::vector<int64_t> strides;
  for (const Along axis : piece.axes) strides.push_back(axis == Along::row ? side.row : side.depth);
  return b_.load(side.ref, at, piece.dims, std::move(strides), piece.limits);
}

/// Loads what an operand's prologue reads, and computes it. Past the end of k the result is 0, as that of a plain load.
Value DotLowering::load_computed(const Side& side, const Piece& piece, Dtype as) {
  const kernel::Epilogue& e = side.prologue.steps;
  const std::vector<FusedStep> fused = fused_steps(e);
  std::vector<Value> values;
  for (size_t k = 0; k < e.steps.size(); ++k) {
    const kernel::EpilogueStep& s = e.steps[k];
    const auto input = [&](const kernel::EpilogueStep& of, int at) {
      return values[static_cast<size_t>(of.inputs[static_cast<size_t>(at)])];
    };
    if (fused[k].absorbed) {
      values.push_back(no_value);
    } else if (const int at = fused[k].product; at >= 0) {
      const kernel::EpilogueStep& product = e.steps[static_cast<size_t>(s.inputs[static_cast<size_t>(at)])];
      values.push_back(b_.scalar(kernel::ScalarOp::fma, {input(product, 0), input(product, 1), input(s, 1 - at)}));
    } else if (s.kind == kernel::EpilogueStep::Kind::operand) {
      values.push_back(load_source(side, static_cast<size_t>(s.operand), piece));
    } else if (s.kind == kernel::EpilogueStep::Kind::cast && k == static_cast<size_t>(e.result)) {
      values.push_back(b_.cast(input(s, 0), s.dtype));
    } else {
      values.push_back(step(s, values, piece.dims));
    }
  }
  Value v = b_.cast(values[static_cast<size_t>(e.result)], as);
  for (size_t axis = 0; axis < piece.dims.size(); ++axis) {
    if (piece.axes[axis] != Along::depth || piece.limits[axis] == no_value) continue;
    std::vector<int64_t> line(piece.dims.size(), 1);
    line[axis] = piece.dims[axis];
    const Value k = b_.broadcast(b_.reshape(b_.arange(piece.dims[axis]), line), piece.dims);
    const Value nothing = b_.constant(as, is_integer(as) ? Number::of_int(0) : Number::of_real(0), piece.dims);
    v = b_.select(b_.lt(k, b_.broadcast(piece.limits[axis], piece.dims)), v, nothing);
  }
  return v;
}

/// Returns the only axis along which a tile is more than one long, where a few elements of an array that begin there
/// are each shared by a period, and all of them exist.
static std::optional<size_t> shared_line(const Piece& piece, const kernel::EpilogueOperand& x) {
  constexpr int64_t most_loads = 4;
  std::optional<size_t> line;
  for (size_t axis = 0; axis < piece.dims.size(); ++axis) {
    if (piece.dims[axis] == 1) continue;
    const bool row = piece.axes[axis] == Along::row;
    const int64_t period = (row ? x.m_jump : x.n_jump).period;
    if (line || (row ? x.m : x.n) != 0 || piece.limits[axis] != no_value || period == 0 ||
        piece.dims[axis] % period != 0 || piece.dims[axis] / period > most_loads)
      return {};
    line = axis;
  }
  return line;
}

/// Loads elements that a period of a line shares: one by one, and chooses among them by the index in the line. A CPU
/// does that sooner than it gathers them.
Value DotLowering::load_shared(kernel::Ref ref, Value at, const Piece& piece, size_t line, const kernel::Jump& jump) {
  const int64_t length = piece.dims[line], count = length / jump.period;
  std::vector<int64_t> along(piece.dims.size(), 1);
  along[line] = length;
  const Value i = b_.broadcast(b_.reshape(b_.arange(length), along), piece.dims);
  const auto one = [&](int64_t k) {
    return load_view(ref, b_.add(at, b_.index(k * jump.by)), piece.dims, std::vector<int64_t>(along.size(), 0),
                     std::vector<Value>(along.size(), no_value));
  };
  Value v = one(count - 1);
  for (int64_t k = count - 1; k-- > 0;)
    v = b_.select(b_.lt(i, b_.broadcast(b_.index((k + 1) * jump.period), piece.dims)), one(k), v);
  return v;
}

/// Returns what divides a scalar of the trace, as far as is known; 0 where the scalar is 0.
static int64_t divisor_of(Value v) {
  const k::Trace* const trace = k::Trace::of_thread();
  return trace ? trace->known(v).divisor : 1;
}

/// Loads a tile of array `k` of a prologue in its compute dtype. A tile that is more than one long on an axis along
/// which the array jumps is gathered, unless it jumps nowhere within. A tile of a schedule that begins at a whole
/// period is loaded with an axis for periods and one for what lies in a period.
Value DotLowering::load_source(const Side& side, size_t k, const Piece& piece) {
  const auto& [row, depth, dims, axes, limits] = piece;
  const kernel::EpilogueOperand& x = side.prologue.steps.operands[k];
  const kernel::Ref ref = emit_.param(side.prologue.operands[k].node, false);
  const auto stride = [&](Along a) { return a == Along::row ? x.m : x.n; };
  const auto jump = [&](Along a) { return a == Along::row ? x.m_jump : x.n_jump; };
  const auto first = [&](Along a) { return a == Along::row ? piece.row : piece.depth; };
  const auto length = [&, &dims = dims](Along a) {
    const auto axis = std::find(piece.axes.begin(), piece.axes.end(), a);
    return axis == piece.axes.end() ? int64_t{1} : dims[static_cast<size_t>(axis - piece.axes.begin())];
  };
  const auto begins_at = [&](Along a, int64_t multiple) { return divisor_of(first(a)) % multiple == 0; };
  // Of a tile that begins at a whole period, where that begins and the rest of an index add up, and the rest is known.
  const auto whole = [&](Along a) { return jump(a).period > 0 && length(a) > 1 && begins_at(a, jump(a).period); };
  const auto within = [&](Along a) {  // one period
    const int64_t period = jump(a).period, n = length(a);
    return period == 0 || n == 1 || (period % n == 0 && begins_at(a, n));
  };
  // Whether the array ends with a period. If it does not, and neither stride is 0, the rest of its last period may lie
  // outside of memory.
  const auto ends_with_period = [&](Along a) {
    const kernel::Jump j = jump(a);
    const Value limit =
        piece.limits[static_cast<size_t>(std::find(piece.axes.begin(), piece.axes.end(), a) - piece.axes.begin())];
    return limit == no_value || stride(a) == 0 || j.period * stride(a) + j.by == 0 || divisor_of(limit) % j.period == 0;
  };
  Value at = side.bases[k];
  bool gathers = false, all_whole = true;
  for (const Along a : {Along::row, Along::depth}) {
    const kernel::Jump j = jump(a);
    if (whole(a)) {
      const int64_t each = j.period * stride(a) + j.by;
      if (each != 0)
        at = b_.add(at, b_.mul(b_.scalar(ScalarOp::floordiv, {first(a), b_.index(j.period)}), b_.index(each)));
    } else {
      at = b_.add(at, b_.mul(first(a), b_.index(stride(a))));
    }
    if (within(a)) {
      if (!whole(a)) at = b_.add(at, jumped(first(a), j));
    } else {
      gathers = true;
      all_whole = all_whole && whole(a) && length(a) % j.period == 0 && ends_with_period(a);
    }
  }
  if (!gathers) {
    std::vector<int64_t> strides;
    for (const Along axis : axes) strides.push_back(stride(axis));
    return load_view(ref, at, dims, strides, limits);
  }
  if (is_tiled() && all_whole) {
    std::vector<AxisLayout> lies;
    for (const Along a : axes) lies.push_back({stride(a), within(a) ? kernel::Jump() : jump(a)});
    return load_periods(ref, at, piece, lies);
  }
  const std::optional<size_t> shared = cx_.target.machine().simt ? std::nullopt : shared_line(piece, x);
  if (shared && whole(axes[*shared])) return load_shared(ref, at, piece, *shared, jump(axes[*shared]));
  Value index = b_.broadcast(at, dims), mask = no_value;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    std::vector<int64_t> line(dims.size(), 1);
    line[axis] = dims[axis];
    const Along a = axes[axis];
    const Value i = b_.broadcast(b_.reshape(b_.arange(dims[axis]), line), dims);
    index = b_.add(index, b_.mul(i, b_.index(stride(a))));
    const kernel::Jump j = jump(a);
    if (!within(a)) index = b_.add(index, jumped(whole(a) ? i : b_.add(i, first(a)), j));
    if (limits[axis] == no_value) continue;
    const Value inside = b_.lt(i, b_.broadcast(limits[axis], dims));
    mask = mask == no_value ? inside : b_.scalar(ScalarOp::bit_and, {mask, inside});
  }
  const Value loaded = b_.gather(ref, index, mask);
  return b_.cast(loaded, compute_dtype(b_.type(loaded).dtype));
}

/// Loads a tile that begins at whole periods of the axes that jump. Such an axis becomes two: its periods, and the
/// elements of one. Where either has stride 0, what it shares is loaded once.
Value DotLowering::load_periods(kernel::Ref ref, Value at, const Piece& piece, const std::vector<AxisLayout>& lies) {
  std::vector<int64_t> dims, strides;
  std::vector<Value> limits;
  const auto append = [&](int64_t extent, int64_t stride, Value limit) {
    dims.push_back(extent), strides.push_back(stride), limits.push_back(limit);
  };
  for (size_t axis = 0; axis < piece.dims.size(); ++axis) {
    const auto& [stride, jump] = lies[axis];
    const Value limit = piece.limits[axis];
    if (jump.period == 0) {
      append(piece.dims[axis], stride, limit);
      continue;
    }
    // Of the period that it ends in, the rest is loaded as well.
    const Value up = limit == no_value ? limit : b_.add(limit, b_.index(jump.period - 1));
    append(piece.dims[axis] / jump.period, jump.period * stride + jump.by,
           limit == no_value ? limit : b_.scalar(ScalarOp::floordiv, {up, b_.index(jump.period)}));
    append(jump.period, stride, no_value);
  }
  return b_.reshape(load_view(ref, at, dims, strides, limits), piece.dims);
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

/// Applies the epilogue to `c`, [m, n], or [n, m] where the operands are exchanged, and stores its results.
void DotLowering::store(Value c, Value row, Value column, std::vector<Value> limits, bool exchanged) {
  const kernel::Epilogue& e = plan_.epilogue;
  const Value m = exchanged ? column : row, n = exchanged ? row : column;
  const std::vector<int64_t> strides =
      exchanged ? std::vector<int64_t>{d_.c_n, d_.c_m} : std::vector<int64_t>{d_.c_m, d_.c_n};
  const ResultPiece piece{m, n, limits, b_.type(c).dims, exchanged};
  std::vector<Value> values{c};
  for (size_t k = 1; k < e.steps.size(); ++k) {
    const bool reads = e.steps[k].kind == kernel::EpilogueStep::Kind::operand;
    values.push_back(reads ? operand(e.steps[k].operand, piece) : step(e.steps[k], values, piece.dims));
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
Value DotLowering::operand(int k, const ResultPiece& piece) {
  const kernel::EpilogueOperand& x = plan_.epilogue.operands[static_cast<size_t>(k)];
  const OperandView& view = plan_.operands[static_cast<size_t>(k)];
  Value at = b_.add(batch_offset(batch_, x.batch), b_.index(view.offset));
  at = b_.add(at, b_.mul(piece.m, b_.index(x.m)));
  at = b_.add(at, b_.mul(piece.n, b_.index(x.n)));
  const std::vector<int64_t> strides = piece.n_first ? std::vector<int64_t>{x.n, x.m} : std::vector<int64_t>{x.m, x.n};
  return load_view(emit_.param(view.node, false), at, piece.dims, strides, piece.limits);
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
  if (is_tiled() || cx_.target.machine().simt) gpu_form();
  else cpu_form();
  Lowered out = emit_.finish(grid_, 2 * d_.flops());
  out.kernel.any_size = is_tiled();  // products are multiplied as those of users' kernels are
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
