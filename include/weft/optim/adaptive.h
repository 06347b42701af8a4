#pragma once
#include <optional>
#include <utility>

#include "weft/optim/optimizer.h"

/// Rules that scale each element by its earlier gradients g: Adam, AdamW, LAMB, Adamax, RMSprop, Adagrad, AdaDelta,
/// Adafactor. Options have MLX's defaults; what MLX has no option for (weight_decay of most, centered, …) is off by
/// default.
namespace weft::optim {

/// Options of Adam.
struct AdamOptions {
  LearningRate learning_rate = 1e-3f;  ///< lr
  double beta1 = 0.9, beta2 = 0.999;   ///< decay rates β1 and β2 of the moments
  double eps = 1e-8;                   ///< added to √v
  double weight_decay = 0;             ///< added to the gradient
  DecayPredicate decays = every;       ///< which parameters decay
  bool bias_correction = false;        ///< true is PyTorch's Adam
};

/// Adam (Kingma and Ba 2015): m = β1 m + (1 - β1) g, v = β2 v + (1 - β2) g², p -= lr · m / (√v + eps), numbers as
/// MLX's. With bias correction p -= lr / c1 · m / (√v / √c2 + eps), c = 1 - βᵗ, numbers as PyTorch's and MLX's.
class WEFT_API Adam : public RuleOptimizer {
 public:
  explicit Adam(AdamOptions options = {}) : Adam(std::move(options), false) {}
  explicit Adam(Handles parameters, AdamOptions options = {});

 protected:
  Adam(AdamOptions options, bool decoupled);
  void advance() override;
  void restore() override;
  array rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) override;

 private:
  AdamOptions options_;
  bool decoupled_;
};

/// Options of AdamW.
struct AdamWOptions {
  LearningRate learning_rate = 1e-3f;  ///< lr
  double beta1 = 0.9, beta2 = 0.999;   ///< decay rates β1 and β2 of the moments
  double eps = 1e-8;                   ///< added to √v
  double weight_decay = 0.01;          ///< decoupled
  DecayPredicate decays = every;       ///< which parameters decay
  bool bias_correction = false;        ///< true is PyTorch's AdamW
};

/// Adam with decoupled decay, p -= lr · weight_decay · p before the step (Loshchilov and Hutter 2019).
class WEFT_API AdamW : public Adam {
 public:
  explicit AdamW(AdamWOptions options = {});
  explicit AdamW(Handles parameters, AdamWOptions options = {});
};

/// Options of Lamb.
struct LambOptions {
  LearningRate learning_rate = 1e-3f;  ///< lr
  double beta1 = 0.9, beta2 = 0.999;   ///< decay rates β1 and β2 of the moments
  double eps = 1e-6;                   ///< added to √v
  double weight_decay = 0.01;          ///< added to the direction
  DecayPredicate decays = every;       ///< which parameters decay
};

/// LAMB, for large batches (You et al. 2020): Adam's direction u = (m / c1) / (√(v / c2) + eps) + weight_decay · p, c =
/// 1 - βᵗ, with a rate for each parameter by the ratio of norms: p -= lr · |p| / |u| · u (the ratio is 1 where a norm
/// is 0).
class WEFT_API Lamb : public RuleOptimizer {
 public:
  explicit Lamb(LambOptions options = {});
  explicit Lamb(Handles parameters, LambOptions options = {});

 protected:
  void advance() override;
  void restore() override;
  array rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) override;

 private:
  LambOptions options_;
};

/// Options of Adamax.
struct AdamaxOptions {
  LearningRate learning_rate = 2e-3f;  ///< lr
  double beta1 = 0.9, beta2 = 0.999;   ///< decay rates β1 and β2
  double eps = 1e-8;                   ///< added to u
  double weight_decay = 0;             ///< added to the gradient
  DecayPredicate decays = every;       ///< which parameters decay
  bool bias_correction = false;        ///< lr / c1 in place of lr, c1 = 1 - β1ᵗ, as PyTorch
};

/// Adam with the largest gradient in place of the second moment (Kingma and Ba 2015, §7.1), numbers as MLX's: u =
/// max(β2 u, |g|), p -= lr · m / (u + eps).
class WEFT_API Adamax : public RuleOptimizer {
 public:
  explicit Adamax(AdamaxOptions options = {});
  explicit Adamax(Handles parameters, AdamaxOptions options = {});

