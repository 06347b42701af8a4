#pragma once
// Random kernels of everything that tile IR has: tiles of up to four axes of any extents, what moves, combines and
// orders their elements, atomics and control flow. Only operators occur whose result is defined to the bit.
#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "target/cpu/cpu_support.h"

namespace weft::test {

class GeneralKernel {
 public:
  using Value = kernel::Value;
  using Ref = kernel::Ref;
  using Reducer = kernel::Reducer;
  using ScalarOp = kernel::ScalarOp;
  using Dims = std::vector<int64_t>;

  static constexpr int kinds = 24;

  /// `kind`: what the kernel does first, below `kinds`.
  GeneralKernel(uint64_t seed, int kind)
      : random_(seed), b_("general_" + std::to_string(seed) + "_" + std::to_string(kind)) {
    program_ = b_.program_id();
    for (size_t k = 0; k < 3; ++k) inputs_.push_back(b_.param("in", k == 0 ? float32 : any_dtype(), false));
    counts_.assign(3, input_elements);
    for (const Dtype t : written_dtypes) outputs_.push_back(b_.param("out", t, true)), counts_.push_back(8);
    for (int k = 0; k < 3; ++k) pool_.push_back(load(some_dims()));
    step(kind);
    for (size_t k = pick(5); k > 0; --k) step(static_cast<int>(pick(kinds)));
  }

  RandomCase make() {
    std::shuffle(pool_.begin() + 3, pool_.end(), random_);
    for (size_t k = 0; k < pool_.size() && k < 9; ++k) output(pool_[pool_.size() - 1 - k]);
    return make_case(b_.finish(), counts_, {}, grid, random_());
  }

 private:
  static constexpr Dtype written_dtypes[] = {bool_, uint8, uint32,  uint64,   int8,    int16,
                                             int32, int64, float16, bfloat16, float32, float64};
  static constexpr int64_t input_elements = 8192, most_elements = 3000, grid = 3;

  size_t pick(size_t n) { return static_cast<size_t>(random_() % n); }
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  const kernel::Type& type(Value v) const { return b_.type(v); }
  Value add(Value v) { return pool_.push_back(v), v; }
  Dtype any_dtype() { return pick(5) == 0 ? float32 : written_dtypes[pick(std::size(written_dtypes))]; }
  static int64_t size_of(const Dims& dims) {
    return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
  }
  int64_t extent() {
    const int64_t all[] = {1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17, 32, 33, 64, 100};
    return all[pick(std::size(all))];
  }
  Dims some_dims() {
    Dims dims;
    for (size_t k = pick(5); k > 0; --k) {
      dims.push_back(extent());
      while (size_of(dims) > 1200) dims.back() = (dims.back() + 1) / 2;
    }
    return dims;
  }
  Value any() { return pool_[pick(pool_.size())]; }
  /// A tile with an axis at least, and one of its axes.
  Value any_tile(int& axis, int64_t most = most_elements) {
    Value v = any();
    for (int k = 0; k < 50 && (type(v).rank() == 0 || type(v).size() > most); ++k) v = any();
    if (type(v).rank() == 0 || type(v).size() > most) v = load({1 + below(40)});
    axis = static_cast<int>(pick(static_cast<size_t>(type(v).rank())));
    return v;
  }
  static int64_t extent_of(const kernel::Type& t, int axis) { return t.dims[static_cast<size_t>(axis)]; }
  static Dims row_major(const Dims& dims) {
    Dims out(dims.size(), 1);
    for (size_t k = dims.size(); k-- > 1;) out[k - 1] = out[k] * dims[k];
    return out;
  }
  Number number(Dtype t) {
    const std::vector<Number> all = hard_values(t);
    return all[pick(all.size())];
  }

