#pragma once
// Random programs for the compiler: graphs of a dozen operators or so over small arrays, of mixed dtypes, with strided
// inputs and states that are updated, as functions of a seed. Each value is evaluated as it grows, so that arguments
// are brought into the range that the table gives for their operator, and what says nothing (overflow, elements that
// rounding decides) is left out.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/error_bounds.h"
#include "graph/derive/derive.h"
#include "graph/regions/composites.h"

namespace weft::compiler::testing {

struct RandomProgram {
  Source source;
  std::vector<HostTensor> inputs;
  BoundedEvaluation expected;  // of the graph's values
};

class Growth {
 public:
  using Value = graph::Value;
  using Values = graph::Values;
  using Op = graph::Op;

  explicit Growth(uint64_t seed) : r_(seed), empty_(r_.chance(16)) {}

  RandomProgram grow() {
    for (int64_t k = r_.between(1, 3); k > 0; --k) input({shape(r_.between(1, 3)), dtype()});
    for (int64_t k = r_.between(3, 12); k > 0; --k) step();
    choose_outputs();
    choose_layouts();
    choose_updates();
    return {std::move(source_), std::move(tensors_), std::move(known_)};
  }

 private:
  static constexpr int64_t most_elements = 4096;

  // ---- what there is

  Dtype dtype() {
    return r_.of<Dtype>({float32, float32, float32, float32, bfloat16, bfloat16, float16, float64, int32, int32, int64,
                         uint8, uint32, int8, bool_});
  }
  int64_t extent() {
    if (empty_ && r_.chance(6)) return 0;
    return r_.of<int64_t>({1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 33});
  }
  Shape shape(int64_t rank) {
    for (;;) {
      Shape s;
      for (int64_t k = 0; k < rank; ++k) s.push_back(extent());
      if (num_elements(s) <= most_elements / 2) return s;
    }
  }
  Value input(const graph::Type& type, const graph::testing::Domain& domain = {}) {
    const Value v = graph::parameter(type, static_cast<int64_t>(tensors_.size()));
    tensors_.push_back(graph::testing::random_tensor(r_, type, domain));
    known_.give(v, tensors_.back());
    source_.graph.inputs.push_back(v);
    pool_.push_back(v);
    return v;
  }
  /// Returns a value, newer ones more often.
  Value any() {
    const auto n = static_cast<int64_t>(pool_.size());
    return pool_[static_cast<size_t>(std::max(r_.below(n), r_.below(n)))];
  }
  /// Returns a value that `suits`, or an empty one where none is found.
  template <class F>
  Value any_that(F suits) {
    for (int attempt = 0; attempt < 8; ++attempt)
      if (Value v = any(); suits(v)) return v;
    return {};
  }
  Value any_float() {
    return any_that([](const Value& v) { return is_float(v.dtype()) && !is_float8(v.dtype()); });
  }
  Value any_ranked(int least) {
    return any_that([&](const Value& v) { return v.type().rank() >= least; });
  }
  int64_t axis_of(const Value& v) { return r_.below(v.type().rank()); }
  int64_t length(const Value& v, int64_t axis) { return v.shape()[static_cast<size_t>(axis)].bound(); }

