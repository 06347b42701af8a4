#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/array.h"

namespace weft::optim {

/// Dotted names and the handles that they stand for, as nn::Module::trainable_parameters() gives them.
using Parameters = std::vector<std::pair<std::string, array*>>;

/// Which parameters decay; by default matrices and larger, not biases and norms.
using DecayPredicate = std::function<bool(const std::string& name, const array& parameter)>;
WEFT_API bool is_matrix(const std::string& name, const array& parameter);

/// Replaces parameters by better ones. It keeps the handles it is made with, so they must outlive it (modules do not move).
///
/// All arithmetic is float32 (float64 for float64 parameters); for a parameter of 16 bits the optimizer keeps a float32 master copy. Everything that changes from step to step is
/// an array: under `compile`, list `state()` beside the model's. The learning rate is set from the host between steps:
///
///     optim::AdamW optimizer(model.trainable_parameters(), {.weight_decay = 0.1});
///     optimizer.set_learning_rate(schedule(k));      // writes one number; nothing is traced again
///     optimizer.update(gradients);                   // in the order of the parameters
class WEFT_API Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One step: rebinds the parameters and the state. Throws std::invalid_argument where number or shapes do not fit.
  void update(const std::vector<array>& gradients);
  void set_learning_rate(float value);

  array learning_rate;  ///< float32 ()
  array step;           ///< int32 (): updates so far

  /// Handles of all state, in a stable order: learning_rate, step, the rule's own numbers, then each parameter's arrays.
  std::vector<array*> state();
  /// The same with names for checkpoints: "step", "exp_avg.blocks.0.attn.c_attn.weight", "master.…".
  Parameters named_state();
  /// Takes the state over from a checkpoint; throws std::invalid_argument naming what is missing, unknown or of another shape.
  void load_state(const std::unordered_map<std::string, array>& arrays);
  const Parameters& parameters() const { return parameters_; }

 protected:
  Optimizer(Parameters parameters, float rate, const std::vector<std::string>& slots, std::vector<std::pair<std::string, double>> numbers,
            double weight_decay, const DecayPredicate& decays);
  /// Called once a step, before the parameters: to move the rule's own numbers on.
  virtual void advance() {}
  /// The new value of parameter `index`; `value`, `gradient` and `slots` have one dtype, float32 at least. Rebinds `slots`. The same graph for every
  /// parameter, so that all updates can be one kernel: what differs between parameters is a number() or decay().
  virtual array rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) = 0;
  array& number(size_t i) { return numbers_[i].second; }
  /// The weight decay of the parameter, as a buffer: 0 for those that do not decay.
  const array& decay(size_t index) const { return entries_[index].decays ? decay_ : no_decay_; }

 private:
  struct Entry {
    std::vector<array> slots;
    std::optional<array> master;
    bool decays;
  };
  Parameters parameters_;
  std::vector<Entry> entries_;
  std::vector<std::string> slot_names_;
  std::vector<std::pair<std::string, array>> numbers_;
  array decay_, no_decay_;
};

struct AdamOptions {
  float learning_rate = 1e-3f;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  DecayPredicate decays = is_matrix;
};

/// Adam with bias correction (Kingma and Ba 2015), numbers as PyTorch's: p -= lr / c1 · m / (√v / √c2 + eps). Weight decay, if any, is added to the gradient.
class WEFT_API Adam : public Optimizer {
 public:
  explicit Adam(Parameters parameters, AdamOptions options = {}) : Adam(std::move(parameters), std::move(options), false) {}

 protected:
  Adam(Parameters parameters, AdamOptions options, bool decoupled);
  void advance() override;
  array rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) override;

 private:
  AdamOptions options_;
  bool decoupled_;
};

/// Adam with decoupled decay, p -= lr · weight_decay · p before the step (Loshchilov and Hutter 2019), numbers as PyTorch's.
class WEFT_API AdamW : public Adam {
 public:
  explicit AdamW(Parameters parameters, AdamOptions options = {.weight_decay = 0.01}) : Adam(std::move(parameters), std::move(options), true) {}
};

struct SgdOptions {
  float learning_rate = 1e-2f;
  double momentum = 0;
  double weight_decay = 0;  ///< added to the gradient
  bool nesterov = false;
  DecayPredicate decays = is_matrix;
};

/// p -= lr · g, or with momentum PyTorch's b = momentum · b + g, p -= lr · b (nesterov: lr · (g + momentum · b)).
class WEFT_API SGD : public Optimizer {
 public:
  explicit SGD(Parameters parameters, SgdOptions options = {});

 protected:
  array rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) override;

 private:
  SgdOptions options_;
};

/// Gradients scaled by min(1, max_norm / (norm + 1e-6)), and the norm of all of them before, as PyTorch has it.
WEFT_API std::pair<std::vector<array>, array> clip_grad_norm(const std::vector<array>& gradients, float max_norm);

/// The learning rate of a step, counted from 0.
using Schedule = std::function<float(int64_t step)>;
WEFT_API Schedule constant_schedule(float rate);
/// nanoGPT's: rate · (step + 1) / (warmup + 1) while step < warmup, then half a cosine from `rate` to `min_rate` at `decay_steps`, then min_rate.
WEFT_API Schedule cosine_schedule(float rate, float min_rate, int64_t warmup, int64_t decay_steps);

}  // namespace weft::optim
