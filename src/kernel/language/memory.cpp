// Accesses to arrays. A slice is one load or store with limits where its beginning is known not to be negative; any
// other access computes the address of each element.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "kernel/language/trace.h"
#include "weft/kernel/erased_async.h"

namespace weft::k {

using kernel::ScalarOp;
using kernel::Type;
using kernel::Value;

namespace {

using Dims = std::vector<int64_t>;

Number element_of(Scalar s, Dtype t) {
  const Number n = s.integral ? Number::of_int(s.i) : Number::of_real(s.f);
  return kernel::round_to(n, t);
}

/// One axis of an access: elements start + i · step, i < size.
struct Axis {
  Value start = kernel::no_value;
  Value end = kernel::no_value;  // the extent, where it is a run-time scalar
  int64_t size = 1, step = 1, extent = 1, stride = 1;
  bool squeezed = false;
  bool never_below = false, never_above = false;  // no element lies outside of the array
};

class Slice {
 public:
  Slice(Trace& t, std::string_view what, const AnyRef& ref, std::span<const Span> spans, Line at)
      : t_(t), b_(t.at(at)), ref_(ref) {
    check_own(t, what, ref, at);
    if (spans.size() != ref.dims.size())
      t.refuse(at, fmt::format("{}: {} indices for an array of {} axes, [{}]: give one for each", what, spans.size(),
                               ref.dims.size(), fmt::join(ref.dims, ",")));
    for (size_t k = 0; k < spans.size(); ++k) axes_.push_back(axis(what, spans[k], k, at));
    for (const Axis& a : axes_)
      if (!a.squeezed) dims_.push_back(a.size);
    check_extents(t, what, dims_, at);
  }

  const Dims& dims() const { return dims_; }

  /// Returns whether the access is a slice with limits: nothing can lie before the array's beginning.
  bool plain() const {
    return std::all_of(axes_.begin(), axes_.end(), [&](const Axis& a) {
      if (a.squeezed) return (a.never_below && a.never_above) || !dims_.empty();
      return a.never_below && (a.step > 0 || a.never_above);
    });
  }

  Value offset() {
    Value sum = origin_of(t_, ref_, {});
    for (const Axis& a : axes_) sum = t_.add(sum, t_.mul(a.start, t_.index(a.stride)));
    return sum;
  }

  Dims strides() const {
    Dims out;
    for (const Axis& a : axes_)
      if (!a.squeezed) out.push_back(a.stride * a.step);
    return out;
  }

  std::vector<Value> limits() {
    std::vector<Value> out;
    Value reached = kernel::no_value;  // whether the single elements exist
    for (const Axis& a : axes_)
      if (a.squeezed && !(a.never_below && a.never_above)) reached = both(reached, exists(a.start, a));
    for (const Axis& a : axes_) {
      if (a.squeezed) continue;
      Value limit = kernel::no_value;
      if (!a.never_above) {
        limit = b_.sub(end_of(a), a.start);
        if (a.step > 1) limit = b_.scalar(ScalarOp::floordiv, {b_.add(limit, t_.index(a.step - 1)), t_.index(a.step)});
      }
      if (out.empty() && reached != kernel::no_value)
        limit = b_.select(reached, limit == kernel::no_value ? t_.index(a.size) : limit, t_.index(0));
      out.push_back(limit);
    }
    return out;
  }

  /// The address of each element, and whether it exists (no_value: all do).
  struct Addresses {
    Value index, mask;
  };
  Addresses addresses() {
    Addresses out{to_dims(origin_of(t_, ref_, {})), kernel::no_value};
    size_t next = 0;
    for (const Axis& a : axes_) {
      Value position = a.start;
      if (!a.squeezed) {
        Dims line(dims_.size(), 1);
        line[next++] = a.size;
        Value lanes = b_.arange(a.size);
        if (a.step != 1) lanes = b_.mul(lanes, b_.constant(int64, Number::of_int(a.step), {a.size}));
        position = b_.reshape(b_.add(b_.broadcast(a.start, {a.size}), lanes), line);
      }
      if (!(a.never_below && a.never_above)) out.mask = both(out.mask, to_dims(exists(position, a)));
      if (a.stride != 1)
        position = b_.mul(position, b_.constant(int64, Number::of_int(a.stride), b_.type(position).dims));
      out.index = b_.add(out.index, to_dims(position));
    }
    return out;
  }