  /// Returns a value of that type, made of one that broadcasts to it, or of a new input.
  Value fitting(const graph::Type& type, const graph::testing::Domain& domain = {}) {
    const Value found = any_that([&](const Value& v) {
      if (v.shape().size() > type.shape.size() || is_float8(v.dtype())) return false;
      for (size_t k = 0; k < v.shape().size(); ++k) {
        const Dim n = v.shape()[v.shape().size() - 1 - k];
        if (!(n == 1) && !(n == type.shape[type.shape.size() - 1 - k])) return false;
      }
      return true;
    });
    if (found && !r_.chance(5)) return graph::broadcast(graph::cast(found, type.dtype), type.shape);
    Shape narrow = type.shape;
    if (r_.chance(2))
      for (Dim& n : narrow)
        if (r_.chance(2)) n = 1;
    return graph::broadcast(input({narrow, type.dtype}, domain), type.shape);
  }
  /// Returns v with its elements limited to those that an operator's tests draw.
  Value within(const Value& v, const kernel::Samples& s) {
    if (v.dtype() == bool_) return v;
    const bool real = is_float(v.dtype());
    const auto bound = [&](double f, int64_t i) {
      return kernel::round_to(real ? Number::of_real(f) : Number::of_int(i), v.dtype());
    };
    const Number low = bound(s.low, is_unsigned(v.dtype()) ? std::max<int64_t>(0, s.int_low) : s.int_low),
                 high = bound(s.high, s.int_high);
    const std::vector<Number>& data = known_(v).value.data;
    const bool inside = std::all_of(data.begin(), data.end(), [&](const Number& e) {
      return real ? e.real() >= low.real() && e.real() <= high.real() : e.i >= low.i && e.i <= high.i;
    });
    if (inside) return v;
    return graph::binary(Op::min, graph::binary(Op::max, v, graph::constant(v.dtype(), low)),
                         graph::constant(v.dtype(), high));
  }

  /// Adds a value, unless it says too little.
  void add(const Value& v) {
    if (!v || num_elements(v.shape()) > most_elements) return;
    const Bounded& b = known_(v);
    size_t known = 0;
    for (size_t k = 0; k < b.radius.size(); ++k)
      known += std::isfinite(b.radius[k]) && std::abs(b.value.data[k].real()) < 1e5;
    if (4 * known >= 3 * b.radius.size()) pool_.push_back(v);
  }

  // ---- operators

