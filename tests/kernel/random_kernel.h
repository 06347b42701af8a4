#pragma once
// Random valid kernels with random data: generated code is held against the interpreter with them. Only operators whose
// result is defined to the bit occur; the payload of a NaN is not, so `difference` takes all NaN as equal, and no float
// is looked at through a bitcast.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernel/checked_memory.h"
#include "kernel/interpret.h"
#include "kernel/tile.h"

namespace weft::test {

struct RandomCase {
  kernel::Kernel kernel;
  std::vector<std::vector<std::byte>> buffers;
  std::vector<int64_t> elements;
  std::vector<int64_t> symbols;
  int64_t grid;
};

class RandomKernel {
 public:
  explicit RandomKernel(uint64_t seed) : random_(seed), b_("random_" + std::to_string(seed)) {}

  RandomCase make() {
    using namespace kernel;
    const bool square = pick(3) == 0;
    dims_ = square ? std::vector<int64_t>{int64_t{1} << pick(4), int64_t{1} << pick(5)}
                   : std::vector<int64_t>{pick(2) ? int64_t{1} << pick(7) : 1 + static_cast<int64_t>(pick(64))};
    lanes_ = 1;
    for (int64_t d : dims_) lanes_ *= d;
    out_.grid = 1 + static_cast<int64_t>(pick(4));
    count_ = (out_.grid - 1) * lanes_ + 1 +
             static_cast<int64_t>(pick(static_cast<size_t>(lanes_)));  // the last tile may be cut
    declare();
    const Value program = b_.program_id(), count = b_.symbol("count");
    out_.symbols = {count_};
    start_ = b_.mul(program, b_.index(lanes_));
    left_ = b_.sub(count, start_);
    for (size_t k = 0; k < inputs_.size(); ++k) pool_.push_back(load_tile(inputs_[k], start_, left_));
    const size_t length = 4 + pick(16);
    for (size_t k = 0; k < length; ++k) grow();
    for (const Ref ref : outputs_) finish_output(ref, program, count);
    if (pick(3) == 0) integers_to_sums();
    out_.kernel = b_.finish();
    return std::move(out_);
  }

 private:
  using Value = kernel::Value;
  using Ref = kernel::Ref;
  using ScalarOp = kernel::ScalarOp;

  size_t pick(size_t n) { return static_cast<size_t>(random_() % n); }
  Dtype any_dtype() {
    const Dtype all[] = {bool_, uint8,   uint16,   uint32,  uint64,  int8,    int16,  int32,
                         int64, float16, bfloat16, float32, float32, float32, float64};
    return all[pick(std::size(all))];
  }

  void declare() {
    const size_t inputs = 1 + pick(3), outputs = 1 + pick(2);
    for (size_t k = 0; k < inputs; ++k) inputs_.push_back(buffer("in", any_dtype(), false, count_));
    for (size_t k = 0; k < outputs; ++k) outputs_.push_back(buffer("out", any_dtype(), true, count_));
    const Dtype sums[] = {int32, uint32, int64};
    sums_ = buffer("sums", sums[pick(3)], true, 4);
    scratch_dtype_ = any_dtype();
    scratch_ = b_.local(scratch_dtype_, lanes_);
  }

  Ref buffer(const std::string& name, Dtype t, bool written, int64_t elements) {
    out_.elements.push_back(elements);
    out_.buffers.emplace_back(static_cast<size_t>(elements) * t.size());
    for (int64_t k = 0; k < elements; ++k) kernel::write_element(out_.buffers.back().data(), t, k, number(t));
    return b_.param(name, t, written);
  }

  Number number(Dtype t) {
    const double extremes[] = {0.0,   -0.0,  1.0,   -1.0, INFINITY, -INFINITY, NAN,
                               1e-40, -3e-8, 65504, 1e30, 0.5,      2.5,       -1.5};
    if (is_float(t)) {
      const size_t kind = pick(8);
      if (kind == 0) return kernel::round_to(Number::of_real(extremes[pick(std::size(extremes))]), t);
      if (kind == 1) return kernel::round_to(Number::of_int(static_cast<int64_t>(pick(21)) - 10), t);
      return kernel::round_to(Number::of_real(std::normal_distribution<double>(0, kind == 2 ? 1000 : 2)(random_)), t);
    }
    const int64_t bits = static_cast<int64_t>(random_());
    return kernel::round_to(Number::of_int(pick(2) ? bits : bits % 17), t);
  }

