#pragma once
// Random valid instances of every operator, for tests that hold one way of computing against another. Shapes have 0 and
// 1 among their extents, dtypes are those the row takes, index arrays reach outside now and then. Needs the graph layer
// only.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "graph/build.h"
#include "graph/calls/call.h"
#include "graph/control/control.h"
#include "graph/kernels.h"
#include "graph/table.h"

namespace weft::graph::testing {

/// Where the values of an input lie.
struct Domain {
  double low = -2, high = 2;           // floats
  int64_t int_low = -9, int_high = 9;  // integers, as far as the dtype holds them
  bool extremes = false;               // now and then an integer from the whole range of its dtype
};

inline Domain domain_of(const kernel::Samples& s) { return {s.low, s.high, s.int_low, s.int_high, s.extremes}; }

/// Whether the error of an elementwise operator is measured by its largest argument.
inline bool error_is_of_arguments(Op op) {
  const int scalar = row(op).scalar;
  return scalar >= 0 && kernel::info(static_cast<kernel::ScalarOp>(scalar)).scale == kernel::ErrorScale::arguments;
}

struct Instance {
  Op op;
  std::vector<HostTensor> inputs;
  Attrs attrs;
  std::vector<Domain> domains;  // of the inputs: `refill` draws other values
};

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed * 0x9e3779b97f4a7c15ull + 1) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  int64_t between(int64_t a, int64_t b) { return a + below(b - a + 1); }
  double real(double a, double b) { return a + (b - a) * static_cast<double>(engine_() >> 11) * 0x1p-53; }
  bool chance(int one_in) { return below(one_in) == 0; }
  uint64_t bits() { return engine_(); }
  template <class T>
  const T& of(const std::vector<T>& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }
  template <class T>
  void shuffle(std::vector<T>& list) {
    for (size_t k = list.size(); k > 1; --k)
      std::swap(list[k - 1], list[static_cast<size_t>(below(static_cast<int64_t>(k)))]);
  }

 private:
  std::mt19937_64 engine_;
};

inline const std::vector<Dtype>& float_dtypes() {
  static const std::vector<Dtype> list{float32, float64, float16,     bfloat16,   float32,
                                       float64, float16, float8_e4m3, float8_e5m2};
  return list;
}
inline const std::vector<Dtype>& integer_dtypes() {
  static const std::vector<Dtype> list{int32, int64, uint32, uint8, int8, int16, uint16, uint64};
  return list;
}

inline Number random_number(Random& r, Dtype t, const Domain& d) {
  if (t == bool_) return Number::of_int(r.below(2));
  if (is_float(t)) return kernel::round_to(Number::of_real(r.real(d.low, d.high)), t);
  if (d.extremes && r.chance(5)) return kernel::round_to(Number::of_int(static_cast<int64_t>(r.bits())), t);
  return kernel::round_to(
      Number::of_int(r.between(is_unsigned(t) ? std::max<int64_t>(d.int_low, 0) : d.int_low, d.int_high)), t);
}

inline HostTensor random_tensor(Random& r, const Type& type, const Domain& d = {}) {
  HostTensor out{type, {}};
  for (int64_t k = num_elements(type.shape); k > 0; --k) out.data.push_back(random_number(r, type.dtype, d));
  return out;
}

/// The instance with other values in its inputs.
inline void refill(Random& r, Instance& instance) {
  for (size_t k = 0; k < instance.inputs.size(); ++k)
    instance.inputs[k] = random_tensor(r, instance.inputs[k].type, instance.domains[k]);
}

inline int64_t random_extent(Random& r) { return r.of<int64_t>({1, 2, 3, 4, 5, 2, 3, 7, 1, r.chance(4) ? 0 : 2}); }
inline Shape random_shape(Random& r, int min_rank = 0, int max_rank = 3) {
  Shape shape;
  for (int64_t k = r.between(min_rank, max_rank); k > 0; --k) shape.push_back(random_extent(r));
  return shape;
}

