#include "kernel/states.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace weft::kernel {

namespace {

/// Returns the reducer of single numbers that combines by `op`.
Reducer plain_reducer(ScalarOp op) {
  const auto row = std::find_if(reducers.begin(), reducers.end(), [&](const ReducerInfo& r) {
    return r.components.size() == 1 && r.components[0].combine == op;
  });
  check(row != reducers.end(), "reduce", "no reducer of single numbers combines a component");
  return row->reducer;
}

/// Returns `v`, from which `axis` of `dims` was reduced, repeated along it.
Value repeated(Builder& b, Value v, const std::vector<int64_t>& dims, int axis) {
  if (dims.size() == 2 && axis == 1) v = b.reshape(v, {dims[0], 1});
  return b.broadcast(v, dims);
}

/// Appends the operators of alignments: what components have in common once.
class AlignmentBuilder {
 public:
  explicit AlignmentBuilder(Builder& b) : b_(b) {}

  Value operator()(ScalarOp op, std::span<const Value> operands) const {
    Value& known = known_.try_emplace({op, {operands.begin(), operands.end()}}, no_value).first->second;
    return known != no_value ? known : known = b_.scalar(op, along_rows(operands));
  }

 private:
  /// Repeats tiles with one axis along the second axis of a tile that has two.
  std::vector<Value> along_rows(std::span<const Value> operands) const {
    std::vector<Value> out(operands.begin(), operands.end());
    for (const Value v : operands)
      if (const std::vector<int64_t> dims = b_.type(v).dims; dims.size() == 2)
        for (Value& other : out)
          if (b_.type(other).rank() == 1) other = repeated(b_, other, dims, 1);
    return out;
  }

  Builder& b_;
  mutable std::map<std::pair<ScalarOp, std::vector<Value>>, Value> known_;
};

/// A number with its dtype, as operators of the reference take it.
struct Typed {
  Number number = {};
  Dtype dtype = float32;
};

}  // namespace

State identity_state(Builder& b, Reducer r, std::span<const Dtype> dtypes, const std::vector<int64_t>& dims) {
  State out;
  for (size_t k = 0; k < components_of(r); ++k) out.push_back(b.constant(dtypes[k], identity(r, dtypes[k], k), dims));
  return out;
}

State combine_states(Builder& b, Reducer r, std::span<const State> states) {
  const AlignmentBuilder apply(b);
  const auto constant = [&](size_t k, Operand which) {
    const Dtype t = b.type(states[0][k]).dtype;
    return b.constant(t, constant_of(r, k, which, t), b.type(states[0][0]).dims);
  };
  return combined_states<Value>(r, states, apply, constant);
}

State combine_states(Builder& b, Reducer r, const State& x, const State& y) {
  const State both[] = {x, y};
  return combine_states(b, r, both);
}

State reduce_state(Builder& b, Reducer r, const State& tiles, int axis) {
  const std::vector<int64_t> dims = b.type(tiles[0]).dims;
  const AlignmentBuilder apply(b);
  const auto constant = [&](size_t k, Operand which) {
    const Dtype t = b.type(tiles[k]).dtype;
    return b.constant(t, constant_of(r, k, which, t), dims);
  };
  State out, lanes;  // `lanes`: the results repeated along the axis
  for (size_t k = 0; k < tiles.size(); ++k) {
    const Value v = Alignment<Value, decltype(apply), decltype(constant)>(r, k, lanes, apply, constant)(tiles);
    out.push_back(b.reduce(plain_reducer(info(r).components[k].combine), v, axis));
    if (k + 1 < tiles.size()) lanes.push_back(repeated(b, out[k], dims, axis));
  }
  return out;
}

std::vector<Number> combine_reference(Reducer r, std::span<const Dtype> dtypes, std::span<const Number> x,
                                      std::span<const Number> y) {
  const auto apply = [](ScalarOp op, std::span<const Typed> operands) {
    Number numbers[most_arguments];
    for (size_t k = 0; k < operands.size(); ++k) numbers[k] = operands[k].number;
    const Dtype t = operands.back().dtype;
    const Number out = reference(op, t, numbers);
    if (info(op).result == ScalarResult::boolean) return Typed{out, bool_};
    return Typed{is_float(t) ? out : round_to(out, t), t};  // floats stay double
  };
  const auto constant = [&](size_t k, Operand which) { return Typed{constant_of(r, k, which, dtypes[k]), dtypes[k]}; };
  std::vector<Typed> sides[2];
  for (size_t k = 0; k < dtypes.size(); ++k)
    sides[0].push_back({x[k], dtypes[k]}), sides[1].push_back({y[k], dtypes[k]});
  std::vector<Number> out;
  for (const Typed& v : combined_states<Typed>(r, sides, apply, constant)) out.push_back(v.number);
  return out;
}

}  // namespace weft::kernel
