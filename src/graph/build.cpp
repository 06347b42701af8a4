// Builders: make nodes, which their rows check. Derivatives and composites are written with them.
#include "graph/build.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/recent.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

/// Returns the number rounded to `dtype`.
Number number_as(Number n, Dtype dtype) {
  const Dtype part = real_of(dtype);  // a complex constant lies on the real axis
  if (is_float(part)) return kernel::round_to(Number::of_real(n.real()), part);
  return n.integral ? kernel::round_to(n, dtype) : kernel::reference_cast(n, float64, dtype);
}

std::string argument_count(const Row& r) {
  if (r.max_inputs < 0) return fmt::format("at least {}", r.min_inputs);
  return r.min_inputs == r.max_inputs ? fmt::format("{}", r.min_inputs)
                                      : fmt::format("{} to {}", r.min_inputs, r.max_inputs);
}

size_t axis_of(const char* op, int64_t axis, int rank) {
  return static_cast<size_t>(normalize_axis(op, static_cast<int>(axis), rank));
}

std::vector<int64_t> ascending(const char* op, std::vector<int64_t> axes, int rank) {
  for (int64_t& axis : axes) axis = normalize_axis(op, static_cast<int>(axis), rank);
  std::sort(axes.begin(), axes.end());
  return axes;
}

Attrs shape_attrs(const Shape& shape) {
  Attrs attrs;
  attrs.shape = shape;
  return attrs;
}

bool identity_order(const std::vector<int64_t>& axes) {
  for (size_t k = 0; k < axes.size(); ++k)
    if (axes[k] != static_cast<int64_t>(k)) return false;
  return true;
}

}  // namespace

namespace {

/// The types of a node's inputs in a row, as rules take them, in memory that the thread's next node uses again.
class InputTypes {
 public:
  explicit InputTypes(const Values& inputs) : types_(std::exchange(spare(), {})), count_(inputs.size()) {
    if (types_.size() < count_) types_.resize(count_);
    for (size_t k = 0; k < count_; ++k) types_[k] = inputs[k].type();
  }
  ~InputTypes() { spare() = std::move(types_); }
  InputTypes(const InputTypes&) = delete;
  InputTypes& operator=(const InputTypes&) = delete;
  operator TypeSpan() const { return {types_.data(), count_}; }

 private:
  static std::vector<Type>& spare() {
    thread_local std::vector<Type> types;
    return types;
  }
  std::vector<Type> types_;  // as many as any node had; the first `count_` are this one's
  size_t count_;
};

std::shared_ptr<Node> make_node(Op op, Values inputs, SharedAttrs attrs) {
  const Row& r = row(op);
  const int given = static_cast<int>(inputs.size());
  if (given < r.min_inputs || (r.max_inputs >= 0 && given > r.max_inputs))
    throw_invalid(r.name, fmt::format("takes {} arguments, got {}", argument_count(r), given));
  for (size_t k = 0; k < inputs.size(); ++k)
    if (!inputs[k]) throw_invalid(r.name, fmt::format("argument {} is empty", k));
  thread_local RecentResults recent;
  if (const SharedTypes* known = recent.find(op, attrs, inputs))
    return std::make_shared<Node>(op, std::move(inputs), std::move(attrs), *known);
  const InputTypes types(inputs);
  std::vector<Type> results;
  if (op == Op::composite) {
    results = composite_types(attrs, types);  // one construction of the body for both rules
  } else {
    const std::vector<Dtype> dtypes = r.dtype(attrs, types);
    std::vector<Shape> shapes = r.shape(attrs, types);
    for (size_t k = 0; k < shapes.size(); ++k) results.push_back({std::move(shapes[k]), dtypes[k]});
  }
  const SharedTypes shared(std::move(results));
  recent.keep(op, attrs, inputs, shared);
  return std::make_shared<Node>(op, std::move(inputs), std::move(attrs), shared);
}

}  // namespace

Values make_all(Op op, Values inputs, SharedAttrs attrs) {
  const auto node = make_node(op, std::move(inputs), std::move(attrs));
  Values out;
  for (int k = 0; k < node->outputs(); ++k) out.push_back({node, k});
  return out;
}