/// The drawing of one instance: inputs are added as they are drawn.
struct Drawing {
  Random& r;
  bool float64_only;
  Instance out;

  Dtype float_dtype() { return float64_only ? float64 : r.of(float_dtypes()); }
  Dtype number_dtype() { return float64_only || r.chance(2) ? float_dtype() : r.of(integer_dtypes()); }
  Dtype any_dtype() { return float64_only || !r.chance(6) ? number_dtype() : bool_; }
  void input(const Shape& shape, Dtype t, const Domain& d = {}) {
    out.inputs.push_back(random_tensor(r, {shape, t}, d));
    out.domains.push_back(d);
  }
};

inline void draw_leaf(Drawing& d) {
  d.out.attrs.dtype = d.number_dtype();
  if (d.out.op == Op::constant) {
    d.out.attrs.number = random_number(d.r, d.out.attrs.dtype, {});
    return;
  }
  d.out.attrs.shape = random_shape(d.r, 1);
  d.out.attrs.axes = {d.r.below(static_cast<int64_t>(d.out.attrs.shape.size()))};
}

inline void draw_reshape(Drawing& d) {
  const Shape shape = random_shape(d.r);
  d.input(shape, d.any_dtype());
  Shape to;  // the extents' small factors, distributed over neighbouring axes
  if (num_elements(shape) == 0) {
    to = {d.r.between(0, 3), 0};
  } else {
    std::vector<int64_t> factors;
    for (int64_t n = num_elements(shape), p = 2; n > 1; n % p == 0 ? (factors.push_back(p), n /= p) : ++p) {
    }
    d.r.shuffle(factors);
    for (int64_t f : factors) {
      if (to.empty() || d.r.chance(2)) to.push_back(f);
      else to.back() = to.back().bound() * f;
      if (d.r.chance(5)) to.push_back(1);
    }
  }
  d.out.attrs.shape = to;
}

inline void draw_permute(Drawing& d) {
  const Shape shape = random_shape(d.r, 0, 4);
  d.input(shape, d.any_dtype());
  d.out.attrs.axes.resize(shape.size());
  std::iota(d.out.attrs.axes.begin(), d.out.attrs.axes.end(), 0);
  d.r.shuffle(d.out.attrs.axes);
}

inline void draw_broadcast(Drawing& d) {
  const Shape to = random_shape(d.r, 0, 4);
  Shape from(to.begin() + d.r.between(0, static_cast<int64_t>(to.size())), to.end());
  for (Dim& n : from)
    if (d.r.chance(2)) n = 1;
  d.input(from, d.any_dtype());
  d.out.attrs.shape = to;
}

inline void draw_slice(Drawing& d) {
  const Shape shape = random_shape(d.r);
  d.input(shape, d.any_dtype());
  Attrs& a = d.out.attrs;
  for (const Dim& extent : shape) {
    const int64_t n = extent, step = d.r.of<int64_t>({1, 1, 1, 2, 3, -1, -2});
    const bool whole = d.r.chance(3);
    const int64_t start = whole || n == 0 ? 0 : d.r.below(n);
    const int64_t room = n == 0 ? 0 : step > 0 ? (n - 1 - start) / step + 1 : start / -step + 1;
    a.start.push_back(start);
    a.step.push_back(whole ? 1 : step);
    a.shape.push_back(whole ? n : room == 0 || d.r.chance(8) ? 0 : d.r.between(1, room));
  }
}

inline void draw_pad(Drawing& d) {
  const Shape shape = random_shape(d.r);
  d.input(shape, d.any_dtype());
  for (size_t k = 0; k < shape.size(); ++k) {
    d.out.attrs.low.push_back(d.r.chance(2) ? 0 : d.r.below(3));
    d.out.attrs.high.push_back(d.r.chance(2) ? 0 : d.r.below(3));
  }
  d.out.attrs.number = random_number(d.r, d.out.inputs[0].type.dtype, {});
}