  Value load(const Dims& dims) {
    const Ref ref = inputs_[pick(inputs_.size())];
    Dims strides = row_major(dims);
    if (pick(3) == 0)
      for (int64_t& s : strides) s = s * 2 + 1;
    int64_t last = 0;
    std::vector<Value> limits;
    for (size_t k = 0; k < dims.size(); ++k) {
      last += (dims[k] - 1) * strides[k];
      limits.push_back(pick(4) == 0 ? b_.index(below(dims[k] + 2)) : kernel::no_value);
    }
    if (last > input_elements - 8) return load({1 + below(40)});
    const Value offset = pick(2) ? program_ : b_.index(below(2) * 4);
    return b_.load(ref, offset, dims, strides, limits, number(b_.dtype(ref)));
  }
  /// Whole numbers, row-major, in [0, bound).
  Value numbers(const Dims& dims, int64_t bound) {
    const Value order = b_.reshape(b_.arange(size_of(dims)), dims), factor = b_.index(1 + below(50)),
                more = b_.mul(program_, b_.index(below(7)));
    return b_.scalar(ScalarOp::mod, {b_.add(b_.mul(order, factor), more), b_.index(bound)});
  }
  Value like(Value v) {  // another tile of the same type
    const kernel::Type t = type(v);
    return pick(2) ? b_.cast(load_exactly(t.dims), t.dtype) : b_.constant(t.dtype, number(t.dtype), t.dims);
  }
  Value load_exactly(const Dims& dims) {
    const Ref ref = inputs_[pick(inputs_.size())];
    return b_.load(ref, b_.index(below(std::min<int64_t>(900, input_elements - size_of(dims)))), dims, row_major(dims));
  }
  Value arithmetic(Value v) {
    const Dtype t = type(v).dtype;
    const Value other = like(v);
    if (pick(4) == 0) return b_.select(b_.lt(v, other), v, other);
    if (t == bool_) return b_.scalar(pick(2) ? ScalarOp::bit_or : ScalarOp::bit_xor, {v, other});
    const ScalarOp all[] = {ScalarOp::add, ScalarOp::sub, ScalarOp::mul, ScalarOp::max};
    return b_.scalar(all[pick(4)], {v, other});
  }
  Reducer reducer(Dtype t) {
    const Reducer all[] = {Reducer::sum, Reducer::prod, Reducer::max, Reducer::min};
    return t == bool_ ? (pick(2) ? Reducer::all : Reducer::any) : all[pick(4)];
  }
  Value condition() {
    return b_.scalar(ScalarOp::eq, {b_.scalar(ScalarOp::mod, {program_, b_.index(2)}), b_.index(below(2))});
  }