Value make(Op op, Values inputs, SharedAttrs attrs) {
  auto node = make_node(op, std::move(inputs), std::move(attrs));
  check(node->outputs() == 1, row(op).name, "has several outputs: use make_all");
  return {std::move(node), 0};
}

/// Return the inputs of a node: lists in braces would count references once more.
static Values inputs_of(Value v) {
  Values out;
  out.reserve(1);
  out.push_back(std::move(v));
  return out;
}
static Values inputs_of(Value a, Value b) {
  Values out;
  out.reserve(2);
  out.push_back(std::move(a)), out.push_back(std::move(b));
  return out;
}

// ---- leaves ----

Value parameter(const Type& type, int64_t slot) {
  Attrs attrs = shape_attrs(type.shape);
  attrs.dtype = type.dtype;
  attrs.slot = slot;
  return make(Op::parameter, {}, std::move(attrs));
}

Value data(const Type& type, Storage storage) {
  Value v = parameter(type);
  v.node->materialise({std::move(storage)});
  return v;
}

Value constant(Dtype dtype, Number number) {
  return make(Op::constant, {}, only_number(dtype, number_as(number, dtype), false));
}
Value literal(Dtype dtype, Number number) { return make(Op::constant, {}, only_number(dtype, number, true)); }

Value full(const Shape& shape, Dtype dtype, Number number) { return broadcast(constant(dtype, number), shape); }
Value full_like(const Value& v, double number) { return full(v.shape(), v.dtype(), Number::of_real(number)); }
Value zeros_like(const Value& v) { return full_like(v, 0); }

Value iota(const Shape& shape, int axis, Dtype dtype) {
  Attrs attrs = shape_attrs(shape);
  attrs.axes = {static_cast<int64_t>(axis_of("iota", axis, static_cast<int>(shape.size())))};
  attrs.dtype = dtype;
  return make(Op::iota, {}, std::move(attrs));
}

// ---- movement ----

Value reshape(Value v, const Shape& shape) {
  return v.shape() == shape ? v : make(Op::reshape, inputs_of(std::move(v)), only_shape(shape));
}

Value permute(const Value& v, std::vector<int64_t> axes) {
  for (int64_t& axis : axes) axis = static_cast<int64_t>(axis_of("permute", axis, v.type().rank()));
  if (identity_order(axes) && static_cast<int>(axes.size()) == v.type().rank()) return v;
  Attrs attrs;
  attrs.axes = std::move(axes);
  return make(Op::permute, {v}, std::move(attrs));
}

Value swap_last(const Value& v) {
  const int rank = v.type().rank();
  if (rank < 2) throw_invalid("swap_last", "needs two axes, got " + to_string(v.type()));
  std::vector<int64_t> axes;
  for (int64_t k = 0; k < rank; ++k) axes.push_back(k);
  std::swap(axes[static_cast<size_t>(rank) - 1], axes[static_cast<size_t>(rank) - 2]);
  return permute(v, std::move(axes));
}

Value broadcast(Value v, const Shape& shape) {
  return v.shape() == shape ? v : make(Op::broadcast, inputs_of(std::move(v)), only_shape(shape));
}

Value slice(const Value& v, std::vector<int64_t> start, Shape sizes, std::vector<int64_t> step) {
  if (step.empty()) step.assign(start.size(), 1);
  const bool whole = sizes == v.shape() && std::all_of(start.begin(), start.end(), [](int64_t s) { return s == 0; }) &&
                     std::all_of(step.begin(), step.end(), [](int64_t s) { return s == 1; });
  if (whole) return v;
  Attrs attrs = shape_attrs(sizes);
  attrs.start = std::move(start);
  attrs.step = std::move(step);
  return make(Op::slice, {v}, std::move(attrs));
}

Value slice_axis(const Value& v, int axis, int64_t start, Dim size) {
  const size_t at = axis_of("slice", axis, v.type().rank());
  std::vector<int64_t> starts(v.shape().size(), 0);
  Shape sizes = v.shape();
  starts[at] = start;
  sizes[at] = size;
  return slice(v, std::move(starts), std::move(sizes));
}

