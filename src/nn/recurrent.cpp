// RNN, GRU and LSTM on scan. Time is the first axis while the loop runs; the matrix product with the input is computed
// before it.
#include "weft/nn/recurrent.h"

#include "nn/support.h"
#include "weft/control.h"
#include "weft/nn/init.h"

namespace weft::nn {

namespace {

array initial_weight(const char* op, std::initializer_list<int64_t> shape, int64_t hidden) {
  return init::uniform(sizes(op, shape), -bound_of(hidden), bound_of(hidden));
}

/// Returns Wx x + b for all times, [time, .., gates · hidden].
array projected(const char* op, const array& x, const Parameter& weight, const std::optional<Parameter>& bias) {
  check_float(op, x, weight.value().shape(1));
  if (x.ndim() != 2 && x.ndim() != 3)
    throw_invalid(op, "the input must be [batch, time, width] or [time, width]; its shape is " + to_string(x.shape()));
  array y = linear_matmul(x, weight);
  if (bias) y = y + astype(*bias, x.dtype());
  return moveaxis(y, -2, 0);
}

/// Returns the state before the first step, [.., hidden].
array start_of(const char* op, const array& x, const std::optional<array>& given, const Dim& hidden) {
  Shape shape = x.shape();
  shape.erase(shape.end() - 2, shape.end());
  shape.push_back(hidden);
  if (!given) return zeros(shape, x.dtype());
  if (given->shape() != shape)
    throw_invalid(op, "the state to start from must have the shape " + to_string(shape) + "; it has " +
                          to_string(given->shape()));
  return astype(*given, x.dtype());
}

array time_last(const array& steps) { return moveaxis(steps, 0, -2); }

std::string describe_cells(const char* name, const Parameter& weight, int64_t gates) {
  const Shape& s = weight.value().shape();
  return std::string(name) + "(" + number(s[1]) + ", " + std::to_string(s[0].bound() / gates) + ")";
}

}  // namespace

RNN::RNN(Scope scope, int64_t in, int64_t hidden, bool with_bias, Nonlinearity f)
    : Layer(std::move(scope)), Wxh(*this, "Wxh", initial_weight("RNN", {hidden, in}, hidden)),
      Whh(*this, "Whh", initial_weight("RNN", {hidden, hidden}, hidden)), f_(std::move(f)) {
  if (with_bias) bias.emplace(*this, "bias", initial_weight("RNN", {hidden}, hidden));
}

array RNN::operator()(const array& x, const std::optional<array>& hidden) const {
  const array inputs = projected("RNN", x, Wxh, bias), w = astype(Whh, x.dtype());
  const auto step = [&](const std::vector<array>& carry, const std::vector<array>& in) {
    const array sum = in[0] + linear_matmul(carry[0], w), h = f_ ? f_(sum) : weft::tanh(sum);
    return std::pair(std::vector<array>{h}, std::vector<array>{h});
  };
  return time_last(scan(step, {start_of("RNN", x, hidden, Whh.value().shape(0))}, {inputs}).second[0]);
}

std::string RNN::describe() const { return describe_cells("RNN", Wxh, 1); }

GRU::GRU(Scope scope, int64_t in, int64_t hidden, bool with_bias)
    : Layer(std::move(scope)), Wx(*this, "Wx", initial_weight("GRU", {3 * hidden, in}, hidden)),
      Wh(*this, "Wh", initial_weight("GRU", {3 * hidden, hidden}, hidden)) {
  if (!with_bias) return;
  b.emplace(*this, "b", initial_weight("GRU", {3 * hidden}, hidden));
  bhn.emplace(*this, "bhn", initial_weight("GRU", {hidden}, hidden));
}

array GRU::operator()(const array& x, const std::optional<array>& hidden) const {
  const array inputs = projected("GRU", x, Wx, b), w = astype(Wh, x.dtype());
  const std::optional<array> shift = in_dtype_of(x, bhn);
  const auto step = [&](const std::vector<array>& carry, const std::vector<array>& in) {
    const auto from_x = split(in[0], 3, -1), from_h = split(linear_matmul(carry[0], w), 3, -1);
    const array r = weft::sigmoid(from_x[0] + from_h[0]), z = weft::sigmoid(from_x[1] + from_h[1]);
    const array n = weft::tanh(from_x[2] + r * (shift ? from_h[2] + *shift : from_h[2]));
    const array h = n + z * (carry[0] - n);
    return std::pair(std::vector<array>{h}, std::vector<array>{h});
  };
  return time_last(scan(step, {start_of("GRU", x, hidden, Wh.value().shape(1))}, {inputs}).second[0]);
}

std::string GRU::describe() const { return describe_cells("GRU", Wx, 3); }

LSTM::LSTM(Scope scope, int64_t in, int64_t hidden, bool with_bias)
    : Layer(std::move(scope)), Wx(*this, "Wx", initial_weight("LSTM", {4 * hidden, in}, hidden)),
      Wh(*this, "Wh", initial_weight("LSTM", {4 * hidden, hidden}, hidden)) {
  if (with_bias) bias.emplace(*this, "bias", initial_weight("LSTM", {4 * hidden}, hidden));
}

std::pair<array, array> LSTM::run(const array& x, const std::optional<array>& hidden,
                                  const std::optional<array>& cell) const {
  const array inputs = projected("LSTM", x, Wx, bias), w = astype(Wh, x.dtype());
  const auto step = [&](const std::vector<array>& carry, const std::vector<array>& in) {
    const auto gates = split(in[0] + linear_matmul(carry[0], w), 4, -1);
    const array c = weft::sigmoid(gates[1]) * carry[1] + weft::sigmoid(gates[0]) * weft::tanh(gates[2]);
    const array h = weft::sigmoid(gates[3]) * weft::tanh(c);
    return std::pair(std::vector<array>{h, c}, std::vector<array>{h, c});
  };
  const Dim width = Wh.value().shape(1);
  const auto all = scan(step, {start_of("LSTM", x, hidden, width), start_of("LSTM", x, cell, width)}, {inputs}).second;
  return {time_last(all[0]), time_last(all[1])};
}

std::string LSTM::describe() const { return describe_cells("LSTM", Wx, 4); }

}  // namespace weft::nn