  std::vector<int64_t> strides() const {
    return dims_.size() == 2 ? std::vector<int64_t>{dims_[1], 1} : std::vector<int64_t>{1};
  }

  // A limit cuts rows of a tile with two axes only where a whole number of rows is left; a tile of one axis anywhere.
  std::vector<Value> limits(Value left) {
    if (dims_.size() == 1) return {left};
    return {b_.scalar(ScalarOp::floordiv, {left, b_.index(dims_[1])}), kernel::no_value};
  }

  Value load_tile(Ref ref, Value offset, Value left) {
    const std::vector<Value> cut = limits(left);
    return b_.load(ref, offset, dims_, strides(), cut, number(b_.dtype(ref)));
  }

  Value lane_numbers() {
    if (dims_.size() == 1) return b_.arange(lanes_);
    const Value row = b_.broadcast(b_.reshape(b_.arange(dims_[0]), {dims_[0], 1}), dims_),
                first = b_.mul(row, b_.index(dims_[1]));
    return b_.add(first, b_.broadcast(b_.arange(dims_[1]), dims_));
  }

  Value any() { return pool_[pick(pool_.size())]; }
  Value any(Dtype t) {
    std::vector<Value> fitting;
    for (Value v : pool_)
      if (b_.type(v).dtype == t) fitting.push_back(v);
    if (!fitting.empty() && pick(4) != 0) return fitting[pick(fitting.size())];
    return pick(4) == 0 ? b_.constant(t, number(t), dims_)
                        : b_.cast(any(), t);  // one draw an argument list: the order is defined
  }

  Value elementwise() {
    static constexpr ScalarOp ops[] = {
        ScalarOp::neg,   ScalarOp::abs,       ScalarOp::add,      ScalarOp::sub,     ScalarOp::mul,
        ScalarOp::div,   ScalarOp::max,       ScalarOp::min,      ScalarOp::fma,     ScalarOp::floordiv,
        ScalarOp::mod,   ScalarOp::sqrt,      ScalarOp::floor,    ScalarOp::ceil,    ScalarOp::trunc,
        ScalarOp::round, ScalarOp::bit_and,   ScalarOp::bit_or,   ScalarOp::bit_xor, ScalarOp::bit_not,
        ScalarOp::shl,   ScalarOp::shr,       ScalarOp::eq,       ScalarOp::ne,      ScalarOp::lt,
        ScalarOp::le,    ScalarOp::select,    ScalarOp::mulhi,    ScalarOp::recip,   ScalarOp::square,
        ScalarOp::sign,  ScalarOp::threefry0, ScalarOp::threefry1};
    const ScalarOp op = ops[pick(std::size(ops))];
    const kernel::ScalarInfo& row = kernel::info(op);
    Dtype t = b_.type(any()).dtype;
    if (op == ScalarOp::threefry0 || op == ScalarOp::threefry1) t = uint32;
    else if (op == ScalarOp::mulhi) t = pick(2) ? uint32 : uint64;
    else if (!(is_float(t) ? row.floats : is_integer(t) ? row.integers : row.booleans))
      t = row.floats ? float32 : int32;
    std::vector<Value> args;
    for (int k = 0; k < row.arity; ++k) {
      const Dtype wanted = op == ScalarOp::select && k == 0 ? bool_ : t;
      const bool shift = (op == ScalarOp::shl || op == ScalarOp::shr) && k == 1 && pick(2);
      if (shift) args.push_back(b_.constant(t, Number::of_int(static_cast<int64_t>(pick(9)))));
      else args.push_back(pick(6) == 0 ? b_.constant(wanted, number(wanted)) : any(wanted));
    }
    return b_.broadcast(b_.scalar(op, args), dims_);
  }