inline void draw_concat(Drawing& d) {
  Shape shape = random_shape(d.r, 1);
  const Dtype t = d.any_dtype();
  const int64_t axis = d.r.below(static_cast<int64_t>(shape.size()));
  d.out.attrs.axes = {axis};
  for (int64_t k = d.r.between(1, 3); k > 0; --k) {
    shape[static_cast<size_t>(axis)] = random_extent(d.r);
    d.input(shape, t);
  }
}

inline void draw_assign(Drawing& d) {
  draw_slice(d);  // start, step and the sizes, which are the update's
  d.input(d.out.attrs.shape, d.out.inputs[0].type.dtype);
  d.out.attrs.shape = {};
}

inline void draw_window(Drawing& d) {
  Shape shape = random_shape(d.r, 1);
  const size_t axis = static_cast<size_t>(d.r.below(static_cast<int64_t>(shape.size())));
  const int64_t size = d.r.chance(6) ? d.r.between(17, 19) : d.r.between(1, 5),
                step = d.r.of<int64_t>({1, 1, 2, 3, 4, 6}), dilation = d.r.of<int64_t>({1, 1, 2, 3});
  const int64_t count = d.r.between(1, 4);
  shape[axis] = (size - 1) * dilation + 1 + (count - 1) * step + d.r.below(step);
  d.input(shape, d.any_dtype());
  d.out.attrs.axes = {static_cast<int64_t>(axis)};
  d.out.attrs.window = {size, step, dilation};
}

inline void draw_elementwise(Drawing& d) {
  const Op op = d.out.op;
  const Row& r = row(op);
  const Shape shape = random_shape(d.r);
  const auto is = [&](std::initializer_list<Op> ops) { return std::find(ops.begin(), ops.end(), op) != ops.end(); };
  if (is({Op::cast, Op::bitcast, Op::stop_gradient})) {
    const Dtype from = op == Op::bitcast ? d.number_dtype() : d.any_dtype();
    d.input(shape, from, {-2, 2, -9, 9, true});
    if (op == Op::stop_gradient) return;
    d.out.attrs.dtype = d.float64_only ? float64 : d.any_dtype();
    if (op == Op::bitcast && from == float32 && d.r.chance(2)) d.out.attrs.dtype = int32;
    if (op == Op::bitcast)
      while (d.out.attrs.dtype.size() != from.size() || d.out.attrs.dtype == bool_) d.out.attrs.dtype = d.any_dtype();
    return;
  }
  const kernel::ScalarInfo& info = kernel::info(static_cast<kernel::ScalarOp>(r.scalar));
  std::vector<Dtype> dtypes;
  if (info.floats) dtypes.insert(dtypes.end(), float_dtypes().begin(), float_dtypes().end());
  if (info.integers && !(d.float64_only && info.floats))
    dtypes.insert(dtypes.end(), integer_dtypes().begin(), integer_dtypes().end());
  if (info.booleans && !(d.float64_only && info.floats)) dtypes.push_back(bool_);
  const Dtype t = d.float64_only && info.floats ? float64 : d.r.of(dtypes);
  const Domain domain = domain_of(info.a), second = domain_of(info.b);
  if (op == Op::select) d.input(shape, bool_);
  for (int k = op == Op::select ? 1 : 0; k < r.min_inputs; ++k) d.input(shape, t, k == 1 ? second : domain);
  // Away from the jumps, for the sake of finite differences.
  if (t == float64 && info.jumps == kernel::Jumps::half_integers)
    for (Number& a : d.out.inputs[0].data)
      if (std::fabs(2 * a.real() - std::nearbyint(2 * a.real())) < 0.02) a = Number::of_real(a.real() + 0.1);
  if (t == float64 && info.jumps == kernel::Jumps::whole_quotients)
    for (size_t k = 0; k < d.out.inputs[0].data.size(); ++k) {
      Number& a = d.out.inputs[0].data[k];
      const double b = d.out.inputs[1].data[k].real(), q = a.real() / b;
      if (std::fabs(q - std::nearbyint(q)) < 0.02) a = Number::of_real(a.real() + 0.1 * b);
    }
}

