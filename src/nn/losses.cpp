// Losses: a formula for each element or row, then the reduction.
#include "weft/nn/losses.h"

#include <cmath>
#include <numbers>
#include <string>

#include "base/error.h"
#include "weft/fast.h"
#include "weft/nn/functions.h"
#include "weft/ops.h"

namespace weft::nn::losses {

namespace {

array number_like(double value, const array& like) { return array(value, like.dtype()); }

array reduced(const array& each, Reduction reduction) {
  switch (reduction) {
    case Reduction::mean: return mean(each);
    case Reduction::sum: return sum(each);
    default: return each;
  }
}

// Converts to float32 at least; throws for complex numbers.
array precise(const char* op, const char* what, const array& x) {
  if (issubdtype(x.dtype(), complexfloating))
    throw_invalid(op, std::string(what) + " must be real; they are " + dtype_name(x.dtype()));
  return astype(x, x.dtype() == float64 ? float64 : float32);
}

void check_same(const char* op, const array& a, const array& b) {
  if (a.shape() != b.shape())
    throw_invalid(op, "shapes must be the same; they are " + to_string(a.shape()) + " and " + to_string(b.shape()));
}

// Returns inputs - targets, broadcast together.
array difference(const char* op, const array& inputs, const array& targets) {
  return precise(op, "the inputs", inputs) - precise(op, "the targets", targets);
}

// Returns inputs - targets; throws where their shapes differ.
array equal_difference(const char* op, const array& inputs, const array& targets) {
  check_same(op, inputs, targets);
  return difference(op, inputs, targets);
}

array distance(const array& a, const array& b, int axis, int p, float eps) {
  const array d = a - b;
  if (p == 2) return sqrt(sum(square(d), axis) + number_like(eps, d));
  return power(sum(power(abs(d), number_like(p, d)), axis) + number_like(eps, d), number_like(1.0 / p, d));
}

bool is_last(const array& a, int axis) { return axis == -1 || axis + 1 == static_cast<int>(a.ndim()); }

// Moves the axis of the classes to the end.
array classes_last(const array& a, int axis) { return is_last(a, axis) ? a : moveaxis(a, axis, -1); }

// Computes the cross-entropy of distributed targets, with the classes as the last axis: probabilities, or classes with
// label smoothing.
array soft_cross_entropy(const array& scores, const array& targets, bool probabilities, float smoothing) {
  // As MLX computes it, which matters where probabilities do not sum to 1.
  const array below = scores - stop_gradient(max(scores, -1, true));
  const array sums = logsumexp(below, -1), share = number_like(smoothing, scores);
  const array chosen = probabilities ? sums - sum(below * targets, -1) : fast::cross_entropy(below, targets);
  return smoothing == 0 ? chosen : chosen * (number_like(1, scores) - share) + (sums - mean(below, -1)) * share;
}

}  // namespace

array cross_entropy(const array& logits, const array& targets, Reduction reduction) {
  return cross_entropy(logits, targets, {.reduction = reduction});
}

array cross_entropy(const array& logits, const array& targets, const CrossEntropyOptions& options) {
  const char* op = "losses.cross_entropy";
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 1))
    throw_invalid(
        op, "label_smoothing must be at least 0 and less than 1; it is " + std::to_string(options.label_smoothing));
  const array scores = classes_last(precise(op, "logits", logits), options.axis);
  const bool probabilities = targets.ndim() == logits.ndim();
  if (probabilities) check_same(op, logits, targets);
  const array shares = probabilities ? classes_last(precise(op, "targets", targets), options.axis) : targets;
  const bool plain = !probabilities && options.label_smoothing == 0;
  array each = plain ? fast::cross_entropy(scores, targets)
                     : soft_cross_entropy(scores, shares, probabilities, options.label_smoothing);
  if (options.weights) {
    check_same(op, each, *options.weights);
    each = each * astype(*options.weights, each.dtype());
  }
  return reduced(each, options.reduction);
}

array binary_cross_entropy(const array& inputs, const array& targets, const BinaryCrossEntropyOptions& options) {
  const char* op = "losses.binary_cross_entropy";
  check_same(op, inputs, targets);
  const array x = precise(op, "the inputs", inputs), t = precise(op, "the targets", targets);
  const auto bounded_log = [&](const array& p) { return maximum(log(p), number_like(-100, p)); };
  array each = options.with_logits
                   ? logaddexp(number_like(0, x), x) - x * t
                   : -(t * bounded_log(x) + (number_like(1, x) - t) * bounded_log(number_like(1, x) - x));
  if (options.weights) each = each * astype(*options.weights, each.dtype());
  return reduced(each, options.reduction);
}