  void broadcast() {
    const Value v = any();
    Dims dims = type(v).dims;
    for (int64_t& d : dims)
      if (d == 1 && pick(2)) d = 1 + below(5);
    while (dims.size() < 4 && pick(2)) dims.insert(dims.begin(), 1 + below(4));
    if (size_of(dims) <= most_elements && !dims.empty()) add(b_.broadcast(v, dims));
  }
  void reshape() {
    const Value v = any();
    int64_t left = type(v).size();
    Dims dims;
    while (left > 1 && dims.size() < 3) {
      const int64_t part = std::gcd(left, int64_t{1} << pick(5)) * std::gcd(left, pick(2) ? 3 : 5);
      const int64_t d = left % part == 0 ? part : 1;
      dims.push_back(d), left /= d;
    }
    if (left > 1) dims.push_back(left);
    add(b_.reshape(v, dims));
  }
  void permute() {
    const Value v = any();
    Dims axes(static_cast<size_t>(type(v).rank()));
    std::iota(axes.begin(), axes.end(), int64_t{0});
    std::shuffle(axes.begin(), axes.end(), random_);
    add(b_.permute(v, axes));
  }
  void slice() {
    const Value v = any();
    Dims starts, dims, steps;
    for (const int64_t d : type(v).dims) {
      const int64_t step = pick(3) == 0 ? 1 + below(3) : 1, count = 1 + below((d + step - 1) / step),
                    last = (count - 1) * step, first = below(d - last);
      const bool back = pick(4) == 0;
      starts.push_back(back ? first + last : first), dims.push_back(count), steps.push_back(back ? -step : step);
    }
    add(b_.slice(v, starts, dims, steps));
  }
  void cat() {
    int axis = 0;
    const Value v = any_tile(axis, 800);
    std::vector<Value> parts{v};
    for (size_t k = 1 + pick(2); k > 0; --k) {
      kernel::Type t = type(v);
      t.dims[static_cast<size_t>(axis)] = 1 + below(5);
      parts.push_back(b_.cast(load_exactly(t.dims), t.dtype));
    }
    std::shuffle(parts.begin(), parts.end(), random_);
    add(b_.cat(parts, axis));
  }
  void take() {
    int axis = 0;
    const Value v = any_tile(axis);
    Dims dims = type(v).dims;
    const int64_t extent = dims[static_cast<size_t>(axis)];
    dims[static_cast<size_t>(axis)] = 1 + below(9);
    if (size_of(dims) > most_elements) return;
    add(b_.take(v, b_.sub(numbers(dims, extent + 4), b_.index(2)), axis));
  }
  void reduce() {
    int axis = 0;
    const Value v = any_tile(axis);
    add(b_.reduce(reducer(type(v).dtype), v, axis));
  }
  void scan() {
    int axis = 0;
    const Value v = any_tile(axis);
    add(b_.scan(reducer(type(v).dtype), v, axis, pick(2) == 0));
  }
  /// The largest element and where it lies.
  void extreme(bool scans) {
    int axis = 0;
    Value v = any_tile(axis);
    if (is_low_float(type(v).dtype) || type(v).dtype == bool_) v = b_.cast(v, float32);
    const Value place = b_.cast(numbers(type(v).dims, 1 << 20), int32);
    const auto larger = [&](const std::vector<Value>& low, const std::vector<Value>& high) {
      const Value second = b_.lt(low[0], high[0]);
      return std::vector<Value>{b_.select(second, high[0], low[0]), b_.select(second, high[1], low[1])};
    };
    const auto both = scans ? b_.scan(larger, {v, place}, axis, pick(2) == 0) : b_.reduce(larger, {v, place}, axis);
    add(both[0]), add(both[1]);
  }
  /// Compositions of x → a·x + b.
  void compositions(bool scans) {
    int axis = 0;
    const Value a = b_.cast(any_tile(axis), pick(2) ? float32 : float64), b = like(a);
    const auto after = [&](const std::vector<Value>& low, const std::vector<Value>& high) {
      return std::vector<Value>{b_.mul(low[0], high[0]), b_.add(b_.mul(low[1], high[0]), high[1])};
    };
    const auto both = scans ? b_.scan(after, {a, b}, axis, pick(2) == 0) : b_.reduce(after, {a, b}, axis);
    add(both[0]), add(both[1]);
  }
  void sort() {
    int axis = 0;
    const Value v = any_tile(axis);
    std::vector<Value> tiles{v};
    if (pick(2)) tiles.push_back(numbers(type(v).dims, 1 << 20));
    if (pick(3) == 0) tiles.push_back(like(v));
    for (const Value sorted : b_.sort(tiles, axis, pick(2) == 0)) add(sorted);
  }
  void histogram() {
    const Dims dims = some_dims();
    const Dtype all[] = {int32, uint8, int64, uint64, int16};
    add(b_.histogram(b_.cast(b_.sub(numbers(dims, 40), b_.index(3)), all[pick(5)]), 1 + below(50)));
  }
  void dot() {
    Dims batch;
    for (size_t k = pick(3); k > 0; --k) batch.push_back(1 + below(3));
    const int64_t rows = 1 + below(20), depth = 1 + below(20), columns = 1 + below(20);
    const auto tile = [&](Dtype t, int64_t m, int64_t n) {
      Dims dims = batch;
      dims.push_back(m), dims.push_back(n);
      return b_.cast(load_exactly(dims), t);
    };
    const std::pair<Dtype, Dtype> types[] = {{float32, float32},   {float32, float32}, {float16, float32},
                                             {bfloat16, bfloat16}, {float32, float64}, {float64, float64},
                                             {int8, int32},        {int32, int32}};
    const auto [operands, sum] = types[pick(std::size(types))];
    const kernel::DotPrecision all[] = {kernel::DotPrecision::exact, kernel::DotPrecision::tf32,
                                        kernel::DotPrecision::tf32x3};
    const bool single = operands == float32 && sum == float32;
    add(b_.dot(tile(operands, rows, depth), tile(operands, depth, columns), tile(sum, rows, columns),
               single ? all[pick(3)] : all[0]));
  }
  void shift() {
    const int64_t n = 2 + below(90);
    const Value v = load({n});
    add(b_.shift(v, like(v), pick(2) ? 1 + below(n - 1) : -1 - below(n - 1)));
    add(b_.extract(v, below(n)));
    add(b_.exchange(load({64}), 1 + below(63)));
  }