/// A reducer of the table, and inputs of dtypes that it takes: one, or the components of its state. Indices are the
/// elements' numbers, in a random order.
inline void draw_reducer(Drawing& d, const Shape& shape, size_t most_components = kernel::most_components) {
  std::vector<kernel::Reducer> usable;
  for (const kernel::ReducerInfo& row : kernel::reducers)
    if ((row.floats || !d.float64_only) && row.components.size() <= most_components) usable.push_back(row.reducer);
  d.out.attrs.reducer = d.r.of(usable);
  Dtype dtype = d.any_dtype();
  while (!kernel::takes(d.out.attrs.reducer, dtype)) dtype = d.any_dtype();
  for (size_t k = 0; k < kernel::components_of(d.out.attrs.reducer); ++k) {
    const bool counts = kernel::info(d.out.attrs.reducer).kind == kernel::ReducerKind::moments && k == 1;
    d.input(shape, kernel::component_dtype(d.out.attrs.reducer, k, dtype));
    if (dtype == float64)  // equal, or farther apart than the steps of finite differences
      for (Number& n : d.out.inputs.back().data) n = Number::of_real(std::round(n.real() * 512) / 512);
    if (counts)  // whole numbers, away from 0
      for (Number& n : d.out.inputs.back().data) n = Number::of_real(static_cast<double>(d.r.between(2, 5)));
    if (!kernel::info(d.out.attrs.reducer).components[k].index) continue;
    std::vector<Number>& numbers = d.out.inputs.back().data;
    for (size_t at = 0; at < numbers.size(); ++at) numbers[at] = Number::of_int(static_cast<int64_t>(at));
    d.r.shuffle(numbers);
  }
}

inline void draw_reduce(Drawing& d) {
  const Shape shape = random_shape(d.r, 0, 4);
  draw_reducer(d, shape);
  for (size_t k = 0; k < shape.size(); ++k)
    if (d.r.chance(2)) d.out.attrs.axes.push_back(static_cast<int64_t>(k));
}

inline void draw_cumulative(Drawing& d) {
  using kernel::ReducerKind;
  const Shape shape = random_shape(d.r, 1);
  d.out.attrs.axes = {d.r.below(static_cast<int64_t>(shape.size()))};
  draw_reducer(d, shape, 1);
  const kernel::ReducerInfo& reducer = kernel::info(d.out.attrs.reducer);
  const bool logs = reducer.kind == ReducerKind::sum && is_float(d.out.inputs[0].type.dtype) && d.r.chance(2);
  // Infinities come out of the others' exclusive forms.
  const bool bounded = std::isfinite(reducer.components[0].identity);
  d.out.attrs.integers = {d.r.below(2), (bounded && !logs) || !d.float64_only ? d.r.below(2) : 0, logs};
}

inline void draw_dot(Drawing& d) {
  // Each operand's axes are numbered in a random order: batch, contracted, free.
  Attrs& a = d.out.attrs;
  const int64_t batches = d.r.below(3), contracted = d.r.below(3);
  Shape shared;
  for (int64_t k = batches + contracted; k > 0; --k) shared.push_back(random_extent(d.r));
  const Dtype t = d.float_dtype();
  for (int side = 0; side < 2; ++side) {
    std::vector<int64_t> order(static_cast<size_t>(batches + contracted + d.r.below(3)));
    std::iota(order.begin(), order.end(), 0);
    if (d.r.chance(2)) d.r.shuffle(order);
    Shape shape(order.size());
    for (size_t k = 0; k < order.size(); ++k)
      shape[static_cast<size_t>(order[k])] = k < shared.size() ? shared[k] : Dim(random_extent(d.r));
    const auto split = order.begin() + batches;
    (side == 0 ? a.batch : a.batch2).assign(order.begin(), split);
    (side == 0 ? a.axes : a.axes2).assign(split, split + contracted);
    d.input(shape, t);
  }
  a.dtype = d.float64_only || d.r.chance(2) || t == float64 ? t : float32;
}

