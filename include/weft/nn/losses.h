#pragma once
#include <optional>

#include "weft/array.h"

/// Losses with MLX's names and arguments, reduced to their mean unless asked otherwise. All compute in float32 at least. Shapes that do not match throw
/// std::invalid_argument.
namespace weft::nn::losses {

enum class Reduction { none, mean, sum };

/// -log softmax(logits)[target] for logits [..., classes] and integer targets [...], in float32.
WEFT_API array cross_entropy(const array& logits, const array& targets, Reduction reduction = Reduction::mean);

struct CrossEntropyOptions {
  std::optional<array> weights = std::nullopt;  ///< one for each target
  int axis = -1;                                ///< of the classes
  float label_smoothing = 0;                    ///< share of the target that is spread over all classes
  Reduction reduction = Reduction::mean;
};
/// The same along any axis; targets are integers, or probabilities with the shape of the logits.
WEFT_API array cross_entropy(const array& logits, const array& targets, const CrossEntropyOptions& options);

struct BinaryCrossEntropyOptions {
  std::optional<array> weights = std::nullopt;  ///< broadcast to the inputs
  bool with_logits = true;                      ///< false: the inputs are probabilities; their logarithms stop at -100
  Reduction reduction = Reduction::mean;
};
WEFT_API array binary_cross_entropy(const array& inputs, const array& targets, const BinaryCrossEntropyOptions& options = {});

WEFT_API array l1_loss(const array& predictions, const array& targets, Reduction reduction = Reduction::mean);
WEFT_API array mse_loss(const array& predictions, const array& targets, Reduction reduction = Reduction::mean);
/// ½ d² / β where |d| < β, else |d| - ½ β.
WEFT_API array smooth_l1_loss(const array& predictions, const array& targets, float beta = 1, Reduction reduction = Reduction::mean);
/// ½ d² where |d| ≤ δ, else δ (|d| - ½ δ).
WEFT_API array huber_loss(const array& inputs, const array& targets, float delta = 1, Reduction reduction = Reduction::mean);
/// log cosh(inputs - targets).
WEFT_API array log_cosh_loss(const array& inputs, const array& targets, Reduction reduction = Reduction::mean);
/// -inputs[target] along the axis, for log-probabilities and integer targets.
WEFT_API array nll_loss(const array& inputs, const array& targets, int axis = -1, Reduction reduction = Reduction::mean);
/// ½ (log max(var, eps) + (targets - inputs)² / max(var, eps)), with `full` + ½ log 2π.
WEFT_API array gaussian_nll_loss(const array& inputs, const array& targets, const array& vars, bool full = false, float eps = 1e-6f,
                                 Reduction reduction = Reduction::mean);
/// Σ exp(targets) (targets - inputs) along the axis, both log-probabilities.
WEFT_API array kl_div_loss(const array& inputs, const array& targets, int axis = -1, Reduction reduction = Reduction::mean);
/// max(‖a - p‖ - ‖a - n‖ + margin, 0), with the p-norm (Σ |d|ᵖ + eps)^(1/p) along the axis.
WEFT_API array triplet_loss(const array& anchors, const array& positives, const array& negatives, int axis = -1, int p = 2, float margin = 1,
                            float eps = 1e-6f, Reduction reduction = Reduction::mean);
/// max(1 - inputs · targets, 0), targets ±1.
WEFT_API array hinge_loss(const array& inputs, const array& targets, Reduction reduction = Reduction::mean);
/// x1 · x2 / max(‖x1‖ ‖x2‖, eps) along the axis.
WEFT_API array cosine_similarity_loss(const array& x1, const array& x2, int axis = 1, float eps = 1e-8f, Reduction reduction = Reduction::mean);
/// max(-targets (inputs1 - inputs2) + margin, 0), targets ±1.
WEFT_API array margin_ranking_loss(const array& inputs1, const array& inputs2, const array& targets, float margin = 0, Reduction reduction = Reduction::mean);

}  // namespace weft::nn::losses