 private:
  Axis axis(std::string_view what, const Span& span, size_t k, Line at) {
    Axis a;
    a.extent = ref_.dims[k], a.stride = ref_.strides[k];
    if (ref_.is_symbolic(k)) a.end = t_.value(ref_.extents[k], at);
    if (a.end != kernel::no_value && span.whole)
      t_.refuse(at,
                fmt::format("{}: axis {} of [{}] is taken whole, but its extent is known at run time alone: take as "
                            "many elements as a tile has, k::ds(0, x.bound({})), and say by load(other) what those "
                            "behind the end are",
                            what, k, dims_text(ref_), k));
    a.squeezed = span.squeezed;
    a.size = span.whole ? a.extent : span.squeezed ? 1 : span.size;
    a.step = span.whole ? 1 : span.step;
    if (a.size < 1 || a.step == 0)
      t_.refuse(at,
                fmt::format("{}: {} elements by steps of {} of axis {} of [{}]: give a size of 1 or more and a step "
                            "that is not 0",
                            what, a.size, a.step, k, fmt::join(ref_.dims, ",")));
    a.start = span.start ? t_.value(span.start, at) : t_.index(span.whole ? 0 : span.first);
    if (!(b_.type(a.start) == Type{int64, {}}))
      t_.refuse(at, fmt::format("{}: axis {} begins at {}, not at an int64 scalar: cast or reduce it", what, k,
                                text(b_.type(a.start))));
    const Known start = t_.known(a.start);
    int64_t reach = 0;
    if (__builtin_mul_overflow(a.size - 1, a.step, &reach))
      t_.refuse(at, fmt::format("{}: {} elements by steps of {} of axis {} of [{}] reach too far: take fewer", what,
                                a.size, a.step, k, fmt::join(ref_.dims, ",")));
    const auto plus = [](int64_t x, int64_t y) {
      int64_t sum = 0;
      return __builtin_add_overflow(x, y, &sum) ? (y > 0 ? INT64_MAX : INT64_MIN) : sum;
    };
    a.never_below = plus(start.low, std::min<int64_t>(0, reach)) >= 0;
    const Known end = a.end == kernel::no_value ? Known{a.extent, a.extent, a.extent} : t_.known(a.end);
    // A part that begins in front of a multiple of its size ends there at most.
    const bool below = a.end != kernel::no_value && start.below != kernel::no_value && t_.at_most(start.below, a.end);
    const int64_t divisor = below ? t_.known(start.below).divisor : end.divisor;
    const bool whole_parts =
        a.step == 1 && start.divisor % a.size == 0 && divisor % a.size == 0 && (below || start.high < end.low);
    a.never_above = whole_parts || plus(start.high, std::max<int64_t>(0, reach)) < end.low;
    if (start.low == start.high && a.squeezed && (start.low < 0 || start.low >= a.extent))
      t_.refuse(at, fmt::format("{}: axis {} of [{}] has no element {}: it has {}", what, k, fmt::join(ref_.dims, ","),
                                start.low, a.extent));
    return a;
  }

  Value end_of(const Axis& a) { return a.end == kernel::no_value ? t_.index(a.extent) : a.end; }
  Value both(Value a, Value b) { return a == kernel::no_value ? b : b_.scalar(ScalarOp::bit_and, {a, b}); }
  Value exists(Value position, const Axis& a) {
    const Dims dims = b_.type(position).dims;  // a copy: the types move as instructions are appended
    const auto number = [&](int64_t v) { return b_.constant(int64, Number::of_int(v), dims); };
    const Value end = a.end == kernel::no_value || dims.empty() ? a.end : b_.broadcast(a.end, dims);
    const Value below = a.never_above             ? kernel::no_value
                        : end == kernel::no_value ? b_.lt(position, number(a.extent))
                                                  : b_.lt(position, end);
    if (a.never_below) return below;
    const Value above = b_.scalar(ScalarOp::le, {number(0), position});
    return below == kernel::no_value ? above : b_.scalar(ScalarOp::bit_and, {above, below});
  }
  Value to_dims(Value v) { return dims_.empty() ? v : b_.broadcast(v, dims_); }

