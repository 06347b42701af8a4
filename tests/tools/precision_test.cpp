// Training in 16 bits against float32: what the format's unit roundoff explains, and no more.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "temporary_folder.h"
#include "tools/training.h"
#include "tools/weft/train/trainer.h"
#include "weft/ops.h"
#include "weft/random.h"

using namespace weft;
using namespace weft::tool;
using namespace weft::tool::test;

namespace {

constexpr int steps = 30, seeds = 6, warmup = 2;
constexpr float rate = 1e-3f, last_rate = 1e-4f;

struct Mode {
  const char *dtype, *weights, *residual;
  bool by_chance() const { return std::string_view(weights) == "stochastic"; }
  /// The unit roundoff: half the distance of two numbers around 1.
  double unit() const { return std::string_view(dtype) == "f16" ? 0x1p-11 : 0x1p-8; }
};
constexpr Mode float_mode{"f32", "f32", "f32"};

/// The losses of all steps, and the parameters before the first and after the last one, one after the other.
struct Run {
  std::vector<double> losses;
  std::vector<float> before, after;
};

std::vector<float> parameters_of(const Checkpoint& checkpoint) {
  const auto model = checkpoint.model();
  const std::map<std::string, array> sorted(model.begin(), model.end());
  std::vector<float> all;
  for (const auto& [name, value] : sorted) {
    const auto part = astype(value, float32).to_vector<float>();
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

/// With `error` > 0, every weight is multiplied by 1 + e before every step, e uniform in [-error, error]: what storing
/// it in a format of that unit roundoff does. The learning rate is one at which such errors grow no faster than their
/// number: at ten times this rate the course of a run is chaotic, and any two orders of a sum in float32 drift as far
/// apart as two formats do.
Run run(const Mode& mode, int seed, double error = 0) {
  const TemporaryFolder folder;
  TrainOptions o = tiny(folder.path);
  o.dtype = mode.dtype, o.weights = mode.weights, o.residual = mode.residual, o.seed = seed;
  o.width = 32, o.batch = 8, o.steps = steps, o.warmup = warmup, o.lr = rate, o.min_lr = last_rate,
  o.eval_every = o.checkpoint_every = 1000;
  Trainer trainer(o, real_text());
  array key = random::key(static_cast<uint64_t>(seed));
  const auto disturb = [&] {
    for (auto& [name, weight] : trainer.model().parameters()) {
      if (error == 0) return;
      const auto [next, now] = random::split(key);
      key = next;
      *weight = *weight * (1.0f + static_cast<float>(error) *
                                      random::uniform(array(-1.0f), array(1.0f), weight->shape(), float32, now));
      weight->eval();
    }
  };
  Run result;
  Trainer::Hooks hooks;
  hooks.report = [&](const StepReport& r) {
    result.losses.push_back(r.loss);
    disturb();
  };
  trainer.save_checkpoint();
  result.before = parameters_of(load_checkpoint(folder.path));
  disturb();
  trainer.run(hooks);
  const Checkpoint end = load_checkpoint(folder.path);
  result.after = parameters_of(end);
  // At this rate no gradient reaches 1, so that none overflows at the scale that runs in float16 begin with: no step is
  // left out.
  if (const auto state = end.optimizer(); state.contains("loss_scale.skipped"))
    CHECK(state.at("loss_scale.skipped").item<int>() == 0);
  return result;
}

/// |loss - loss of the other| of a step, on average.
double apart(const Run& a, const Run& b) {
  double sum = 0;
  for (size_t k = 0; k < steps; ++k) sum += std::abs(a.losses[k] - b.losses[k]);
  return sum / steps;
}

/// What a run in 16 bits did to its parameters (d) against what float32 did (D).
struct Displacement {
  double along = 0;         // <d, D> / <D, D>: 1 where updates add up to what they should
  double off = 0;           // |d - D| / |D|
  double chance = 0;        // of rounding by chance alone, the standard deviation of d: of `off`
  double chance_along = 0;  // and of `along`
};

/// The variance of a number of this size after all steps, where chance decides: an update of f times the distance of
/// two neighbours lands on the farther one with probability f, which is a variance of f (1 - f), at most f and at most
/// a quarter, times the square of the distance. A step of Adam is as long as the rate, at most.
double chance_of(double largest, double unit) {
  static const optim::Schedule schedule = optim::cosine_schedule(rate, last_rate, warmup, steps);
  const double distance = largest > 0 ? 2 * unit * std::exp2(std::floor(std::log2(largest))) : 0;
  double variance = 0;
  for (int step = 0; step < steps; ++step)
    variance += distance * std::min(distance / 4, static_cast<double>(schedule(step)));
  return variance;
}

Displacement displacement(const Run& low, const Run& full, const Mode& mode) {
  double product = 0, square = 0, apart = 0, noise = 0, noise_along = 0;
  for (size_t k = 0; k < full.after.size(); ++k) {
    const double d = static_cast<double>(low.after[k]) - static_cast<double>(low.before[k]);
    const double wanted = static_cast<double>(full.after[k]) - static_cast<double>(full.before[k]);
    product += d * wanted, square += wanted * wanted, apart += (d - wanted) * (d - wanted);
    if (!mode.by_chance()) continue;
    const double variance =
        chance_of(static_cast<double>(std::max(std::abs(full.after[k]), std::abs(full.before[k]))), mode.unit());
    noise += variance, noise_along += variance * wanted * wanted;
  }
  return {product / square, std::sqrt(apart / square), std::sqrt(noise / square), std::sqrt(noise_along) / square};
}

}  // namespace

// Numbers in a format of unit roundoff u have relative errors up to u where they are rounded to nearest, and up to 2u
// where chance decides.
//
// Losses. By the triangle inequality a run in that format is no further from float32 than two float32 runs are whose
// weights get random errors before every step: one with the errors of its weights as they are stored or read (u, or 2u
// by chance), one with those of everything that flows between kernels (u). Their distance from the undisturbed run is
// measured here, on this machine, for the same seeds: how much a loss reacts to an error is a property of the model and
// not of a format.
//
// Parameters. A gradient comes through some 36 roundings: 18 numbers lie on the longest path of a forward pass of one
// layer (embedding; norm, product, scores, softmax, context, product and sum; norm, product, gelu, product and sum;
// norm, logits; and three operands that are weights), and as many on the way back. Independent errors add up to λ √36
// u, where λ = 3 is exceeded in two cases of a hundred at most (Higham & Mary 2019, theorem 2.4), in a step of Adam as
// in the gradient that it is made of. They have no preferred direction, so that their mean over the thousands of
// parameters is below a single one. Rounding by chance adds a variance that is known.
TEST_CASE("a run in 16 bits is as far from float32 as its rounding explains") {
  const Mode modes[] = {{"bf16", "f32", "f32"},          {"bf16", "f32", "dtype"},   {"bf16", "master", "dtype"},
                        {"bf16", "stochastic", "dtype"}, {"f16", "master", "dtype"}, {"f16", "f32", "f32"}};
  std::map<double, double> explained;  // by the error of the weights: the mean of `apart`
  std::vector<Run> full;
  for (int seed = 0; seed < seeds; ++seed) {
    full.push_back(run(float_mode, seed));
    for (const double error : {0x1p-7, 0x1p-8, 0x1p-11})
      explained[error] += apart(run(float_mode, seed, error), full.back()) / seeds;
  }
  for (const Mode& mode : modes) {
    CAPTURE(mode.dtype);
    CAPTURE(mode.weights);
    CAPTURE(mode.residual);
    const double u = mode.unit();
    double losses = 0;
    for (int seed = 0; seed < seeds; ++seed) {
      CAPTURE(seed);
      const Run low = run(mode, seed);
      losses += apart(low, full[static_cast<size_t>(seed)]) / seeds;
      const Displacement d = displacement(low, full[static_cast<size_t>(seed)], mode);
      CHECK(d.off > 0);
      CHECK(d.off < std::hypot(3 * 6 * u, d.chance));
      CHECK(std::abs(d.along - 1) < u + 5 * d.chance_along);
    }
    CHECK(losses < explained.at(mode.by_chance() ? 2 * u : u) + explained.at(u));
  }
}