Value pad(const Value& v, std::vector<int64_t> low, std::vector<int64_t> high, Number number) {
  const auto none = [](const std::vector<int64_t>& amounts) {
    return std::all_of(amounts.begin(), amounts.end(), [](int64_t n) { return n == 0; });
  };
  if (none(low) && none(high) && low.size() == v.shape().size() && high.size() == low.size()) return v;
  Attrs attrs;
  attrs.low = std::move(low);
  attrs.high = std::move(high);
  attrs.number = number_as(number, v.dtype());
  return make(Op::pad, {v}, std::move(attrs));
}

Value concat(const Values& vs, int axis) {
  if (vs.size() == 1) return vs[0];
  Attrs attrs;
  attrs.axes = {vs.empty() ? axis : static_cast<int64_t>(axis_of("concat", axis, vs[0].type().rank()))};
  return make(Op::concat, vs, std::move(attrs));
}

/// (k) → (k,1) → (k,step) → (k·step) → ((k-1)·step + 1).
Value dilate(const Value& v, size_t axis, int64_t step) {
  if (step == 1) return v;
  const int64_t n = v.shape()[axis].bound();
  std::vector<int64_t> low(v.shape().size() + 1, 0), high = low;
  high[axis + 1] = step - 1;
  const Value broadcast_like = pad(expand_dims(v, {static_cast<int64_t>(axis) + 1}), low, high);
  Shape shape = v.shape();
  shape[axis] = n * step;
  return slice_axis(reshape(broadcast_like, shape), static_cast<int>(axis), 0, n == 0 ? 0 : (n - 1) * step + 1);
}

Value window(const Value& v, int axis, int64_t size, int64_t step, int64_t dilation) {
  Attrs attrs;
  attrs.axes = {static_cast<int64_t>(axis_of("window", axis, v.type().rank()))};
  attrs.window = {size, step, dilation};
  return make(Op::window, {v}, std::move(attrs));
}

Value expand_dims(const Value& v, const std::vector<int64_t>& axes) {
  const int rank = v.type().rank() + static_cast<int>(axes.size());
  const std::vector<int64_t> at = ascending("expand_dims", axes, rank);
  Shape shape = v.shape();
  for (int64_t axis : at) shape.insert(shape.begin() + axis, Dim(1));
  return reshape(v, shape);
}

Value squeeze(const Value& v, const std::vector<int64_t>& axes) {
  const std::vector<int64_t> at = ascending("squeeze", axes, v.type().rank());
  Shape shape = v.shape();
  for (size_t k = at.size(); k-- > 0;) {
    if (!(shape[static_cast<size_t>(at[k])] == 1))
      throw_invalid("squeeze", fmt::format("axis {} of {} is not of extent 1", at[k], to_string(v.type())));
    shape.erase(shape.begin() + at[k]);
  }
  return reshape(v, shape);
}

// ---- elementwise ----

Value unary(Op op, Value v) { return make(op, inputs_of(std::move(v))); }
Value binary(Op op, Value a, Value b) {
  if (b.type().rank() == 0 && a.type().rank() != 0) b = broadcast(std::move(b), a.shape());
  return make(op, inputs_of(std::move(a), std::move(b)));
}

namespace {

/// Maps scalar operators to operators of the graph; Op::count_ for instructions that only tile IR has.
constexpr auto graph_ops = [] {
  std::array<Op, static_cast<size_t>(kernel::ScalarOp::count_)> ops;
  ops.fill(Op::count_);
#define WEFT_PAIR(name) ops[static_cast<size_t>(kernel::ScalarOp::name)] = Op::name;
  WEFT_ELEMENTWISE_OPERATORS(WEFT_PAIR)
#undef WEFT_PAIR
  return ops;
}();

}  // namespace

Value scalar(kernel::ScalarOp op, const Value& v) { return unary(graph_ops.at(static_cast<size_t>(op)), v); }
Value scalar(kernel::ScalarOp op, const Value& a, const Value& b) {
  return binary(graph_ops.at(static_cast<size_t>(op)), a, b);
}

