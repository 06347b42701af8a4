// Rules with one array for each parameter: SGD, Lion, Muon.
#include "weft/optim/sgd.h"

#include <cmath>

#include "optim/check.h"
#include "weft/ops.h"

namespace weft::optim {

namespace {

SgdOptions checked(SgdOptions o) {
  check_not_negative("SGD", "momentum", o.momentum);
  check_not_negative("SGD", "weight_decay", o.weight_decay);
  if (o.nesterov && (o.momentum == 0 || o.dampening != 0))
    throw_invalid("SGD", "nesterov needs momentum, and no dampening");
  return o;
}

LionOptions checked(LionOptions o) {
  check_share("Lion", "betas", o.beta1);
  check_share("Lion", "betas", o.beta2);
  check_not_negative("Lion", "weight_decay", o.weight_decay);
  return o;
}

MuonOptions checked(MuonOptions o) {
  check_share("Muon", "momentum", o.momentum);
  check_not_negative("Muon", "weight_decay", o.weight_decay);
  if (o.ns_steps < 1) throw_invalid("Muon", "ns_steps must be at least 1; it is " + std::to_string(o.ns_steps));
  return o;
}

// Moves the singular values of x towards 1: x ← a x + (b A + c A²) x with A = x xᵀ, the quintic of Jordan et al.
// (2024).
array orthogonalised(const array& matrix, int steps) {
  const bool tall = matrix.shape(0).bound() > matrix.shape(1).bound();
  array x = tall ? transpose(matrix) : matrix;
  x = x / (sqrt(sum(square(x))) + as(1e-7, x));
  for (int k = 0; k < steps; ++k) {
    const array a = matmul(x, transpose(x));
    const array b = a * as(-4.7750, x) + matmul(a, a) * as(2.0315, x);
    x = x * as(3.4445, x) + matmul(b, x);
  }
  return tall ? transpose(x) : x;
}

}  // namespace

SGD::SGD(SgdOptions options)
    : RuleOptimizer(options.learning_rate,
                    options.momentum != 0 ? alike({{"momentum_buffer", "v"}}) : alike(std::vector<SlotName>{}), {},
                    options.weight_decay, options.decays),
      options_(checked(std::move(options))) {}

SGD::SGD(Handles parameters, SgdOptions options) : SGD(std::move(options)) { take(std::move(parameters)); }

array SGD::rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) {
  array g = decayed(index, value, gradient, options_.weight_decay);
  if (options_.momentum != 0) {
    const array momentum = as(options_.momentum, value);
    const array fresh = options_.dampening != 0 ? g * as(1 - options_.dampening, value) : g;
    slots[0] = slots[0] * momentum + fresh;  // PyTorch's first step, b = g, is this with b = 0
    g = options_.nesterov ? g + slots[0] * momentum : slots[0];
  }
  return value - rate(value) * g;
}

Lion::Lion(LionOptions options)
    : RuleOptimizer(options.learning_rate, alike({{"exp_avg", "m"}}), {}, options.weight_decay, options.decays),
      options_(checked(std::move(options))) {}

Lion::Lion(Handles parameters, LionOptions options) : Lion(std::move(options)) { take(std::move(parameters)); }

array Lion::rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) {
  const array direction = sign(average(options_.beta1, slots[0], gradient));
  slots[0] = average(options_.beta2, slots[0], gradient);
  const array kept =
      options_.weight_decay != 0 ? value * (as(1, value) - rate(value) * astype(decay(index), value.dtype())) : value;
  return kept - rate(value) * direction;
}

Muon::Muon(MuonOptions options)
    : RuleOptimizer(options.learning_rate, alike({{"momentum_buffer", "v"}}), {}, options.weight_decay, options.decays),
      options_(checked(std::move(options))) {}

Muon::Muon(Handles parameters, MuonOptions options) : Muon(std::move(options)) { take(std::move(parameters)); }

array Muon::rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) {
  const array g = decayed(index, value, gradient, options_.weight_decay);
  slots[0] = average(options_.momentum, slots[0], g);
  const array direction = options_.nesterov ? average(options_.momentum, slots[0], g) : slots[0];
  if (value.ndim() < 2) return value - rate(value) * direction;
  const array matrix = reshape(direction, {value.shape(0), -1});
  // MLX's scale depends on the last two axes, also where more axes were orthogonalised.
  const double rows = static_cast<double>(value.shape(-2).bound()),
               columns = static_cast<double>(value.shape(-1).bound());
  const double scale = std::sqrt(std::max(1.0, rows / columns));
  return value - rate(value) * as(scale, value) * reshape(orthogonalised(matrix, options_.ns_steps), value.shape());
}

}  // namespace weft::optim