  Trace& t_;
  kernel::Builder& b_;
  const AnyRef& ref_;
  std::vector<Axis> axes_;
  Dims dims_;
};

void check_written(Trace& t, std::string_view what, const AnyRef& ref, Line at) {
  const auto k = static_cast<size_t>(ref.param);
  check_own(t, what, ref, at);
  if (k < t.params.size() && t.params[k].use == Use::in)
    t.refuse(at, fmt::format("{}: array {} is an input: declare it as Out or InOut to write it", what, k));
}

/// Returns the mask of an access: what exists and what the user asks for.
Value mask_of(Trace& t, std::string_view what, const Access& access, const Dims& dims, Value exists, Line at) {
  if (!access.mask) return exists;
  Value mask = t.value(access.mask, at);
  if (!(t.builder.type(mask).dtype == bool_) || (t.builder.type(mask).rank() > 0 && t.builder.type(mask).dims != dims))
    t.refuse(at, fmt::format("{}: the mask is {}, not bool[{}]: give it the shape of the elements", what,
                             text(t.builder.type(mask)), fmt::join(dims, ",")));
  if (!dims.empty()) mask = t.builder.broadcast(mask, dims);
  return exists == kernel::no_value ? mask : t.builder.scalar(ScalarOp::bit_and, {exists, mask});
}

/// Returns a value in the dtype and shape of an access.
Value fitting(Trace& t, std::string_view what, const Any& v, Dtype dtype, const Dims& dims, Line at) {
  const Value value = t.value(v, at);
  const Type& type = t.builder.type(value);
  if (!(type.dtype == dtype))
    t.refuse(at, fmt::format("{}: {} goes into an array of {}: cast it", what, text(type), dtype_name(dtype)));
  if (type.rank() != 0 && type.dims != dims)
    t.refuse(at, fmt::format("{}: {} goes into elements of shape [{}]: give it this shape, or a scalar", what,
                             text(type), fmt::join(dims, ",")));
  return dims.empty() ? value : t.builder.broadcast(value, dims);
}

/// The addresses of elements at positions along each axis, which broadcast together.
Slice::Addresses positions_of(Trace& t, std::string_view what, const AnyRef& ref, std::span<const Any> position,
                              Dims& dims, Line at) {
  check_own(t, what, ref, at);
  if (position.size() != ref.dims.size() || position.empty())
    t.refuse(at, fmt::format("{}: {} positions for an array of {} axes, [{}]: give one for each", what, position.size(),
                             ref.dims.size(), fmt::join(ref.dims, ",")));
  kernel::Builder& b = t.at(at);
  std::vector<Value> values;
  for (const Any& p : position) values.push_back(t.value(p, at));
  common_shape(t, fmt::format("{}: positions", what), values, at);
  Slice::Addresses out{origin_of(t, ref, at), kernel::no_value};
  Any sum = t.any(out.index), mask;
  const Line none = at;
  for (size_t k = 0; k < position.size(); ++k) {
    if (!is_integer(t.type(position[k], at).dtype))
      t.refuse(at,
               fmt::format("{}: position {} is {}, no integer tile: cast it", what, k, text(t.type(position[k], at))));
    const Any coordinate = cast(position[k], int64, at);
    const auto number = [&](int64_t v) { return constant(int64, v, {}, none); };
    const Any end = ref.is_symbolic(k) ? ref.extents[k] : number(ref.dims[k]);
    const Any inside = apply(
        "bit_and",
        std::array{apply("le", std::array{number(0), coordinate}, at), apply("lt", std::array{coordinate, end}, at)},
        at);
    mask = mask ? apply("bit_and", std::array{mask, inside}, at) : inside;
    sum = apply("add", std::array{sum, apply("mul", std::array{coordinate, number(ref.strides[k])}, at)}, at);
  }
  dims = sum.dims(at);
  out.index = t.value(sum, at);
  out.mask = dims.empty() ? t.value(mask, at) : b.broadcast(t.value(mask, at), dims);
  return out;
}

}  // namespace

Any load(const AnyRef& ref, std::span<const Span> spans, const Access& access, Line at) {
  Trace& t = Trace::current("load", at);
  Slice slice(t, "load", ref, spans, at);
  kernel::Builder& b = t.at(at);
  const Number other = element_of(access.other, ref.dtype);
  if (!slice.plain()) {
    const Slice::Addresses from = slice.addresses();
    return t.any(b.gather(ref.param, from.index, mask_of(t, "load", access, slice.dims(), from.mask, at), other));
  }
  const Value v = b.load(ref.param, slice.offset(), slice.dims(), slice.strides(), slice.limits(), other,
                         access.cache == Cache::streaming);
  const Value mask = mask_of(t, "load", access, slice.dims(), kernel::no_value, at);
  return t.any(mask == kernel::no_value ? v : b.select(mask, v, b.constant(ref.dtype, other, slice.dims())));
}

void store(const AnyRef& ref, std::span<const Span> spans, const Any& v, const Access& access, Line at) {
  Trace& t = Trace::current("store", at);
  check_written(t, "store", ref, at);
  Slice slice(t, "store", ref, spans, at);
  kernel::Builder& b = t.at(at);
  const Value value = fitting(t, "store", v, ref.dtype, slice.dims(), at);
  for (size_t k = 0; k < slice.dims().size(); ++k)
    if (slice.dims()[k] > 1 && slice.strides()[k] == 0)
      t.refuse(at,
               fmt::format("store: several elements of [{}] go to one position of a view that repeats an axis: store "
                           "one of them",
                           fmt::join(slice.dims(), ",")));
  if (access.mask || !slice.plain()) {
    const Slice::Addresses to = slice.addresses();
    return b.scatter(ref.param, value, to.index, mask_of(t, "store", access, slice.dims(), to.mask, at));
  }
  b.store(ref.param, value, slice.offset(), slice.strides(), slice.limits(), access.cache == Cache::streaming);
}

void prefetch(const AnyRef& ref, std::span<const Span> spans, Line at) {
  constexpr int64_t most_runs = 64;  // each is an instruction
  Trace& t = Trace::current("prefetch", at);
  Slice slice(t, "prefetch", ref, spans, at);
  kernel::Builder& b = t.at(at);
  if (static_cast<size_t>(ref.param) >= b.kernel().params.size())
    t.refuse(at, "prefetch: a buffer of the program is near already: take a slice of an array");
  // Runs of elements that are adjacent in memory: along the last axis, where it is.
  Dims dims = slice.dims();
  const Dims strides = slice.strides();
  const int64_t run = !dims.empty() && strides.back() == 1 ? std::exchange(dims.back(), 1) : 1;
  int64_t runs = 1;
  for (const int64_t n : dims) runs *= n;
  if (runs > most_runs)
    t.refuse(at, fmt::format("prefetch: [{}] elements of [{}] are {} runs of adjacent ones, more than {}: take fewer",
                             fmt::join(slice.dims(), ","), dims_text(ref), runs, most_runs));
  const Value first = slice.offset();
  for (int64_t k = 0; k < runs; ++k) {
    int64_t rest = k, offset = 0;
    for (size_t axis = dims.size(); axis-- > 0; rest /= dims[axis]) offset += rest % dims[axis] * strides[axis];
    b.prefetch(ref.param, t.add(first, t.index(offset)), run);
  }
}

Any gather(const AnyRef& ref, std::span<const Any> position, const Access& access, Line at) {
  Trace& t = Trace::current("gather", at);
  Dims dims;
  const Slice::Addresses from = positions_of(t, "gather", ref, position, dims, at);
  return t.any(t.at(at).gather(ref.param, from.index, mask_of(t, "gather", access, dims, from.mask, at),
                               element_of(access.other, ref.dtype)));
}

void scatter(const AnyRef& ref, std::span<const Any> position, const Any& v, const Access& access, Line at) {
  Trace& t = Trace::current("scatter", at);
  check_written(t, "scatter", ref, at);
  Dims dims;
  const Slice::Addresses to = positions_of(t, "scatter", ref, position, dims, at);
  const Value value = fitting(t, "scatter", v, ref.dtype, dims, at);
  t.at(at).scatter(ref.param, value, to.index, mask_of(t, "scatter", access, dims, to.mask, at));
}

namespace {

kernel::AtomicOrder ordered(Ordering how) {
  return {static_cast<kernel::MemoryOrder>(how.order), static_cast<kernel::MemoryScope>(how.scope)};
}

Any update(Trace& t, std::string_view op, const AnyRef& ref, const Slice::Addresses& to, const Dims& dims, const Any& v,
           const Any& mask, Ordering how, Line at) {
  const Value value = fitting(t, "atomic", v, ref.dtype, dims, at);
  const Value chosen = mask_of(t, "atomic", {.mask = mask}, dims, to.mask, at);
  if (op == "exchange") return t.any(t.at(at).exchange_memory(ref.param, value, to.index, chosen, ordered(how)));
  static constexpr std::pair<std::string_view, ScalarOp> atomics[] = {
      {"add", ScalarOp::add},         {"min", ScalarOp::min},       {"max", ScalarOp::max},
      {"bit_and", ScalarOp::bit_and}, {"bit_or", ScalarOp::bit_or}, {"bit_xor", ScalarOp::bit_xor}};
  const auto* row = std::find_if(std::begin(atomics), std::end(atomics), [&](const auto& a) { return a.first == op; });
  if (row == std::end(atomics))
    t.refuse(at, fmt::format("atomic: there is no atomic '{}': add, min, max, bit_and, bit_or, bit_xor, exchange", op));
  const ScalarOp which = row->second;
  if (ref.dtype == bool_ || !kernel::takes(kernel::info(which), ref.dtype))
    t.refuse(at,
             fmt::format("atomic: {} is not defined on {}: use an array of another dtype", op, dtype_name(ref.dtype)));
  return t.any(t.at(at).atomic(which, ref.param, value, to.index, chosen, ordered(how)));
}

}  // namespace

Any atomic(std::string_view op, const AnyRef& ref, std::span<const Any> position, const Any& v, const Any& mask,
           Ordering how, Line at) {
  Trace& t = Trace::current("atomic", at);
  check_written(t, "atomic", ref, at);
  Dims dims;
  const Slice::Addresses to = positions_of(t, "atomic", ref, position, dims, at);
  return update(t, op, ref, to, dims, v, mask, how, at);
}

Any atomic(std::string_view op, const AnyRef& ref, std::span<const Span> spans, const Any& v, const Any& mask,
           Ordering how, Line at) {
  Trace& t = Trace::current("atomic", at);
  check_written(t, "atomic", ref, at);
  Slice slice(t, "atomic", ref, spans, at);
  t.at(at);
  return update(t, op, ref, slice.addresses(), slice.dims(), v, mask, how, at);
}

Any compare_exchange(const AnyRef& ref, std::span<const Any> position, const Any& expected, const Any& v,
                     const Any& mask, Ordering how, Line at) {
  Trace& t = Trace::current("compare_exchange", at);
  check_written(t, "compare_exchange", ref, at);
  Dims dims;
  const Slice::Addresses to = positions_of(t, "compare_exchange", ref, position, dims, at);
  const Value value = fitting(t, "compare_exchange", v, ref.dtype, dims, at),
              before = fitting(t, "compare_exchange", expected, ref.dtype, dims, at);
  return t.any(t.at(at).compare_exchange(ref.param, before, value, to.index,
                                         mask_of(t, "compare_exchange", {.mask = mask}, dims, to.mask, at),
                                         ordered(how)));
}

namespace {

/// Returns a buffer of the program. `gap`: elements between rows; `swizzle`: as of kernel::Local.
AnyRef buffer_of_program(std::string_view what, Dtype dtype, const Dims& dims, int64_t gap, int swizzle, Line at) {
  Trace& t = Trace::current(what, at);
  check_dtype(t, what, dtype, at);
  if (t.in_nested_block())
    t.refuse(at, fmt::format("{}: it is made in a loop or a condition: declare it before", what));
  AnyRef out{-1, t.serial, dtype, 0, dims, Dims(dims.size(), 1)};
  int64_t elements = 1;
  for (size_t k = dims.size(); k-- > 0;) {
    out.strides[k] = elements;
    const bool rows = k + 1 == dims.size() && k > 0;
    if (dims[k] < 1 || __builtin_mul_overflow(elements, dims[k], &elements) ||
        __builtin_add_overflow(elements, rows ? gap : 0, &elements))
      t.refuse(at, fmt::format("{}: extents are positive and their product is small, not [{}]: give 1 or more", what,
                               fmt::join(dims, ",")));
  }
  const int64_t block = int64_t{8} * swizzle / dtype.size();  // elements that are exchanged with each other
  if (block > 0) elements = (elements + block - 1) / block * block;
  t.at(at);
  out.param = t.builder.reserve(dtype, elements, swizzle);  // before the loops of sequential axes
  return out;
}

}  // namespace

AnyRef scratch(Dtype dtype, const Dims& dims, Line at) { return buffer_of_program("scratch", dtype, dims, 0, 0, at); }

AnyRef shared(Dtype dtype, const Dims& dims, SharedLayout layout, Line at) {
  constexpr int swizzles[] = {0, 0, 32, 64, 128};
  const bool padded = layout == SharedLayout::padded;
  return buffer_of_program("shared", dtype, dims, padded ? 16 / dtype.size() : 0, swizzles[static_cast<size_t>(layout)],
                           at);
}

void copy_async(const AnyRef& to, std::span<const Span> to_spans, const AnyRef& from, std::span<const Span> from_spans,
                Scalar other, const AnyBarriers& barriers, const Any& index, Line at) {
  Trace& t = Trace::current("copy_async", at);
  Slice into(t, "copy_async", to, to_spans, at), out_of(t, "copy_async", from, from_spans, at);
  if (static_cast<size_t>(to.param) < t.params.size() || static_cast<size_t>(from.param) >= t.params.size())
    t.refuse(at, "copy_async: copies go from an array to a buffer made by shared(): exchange or replace the operands");
  if (!(to.dtype == from.dtype) || into.dims() != out_of.dims())
    t.refuse(at, fmt::format("copy_async: {}[{}] is copied to {}[{}]: give both slices one dtype and one shape",
                             dtype_name(from.dtype), fmt::join(out_of.dims(), ","), dtype_name(to.dtype),
                             fmt::join(into.dims(), ",")));
  kernel::Builder& b = t.at(at);
  const std::vector<Value> ends = into.plain() ? into.limits() : std::vector<Value>{kernel::no_value};
  if (!into.plain() || std::any_of(ends.begin(), ends.end(), [](Value v) { return v != kernel::no_value; }))
    t.refuse(at, fmt::format("copy_async: the slice of [{}] may leave the shared buffer: keep it inside, or say so by "
                             "assume_range",
                             fmt::join(to.dims, ",")));
  if (!out_of.plain())
    t.refuse(at, fmt::format("copy_async: the slice of [{}] may begin before the array: begin at 0 or later, or say so "
                             "by assume_range",
                             fmt::join(from.dims, ",")));
  kernel::Builder::Copy copy{.from = from.param, .to = to.param};
  copy.from_offset = out_of.offset(), copy.to_offset = into.offset();
  copy.dims = into.dims(), copy.from_strides = out_of.strides(), copy.to_strides = into.strides();
  copy.limits = out_of.limits(), copy.other = element_of(other, from.dtype);
  if (index) {
    if (barriers.trace != t.serial) t.refuse(at, "copy_async: a barrier of another kernel is used: make one here");
    copy.barrier = barriers.buffer, copy.index = t.value(index, at);
  }
  b.copy_async(copy);
}

namespace {

/// Returns the slice of a neighbour's buffer, which lies within it, and checks the neighbour's number.
Slice slice_of_neighbour(Trace& t, std::string_view what, const AnyRef& ref, std::span<const Span> spans,
                         const Any& rank, Line at) {
  if (t.cluster() < 1)
    t.refuse(at,
             fmt::format("{}: the grid has no clusters: give it a last axis k::GridAxis(n, k::Order::cluster)", what));
  if (t.in_role())
    t.refuse(at, fmt::format("{}: a role reaches no neighbours: let it stand before or behind roles", what));
  Slice slice(t, what, ref, spans, at);
  if (static_cast<size_t>(ref.param) < t.params.size())
    t.refuse(at,
             fmt::format("{}: array {} is everyone's: take a buffer made by shared() or scratch()", what, ref.param));
  const Value which = t.value(rank, at);
  if (!(t.builder.type(which) == Type{int64, {}}))
    t.refuse(at, fmt::format("{}: the neighbour is {}, no int64 scalar: cast it", what, text(t.builder.type(which))));
  const std::vector<Value> ends = slice.plain() ? slice.limits() : std::vector<Value>{kernel::no_value};
  if (!slice.plain() || std::any_of(ends.begin(), ends.end(), [](Value v) { return v != kernel::no_value; }))
    t.refuse(at, fmt::format("{}: the slice of [{}] may leave the buffer: keep it inside, or say so by assume_range",
                             what, fmt::join(ref.dims, ",")));
  return slice;
}

}  // namespace

Any load_neighbour(const AnyRef& ref, std::span<const Span> spans, const Any& rank, Line at) {
  Trace& t = Trace::current("load_neighbour", at);
  Slice slice = slice_of_neighbour(t, "load_neighbour", ref, spans, rank, at);
  return t.any(t.at(at).load_neighbour(ref.param, t.value(rank, at), slice.offset(), slice.dims(), slice.strides()));
}

void store_neighbour(const AnyRef& ref, std::span<const Span> spans, const Any& rank, const Any& v, Line at) {
  Trace& t = Trace::current("store_neighbour", at);
  Slice slice = slice_of_neighbour(t, "store_neighbour", ref, spans, rank, at);
  const Value value = fitting(t, "store_neighbour", v, ref.dtype, slice.dims(), at);
  t.at(at).store_neighbour(ref.param, value, t.value(rank, at), slice.offset(), slice.strides());
}

}  // namespace weft::k
