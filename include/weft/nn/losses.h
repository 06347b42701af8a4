#pragma once
#include <optional>

#include "weft/array.h"

/// Losses with MLX's names, arguments, defaults and values. They compute in float32 at least and return that dtype (MLX
/// keeps bfloat16 and float16); integers count as float32. The result has the shape of the inputs, without the axis
/// where one is named, and Reduction::mean or Reduction::sum makes a scalar of it. The default is Reduction::none, or
/// Reduction::mean where the signature says so. Shapes that do not fit throw std::invalid_argument; kl_div_loss,
/// triplet_loss, hinge_loss, huber_loss, log_cosh_loss and cosine_similarity_loss broadcast their inputs together, the
/// others take equal shapes alone.
namespace weft::nn::losses {

/// What becomes of the losses of the elements or rows.
enum class Reduction { none, mean, sum };

/// Options of cross_entropy.
struct CrossEntropyOptions {
  std::optional<array> weights =
      std::nullopt;                       ///< one for each target; Reduction::mean divides by the number of targets
  int axis = -1;                          ///< of the classes
  float label_smoothing = 0;              ///< share of the target that is distributed over all classes, in [0, 1)
  Reduction reduction = Reduction::none;  ///< of the losses of the targets
};
/// Returns -log softmax(logits)[target] for logits [..., classes] and integer targets [...]. Targets with as many axes
/// as the logits are probabilities, floating or integers (one-hot), and must have the logits' shape: with z = logits -
/// max(logits) the loss is log Σ exp(z) - Σ targets · z, whether or not they sum to 1.
WEFT_API array cross_entropy(const array& logits, const array& targets, const CrossEntropyOptions& options);
WEFT_API array cross_entropy(const array& logits, const array& targets, Reduction reduction = Reduction::none);

/// Options of binary_cross_entropy.
struct BinaryCrossEntropyOptions {
  std::optional<array> weights = std::nullopt;  ///< broadcast to the inputs
  bool with_logits = true;                      ///< false: the inputs are probabilities; their logarithms stop at -100
  Reduction reduction = Reduction::mean;        ///< of the losses of the elements
};
/// Returns log(1 + exp(inputs)) - inputs · targets, or -(targets log(inputs) + (1 - targets) log(1 - inputs)) of
/// probabilities.
WEFT_API array binary_cross_entropy(const array& inputs, const array& targets,
                                    const BinaryCrossEntropyOptions& options = {});

/// Returns |predictions - targets|.
WEFT_API array l1_loss(const array& predictions, const array& targets, Reduction reduction = Reduction::mean);
/// Returns (predictions - targets)².
WEFT_API array mse_loss(const array& predictions, const array& targets, Reduction reduction = Reduction::mean);
/// Returns ½ d² / β where |d| < β, else |d| - ½ β, for d = predictions - targets. Throws std::invalid_argument unless β
/// > 0.
WEFT_API array smooth_l1_loss(const array& predictions, const array& targets, float beta = 1,
                              Reduction reduction = Reduction::mean);
/// Returns ½ d² where |d| ≤ δ, else δ (|d| - ½ δ), for d = inputs - targets. Throws std::invalid_argument unless δ > 0.
WEFT_API array huber_loss(const array& inputs, const array& targets, float delta = 1,
                          Reduction reduction = Reduction::none);
/// Returns log cosh(inputs - targets).
WEFT_API array log_cosh_loss(const array& inputs, const array& targets, Reduction reduction = Reduction::none);
/// Returns -inputs[target] along the axis, for log-probabilities and integer targets of the inputs' shape without that
/// axis.
WEFT_API array nll_loss(const array& inputs, const array& targets, int axis = -1,
                        Reduction reduction = Reduction::none);
/// Returns ½ (log max(var, eps) + (targets - inputs)² / max(var, eps)), plus ½ log 2π where `full`.
WEFT_API array gaussian_nll_loss(const array& inputs, const array& targets, const array& vars, bool full = false,
                                 float eps = 1e-6f, Reduction reduction = Reduction::mean);
/// Returns Σ exp(targets) (targets - inputs) along the axis, both log-probabilities.
WEFT_API array kl_div_loss(const array& inputs, const array& targets, int axis = -1,
                           Reduction reduction = Reduction::none);
/// Returns max(‖a - p‖ - ‖a - n‖ + margin, 0), with the p-norm (Σ |d|ᵖ + eps)^(1/p) along the axis. Throws
/// std::invalid_argument for p < 1.
WEFT_API array triplet_loss(const array& anchors, const array& positives, const array& negatives, int axis = -1,
                            int p = 2, float margin = 1, float eps = 1e-6f, Reduction reduction = Reduction::none);
/// Returns max(1 - inputs · targets, 0), targets ±1.
WEFT_API array hinge_loss(const array& inputs, const array& targets, Reduction reduction = Reduction::none);
/// Returns x1 · x2 / max(‖x1‖ ‖x2‖, eps) along the axis.
WEFT_API array cosine_similarity_loss(const array& x1, const array& x2, int axis = 1, float eps = 1e-8f,
                                      Reduction reduction = Reduction::none);
/// Returns max(0, -targets (inputs1 - inputs2) + margin), targets ±1.
WEFT_API array margin_ranking_loss(const array& inputs1, const array& inputs2, const array& targets, float margin = 0,
                                   Reduction reduction = Reduction::none);

}  // namespace weft::nn::losses
