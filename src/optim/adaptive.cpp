// Rules that scale each element by its past gradients. Every parameter of an optimizer gets the same graph; numbers
// that differ are in buffers.
#include "weft/optim/adaptive.h"
#include "optim/check.h"
#include "weft/ops.h"

namespace weft::optim {

namespace {

template <class Options>
Options checked_adam(const char* op, Options o) {
  check_share(op, "betas", o.beta1);
  check_share(op, "betas", o.beta2);
  check_not_negative(op, "eps", o.eps);
  check_not_negative(op, "weight_decay", o.weight_decay);
  return o;
}

RmspropOptions checked_adaptive(RmspropOptions o) {
  check_share("RMSprop", "alpha", o.alpha);
  check_not_negative("RMSprop", "eps", o.eps);
  check_not_negative("RMSprop", "momentum", o.momentum);
  check_not_negative("RMSprop", "weight_decay", o.weight_decay);
  return o;
}

AdagradOptions checked_adaptive(AdagradOptions o) {
  check_not_negative("Adagrad", "eps", o.eps);
  check_not_negative("Adagrad", "weight_decay", o.weight_decay);
  check_not_negative("Adagrad", "initial_accumulator", o.initial_accumulator);
  return o;
}

AdadeltaOptions checked_adaptive(AdadeltaOptions o) {
  check_share("AdaDelta", "rho", o.rho);
  check_not_negative("AdaDelta", "eps", o.eps);
  check_not_negative("AdaDelta", "weight_decay", o.weight_decay);
  return o;
}

// Updates c = 1 - βᵗ by c ← β c + (1 - β): no power, and no cancellation at small t.
void advance_correction(array& c, double beta) { c = c * array(beta) + array(1 - beta); }

/// Returns c after the steps in `step`.
array correction_after(const array& step, double beta) {
  return astype(array(1.0, float64) - power(array(beta, float64), astype(step, float64)), float32);
}

}  // namespace

Adam::Adam(AdamOptions options, bool decoupled)
    : RuleOptimizer(options.learning_rate, alike({{"exp_avg", "m"}, {"exp_avg_sq", "v"}}),
                    {{"correction1", 0}, {"correction2", 0}}, options.weight_decay, options.decays),
      options_(checked_adam("Adam", std::move(options))), decoupled_(decoupled) {}

Adam::Adam(Handles parameters, AdamOptions options) : Adam(std::move(options)) { take(std::move(parameters)); }

AdamW::AdamW(AdamWOptions o)
    : Adam({o.learning_rate, o.beta1, o.beta2, o.eps, o.weight_decay, std::move(o.decays), o.bias_correction}, true) {}

AdamW::AdamW(Handles parameters, AdamWOptions options) : AdamW(std::move(options)) { take(std::move(parameters)); }

void Adam::advance() {
  advance_correction(number(0), options_.beta1);
  advance_correction(number(1), options_.beta2);
}

void Adam::restore() {
  number(0) = correction_after(step, options_.beta1);
  number(1) = correction_after(step, options_.beta2);
}

array Adam::rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) {
  array p = value, g = gradient;
  if (decoupled_ && options_.weight_decay != 0)
    p = p * (as(1, value) - rate(value) * astype(decay(index), value.dtype()));
  else g = decayed(index, value, gradient, options_.weight_decay);
  array& m = slots[0];
  array& v = slots[1];
  m = m + (g - m) * as(1 - options_.beta1, value);
  v = v * as(options_.beta2, value) + g * g * as(1 - options_.beta2, value);
  if (!options_.bias_correction) return p - rate(value) * (m / (sqrt(v) + as(options_.eps, value)));
  const array c1 = astype(number(0), value.dtype()), c2 = astype(number(1), value.dtype());
  return p - rate(value) / c1 * (m / (sqrt(v) / sqrt(c2) + as(options_.eps, value)));
}

Lamb::Lamb(LambOptions options)
    : RuleOptimizer(options.learning_rate, alike({{"exp_avg", "m"}, {"exp_avg_sq", "v"}}),
                    {{"correction1", 0}, {"correction2", 0}}, options.weight_decay, options.decays),
      options_(checked_adam("Lamb", std::move(options))) {}

Lamb::Lamb(Handles parameters, LambOptions options) : Lamb(std::move(options)) { take(std::move(parameters)); }

void Lamb::advance() {
  advance_correction(number(0), options_.beta1);
  advance_correction(number(1), options_.beta2);
}

void Lamb::restore() {
  number(0) = correction_after(step, options_.beta1);
  number(1) = correction_after(step, options_.beta2);
}