  /// Returns the elementwise operators of the table with so many arguments of a dtype.
  static std::vector<Op> operators(int arity, Dtype t) {
    std::vector<Op> found;
    for (const graph::Row* row : graph::table())
      if (row->scalar >= 0 && row->op != Op::select) {
        const kernel::ScalarInfo& info = kernel::info(static_cast<kernel::ScalarOp>(row->scalar));
        if (info.arity == arity && kernel::takes(info, t)) found.push_back(row->op);
      }
    return found;
  }
  void grow_map() {
    const Value x = any();
    const int arity = r_.chance(2) ? 1 : 2;
    const std::vector<Op> usable = operators(arity, x.dtype());
    if (usable.empty()) return;
    const Op op = r_.of(usable);
    const kernel::ScalarInfo& info = kernel::info(static_cast<kernel::ScalarOp>(graph::row(op).scalar));
    const Value a = within(x, info.a);
    add(arity == 1 ? graph::unary(op, a)
                   : graph::binary(op, a, within(fitting(x.type(), graph::testing::domain_of(info.b)), info.b)));
  }
  void grow_select() {
    const Value x = any();
    Value condition = any_that([&](const Value& v) { return v.dtype() == bool_ && v.shape() == x.shape(); });
    if (!condition) condition = graph::cast(x, bool_);
    if (x.dtype() != bool_ && r_.chance(2)) condition = graph::binary(Op::lt, x, fitting(x.type()));
    add(graph::select(condition, x, fitting(x.type())));
  }
  void grow_arithmetic() {
    const Value x = any_float();
    if (!x) return;
    const Value y = fitting(x.type());
    const int64_t which = r_.below(4);
    add(which == 0 ? x + y : which == 1 ? x - y : which == 2 ? x * y : graph::binary(Op::max, x, y));
  }
  void grow_reduction() {
    const Value x = any_ranked(1);
    if (!x) return;
    std::vector<kernel::Reducer> usable;
    for (const kernel::ReducerInfo& row : kernel::reducers)
      if (row.components.size() == 1 && kernel::takes(row.reducer, x.dtype())) usable.push_back(row.reducer);
    if (usable.empty()) return;
    std::vector<int64_t> axes;
    for (int64_t k = 0; k < x.type().rank(); ++k)
      if (r_.chance(2)) axes.push_back(k);
    if (axes.empty()) axes = {axis_of(x)};
    const bool keep = r_.chance(2);
    add(is_float(x.dtype()) && r_.chance(4) ? graph::mean(x, axes, keep) : graph::reduce(r_.of(usable), x, axes, keep));
  }
  void grow_region() {
    const Value x = any_float();
    if (!x || x.type().rank() == 0) return;
    const int64_t n = x.shape().back().bound();
    const auto vector = [&] { return r_.chance(4) ? Value{} : input({{n}, x.dtype()}); };
    switch (r_.below(6)) {
      case 0: return add(graph::softmax(x, {axis_of(x)}));
      case 1: return add(graph::logsumexp(x, {axis_of(x)}, r_.chance(2)));
      case 2: return add(graph::layer_norm(x, vector(), vector(), 1e-3));
      case 3: return add(graph::gelu_tanh(x));
      case 4: return add(graph::gelu(x));
      default: {
        if (n == 0) return;
        Shape rows(x.shape().begin(), x.shape().end() - 1);
        return add(graph::cross_entropy(x, input({rows, int32}, {0, 0, 0, n - 1})));
      }
    }
  }
  void grow_extreme() {
    const Value x = any_that(
        [](const Value& v) { return v.type().rank() > 0 && kernel::takes(kernel::Reducer::argmax, v.dtype()); });
    if (x)
      add(graph::extreme_index(r_.chance(2) ? kernel::Reducer::argmax : kernel::Reducer::argmin, x,
                               static_cast<int>(axis_of(x)), r_.chance(2)));
  }
  void grow_cumulative() {
    const Value x = any_that([](const Value& v) { return v.type().rank() > 0 && v.dtype() != bool_; });
    if (!x) return;
    const kernel::Reducer reducer =
        r_.of<kernel::Reducer>({kernel::Reducer::sum, kernel::Reducer::sum, kernel::Reducer::max});
    add(graph::cumulative(reducer, x, static_cast<int>(axis_of(x)), r_.chance(2),
                          reducer == kernel::Reducer::sum && r_.chance(3)));
  }
  void grow_matmul() {
    const Value x =
        any_that([](const Value& v) { return is_float(v.dtype()) && !is_float8(v.dtype()) && v.type().rank() >= 2; });
    if (!x) return;
    const int64_t last = x.type().rank() - 1, k = length(x, last), n = extent();
    const bool transposed = r_.chance(2);
    if (r_.chance(4)) {  // by itself, over the leading axes
      std::vector<int64_t> batch;
      for (int64_t axis = 0; axis < last - 1; ++axis) batch.push_back(axis);
      const int64_t contracted = transposed ? last : last - 1;
      return add(graph::dot(x, x, {contracted}, {contracted}, batch, batch) * 0.25);
    }
    const Value w = input({transposed ? Shape{n, k} : Shape{k, n}, x.dtype()}, {-1, 1});
    Value y = graph::dot(x, w, {last}, {transposed ? 1 : 0});
    if (r_.chance(2)) y = y + graph::broadcast(input({{n}, x.dtype()}), y.shape());
    add(y);
  }
  void grow_attention() {
    const Dtype t = r_.of<Dtype>({float32, bfloat16});
    const int64_t heads = r_.between(1, 3), queries = r_.of<int64_t>({1, 5, 16}), keys = r_.of<int64_t>({5, 16, 40}),
                  width = r_.of<int64_t>({4, 8, 16});
    const Value q = input({{heads, queries, width}, t}), k = input({{heads, keys, width}, t}),
                v = input({{heads, keys, width}, t});
    add(graph::attention(q, k, v, 0.4, queries <= keys && r_.chance(2), {}));
  }
  Value indices(int64_t n, const Shape& count) {
    const int64_t slack = r_.chance(3) ? 2 : 0;
    return input({count, r_.of<Dtype>({int32, int32, int64, uint32})}, {0, 0, -n - slack, n - 1 + slack});
  }
  void grow_gather() {
    const Value x = any_ranked(1);
    if (!x) return;
    const int64_t axis = axis_of(x), n = length(x, axis);
    if (n > 0) add(graph::take(x, indices(n, shape(r_.between(0, 1))), static_cast<int>(axis)));
  }
  void grow_scatter() {
    const Value x = any_that([](const Value& v) { return v.type().rank() > 0 && v.dtype() != bool_; });
    if (!x) return;
    const int64_t axis = axis_of(x), n = length(x, axis);
    if (n == 0) return;
    Shape updates{r_.between(1, 9)};
    const Value at = indices(n, updates);
    for (int64_t k = 0; k < x.type().rank(); ++k) updates.push_back(k == axis ? 1 : length(x, k));
    const auto mode =
        r_.of<graph::ScatterMode>({graph::ScatterMode::set, graph::ScatterMode::add, graph::ScatterMode::add,
                                   graph::ScatterMode::max, graph::ScatterMode::min});
    add(graph::scatter(mode, x, {at}, fitting({updates, x.dtype()}), {axis}));
  }
  void grow_movement() {
    const Value x = any_ranked(1);
    if (!x) return;
    const int64_t axis = axis_of(x), n = length(x, axis);
    const auto rank = static_cast<size_t>(x.type().rank());
    switch (r_.below(7)) {
      case 0: {
        std::vector<int64_t> order(rank);
        std::iota(order.begin(), order.end(), 0);
        r_.shuffle(order);
        return add(graph::permute(x, order));
      }
      case 1: {
        const int64_t all = num_elements(x.shape());
        for (const int64_t part : {2, 3, 4, 7, 8, 16})
          if (all > 0 && all % part == 0 && r_.chance(2)) return add(graph::reshape(x, {all / part, part}));
        return add(graph::reshape(x, {all}));
      }
      case 2: {
        const int64_t step = r_.of<int64_t>({1, 1, 2, -1});
        std::vector<int64_t> start(rank, 0), steps(rank, 1);
        Shape sizes = x.shape();
        const auto at = static_cast<size_t>(axis);
        start[at] = n == 0 ? 0 : r_.below(n), steps[at] = step;
        const int64_t room = n == 0 ? 0 : step > 0 ? (n - 1 - start[at]) / step + 1 : start[at] / -step + 1;
        sizes[at] = room == 0 ? 0 : r_.between(1, room);
        return add(graph::slice(x, start, sizes, steps));
      }
      case 3: {
        std::vector<int64_t> low(rank, 0), high(rank, 0);
        low[static_cast<size_t>(axis)] = r_.below(3), high[static_cast<size_t>(axis)] = r_.below(4);
        return add(graph::pad(x, low, high, graph::testing::random_number(r_, x.dtype(), {})));
      }
      case 4: {
        graph::Type other = x.type();
        other.shape[static_cast<size_t>(axis)] = extent();
        const Value y = fitting(other);
        return add(graph::concat(r_.chance(2) ? Values{x, y} : Values{y, x}, static_cast<int>(axis)));
      }
      case 5: {
        const int64_t size = r_.between(1, 3), step = r_.between(1, 2);
        if (n >= size) add(graph::window(x, static_cast<int>(axis), size, step));
        return;
      }
      default: {
        graph::Type part = x.type();
        const int64_t size = n == 0 ? 0 : r_.between(1, n);
        part.shape[static_cast<size_t>(axis)] = size;
        std::vector<int64_t> start(rank, 0);
        start[static_cast<size_t>(axis)] = r_.between(0, n - size);
        return add(graph::assign(x, fitting(part), start));
      }
    }
  }
  void grow_cast() {
    const Value x = any();
    add(graph::cast(x, r_.chance(12) ? r_.of<Dtype>({float8_e4m3, float8_e5m2}) : dtype()));
  }
  void grow_mask() {
    const Value x = any_float();
    if (!x || x.type().rank() == 0) return;
    const auto below = [&](const Value& words, double share) {
      const Number bound = Number::of_int(static_cast<int64_t>(share * 4294967296.0));
      return graph::binary(Op::lt, words, graph::constant(uint32, bound));
    };
    Value mask;
    if (r_.chance(2)) {
      const Value key = input({{2}, uint32}, {0, 0, 0, 1000});
      mask = below(
          graph::random_bits(key, x.shape(), r_.chance(2) ? graph::Generator::philox : graph::Generator::threefry),
          0.7);
    } else {
      const int64_t axis = axis_of(x);
      mask = graph::binary(Op::lt, graph::iota(x.shape(), static_cast<int>(axis), int32),
                           graph::constant(int32, Number::of_int(1 + length(x, axis) / 2)));
    }
    add(graph::select(mask, x * 1.25, graph::zeros_like(x)));
  }
  /// The gradient of a value by an input.
  void grow_gradient() {
    const Value y = any_float(), x = any_that([](const Value&v) {
                                   return v.node->op() == Op::parameter && is_float(v.dtype()) && !is_float8(v.dtype());
                                 });
    if (!x || !y || y == x) return;
    const Values slopes = graph::pull_back(Values{y}, Values{fitting(y.type())}, Values{x});
    add(slopes[0]);
  }