  /// The begin of what a program has of a written parameter for itself, of `n` elements.
  Value own_part(Ref& ref, Dtype t, int64_t n) {
    const auto* const found = std::find(std::begin(written_dtypes), std::end(written_dtypes), t);
    ref = outputs_[static_cast<size_t>(found - written_dtypes)];
    int64_t& count = counts_[static_cast<size_t>(ref)];
    const int64_t first = count;
    count += n * grid;
    return b_.add(b_.mul(program_, b_.index(n)), b_.index(first));
  }
  /// Returns where the elements of a tile lie in a buffer of its own, each once, and where they begin.
  std::pair<Value, Value> own_places(Ref& ref, Dtype t, const Dims& dims) {
    const int64_t n = size_of(dims);
    Value first = b_.index(0);
    if (pick(3) == 0) {
      ref = b_.local(t, n);
      b_.store(ref, b_.constant(t, number(t), {n}), first, {1});
    } else {
      first = own_part(ref, t, n);
    }
    return {b_.add(b_.sub(b_.index(n - 1), b_.reshape(b_.arange(n), dims)), first), first};
  }
  void atomic() {
    Value v = any();
    if (type(v).dtype == bool_) v = b_.cast(v, int32);
    const kernel::Type t = type(v);
    Ref ref = -1;
    const Value places = own_places(ref, t.dtype, t.dims).first, mask = pick(2) ? b_.lt(like(v), v) : kernel::no_value;
    const ScalarOp all[] = {ScalarOp::add,     ScalarOp::min,    ScalarOp::max,
                            ScalarOp::bit_and, ScalarOp::bit_or, ScalarOp::bit_xor};
    const ScalarOp op = all[pick(is_integer(t.dtype) ? 6 : 3)];
    if (op == ScalarOp::add && t.dtype == float32) {  // a GPU's instruction flushes subnormal numbers to 0
      v = b_.scalar(ScalarOp::round, {v});
      b_.scatter(ref, b_.real(float32, 1, t.dims), places);
    }
    add(b_.atomic(op, ref, v, places, mask));
    if (pick(2)) add(b_.exchange_memory(ref, like(v), places, mask));
    const Value now = b_.gather(ref, places);
    add(now);
    if (pick(2)) add(b_.compare_exchange(ref, pick(2) ? now : like(v), like(v), places, mask));
    add(b_.gather(ref, places, mask, number(t.dtype)));
  }
  void through_memory() {  // written in one order and read in another
    const Value v = any();
    const kernel::Type t = type(v);
    Ref ref = -1;
    const auto [places, first] = own_places(ref, t.dtype, t.dims);
    b_.scatter(ref, v, places);
    add(b_.load(ref, first, {t.size()}, {1}));
  }
  void branch() {
    const Value v = any(), w = any();
    const auto values = b_.branch(
        condition(),
        [&] {
          return std::vector<Value>{arithmetic(v), w};
        },
        [&] {
          return std::vector<Value>{type(v).rank() > 0 ? b_.scan(reducer(type(v).dtype), v, 0) : v, like(w)};
        });
    add(values[0]), add(values[1]);
  }
  void while_loop() {
    const Value v = any(), w = like(v), rounds = b_.add(program_, b_.index(below(3)));
    const auto values = b_.while_loop(
        {b_.index(0), v, w}, [&](const std::vector<Value>& now) { return b_.lt(now[0], rounds); },
        [&](const std::vector<Value>& now) {
          Value next = arithmetic(now[2]);
          if (type(v).rank() > 0 && type(v).size() < 1000) next = b_.sort({next}, 0)[0];
          return std::vector<Value>{b_.add(now[0], b_.index(1)), next, now[1]};
        });
    add(values[1]), add(values[2]);
  }
  void loop() {
    const Value v = any();
    const auto values = b_.loop(b_.index(0), b_.add(program_, b_.index(1)), b_.index(1), {v, v},
                                [&](Value, const std::vector<Value>& now) {
                                  return std::vector<Value>{now[1], arithmetic(now[0])};
                                });
    add(values[0]), add(values[1]);
  }

  void step(int kind) {
    switch (kind) {
      case 0: return broadcast();
      case 1: return reshape();
      case 2: return permute();
      case 3: return slice();
      case 4: return cat();
      case 5: return take();
      case 6: return reduce();
      case 7: return scan();
      case 8: return extreme(false);
      case 9: return extreme(true);
      case 10: return compositions(false);
      case 11: return compositions(true);
      case 12: return sort();
      case 13: return histogram();
      case 14: return dot();
      case 15: return shift();
      case 16: return atomic();
      case 17: return through_memory();
      case 18: return branch();
      case 19: return while_loop();
      case 20: return loop();
      case 21: add(load(some_dims())); return;
      case 22: add(b_.cast(any(), any_dtype())); return;
      default: add(arithmetic(any()));
    }
  }

  /// Stores a value to a buffer of its own, as it lies, along other axes or from behind.
  void output(Value v) {
    const kernel::Type t = type(v);
    const int64_t n = t.size();
    Ref ref = -1;
    const Value first = own_part(ref, t.dtype, n);
    Dims strides = row_major(t.dims);
    if (pick(3) == 0 && t.rank() > 1) {
      Dims turned(t.dims.rbegin(), t.dims.rend());
      strides = row_major(turned);
      std::reverse(strides.begin(), strides.end());
    }
    std::vector<Value> limits(t.dims.size(), kernel::no_value);
    if (!limits.empty() && pick(3) == 0) limits[pick(limits.size())] = b_.index(1 + below(20));
    if (pick(3) == 0 && t.rank() > 0)
      return b_.scatter(ref, v, b_.sub(b_.add(first, b_.index(n - 1)), b_.reshape(b_.arange(n), t.dims)));
    b_.store(ref, v, first, strides, limits);
  }

  std::mt19937_64 random_;
  kernel::Builder b_;
  std::vector<Ref> inputs_, outputs_;
  std::vector<int64_t> counts_;  // elements of each parameter
  std::vector<Value> pool_;
  Value program_ = kernel::no_value;
};

}  // namespace weft::test