 protected:
  void advance() override;
  void restore() override;
  array rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) override;

 private:
  AdamaxOptions options_;
};

/// Options of RMSprop.
struct RmspropOptions {
  LearningRate learning_rate = 1e-2f;  ///< lr
  double alpha = 0.99;                 ///< decay rate α of the second moment
  double eps = 1e-8;                   ///< added to √v
  double weight_decay = 0;             ///< added to the gradient
  double momentum = 0;                 ///< of the scaled gradients; 0: none
  bool centered = false;               ///< the variance of the gradient in place of its second moment
  DecayPredicate decays = every;       ///< which parameters decay
};

/// RMSprop (Tieleman and Hinton 2012): v = α v + (1 - α) g², p -= lr · g / (√v + eps), numbers as PyTorch's and MLX's.
class WEFT_API RMSprop : public RuleOptimizer {
 public:
  explicit RMSprop(RmspropOptions options = {});
  explicit RMSprop(Handles parameters, RmspropOptions options = {});

 protected:
  array rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) override;

 private:
  static Slots rmsprop_slots(const RmspropOptions& options);
  RmspropOptions options_;
};

/// Options of Adagrad.
struct AdagradOptions {
  LearningRate learning_rate = 1e-2f;  ///< lr
  double eps = 1e-8;                   ///< added to √v
  double weight_decay = 0;             ///< added to the gradient
  double initial_accumulator = 0;      ///< v before the first step
  DecayPredicate decays = every;       ///< which parameters decay
};

/// Adagrad (Duchi et al. 2011): v += g², p -= lr · g / (√v + eps), numbers as PyTorch's and MLX's.
class WEFT_API Adagrad : public RuleOptimizer {
 public:
  explicit Adagrad(AdagradOptions options = {});
  explicit Adagrad(Handles parameters, AdagradOptions options = {});

 protected:
  array rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) override;

 private:
  AdagradOptions options_;
};

/// Options of AdaDelta.
struct AdadeltaOptions {
  LearningRate learning_rate = 1;  ///< lr
  double rho = 0.9;                ///< decay rate ρ of both means
  double eps = 1e-6;               ///< added under both roots
  double weight_decay = 0;         ///< added to the gradient
  DecayPredicate decays = every;   ///< which parameters decay
};

/// AdaDelta (Zeiler 2012): v = ρ v + (1 - ρ) g², d = √(u + eps) / √(v + eps) · g, u = ρ u + (1 - ρ) d², p -= lr · d,
/// numbers as PyTorch's and MLX's.
class WEFT_API AdaDelta : public RuleOptimizer {
 public:
  explicit AdaDelta(AdadeltaOptions options = {});
  explicit AdaDelta(Handles parameters, AdadeltaOptions options = {});

 protected:
  array rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) override;

 private:
  AdadeltaOptions options_;
};

/// Options of Adafactor.
struct AdafactorOptions {
  std::optional<LearningRate> learning_rate = std::nullopt;  ///< needed where relative_step is false
  double eps1 = 1e-30, eps2 = 1e-3;            ///< added to the squared gradient; the smallest scale of a parameter
  double clip_threshold = 1;                   ///< of the root mean square of an update
  double decay_rate = -0.8;                    ///< β2 = 1 - step^decay_rate
  std::optional<double> beta1 = std::nullopt;  ///< momentum, where given
  double weight_decay = 0;                     ///< decoupled
  bool scale_parameter = true;                 ///< rates are relative to the parameter's root mean square
  /// The rate is min(10⁻², 1 / √step), with warmup_init min(10⁻⁶ · step, 1 / √step), whatever learning_rate is.
  bool relative_step = true;
  bool warmup_init = false;       ///< see relative_step
  DecayPredicate decays = every;  ///< which parameters decay
};

/// Adafactor (Shazeer and Stern 2018): second moments of matrices as the product of a row and a column, numbers as
/// MLX's.
class WEFT_API Adafactor : public RuleOptimizer {
 public:
  explicit Adafactor(AdafactorOptions options = {});
  explicit Adafactor(Handles parameters, AdafactorOptions options = {});

 protected:
  void advance() override;
  array rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) override;

 private:
  array rate_of_step(const array& value) const;
  AdafactorOptions options_;
};

}  // namespace weft::optim
