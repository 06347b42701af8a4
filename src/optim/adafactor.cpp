// Adafactor: the second moments of a matrix as the outer product of those of its rows and its columns.
#include "optim/check.h"
#include "weft/ops.h"
#include "weft/optim/adaptive.h"

namespace weft::optim {

namespace {

AdafactorOptions checked_adafactor(AdafactorOptions o) {
  check_not_negative("Adafactor", "eps1", o.eps1);
  check_not_negative("Adafactor", "eps2", o.eps2);
  check_not_negative("Adafactor", "weight_decay", o.weight_decay);
  if (o.beta1) check_share("Adafactor", "beta1", *o.beta1);
  if (!(o.clip_threshold > 0))
    throw_invalid("Adafactor", "clip_threshold must be positive; it is " + std::to_string(o.clip_threshold));
  if (!o.learning_rate && !o.relative_step)
    throw_invalid("Adafactor", "without relative_step a learning_rate is needed");
  return o;
}

array root_mean_square(const array& x) { return sqrt(mean(square(x))); }

}  // namespace

Adafactor::Adafactor(AdafactorOptions options)
    : RuleOptimizer(
          options.learning_rate.value_or(0.0f),
          [momentum = options.beta1.has_value()](const Shape& shape) {
            const auto named = [](const char* name) { return SlotName{name, name}; };
            std::vector<Slot> slots;
            if (shape.size() >= 2) {
              Shape row(shape.begin(), shape.end() - 1), column(shape.begin(), shape.end() - 2);
              column.push_back(shape.back());
              slots = {{named("exp_avg_sq_row"), row}, {named("exp_avg_sq_col"), column}};
            } else {
              slots = {{named("exp_avg_sq"), shape}};
            }
            if (momentum) slots.push_back({named("exp_avg"), shape});
            return slots;
          },
          {{"beta2", 0}}, options.weight_decay, options.decays),
      options_(checked_adafactor(std::move(options))) {}

Adafactor::Adafactor(Handles parameters, AdafactorOptions options) : Adafactor(std::move(options)) {
  take(std::move(parameters));
}

void Adafactor::advance() { number(0) = array(1.0f) - power(astype(step, float32), array(options_.decay_rate)); }

/// Returns the rate of this step, before it is scaled by a parameter.
array Adafactor::rate_of_step(const array& value) const {
  if (!options_.relative_step) return rate(value);
  const array count = astype(step, float32);
  const array most = options_.warmup_init ? count * array(1e-6f) : array(1e-2f);
  return astype(minimum(most, rsqrt(count)), value.dtype());
}

array Adafactor::rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) {
  array r = rate_of_step(value);
  if (options_.scale_parameter) r = r * maximum(as(options_.eps2, value), root_mean_square(value));
  const array beta2 = astype(number(0), value.dtype()), rest = as(1, value) - beta2;
  const array squares = square(gradient) + as(options_.eps1, value);
  array change = gradient;
  if (value.ndim() >= 2) {
    array& row = slots[0];
    array& column = slots[1];
    row = beta2 * row + rest * mean(squares, -1);
    column = beta2 * column + rest * mean(squares, -2);
    change = change * expand_dims(rsqrt(row / mean(row, -1, true)), -1) * expand_dims(rsqrt(column), -2);
  } else {
    slots[0] = beta2 * slots[0] + rest * squares;
    change = change * rsqrt(slots[0]);
  }
  change = r * (change / maximum(as(1, value), root_mean_square(change) / as(options_.clip_threshold, value)));
  if (options_.beta1) change = slots.back() = average(*options_.beta1, slots.back(), change);
  const array kept = options_.weight_decay != 0 ? value - value * (astype(decay(index), value.dtype()) * r) : value;
  return kept - change;
}

}  // namespace weft::optim
