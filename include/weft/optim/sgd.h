#pragma once
#include <utility>

#include "weft/optim/optimizer.h"

/// Rules that keep at most one array for each parameter: SGD, Lion, Muon.
namespace weft::optim {

/// Options of SGD.
struct SgdOptions {
  LearningRate learning_rate = 1e-2f;  ///< lr
  double momentum = 0;                 ///< 0: none
  double weight_decay = 0;             ///< added to the gradient
  bool nesterov = false;               ///< Nesterov's momentum
  DecayPredicate decays = every;       ///< which parameters decay
  /// Share of the gradient that is left out of the momentum, from the first step on (as in MLX; PyTorch leaves the
  /// first step whole).
  double dampening = 0;
};

/// Gradient descent p -= lr · g, or with momentum PyTorch's b = momentum · b + (1 - dampening) · g, p -= lr · b
/// (nesterov: lr · (g + momentum · b)).
class WEFT_API SGD : public RuleOptimizer {
 public:
  explicit SGD(SgdOptions options = {});
  explicit SGD(Handles parameters, SgdOptions options = {});

 protected:
  array rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) override;

 private:
  SgdOptions options_;
};

/// Options of Lion.
struct LionOptions {
  LearningRate learning_rate = 1e-4f;  ///< lr
  double beta1 = 0.9, beta2 = 0.99;    ///< shares β1 and β2 of the momentum
  double weight_decay = 0;             ///< decoupled
  DecayPredicate decays = every;       ///< which parameters decay
};

/// Lion (Chen et al. 2023): p -= lr · sign(β1 m + (1 - β1) g), m = β2 m + (1 - β2) g, numbers as MLX's.
class WEFT_API Lion : public RuleOptimizer {
 public:
  explicit Lion(LionOptions options = {});
  explicit Lion(Handles parameters, LionOptions options = {});

 protected:
  array rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) override;

 private:
  LionOptions options_;
};

/// Options of Muon.
struct MuonOptions {
  LearningRate learning_rate = 0.02f;  ///< lr
  double momentum = 0.95;              ///< of the gradients
  double weight_decay = 0.01;          ///< added to the gradient
  bool nesterov = true;                ///< Nesterov's momentum
  int ns_steps = 5;                    ///< Newton–Schulz iterations
  DecayPredicate decays = every;       ///< which parameters decay
};

/// Momentum whose matrices are orthogonalised by Newton–Schulz iterations (Jordan et al. 2024), numbers as MLX's: axes
/// after the first count as columns, the update of [..., m, n] is scaled by √max(1, m / n), and vectors take the
/// momentum as it is.
class WEFT_API Muon : public RuleOptimizer {
 public:
  explicit Muon(MuonOptions options = {});
  explicit Muon(Handles parameters, MuonOptions options = {});

 protected:
  array rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) override;

 private:
  MuonOptions options_;
};

}  // namespace weft::optim
