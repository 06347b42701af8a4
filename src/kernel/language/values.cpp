// Values of the kernel language: constants, scalar operators, movement, reductions, products.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "kernel/language/trace.h"
#include "kernel/reducer.h"
#include "kernel/rules.h"
#include "kernel/states.h"
#include "weft/kernel/erased_async.h"

namespace weft::k {

using kernel::ScalarOp;
using kernel::Type;
using kernel::Value;

namespace {

using Dims = std::vector<int64_t>;

Number number_of(Scalar s) { return s.integral ? Number::of_int(s.i) : Number::of_real(s.f); }

const ScalarOp* find_operator(std::string_view name) {
  static const std::map<std::string_view, ScalarOp> operators = [] {
    std::map<std::string_view, ScalarOp> out;
    for (size_t k = 0; k < static_cast<size_t>(ScalarOp::count_); ++k)
      out.emplace(kernel::info(static_cast<ScalarOp>(k)).name, static_cast<ScalarOp>(k));
    return out;
  }();
  const auto found = operators.find(name);
  return found == operators.end() ? nullptr : &found->second;
}

const kernel::ReducerInfo* find_reducer(std::string_view name) {
  const auto found = std::find_if(kernel::reducers.begin(), kernel::reducers.end(),
                                  [&](const kernel::ReducerInfo& r) { return r.name == name; });
  return found == kernel::reducers.end() ? nullptr : &*found;
}

Value to_shape(Trace& t, Value v, const Dims& dims) {
  return t.builder.type(v).rank() == 0 || t.builder.type(v).dims == dims ? v : t.builder.broadcast(v, dims);
}

int axis_of(const Trace& t, std::string_view what, const Type& type, int axis, Line at) {
  const int from_front = axis < 0 ? axis + type.rank() : axis;
  if (from_front < 0 || from_front >= type.rank())
    t.refuse(at, fmt::format("{}: {} has no axis {}: it has {}", what, text(type), axis, type.rank()));
  return from_front;
}

std::vector<Value> values_of(const Trace& t, std::span<const Any> args, Line at) {
  std::vector<Value> out;
  for (const Any& v : args) out.push_back(t.value(v, at));
  return out;
}

std::vector<Any> anys_of(const Trace& t, const std::vector<Value>& values) {
  std::vector<Any> out;
  for (const Value v : values) out.push_back(t.any(v));
  return out;
}

/// Calls a user's function of two states in a block of its own.
kernel::Builder::Combine traced(Trace& t, std::string_view what, const CombineAny& combine, size_t count, Line at) {
  return [&t, what, combine, count, at](const std::vector<Value>& low, const std::vector<Value>& high) {
    std::vector<Value> out;
    t.in_combine([&] {
      const std::vector<Any> made = combine(anys_of(t, low), anys_of(t, high));
      if (made.size() != count)
        t.refuse(at, fmt::format("{}: the function returns {} values: return one for each of the {} tiles", what,
                                 made.size(), count));
      for (size_t k = 0; k < count; ++k) {
        out.push_back(t.value(made[k], at));
        if (!(t.builder.type(out[k]) == t.builder.type(low[k])))
          t.refuse(at, fmt::format("{}: value {} of the function is {}: return a scalar {}", what, k,
                                   text(t.builder.type(out[k])), text(t.builder.type(low[k]))));
      }
    });
    return out;
  };
}

/// The tiles that a user's function reduces or scans: they have one shape.
std::vector<Value> alike(const Trace& t, std::string_view what, std::span<const Any> tiles, Line at) {
  if (tiles.empty()) t.refuse(at, fmt::format("{}: there are no tiles: give one at least", what));
  std::vector<Value> values = values_of(t, tiles, at);
  const Type& first = t.builder.type(values[0]);
  for (const Value v : values)
    if (t.builder.type(v).dims != first.dims)
      t.refuse(at, fmt::format("{}: {} and {} differ in shape: broadcast one of them", what, text(first),
                               text(t.builder.type(v))));
  return values;
}

/// Returns how a reducer whose state has several components combines two states, as scalars.
kernel::Builder::Combine by_state(kernel::Builder& b, kernel::Reducer r) {
  return [&b, r](const std::vector<Value>& low, const std::vector<Value>& high) {
    return kernel::combine_states(b, r, low, high);
  };
}

/// Returns the components of a tile's elements, as states of one element each.
std::vector<Value> state_of(Trace& t, kernel::Reducer r, Value v, int axis) {
  const Type type = t.builder.type(v);
  std::vector<Value> out{v};
  if (kernel::info(r).kind == kernel::ReducerKind::located) {
    Dims line(type.dims.size(), 1);
    line[static_cast<size_t>(axis)] = type.dims[static_cast<size_t>(axis)];
    const Value positions = t.builder.cast(t.builder.arange(line[static_cast<size_t>(axis)]), uint32);
    out.push_back(t.builder.broadcast(t.builder.reshape(positions, line), type.dims));
  } else {  // scaled: the sum of one term is exp(v - v)
    out.push_back(t.builder.constant(type.dtype, Number::of_real(1), type.dims));
  }
  return out;
}

/// Returns a reduction's result from its final state.
Value result_of(Trace& t, kernel::Reducer r, const std::vector<Value>& state) {
  if (kernel::info(r).kind == kernel::ReducerKind::located) return state[1];
  return t.builder.add(state[0], t.builder.scalar(ScalarOp::log, {state[1]}));
}

const kernel::ReducerInfo& reducer_of(const Trace& t, std::string_view what, std::string_view name, const Type& type,
                                      Line at) {
  const kernel::ReducerInfo* row = find_reducer(name);
  const bool known = row && row->components.size() <= 2;
  if (!known)
    t.refuse(at, fmt::format("{}: there is no reducer '{}': sum, prod, max, min, all, any, xor, argmax, argmin, "
                             "logsumexp",
                             what, name));
  if (!kernel::takes(row->reducer, type.dtype))
    t.refuse(at, fmt::format("{}: {} is not defined on {}: cast it", what, name, text(type)));
  return *row;
}

}  // namespace

/// Returns the shape to which tiles of one rank, or scalars, are brought: extents of 1 repeat.
std::vector<int64_t> common_shape(const Trace& t, std::string_view what, std::span<const Value> values, Line at) {
  Dims out;
  for (const Value v : values) {
    const Type& type = t.builder.type(v);
    if (type.rank() == 0) continue;
    if (out.empty()) out.assign(type.dims.size(), 1);
    bool fits = type.dims.size() == out.size();
    for (size_t k = 0; fits && k < out.size(); ++k) {
      fits = type.dims[k] == out[k] || type.dims[k] == 1 || out[k] == 1;
      out[k] = std::max(out[k], type.dims[k]);
    }
    if (!fits) {
      std::string shapes;
      for (const Value each : values) shapes += (shapes.empty() ? "" : " and ") + text(t.builder.type(each));
      t.refuse(at, fmt::format("{}: shapes {} do not go together: give them one rank (row, col, expand_dims) and equal "
                               "extents, or extents of 1",
                               what, shapes));
    }
  }
  return out;
}

Dtype Any::dtype(Line at) const { return Trace::current("dtype", at, true).type(*this, at).dtype; }
const std::vector<int64_t>& Any::dims(Line at) const { return Trace::current("dims", at, true).type(*this, at).dims; }

Any constant(Dtype dtype, Scalar number, const Dims& dims, Line at) {
  Trace& t = Trace::current("constant", at, true);
  check_extents(t, "constant", dims, at);
  check_dtype(t, "constant", dtype, at);
  if (t.combining() && !dims.empty()) Trace::current("a tile", at);
  return t.any(t.at(at).constant(dtype, number_of(number), dims));
}

Any iota(int64_t n, Dtype dtype, Line at) {
  Trace& t = Trace::current("iota", at);
  check_extents(t, "iota", {n}, at);
  check_dtype(t, "iota", dtype, at);
  const bool native = dtype == int64 || dtype == int32;
  const Value v = t.at(at).arange(n, native ? dtype : int64);
  return t.any(native ? v : t.builder.cast(v, dtype));
}

Any apply(std::string_view op, std::span<const Any> args, Line at) {
  Trace& t = Trace::current(op, at, true);
  const ScalarOp* which = find_operator(op);
  if (!which) t.refuse(at, fmt::format("there is no scalar operator '{}': docs/operators.md lists them", op));
  const kernel::ScalarInfo& row = kernel::info(*which);
  std::vector<Value> values = values_of(t, args, at);
  if (values.size() != static_cast<size_t>(row.arity))
    t.refuse(at, fmt::format("{} takes {} arguments, not {}", op, row.arity, values.size()));
  const bool select = *which == ScalarOp::select;
  const Dtype dtype = t.builder.type(values[select ? 1 : 0]).dtype;
  for (size_t k = 0; k < values.size(); ++k) {
    const Dtype own = t.builder.type(values[k]).dtype, wanted = select && k == 0 ? bool_ : dtype;
    if (!(own == wanted))
      t.refuse(at, fmt::format("{}: argument {} is {}, not {}: cast it", op, k, dtype_name(own), dtype_name(wanted)));
  }
  if (!kernel::takes(row, dtype)) t.refuse(at, fmt::format("{} is not defined on {}: cast it", op, dtype_name(dtype)));
  const Dims dims = common_shape(t, op, values, at);
  if (t.combining() && !dims.empty()) Trace::current(fmt::format("{} of a tile", op), at);
  kernel::Builder& b = t.at(at);
  for (Value& v : values) v = to_shape(t, v, dims);
  const bool whole = dims.empty() && dtype == int64 && values.size() == 2 && row.result == kernel::ScalarResult::same;
  return t.any(whole ? t.whole(*which, values[0], values[1]) : b.scalar(*which, values));
}

Any cast(const Any& v, Dtype to, Line at) {
  Trace& t = Trace::current("cast", at, true);
  check_dtype(t, "cast", to, at);
  const Value from = t.value(v, at), result = t.at(at).cast(from, to);
  const bool widens = t.builder.type(from).rank() == 0 && is_integer(t.builder.type(from).dtype) && to == int64;
  if (widens) t.learn(result, t.known(from));
  return t.any(result);
}

Any bitcast(const Any& v, Dtype to, Line at) {
  Trace& t = Trace::current("bitcast", at, true);
  const Type& type = t.type(v, at);
  if (type.dtype.size() != to.size() || (type.dtype == bool_) != (to == bool_))
    t.refuse(at, fmt::format("bitcast: {} and {} differ in width: cast it", text(type), dtype_name(to)));
  return t.any(t.at(at).bitcast(t.value(v, at), to));
}

Any broadcast_to(const Any& v, const Dims& dims, Line at) {
  Trace& t = Trace::current("broadcast_to", at);
  check_extents(t, "broadcast_to", dims, at);
  const Type& type = t.type(v, at);
  bool fits = type.dims.size() <= dims.size();
  for (size_t k = 1; fits && k <= type.dims.size(); ++k) {
    const int64_t extent = type.dims[type.dims.size() - k];
    fits = extent == 1 || extent == dims[dims.size() - k];
  }
  if (!fits)
    t.refuse(at, fmt::format("broadcast_to: {} does not repeat to [{}]: from the last axis on, extents are equal or 1",
                             text(type), fmt::join(dims, ",")));
  return t.any(dims.empty() ? t.value(v, at) : t.at(at).broadcast(t.value(v, at), dims));
}

Any reshape(const Any& v, const Dims& dims, Line at) {
  Trace& t = Trace::current("reshape", at);
  check_extents(t, "reshape", dims, at);
  const Type& type = t.type(v, at);
  if (Type{type.dtype, dims}.size() != type.size())
    t.refuse(at, fmt::format("reshape: {} has {} elements, not those of [{}]: give extents of the same product",
                             text(type), type.size(), fmt::join(dims, ",")));
  return t.any(t.at(at).reshape(t.value(v, at), dims));
}

Any permute(const Any& v, const std::vector<int>& axes, Line at) {
  Trace& t = Trace::current("permute", at);
  const Type& type = t.type(v, at);
  Dims order;
  for (const int axis : axes) order.push_back(axis_of(t, "permute", type, axis, at));
  Dims sorted = order;
  std::sort(sorted.begin(), sorted.end());
  const bool each = sorted.size() == type.dims.size() && std::unique(sorted.begin(), sorted.end()) == sorted.end();
  if (!each)
    t.refuse(at, fmt::format("permute: the axes {} of {} are not each named once", fmt::join(axes, ","), text(type)));
  return t.any(t.at(at).permute(t.value(v, at), order));
}

Any slice(const Any& v, const Dims& starts, const Dims& dims, const Dims& steps, Line at) {
  Trace& t = Trace::current("slice", at);
  const Type& type = t.type(v, at);
  check_extents(t, "slice", dims, at);
  bool fits = starts.size() == type.dims.size() && dims.size() == starts.size() &&
              (steps.empty() || steps.size() == starts.size());
  for (size_t k = 0; fits && k < starts.size(); ++k) {
    int64_t last = 0;
    const int64_t step = steps.empty() ? 1 : steps[k];
    fits = step != 0 && starts[k] >= 0 && starts[k] < type.dims[k] &&
           !__builtin_mul_overflow(dims[k] - 1, step, &last) && last >= -starts[k] && last < type.dims[k] - starts[k];
  }
  if (!fits)
    t.refuse(at,
             fmt::format("slice: [{}] elements from ({}) on by steps of ({}) reach outside of {}: give a beginning, "
                         "an extent and a step for each axis that stay within it",
                         fmt::join(dims, ","), fmt::join(starts, ","), fmt::join(steps, ","), text(type)));
  return t.any(t.at(at).slice(t.value(v, at), starts, dims, steps));
}

Any cat(std::span<const Any> tiles, int axis, Line at) {
  Trace& t = Trace::current("cat", at);
  if (tiles.empty()) t.refuse(at, "cat: there is nothing to join: give one tile at least");
  const std::vector<Value> values = values_of(t, tiles, at);
  const Type first = t.builder.type(values[0]);
  const int along = axis_of(t, "cat", first, axis, at);
  for (const Value v : values) {
    Type other = t.builder.type(v);
    if (other.rank() == first.rank()) other.dims[static_cast<size_t>(along)] = first.dims[static_cast<size_t>(along)];
    if (!(other == first))
      t.refuse(at, fmt::format("cat: {} and {} are joined along axis {}: give them the same other extents and dtype",
                               text(first), text(t.builder.type(v)), along));
  }
  return t.any(t.at(at).cat(values, along));
}

Any reduce(std::string_view reducer, const Any& v, int axis, Line at) {
  Trace& t = Trace::current("reduce", at);
  const Type type = t.type(v, at);
  const int along = axis_of(t, reducer, type, axis, at);
  const kernel::ReducerInfo& row = reducer_of(t, "reduce", reducer, type, at);
  kernel::Builder& b = t.at(at);
  if (row.components.size() == 1) return t.any(b.reduce(row.reducer, t.value(v, at), along));
  const std::vector<Value> state = state_of(t, row.reducer, t.value(v, at), along);
  return t.any(result_of(t, row.reducer, b.reduce(by_state(b, row.reducer), state, along)));
}

std::vector<Any> reduce(const CombineAny& combine, std::span<const Any> tiles, int axis, Line at) {
  Trace& t = Trace::current("reduce", at);
  const std::vector<Value> values = alike(t, "reduce", tiles, at);
  const int along = axis_of(t, "reduce", t.builder.type(values[0]), axis, at);
  return anys_of(t, t.at(at).reduce(traced(t, "reduce", combine, tiles.size(), at), values, along));
}

Any scan(std::string_view reducer, const Any& v, int axis, bool reverse, Line at) {
  Trace& t = Trace::current("scan", at);
  const Type type = t.type(v, at);
  const int along = axis_of(t, reducer, type, axis, at);
  const kernel::ReducerInfo& row = reducer_of(t, "scan", reducer, type, at);
  kernel::Builder& b = t.at(at);
  if (row.components.size() == 1) return t.any(b.scan(row.reducer, t.value(v, at), along, reverse));
  const std::vector<Value> state = state_of(t, row.reducer, t.value(v, at), along);
  return t.any(result_of(t, row.reducer, b.scan(by_state(b, row.reducer), state, along, reverse)));
}

std::vector<Any> scan(const CombineAny& combine, std::span<const Any> tiles, int axis, bool reverse, Line at) {
  Trace& t = Trace::current("scan", at);
  const std::vector<Value> values = alike(t, "scan", tiles, at);
  const int along = axis_of(t, "scan", t.builder.type(values[0]), axis, at);
  return anys_of(t, t.at(at).scan(traced(t, "scan", combine, tiles.size(), at), values, along, reverse));
}

Any take(const Any& v, const Any& index, int axis, Line at) {
  Trace& t = Trace::current("take", at);
  const Type type = t.type(v, at), of = t.type(index, at);
  const int along = axis_of(t, "take", type, axis, at);
  bool fits = is_integer(of.dtype) && of.rank() == type.rank();
  for (int k = 0; fits && k < type.rank(); ++k)
    fits = k == along || of.dims[static_cast<size_t>(k)] == type.dims[static_cast<size_t>(k)];
  if (!fits)
    t.refuse(at,
             fmt::format("take: {} by {} along axis {}: the index is an integer tile that differs along that axis only",
                         text(type), text(of), along));
  return t.any(t.at(at).take(t.value(v, at), t.builder.cast(t.value(index, at), int64), along));
}

std::vector<Any> sort(std::span<const Any> tiles, int axis, bool descending, Line at) {
  Trace& t = Trace::current("sort", at);
  const std::vector<Value> values = alike(t, "sort", tiles, at);
  const int along = axis_of(t, "sort", t.builder.type(values[0]), axis, at);
  return anys_of(t, t.at(at).sort(values, along, descending));
}

Any histogram(const Any& index, int64_t bins, Line at) {
  Trace& t = Trace::current("histogram", at);
  check_extents(t, "histogram", {bins}, at);
  if (!is_integer(t.type(index, at).dtype))
    t.refuse(at, fmt::format("histogram: {} is no integer tile: cast it", text(t.type(index, at))));
  return t.any(t.at(at).histogram(t.value(index, at), bins));
}

namespace {

/// Returns the sum to which a product adds; refuses operands that make none.
Value sum_of_dot(Trace& t, const Any& a, const Any& b, const Any& c, Precision precision, Line at) {
  const Type x = t.type(a, at), y = t.type(b, at);
  const size_t rank = x.dims.size();
  if (!(x.dtype == y.dtype) || rank < 2 || y.dims.size() != rank)
    t.refuse(at, fmt::format("dot: {} and {}: two tiles of one dtype and rank, two axes at least, are wanted", text(x),
                             text(y)));
  if (x.dims[rank - 1] != y.dims[rank - 2])
    t.refuse(at, fmt::format("dot: inner extents {} and {} of {} and {} differ: give [m,k] and [k,n]", x.dims[rank - 1],
                             y.dims[rank - 2], text(x), text(y)));
  Type result{is_integer(x.dtype) ? int32 : x.dtype == float64 ? float64 : float32, x.dims};
  result.dims[rank - 1] = y.dims[rank - 1];
  for (size_t k = 0; k + 2 < rank; ++k)
    if (x.dims[k] != y.dims[k])
      t.refuse(at, fmt::format("dot: the leading axes of {} and {} differ: broadcast one of them", text(x), text(y)));
  if (x.dtype.size() > 4 && is_integer(x.dtype))
    t.refuse(at, fmt::format("dot: integers of {} do not add up in int32: cast them", text(x)));
  if (c && t.type(c, at).dims != result.dims)
    t.refuse(at, fmt::format("dot: {} and {} do not add up in {}: give a tile of [{}]", text(x), text(y),
                             text(t.type(c, at)), fmt::join(result.dims, ",")));
  kernel::Builder& build = t.at(at);
  const Value sum = c ? t.value(c, at) : build.constant(result.dtype, Number::of_int(0), result.dims);
  const Dtype own = build.type(sum).dtype;
  const bool fits = is_float(x.dtype) ? is_float(own) && own.size() >= x.dtype.size() : own == int32;
  if (!fits)
    t.refuse(at, fmt::format("dot: products of {} do not add up in {}: cast", dtype_name(x.dtype), dtype_name(own)));
  if (precision != Precision::exact && !(x.dtype == float32 && own == float32))
    t.refuse(at, "dot: a precision is given for float32 alone: leave it out");
  return sum;
}

}  // namespace

Any dot(const Any& a, const Any& b, const Any& c, Precision precision, Line at) {
  Trace& t = Trace::current("dot", at);
  const Value sum = sum_of_dot(t, a, b, c, precision, at);
  return t.any(t.at(at).dot(t.value(a, at), t.value(b, at), sum, static_cast<kernel::DotPrecision>(precision)));
}

Any dot_async(const Any& a, const Any& b, const Any& c, Precision precision, Line at) {
  Trace& t = Trace::current("dot_async", at);
  const Value sum = sum_of_dot(t, a, b, c, precision, at);
  return t.any(t.at(at).dot_async(t.value(a, at), t.value(b, at), sum, static_cast<kernel::DotPrecision>(precision)));
}

Any wait_dot(const Any& flight, Line at) {
  Trace& t = Trace::current("wait_dot", at);
  return t.any(t.at(at).wait_dot(t.value(flight, at)));
}

Any assume_multiple(const Any& v, int64_t divisor, Line at) {
  Trace& t = Trace::current("assume_multiple", at);
  const Value n = t.value(v, at);
  if (t.builder.type(n).rank() != 0 || !(t.builder.type(n).dtype == int64) || divisor < 1)
    t.refuse(at, fmt::format("assume_multiple: {} by {}: an int64 scalar and a positive number are wanted",
                             text(t.type(v, at)), divisor));
  kernel::Builder& b = t.at(at);
  const Value rest = b.scalar(ScalarOp::mod, {n, b.index(divisor)});
  b.assert_(b.scalar(ScalarOp::eq, {rest, b.index(0)}), fmt::format("assume_multiple: not a multiple of {}", divisor));
  t.learn(n, {INT64_MIN, INT64_MAX, divisor});
  return v;
}

Any assume_range(const Any& v, int64_t low, int64_t high, Line at) {
  Trace& t = Trace::current("assume_range", at);
  const Value n = t.value(v, at);
  if (t.builder.type(n).rank() != 0 || !(t.builder.type(n).dtype == int64) || low > high)
    t.refuse(at, fmt::format("assume_range: {} in {} to {}: an int64 scalar and bounds are wanted", text(t.type(v, at)),
                             low, high));
  kernel::Builder& b = t.at(at);
  b.assert_(b.scalar(ScalarOp::bit_and,
                     {b.scalar(ScalarOp::le, {b.index(low), n}), b.scalar(ScalarOp::le, {n, b.index(high)})}),
            fmt::format("assume_range: not within {} to {}", low, high));
  t.learn(n, {low, high, 1});
  return v;
}

}  // namespace weft::k