inline void draw_indexed(Drawing& d) {
  Attrs& a = d.out.attrs;
  Shape shape = random_shape(d.r, 1, 3);
  for (Dim& n : shape)
    if (n == 0) n = 2;
  const Shape lead = random_shape(d.r, 0, 2);
  Shape sizes = shape;
  std::vector<int64_t> axes(shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  d.r.shuffle(axes);
  axes.resize(static_cast<size_t>(d.r.between(d.r.chance(4) ? 0 : 1, static_cast<int64_t>(shape.size()))));
  a.axes = axes;
  for (size_t k = 0; k < sizes.size(); ++k) {
    const bool indexed = std::find(axes.begin(), axes.end(), static_cast<int64_t>(k)) != axes.end();
    if (indexed && !d.r.chance(4)) sizes[k] = 1;
    else if (d.r.chance(3)) sizes[k] = d.r.between(1, sizes[k].bound());
  }
  d.input(shape, d.number_dtype());
  for (int64_t axis : axes) {
    const int64_t n = shape[static_cast<size_t>(axis)], slack = d.r.chance(3) ? 3 : 0;
    d.input(lead, d.r.of(integer_dtypes()), {0, 0, -n - slack, n - 1 + slack});
  }
  const Shape indices = axes.empty() ? Shape{} : lead;
  if (d.out.op == Op::gather) {
    a.shape = sizes;
    return;
  }
  a.mode = d.r.of<ScatterMode>(
      {ScatterMode::set, ScatterMode::add, ScatterMode::add, ScatterMode::max, ScatterMode::min, ScatterMode::prod});
  Shape updates = indices;
  updates.insert(updates.end(), sizes.begin(), sizes.end());
  d.input(updates, d.out.inputs[0].type.dtype);
}

inline void draw_sort(Drawing& d) {
  const Shape shape = random_shape(d.r, 1);
  const bool ties = d.r.chance(3) && !d.float64_only;
  d.input(shape, d.any_dtype(), ties ? Domain{0, 0, -1, 1} : Domain{});
  if (!d.float64_only && is_float(d.out.inputs[0].type.dtype))
    for (Number& n : d.out.inputs[0].data)
      if (d.r.chance(8))
        n = kernel::round_to(Number::of_real(d.r.of<double>({NAN, INFINITY, -INFINITY, -0.0})),
                             d.out.inputs[0].type.dtype);
  std::vector<Number>& data = d.out.inputs[0].data;
  for (size_t k = 0; d.float64_only && k < data.size();
       ++k)  // apart by more than the steps of finite differences: in a row k mod 19 is never the same
    data[k] = Number::of_real(std::floor(data[k].real() * 50) / 50 + 1e-3 * static_cast<double>(k % 19));
  const int64_t axis = d.r.below(static_cast<int64_t>(shape.size()));
  d.out.attrs.integers = {axis};
  if (!d.r.chance(3)) return;
  const int64_t extent = shape[static_cast<size_t>(axis)].bound(), first = d.r.below(extent + 1);
  d.out.attrs.integers = {axis, first, d.r.below(extent - first + 1)};
}

inline void draw_search(Drawing& d) {
  Shape sorted = random_shape(d.r, 1), values(sorted.begin(), sorted.end() - 1);
  for (const Dim& n : random_shape(d.r, 0, 2)) values.push_back(n);
  const Dtype t = d.any_dtype();
  d.input(sorted, t, {-2, 2, -4, 4});
  d.input(values, t, {-2, 2, -4, 4});
  d.out.attrs.integers = {d.r.below(2)};
  const auto n = static_cast<std::ptrdiff_t>(sorted.back().bound());
  std::vector<Number>& data = d.out.inputs[0].data;
  for (auto row = data.begin(); n > 0 && row != data.end(); row += n)
    std::sort(row, row + n, [](const Number& a, const Number& b) { return a.real() < b.real(); });
}

inline void draw_fft(Drawing& d, std::string_view name) {
  const int64_t n = d.r.between(1, 9);
  Shape shape = random_shape(d.r, 0, 2);
  shape.push_back(name == "irfft" ? n / 2 + 1 : n);
  if (name != "rfft") shape.push_back(2);
  d.input(shape, d.float64_only || d.r.chance(2) ? float64 : float32, {-2, 2, -4, 4});
  if (name == "fft") d.out.attrs.integers = {d.r.below(2)};
  if (name == "irfft") d.out.attrs.integers = {n};
}

/// Returns the name of a call without what says that its numbers are pairs (graph/complex/complex_calls.cpp).
inline std::string_view without_pairs(std::string_view name) {
  for (const std::string_view prefix : {"complex_", "real_"})
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  return name;
}

inline bool decomposes(std::string_view call) {
  const std::string_view name = without_pairs(call);
  for (const std::string_view one : {"cholesky", "solve_triangular", "lu", "qr", "svd", "eigh", "eig"})
    if (name == one) return true;
  return false;
}

/// Matrices whose factors are well determined: something large on the diagonal (for lu on the other one, so that rows
/// are exchanged), of different size where gaps matter.
inline void draw_decomposition(Drawing& d, std::string_view call) {
  const std::string_view name = without_pairs(call);
  const int64_t parts = call.starts_with("complex_") ? 2 : 1;
  const bool tall = name == "qr" || name == "svd", gaps = name == "svd" || name.starts_with("eig"),
             flipped = name == "lu";
  const int64_t n = d.r.chance(9) ? 0 : d.r.between(1, 4), m = tall      ? n + d.r.between(0, 2)
                                                               : flipped ? d.r.between(1, 4)
                                                                         : n;
  Shape shape = random_shape(d.r, 0, 1);
  const Shape batch = shape;
  shape.push_back(n), shape.push_back(m);
  if (parts == 2) shape.push_back(2);
  const Dtype t = d.float64_only || d.r.chance(2) ? float64 : float32;
  d.input(shape, t, {-1, 1, 0, 0});
  std::vector<Number>& data = d.out.inputs[0].data;
  for (size_t k = 0; k < data.size(); k += static_cast<size_t>(parts)) {
    const int64_t at = static_cast<int64_t>(k) / parts, i = at / m % n, j = at % m;
    if (i == (flipped ? m - 1 - j : j))
      data[k] = kernel::round_to(Number::of_real(data[k].real() + (gaps ? 8.0 * static_cast<double>(i + 1) : 5)), t);
  }
  if (name == "qr")
    d.out.attrs.integers = {
        d.float64_only ? 0 : d.r.below(2)};  // derivatives of the columns beside are those of their span alone
  if (name != "solve_triangular") return;
  Shape right = batch;
  right.push_back(n), right.push_back(d.r.between(0, 3));
  if (parts == 2) right.push_back(2);
  d.input(right, t, {-1, 1, 0, 0});
  d.out.attrs.integers = {d.r.below(2), d.r.below(2)};
}

/// Integers, since a kernel has no derivative.
inline void draw_kernel(Drawing& d) {
  const Shape shape = random_shape(d.r);
  const Dtype t = d.r.chance(2) ? int32 : uint8;
  if (d.r.chance(2)) {
    d.out.attrs.kernel = affine_program(shape, t, 3);
    d.input(shape, t), d.input({}, t);
  } else {
    d.out.attrs.kernel = accumulate_program(shape, t);
    d.input(shape, t), d.input(shape, t);
  }
}

/// Whether the numbers that were drawn are no numbers like any others: sorted ones, matrices of a kind.
inline bool drawn_to_measure(const Instance& in) {
  return in.op == Op::call && (in.attrs.call == "searchsorted" || decomposes(in.attrs.call));
}

/// Vectors that are found up to their sign alone, or complex ones up to a phase, without it.
inline void forget_signs(const Value& result, HostTensor& t) {
  const std::string& call = result.node->attrs().call;
  const std::string_view name = without_pairs(call);
  if (result.node->op() != Op::call || result.index == 0 || (name != "svd" && name != "eigh" && name != "eig")) return;
  if (name != call)
    for (size_t k = 0; k < t.data.size(); k += 2) {
      const double size = std::hypot(t.data[k].real(), t.data[k + 1].real());
      t.data[k] = kernel::round_to(Number::of_real(size), t.type.dtype), t.data[k + 1] = Number::of_real(0);
    }
  for (Number& n : t.data) n = kernel::round_to(Number::of_real(std::fabs(n.real())), t.type.dtype);
}

/// An instance of one call: every call of the table has its way to draw one.
inline void draw_call(Drawing& d, std::string_view name) {
  if (name == "eig") name = "real_eig";  // its results are complex; these are the same as pairs
  d.out.attrs.call = name;
  if (name == "sort") return draw_sort(d);
  if (name == "searchsorted") return draw_search(d);
  if (name.ends_with("fft")) return draw_fft(d, name);
  if (decomposes(name)) return draw_decomposition(d, name);
  if (name == "kernel") return draw_kernel(d);
  throw std::logic_error("no instances are drawn of the call " + d.out.attrs.call);
}

/// Held against std::complex in tests/array, not here, where an element is one number.
inline bool on_complex_only(Op op) { return op == Op::real || op == Op::imag || op == Op::complex; }

/// None for parameters, which have no value of their own, for composites and control flow, which have rows of their
/// parts, and for parts of complex numbers. `count` for each of the calls.
inline std::vector<Instance> instances(Op op, uint64_t seed, int count, bool float64_only = false) {
  std::vector<Instance> out;
  if (op == Op::parameter || op == Op::composite || is_control(op) || on_complex_only(op)) return out;
  if (op == Op::call) count *= static_cast<int>(calls().size());
  uint64_t name = 14695981039346656037ull;  // by the row's name: a row that is added changes no other row's instances
  for (char c : row(op).name) name = (name ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  Random r(seed * 131 + name);
  for (int k = 0; k < count; ++k) {
    Drawing d{r, float64_only, {op, {}, {}, {}}};
    switch (op) {
      case Op::constant:
      case Op::iota: draw_leaf(d); break;
      case Op::reshape: draw_reshape(d); break;
      case Op::permute: draw_permute(d); break;
      case Op::broadcast: draw_broadcast(d); break;
      case Op::slice: draw_slice(d); break;
      case Op::pad: draw_pad(d); break;
      case Op::concat: draw_concat(d); break;
      case Op::assign: draw_assign(d); break;
      case Op::window: draw_window(d); break;
      case Op::reduce: draw_reduce(d); break;
      case Op::cumulative: draw_cumulative(d); break;
      case Op::dot: draw_dot(d); break;
      case Op::gather:
      case Op::scatter: draw_indexed(d); break;
      case Op::call: draw_call(d, calls()[static_cast<size_t>(k) % calls().size()]->name); break;
      case Op::scheduled:
        d.input(random_shape(d.r), d.any_dtype());
        d.out.attrs.call = "name(y)";
        break;
      case Op::depends:
        d.input(random_shape(d.r), d.any_dtype());
        for (int64_t others = d.r.between(0, 2); others > 0; --others) d.input(random_shape(d.r), d.any_dtype());
        break;
      case Op::random_bits:
        d.input(d.r.between(0, 2) ? Shape{2} : Shape{d.r.between(1, 3), 2}, uint32, {0, 0, 0, 1000, true});
        d.out.attrs.shape = random_shape(d.r);
        d.out.attrs.generator = d.r.chance(2) ? Generator::philox : Generator::threefry;
        break;
      default: draw_elementwise(d);
    }
    out.push_back(std::move(d.out));
  }
  return out;
}

/// The instance as a graph of one node over parameters.
inline Graph graph_of(const Instance& instance) {
  Graph graph;
  for (size_t k = 0; k < instance.inputs.size(); ++k)
    graph.inputs.push_back(parameter(instance.inputs[k].type, static_cast<int64_t>(k)));
  graph.outputs = make_all(instance.op, graph.inputs, instance.attrs);
  return graph;
}

}  // namespace weft::graph::testing
