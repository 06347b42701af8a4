// The update rules. Every parameter of an optimizer gets the same graph, with numbers that differ in buffers.
#include "base/error.h"
#include "weft/ops.h"
#include "weft/optim.h"

namespace weft::optim {

namespace {

AdamOptions checked(AdamOptions o) {
  for (const double beta : {o.beta1, o.beta2})
    if (!(beta >= 0 && beta < 1)) throw_invalid("Adam", "betas must be at least 0 and less than 1; got " + std::to_string(beta));
  if (!(o.eps >= 0)) throw_invalid("Adam", "eps must not be negative; it is " + std::to_string(o.eps));
  if (!(o.weight_decay >= 0)) throw_invalid("Adam", "weight_decay must not be negative; it is " + std::to_string(o.weight_decay));
  return o;
}

SgdOptions checked(SgdOptions o) {
  if (!(o.momentum >= 0)) throw_invalid("SGD", "momentum must not be negative; it is " + std::to_string(o.momentum));
  if (!(o.weight_decay >= 0)) throw_invalid("SGD", "weight_decay must not be negative; it is " + std::to_string(o.weight_decay));
  if (o.nesterov && o.momentum == 0) throw_invalid("SGD", "nesterov needs momentum");
  return o;
}

// A number in the dtype of the parameter, so that nothing is promoted.
array as(double value, const array& like) { return array(value, like.dtype()); }

}  // namespace

Adam::Adam(Parameters parameters, AdamOptions options, bool decoupled)
    : Optimizer(std::move(parameters), options.learning_rate, {"exp_avg", "exp_avg_sq"}, {{"correction1", 0}, {"correction2", 0}}, options.weight_decay,
                options.decays),
      options_(checked(std::move(options))), decoupled_(decoupled) {}

// c = 1 - βᵗ as c ← β c + (1 - β): no power, and no cancellation at small t.
void Adam::advance() {
  number(0) = number(0) * array(options_.beta1) + array(1 - options_.beta1);
  number(1) = number(1) * array(options_.beta2) + array(1 - options_.beta2);
}

array Adam::rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) {
  const array rate = astype(learning_rate, value.dtype()), c1 = astype(number(0), value.dtype()), c2 = astype(number(1), value.dtype());
  array p = value, g = gradient;
  if (options_.weight_decay != 0) {
    const array amount = astype(decay(index), value.dtype());
    if (decoupled_) p = p * (as(1, value) - rate * amount);
    else g = g + p * amount;
  }
  array& m = slots[0];
  array& v = slots[1];
  m = m + (g - m) * as(1 - options_.beta1, value);
  v = v * as(options_.beta2, value) + g * g * as(1 - options_.beta2, value);
  return p - rate / c1 * (m / (sqrt(v) / sqrt(c2) + as(options_.eps, value)));
}

SGD::SGD(Parameters parameters, SgdOptions options)
    : Optimizer(std::move(parameters), options.learning_rate, options.momentum != 0 ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>{},
                {}, options.weight_decay, options.decays),
      options_(checked(std::move(options))) {}

array SGD::rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) {
  array g = gradient;
  if (options_.weight_decay != 0) g = g + value * astype(decay(index), value.dtype());
  if (options_.momentum != 0) {
    const array momentum = as(options_.momentum, value);
    slots[0] = slots[0] * momentum + g;  // PyTorch's first step, b = g, is this with b = 0
    g = options_.nesterov ? g + slots[0] * momentum : slots[0];
  }
  return value - astype(learning_rate, value.dtype()) * g;
}

}  // namespace weft::optim