array l1_loss(const array& predictions, const array& targets, Reduction reduction) {
  return reduced(abs(equal_difference("losses.l1_loss", predictions, targets)), reduction);
}

array mse_loss(const array& predictions, const array& targets, Reduction reduction) {
  return reduced(square(equal_difference("losses.mse_loss", predictions, targets)), reduction);
}

array smooth_l1_loss(const array& predictions, const array& targets, float beta, Reduction reduction) {
  if (!(beta > 0)) throw_invalid("losses.smooth_l1_loss", "beta must be positive; it is " + std::to_string(beta));
  const array d = equal_difference("losses.smooth_l1_loss", predictions, targets), size = abs(d);
  return reduced(
      where(size < number_like(beta, d), square(d) * number_like(0.5 / beta, d), size - number_like(0.5 * beta, d)),
      reduction);
}

array huber_loss(const array& inputs, const array& targets, float delta, Reduction reduction) {
  if (!(delta > 0)) throw_invalid("losses.huber_loss", "delta must be positive; it is " + std::to_string(delta));
  const array d = difference("losses.huber_loss", inputs, targets), size = abs(d);
  return reduced(where(size <= number_like(delta, d), square(d) * number_like(0.5, d),
                       (size - number_like(0.5 * delta, d)) * number_like(delta, d)),
                 reduction);
}

array log_cosh_loss(const array& inputs, const array& targets, Reduction reduction) {
  const array d = difference("losses.log_cosh_loss", inputs, targets);
  return reduced(logaddexp(d, -d) - number_like(std::numbers::ln2, d), reduction);
}

array nll_loss(const array& inputs, const array& targets, int axis, Reduction reduction) {
  const char* op = "losses.nll_loss";
  const array x = classes_last(precise(op, "the inputs", inputs), axis);
  Shape rows = x.shape();
  rows.pop_back();
  if (targets.shape() != rows || !issubdtype(targets.dtype(), integer))
    throw_invalid(op, "targets must be integers of shape " + to_string(rows) + "; they are " +
                          to_string(targets.shape()) + " " + dtype_name(targets.dtype()));
  return reduced(-squeeze(take_along_axis(x, expand_dims(targets, -1), -1), -1), reduction);
}

array gaussian_nll_loss(const array& inputs, const array& targets, const array& vars, bool full, float eps,
                        Reduction reduction) {
  const char* op = "losses.gaussian_nll_loss";
  check_same(op, inputs, vars);
  const array d = equal_difference(op, inputs, targets), wide = precise(op, "the variances", vars),
              var = maximum(wide, number_like(eps, wide));
  const array each = number_like(0.5, d) * (log(var) + square(d) / var);
  return reduced(full ? each + number_like(0.5 * std::log(2 * std::numbers::pi), d) : each, reduction);
}

array kl_div_loss(const array& inputs, const array& targets, int axis, Reduction reduction) {
  const char* op = "losses.kl_div_loss";
  const array d = difference(op, targets, inputs);
  return reduced(sum(exp(precise(op, "the targets", targets)) * d, axis), reduction);
}

array triplet_loss(const array& anchors, const array& positives, const array& negatives, int axis, int p, float margin,
                   float eps, Reduction reduction) {
  const char* op = "losses.triplet_loss";
  if (p < 1) throw_invalid(op, "p must be at least 1; it is " + std::to_string(p));
  const array a = precise(op, "the anchors", anchors);
  const array near = distance(a, precise(op, "the positives", positives), axis, p, eps),
              far = distance(a, precise(op, "the negatives", negatives), axis, p, eps);
  return reduced(relu(near - far + number_like(margin, a)), reduction);
}

array hinge_loss(const array& inputs, const array& targets, Reduction reduction) {
  const array x = precise("losses.hinge_loss", "the inputs", inputs);
  return reduced(relu(number_like(1, x) - x * precise("losses.hinge_loss", "the targets", targets)), reduction);
}

array cosine_similarity_loss(const array& x1, const array& x2, int axis, float eps, Reduction reduction) {
  const char* op = "losses.cosine_similarity_loss";
  const array a = precise(op, "x1", x1), b = precise(op, "x2", x2);
  const array norms = sqrt(sum(square(a), axis)) * sqrt(sum(square(b), axis));
  return reduced(sum(a * b, axis) / maximum(norms, number_like(eps, norms)), reduction);
}

array margin_ranking_loss(const array& inputs1, const array& inputs2, const array& targets, float margin,
                          Reduction reduction) {
  const char* op = "losses.margin_ranking_loss";
  const array d = equal_difference(op, inputs1, inputs2);
  check_same(op, d, targets);
  const array each = number_like(margin, d) - precise(op, "the targets", targets) * d;
  return reduced(maximum(number_like(0, each), each), reduction);
}

}  // namespace weft::nn::losses