  Value reduced() {
    using kernel::Reducer;
    for (int64_t d : dims_)
      if (d & (d - 1)) return elementwise();
    const Value v = any();
    const Dtype t = b_.type(v).dtype;
    const Reducer all[] = {Reducer::sum, Reducer::prod, Reducer::max, Reducer::min};
    const Reducer r = t == bool_ ? (pick(2) ? Reducer::all : Reducer::any) : all[pick(4)];
    const int axis = static_cast<int>(pick(dims_.size()));
    const Value line = b_.reduce(r, v, axis);
    return b_.broadcast(dims_.size() == 2 && axis == 1 ? b_.reshape(line, {dims_[0], 1}) : line, dims_);
  }

  Value shifted() {
    if (dims_.size() != 1 || lanes_ < 2) return elementwise();
    const Value v = any(), into = any(b_.type(v).dtype);
    if (pick(4) == 0)
      return b_.broadcast(b_.extract(v, static_cast<int64_t>(pick(static_cast<size_t>(lanes_)))), dims_);
    const int64_t by = 1 + static_cast<int64_t>(pick(static_cast<size_t>(lanes_) - 1));
    if ((lanes_ & (lanes_ - 1)) == 0 && pick(2)) return b_.exchange(v, by);
    return b_.shift(v, into, pick(2) ? by : -by);
  }

  Value gathered() {
    const Ref ref = inputs_[pick(inputs_.size())];
    const Value index = b_.scalar(ScalarOp::mod, {any(int64), b_.index(count_)});  // never negative
    const Value mask = pick(2) ? any(bool_) : kernel::no_value;
    return b_.gather(ref, index, mask, number(b_.dtype(ref)));
  }

  // Over the whole of an input, a tile at a time, into a carried tile.
  Value looped() {
    const Ref ref = inputs_[pick(inputs_.size())];
    const Value hi = pick(2) ? b_.symbol("count") : b_.index(count_), first = any(), lo = b_.index(0),
                step = b_.index(lanes_);
    return b_.loop(lo, hi, step, {first}, [&](Value i, const std::vector<Value>& carried) {
      const std::vector<Value> outer = pool_;
      pool_.push_back(carried[0]);
      pool_.push_back(load_tile(ref, i, b_.sub(b_.symbol("count"), i)));
      for (size_t k = 1 + pick(4); k > 0; --k) pool_.push_back(elementwise());
      const Value next = b_.cast(pick(3) ? pool_.back() : any(), b_.type(first).dtype);
      pool_ = outer;
      return std::vector<Value>{next};
    })[0];
  }

  // Nothing but operators on lanes, in a block that may hold another such block.
  Value chosen() {
    const Value otherwise = any(), condition = any(bool_);
    return b_.when(condition, {otherwise}, [&] {
      const std::vector<Value> outer = pool_;
      for (size_t k = 1 + pick(4); k > 0; --k) pool_.push_back(pick(4) == 0 ? chosen() : elementwise());
      const Value next = b_.cast(pick(3) ? pool_.back() : any(), b_.type(otherwise).dtype);
      pool_ = outer;
      return std::vector<Value>{next};
    })[0];
  }

  Value through_scratch() {
    std::vector<int64_t> reversed = strides();
    for (int64_t& s : reversed) s = -s;
    const Value v = any(scratch_dtype_), first = b_.index(0), last = b_.index(lanes_ - 1);
    b_.store(scratch_, v, first, strides());
    return b_.load(scratch_, last, dims_, reversed);
  }

  Value moved() {
    if (dims_.size() == 1) return b_.reshape(b_.reshape(any(), {lanes_, 1}), dims_);
    const Value flipped = b_.transpose(any());
    if (dims_[0] == dims_[1]) return flipped;
    const Dtype t = b_.type(flipped).dtype;
    return b_.transpose(
        b_.scalar(ScalarOp::select, {b_.constant(bool_, number(bool_)), flipped, b_.transpose(any(t))}));
  }