array Lamb::rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) {
  slots[0] = average(options_.beta1, slots[0], gradient);
  slots[1] = average(options_.beta2, slots[1], gradient * gradient);
  const array c1 = astype(number(0), value.dtype()), c2 = astype(number(1), value.dtype());
  const array direction = slots[0] / c1 / (sqrt(slots[1] / c2) + as(options_.eps, value));
  const array u = decayed(index, value, direction, options_.weight_decay);
  const array size = sqrt(sum(square(value))), step_size = sqrt(sum(square(u))), zero = as(0, value);
  const array ratio = where(logical_and(size > zero, step_size > zero), size / step_size, as(1, value));
  return value - rate(value) * ratio * u;
}

Adamax::Adamax(AdamaxOptions options)
    : RuleOptimizer(options.learning_rate, alike({{"exp_avg", "m"}, {"exp_inf", "v"}}), {{"correction1", 0}},
                    options.weight_decay, options.decays),
      options_(checked_adam("Adamax", std::move(options))) {}

Adamax::Adamax(Handles parameters, AdamaxOptions options) : Adamax(std::move(options)) { take(std::move(parameters)); }

void Adamax::advance() { advance_correction(number(0), options_.beta1); }
void Adamax::restore() { number(0) = correction_after(step, options_.beta1); }

array Adamax::rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) {
  const array g = decayed(index, value, gradient, options_.weight_decay);
  slots[0] = average(options_.beta1, slots[0], g);
  slots[1] = maximum(slots[1] * as(options_.beta2, value), abs(g));
  const array r = options_.bias_correction ? rate(value) / astype(number(0), value.dtype()) : rate(value);
  return value - r * (slots[0] / (slots[1] + as(options_.eps, value)));
}

RuleOptimizer::Slots RMSprop::rmsprop_slots(const RmspropOptions& options) {
  std::vector<SlotName> names{{"square_avg", "v"}};
  if (options.centered) names.push_back({"grad_avg", "grad_avg"});
  if (options.momentum != 0) names.push_back({"momentum_buffer", "momentum"});
  return alike(std::move(names));
}

RMSprop::RMSprop(RmspropOptions options)
    : RuleOptimizer(options.learning_rate, rmsprop_slots(options), {}, options.weight_decay, options.decays),
      options_(checked_adaptive(std::move(options))) {}

RMSprop::RMSprop(Handles parameters, RmspropOptions options) : RMSprop(std::move(options)) {
  take(std::move(parameters));
}

array RMSprop::rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) {
  const array g = decayed(index, value, gradient, options_.weight_decay);
  slots[0] = average(options_.alpha, slots[0], g * g);
  array second = slots[0];
  if (options_.centered) {
    slots[1] = average(options_.alpha, slots[1], g);
    second = second - slots[1] * slots[1];
  }
  array step_taken = g / (sqrt(second) + as(options_.eps, value));
  if (options_.momentum != 0) step_taken = slots.back() = slots.back() * as(options_.momentum, value) + step_taken;
  return value - rate(value) * step_taken;
}

Adagrad::Adagrad(AdagradOptions options)
    : RuleOptimizer(options.learning_rate, alike({{"sum", "v"}}, options.initial_accumulator), {}, options.weight_decay,
                    options.decays),
      options_(checked_adaptive(std::move(options))) {}

Adagrad::Adagrad(Handles parameters, AdagradOptions options) : Adagrad(std::move(options)) {
  take(std::move(parameters));
}

array Adagrad::rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) {
  const array g = decayed(index, value, gradient, options_.weight_decay);
  slots[0] = slots[0] + g * g;
  return value - rate(value) * (g / (sqrt(slots[0]) + as(options_.eps, value)));
}

AdaDelta::AdaDelta(AdadeltaOptions options)
    : RuleOptimizer(options.learning_rate, alike({{"square_avg", "v"}, {"acc_delta", "u"}}), {}, options.weight_decay,
                    options.decays),
      options_(checked_adaptive(std::move(options))) {}

AdaDelta::AdaDelta(Handles parameters, AdadeltaOptions options) : AdaDelta(std::move(options)) {
  take(std::move(parameters));
}

array AdaDelta::rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) {
  const array g = decayed(index, value, gradient, options_.weight_decay), eps = as(options_.eps, value);
  slots[0] = average(options_.rho, slots[0], g * g);
  const array delta = sqrt(slots[1] + eps) / sqrt(slots[0] + eps) * g;
  slots[1] = average(options_.rho, slots[1], delta * delta);
  return value - rate(value) * delta;
}

}  // namespace weft::optim