Value operator+(const Value& a, const Value& b) { return binary(Op::add, a, b); }
Value operator-(const Value& a, const Value& b) { return binary(Op::sub, a, b); }
Value operator*(const Value& a, const Value& b) { return binary(Op::mul, a, b); }
Value operator/(const Value& a, const Value& b) { return binary(Op::div, a, b); }
Value operator-(const Value& a) { return unary(Op::neg, a); }
Value operator+(const Value& a, double b) { return binary(Op::add, a, full_like(a, b)); }
Value operator*(const Value& a, double b) { return binary(Op::mul, a, full_like(a, b)); }
Value operator-(const Value& a, double b) { return binary(Op::sub, a, full_like(a, b)); }
Value operator-(double a, const Value& b) { return binary(Op::sub, full_like(b, a), b); }
Value operator/(double a, const Value& b) { return binary(Op::div, full_like(b, a), b); }
Value exp(const Value& v) { return unary(Op::exp, v); }
Value log(const Value& v) { return unary(Op::log, v); }
Value tanh(const Value& v) { return unary(Op::tanh, v); }
Value rsqrt(const Value& v) { return unary(Op::rsqrt, v); }
Value square(const Value& v) { return unary(Op::square, v); }
Value select(const Value& condition, const Value& a, const Value& b) { return make(Op::select, {condition, a, b}); }

Value cast(Value v, Dtype dtype) {
  if (v.dtype() == dtype) return v;
  return make(Op::cast, inputs_of(std::move(v)), only_number(dtype, Number(), false));
}

Value stop_gradient(const Value& v) { return unary(Op::stop_gradient, v); }

Value depends(const Value& v, const Values& on) {
  Values inputs{v};
  inputs.insert(inputs.end(), on.begin(), on.end());
  return make(Op::depends, std::move(inputs));
}

namespace {
/// Returns whether the steps turn the online softmax off.
bool without_online_softmax(const schedule::Steps& steps) {
  return std::ranges::any_of(steps.list(), [](const schedule::Step& step) {
    return step.kind == schedule::Kind::online_softmax && step.word == "off";
  });
}
}  // namespace

Value scheduled(const Value& v, const schedule::Steps& steps) {
  Attrs attrs;
  attrs.call = schedule::to_string(steps);
  Value of = v;
  if (const Node& node = *v.node; without_online_softmax(steps) && !node.storage(v.index) &&
                                  node.op() == Op::composite && node.attrs().composite->attention)
    of = node.attrs().composite->body(node.inputs())[static_cast<size_t>(v.index)];
  return make(Op::scheduled, {of}, std::move(attrs));
}

Value complex(const Value& re, const Value& im) { return make(Op::complex, {re, im}); }
Value conjugate(const Value& v) { return complex(unary(Op::real, v), -unary(Op::imag, v)); }

// ---- reductions ----

Value reduce(kernel::Reducer reducer, const Value& v, std::vector<int64_t> axes, bool keep_dims) {
  axes = ascending("reduce", std::move(axes), v.type().rank());
  if (axes.empty()) return v;
  const Value reduced = make(Op::reduce, inputs_of(v), only_reduction(reducer, axes));
  return keep_dims ? expand_dims(reduced, axes) : reduced;
}

Values reduce_state(kernel::Reducer reducer, const Values& components, std::vector<int64_t> axes, bool keep_dims) {
  axes = ascending("reduce", std::move(axes), components.at(0).type().rank());
  if (axes.empty()) return components;
  Values reduced = make_all(Op::reduce, components, only_reduction(reducer, axes));
  for (Value& v : reduced)
    if (keep_dims) v = expand_dims(v, axes);
  return reduced;
}

Value extreme_index(kernel::Reducer reducer, const Value& v, int axis, bool keep_dims) {
  return reduce_state(reducer, {v, iota(v.shape(), axis, uint32)}, {axis}, keep_dims)[1];
}