  Value multiplied() {
    if (dims_.size() != 2) return elementwise();
    const Dtype t = pick(4) ? float32 : float64;
    const Value a = any(t), transposed = b_.transpose(any(t)), start = b_.constant(t, number(t), {dims_[0], dims_[0]});
    const Value square = b_.dot(a, transposed, start), right = any(t), last = any(t);
    return b_.dot(square, right, last);
  }

  void grow() {
    switch (pick(14)) {
      case 0: pool_.push_back(reduced()); break;
      case 1: pool_.push_back(gathered()); break;
      case 2: pool_.push_back(looped()); break;
      case 3: pool_.push_back(through_scratch()); break;
      case 4: pool_.push_back(moved()); break;
      case 5: pool_.push_back(multiplied()); break;
      case 12: pool_.push_back(shifted()); break;
      case 13: pool_.push_back(chosen()); break;
      case 6: {
        const Value v = any();
        pool_.push_back(b_.cast(v, any_dtype()));
        break;
      }
      case 7: {
        const Value bits = any(uint32);
        pool_.push_back(b_.bitcast(bits, pick(2) ? int32 : float32));
        break;
      }
      default: pool_.push_back(elementwise());
    }
  }

  void finish_output(Ref ref, Value program, Value count) {
    const Value last = b_.cast(pick(4) ? pool_.back() : any(), b_.dtype(ref));
    switch (pick(4)) {
      case 0: {  // every other program
        const Value even = b_.scalar(ScalarOp::eq, {b_.scalar(ScalarOp::mod, {program, b_.index(2)}), b_.index(0)});
        b_.when(even, [&] { b_.store(ref, last, start_, strides(), limits(left_)); });
        break;
      }
      case 1: {  // the tile's lanes from behind
        const Value index = b_.sub(b_.add(start_, b_.index(lanes_ - 1)), lane_numbers());
        b_.scatter(ref, last, index, b_.lt(index, count));
        break;
      }
      default: b_.store(ref, last, start_, strides(), limits(left_), pick(2) == 0);
    }
  }

  void integers_to_sums() {
    const Value index = b_.scalar(ScalarOp::mod, {lane_numbers(), b_.index(4)});
    const Value v = any(b_.dtype(sums_)), mask = pick(2) ? any(bool_) : kernel::no_value;
    b_.atomic_add(sums_, v, index, mask);
  }

  std::mt19937_64 random_;
  kernel::Builder b_;
  RandomCase out_;
  std::vector<int64_t> dims_;
  int64_t lanes_ = 1, count_ = 1;
  std::vector<Ref> inputs_, outputs_;
  Ref sums_ = -1, scratch_ = -1;
  Dtype scratch_dtype_ = float32;
  Value start_ = kernel::no_value, left_ = kernel::no_value;
  std::vector<Value> pool_;
};

inline RandomCase random_case(uint64_t seed) { return RandomKernel(seed).make(); }

inline std::vector<kernel::HostBuffer> host_buffers(RandomCase& c) {
  std::vector<kernel::HostBuffer> all;
  for (size_t k = 0; k < c.buffers.size(); ++k) all.push_back({c.buffers[k].data(), c.elements[k]});
  return all;
}

/// Empty where the buffers of the two cases hold the same bits (any NaN for any NaN); else the first position where
/// they differ.
inline std::string difference(const RandomCase& a, const RandomCase& b) {
  for (size_t p = 0; p < a.buffers.size(); ++p) {
    const Dtype t = a.kernel.params[p].dtype;
    for (int64_t k = 0; k < a.elements[p]; ++k) {
      const Number x = kernel::read_element(a.buffers[p].data(), t, k),
                   y = kernel::read_element(b.buffers[p].data(), t, k);
      if (x == y || (x.real() != x.real() && y.real() != y.real())) continue;
      return "p" + std::to_string(p) + "[" + std::to_string(k) + "] " + dtype_name(t) + ": " +
             std::to_string(x.real()) + " and " + std::to_string(y.real());
    }
  }
  return "";
}

}  // namespace weft::test