  void step() {
    using Grow = void (Growth::*)();
    static const std::vector<std::pair<Grow, int>> table{
        {&Growth::grow_map, 8},        {&Growth::grow_arithmetic, 6}, {&Growth::grow_select, 2},
        {&Growth::grow_reduction, 6},  {&Growth::grow_region, 4},     {&Growth::grow_extreme, 2},
        {&Growth::grow_cumulative, 2}, {&Growth::grow_matmul, 4},     {&Growth::grow_attention, 1},
        {&Growth::grow_gather, 3},     {&Growth::grow_scatter, 3},    {&Growth::grow_movement, 8},
        {&Growth::grow_cast, 3},       {&Growth::grow_mask, 2},       {&Growth::grow_gradient, 3},
    };
    int64_t total = 0;
    for (const auto& [grow, weight] : table) total += weight;
    int64_t left = r_.below(total);
    for (const auto& [grow, weight] : table)
      if ((left -= weight) < 0) return (this->*grow)();
  }

  // ---- the program

  /// All values that no other reads, and one more now and then.
  void choose_outputs() {
    std::set<const graph::Node*> read;
    for (const auto& node : graph::topological(pool_))
      for (const Value& v : node->inputs()) read.insert(v.node.get());
    for (const Value& v : pool_)
      if (v.node->op() != Op::parameter && (!read.contains(v.node.get()) || r_.chance(6)))
        source_.graph.outputs.push_back(v);
    if (source_.graph.outputs.empty()) source_.graph.outputs.push_back(graph::unary(Op::stop_gradient, pool_[0]));
  }
  /// Row-major, but for a program in four, whose inputs lie in any order, some with holes.
  void choose_layouts() {
    if (!r_.chance(4)) return;
    for (const Value& v : source_.graph.inputs) {
      std::vector<size_t> order(v.shape().size());
      std::iota(order.begin(), order.end(), 0);
      r_.shuffle(order);
      Strides strides(order.size());
      int64_t next = r_.chance(3) ? 2 : 1;
      for (const size_t axis : order) {
        strides[axis] = next;
        next *= std::max<int64_t>(1, v.shape()[axis].bound()) + r_.below(2);
      }
      source_.layouts.push_back({strides});
    }
  }
  /// States that results take the place of, where an input has a result's type.
  void choose_updates() {
    if (!r_.chance(3) || !source_.layouts.empty()) return;
    std::vector<bool> taken(source_.graph.inputs.size());
    for (size_t k = 0; k < source_.graph.outputs.size(); ++k)
      for (size_t i = 0; i < taken.size(); ++i)
        if (!taken[i] && source_.graph.inputs[i].type() == source_.graph.outputs[k].type()) {
          source_.updates.push_back({static_cast<int>(k), static_cast<int>(i)});
          taken[i] = true;
          break;
        }
  }

  graph::testing::Random r_;
  const bool empty_;  // axes may have no elements
  Source source_;
  std::vector<HostTensor> tensors_;
  BoundedEvaluation known_;
  Values pool_;
};

inline RandomProgram random_program(uint64_t seed) { return Growth(seed).grow(); }

}  // namespace weft::compiler::testing