Value sum(const Value& v, std::vector<int64_t> axes, bool keep_dims) {
  return reduce(kernel::Reducer::sum, v, std::move(axes), keep_dims);
}
Value max(const Value& v, std::vector<int64_t> axes, bool keep_dims) {
  return reduce(kernel::Reducer::max, v, std::move(axes), keep_dims);
}

Value number_of_elements(const Shape& shape, const std::vector<int64_t>& axes, Dtype dtype) {
  Shape symbolic;
  double count = 1;
  for (const int64_t axis : axes) {
    const Dim extent = shape[axis_of("number_of_elements", axis, static_cast<int>(shape.size()))];
    if (extent.is_static()) count *= static_cast<double>(extent.bound());
    else symbolic.push_back(extent);
  }
  const Value fixed = full({}, dtype, Number::of_real(count));
  if (symbolic.empty()) return fixed;
  std::vector<int64_t> all(symbolic.size());
  std::iota(all.begin(), all.end(), 0);
  return fixed * sum(full(symbolic, dtype, Number::of_int(1)), std::move(all));
}

Value mean(const Value& v, std::vector<int64_t> axes, bool keep_dims) {
  double count = 1;
  bool symbolic = false;
  for (int64_t axis : axes) {
    const Dim extent = v.shape()[axis_of("mean", axis, v.type().rank())];
    symbolic = symbolic || !extent.is_static();
    count *= static_cast<double>(extent.bound());
  }
  if (!symbolic) return sum(v, std::move(axes), keep_dims) * (1.0 / count);
  const Value n = number_of_elements(v.shape(), axes, real_of(v.dtype()) == float64 ? float64 : float32);
  const Value one_over = cast(unary(Op::recip, n), v.dtype());
  const Value total = sum(v, std::move(axes), keep_dims);
  return total * broadcast(one_over, total.shape());
}

Value sum_to(const Value& v, const Shape& shape) {
  if (v.shape() == shape) return v;
  const size_t extra = v.shape().size() - std::min(shape.size(), v.shape().size());
  std::vector<int64_t> axes;
  for (size_t k = 0; k < v.shape().size(); ++k)
    if (k < extra || !(v.shape()[k] == shape[k - extra])) axes.push_back(static_cast<int64_t>(k));
  return reshape(sum(v, std::move(axes)), shape);
}

// ---- contraction, indexing, random ----

Value dot(const Value& a, const Value& b, std::vector<int64_t> a_contract, std::vector<int64_t> b_contract,
          std::vector<int64_t> a_batch, std::vector<int64_t> b_batch) {
  Attrs attrs;
  attrs.axes = std::move(a_contract);
  attrs.axes2 = std::move(b_contract);
  attrs.batch = std::move(a_batch);
  attrs.batch2 = std::move(b_batch);
  attrs.dtype = a.dtype() == int8 || a.dtype() == uint8 ? int32 : a.dtype();
  return make(Op::dot, {a, b}, std::move(attrs));
}

Value matmul(const Value& a, const Value& b) {
  const int64_t rank = a.type().rank();
  if (rank < 2 || b.type().rank() != rank)
    throw_invalid("matmul", fmt::format("needs two arrays of one rank, at least 2, got {} and {}", to_string(a.type()),
                                        to_string(b.type())));
  std::vector<int64_t> batch;
  for (int64_t k = 0; k + 2 < rank; ++k) batch.push_back(k);
  return dot(a, b, {rank - 1}, {rank - 2}, batch, batch);
}

namespace {

/// Restricts indices along symbolic axes to the axis's current length. An index past the end becomes the last one
/// (`keep`), or the bound, so that a scatter drops it.
Values within_symbolic(const Value& v, const Values& indices, const std::vector<int64_t>& axes, bool keep) {
  Values out = indices;
  for (size_t k = 0; k < std::min(out.size(), axes.size()); ++k) {
    if (axes[k] < 0 || axes[k] >= v.type().rank() || !is_integer(out[k].dtype())) continue;  // the row refuses it
    const Dim& extent = v.shape()[static_cast<size_t>(axes[k])];
    const Node& made = *out[k].node;
    const bool counts =
        made.op() == Op::iota && made.attrs().shape[static_cast<size_t>(made.attrs().axes[0])] == extent;
    if (extent.is_static() || counts) continue;
    if (out[k].dtype() == uint64)
      out[k] = binary(Op::min, out[k],
                      full(out[k].shape(), uint64, Number::of_int(extent.bound())));  // a signed number holds it then
    const Value i = cast(
        out[k], extent.bound() <= INT32_MAX && out[k].dtype().size() <= 4 && out[k].dtype() != uint32 ? int32 : int64);
    const Value length = broadcast(sum(full({extent}, i.dtype(), Number::of_int(1)), {0}), i.shape()),
                zero = zeros_like(i);
    const Value from_start = select(binary(Op::lt, i, zero), i + length, i);
    if (keep)
      out[k] =
          binary(Op::max, binary(Op::min, from_start, length + full(i.shape(), i.dtype(), Number::of_int(-1))), zero);
    else
      out[k] = select(binary(Op::bit_and, binary(Op::le, zero, from_start), binary(Op::lt, from_start, length)),
                      from_start, full(i.shape(), i.dtype(), Number::of_int(extent.bound())));
  }
  return out;
}

}  // namespace

Value gather(const Value& v, const Values& indices, std::vector<int64_t> axes, Shape sizes) {
  Shape result = indices.empty() ? Shape{} : indices[0].shape();
  result.insert(result.end(), sizes.begin(), sizes.end());
  if (num_elements(result) == 0)
    return full(result, v.dtype(), Number::of_int(0));  // nothing is read, even if v is empty
  Attrs attrs = shape_attrs(sizes);
  Values inputs = within_symbolic(v, indices, axes, true);
  attrs.axes = std::move(axes);
  inputs.insert(inputs.begin(), v);
  return make(Op::gather, std::move(inputs), std::move(attrs));
}

Value take(const Value& v, const Value& indices, int axis) {
  const size_t at = axis_of("take", axis, v.type().rank());
  Shape sizes = v.shape();
  sizes[at] = 1;
  const Value picked =
      gather(v, {indices}, {static_cast<int64_t>(at)}, sizes);  // indices, then v's axes with extent 1 at `axis`
  const int64_t lead = indices.type().rank();
  const Value rows = squeeze(picked, {lead + static_cast<int64_t>(at)});
  std::vector<int64_t> order;  // MLX's layout: the indices' axes replace `axis`
  for (size_t k = 0; k < at; ++k) order.push_back(lead + static_cast<int64_t>(k));
  for (int64_t k = 0; k < lead; ++k) order.push_back(k);
  for (int64_t k = lead + static_cast<int64_t>(at); k < rows.type().rank(); ++k) order.push_back(k);
  return permute(rows, std::move(order));
}

Value scatter(ScatterMode mode, const Value& v, const Values& indices, const Value& updates,
              std::vector<int64_t> axes) {
  if (num_elements(updates.shape()) == 0) return v;
  Attrs attrs;
  attrs.mode = mode;
  Values inputs = within_symbolic(v, indices, axes, false);
  attrs.axes = std::move(axes);
  inputs.insert(inputs.begin(), v);
  inputs.push_back(updates);
  return make(Op::scatter, std::move(inputs), std::move(attrs));
}

Value assign(const Value& v, const Value& update, std::vector<int64_t> start, std::vector<int64_t> step) {
  Attrs attrs;
  if (step.empty()) step.assign(start.size(), 1);
  attrs.start = std::move(start);
  attrs.step = std::move(step);
  return make(Op::assign, {v, update}, std::move(attrs));
}

Value random_bits(const Value& key, const Shape& shape, Generator generator) {
  Attrs attrs = shape_attrs(shape);
  attrs.generator = generator;
  return make(Op::random_bits, {key}, std::move(attrs));
}

Values composite(std::shared_ptr<const Composite> region, Values inputs) {
  Attrs attrs;
  attrs.composite = std::move(region);
  return make_all(Op::composite, std::move(inputs), std::move(attrs));
}

}  // namespace weft::graph
