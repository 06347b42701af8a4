// Losses: each a formula for one element or row, then the reduction.
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

array as(double value, const array& like) { return array(value, like.dtype()); }

array reduced(const array& each, Reduction reduction) {
  switch (reduction) {
    case Reduction::mean: return mean(each);
    case Reduction::sum: return sum(each);
    default: return each;
  }
}

// In float32 at least.
array precise(const char* op, const char* what, const array& x) {
  if (!issubdtype(x.dtype(), floating)) throw_invalid(op, std::string(what) + " must be floating; they are " + dtype_name(x.dtype()));
  return astype(x, x.dtype() == float64 ? float64 : float32);
}

void check_same(const char* op, const array& a, const array& b) {
  if (a.shape() != b.shape()) throw_invalid(op, "shapes must be the same; they are " + to_string(a.shape()) + " and " + to_string(b.shape()));
}

// inputs - targets.
array difference(const char* op, const array& inputs, const array& targets) {
  check_same(op, inputs, targets);
  const array x = precise(op, "the inputs", inputs);
  return x - astype(targets, x.dtype());
}

// log(1 + exp(-|x|)).
array log_exp_rest(const array& x) { return log(as(1, x) + exp(-abs(x))); }

array distance(const array& a, const array& b, int axis, int p, float eps) {
  const array d = a - b;
  if (p == 2) return sqrt(sum(square(d), axis) + as(eps, d));
  return power(sum(power(abs(d), as(p, d)), axis) + as(eps, d), as(1.0 / p, d));
}

}  // namespace

array cross_entropy(const array& logits, const array& targets, Reduction reduction) {
  return reduced(fast::cross_entropy(precise("losses.cross_entropy", "logits", logits), targets), reduction);
}

array cross_entropy(const array& logits, const array& targets, const CrossEntropyOptions& options) {
  const char* op = "losses.cross_entropy";
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 1))
    throw_invalid(op, "label_smoothing must be at least 0 and less than 1; it is " + std::to_string(options.label_smoothing));
  const array scores = moveaxis(precise(op, "logits", logits), options.axis, -1);
  const bool probabilities = issubdtype(targets.dtype(), floating);
  if (probabilities) check_same(op, logits, targets);
  const array share = as(options.label_smoothing, scores);
  const auto whole = [&] { return logsumexp(scores, -1); };
  const array chosen =
      probabilities ? whole() - sum(scores * moveaxis(astype(targets, scores.dtype()), options.axis, -1), -1) : fast::cross_entropy(scores, targets);
  array each = options.label_smoothing == 0 ? chosen : chosen * (as(1, scores) - share) + (whole() - mean(scores, -1)) * share;
  if (options.weights) {
    check_same(op, each, *options.weights);
    each = each * astype(*options.weights, each.dtype());
  }
  return reduced(each, options.reduction);
}

array binary_cross_entropy(const array& inputs, const array& targets, const BinaryCrossEntropyOptions& options) {
  const char* op = "losses.binary_cross_entropy";
  check_same(op, inputs, targets);
  const array x = precise(op, "the inputs", inputs), t = astype(targets, x.dtype());
  const auto bounded_log = [&](const array& p) { return maximum(log(p), as(-100, p)); };
  array each = options.with_logits ? maximum(x, as(0, x)) - x * t + log_exp_rest(x)
                                   : -(t * bounded_log(x) + (as(1, x) - t) * bounded_log(as(1, x) - x));
  if (options.weights) each = each * astype(*options.weights, each.dtype());
  return reduced(each, options.reduction);
}

array l1_loss(const array& predictions, const array& targets, Reduction reduction) {
  return reduced(abs(difference("losses.l1_loss", predictions, targets)), reduction);
}

array mse_loss(const array& predictions, const array& targets, Reduction reduction) {
  return reduced(square(difference("losses.mse_loss", predictions, targets)), reduction);
}

array smooth_l1_loss(const array& predictions, const array& targets, float beta, Reduction reduction) {
  if (!(beta > 0)) throw_invalid("losses.smooth_l1_loss", "beta must be positive; it is " + std::to_string(beta));
  const array d = difference("losses.smooth_l1_loss", predictions, targets), size = abs(d);
  return reduced(where(size < as(beta, d), square(d) * as(0.5 / beta, d), size - as(0.5 * beta, d)), reduction);
}

array huber_loss(const array& inputs, const array& targets, float delta, Reduction reduction) {
  if (!(delta > 0)) throw_invalid("losses.huber_loss", "delta must be positive; it is " + std::to_string(delta));
  const array d = difference("losses.huber_loss", inputs, targets), size = abs(d);
  return reduced(where(size <= as(delta, d), square(d) * as(0.5, d), (size - as(0.5 * delta, d)) * as(delta, d)), reduction);
}

array log_cosh_loss(const array& inputs, const array& targets, Reduction reduction) {
  const array d = difference("losses.log_cosh_loss", inputs, targets);
  return reduced(abs(d) + log_exp_rest(as(2, d) * d) - as(std::numbers::ln2, d), reduction);
}

array nll_loss(const array& inputs, const array& targets, int axis, Reduction reduction) {
  const char* op = "losses.nll_loss";
  const array x = moveaxis(precise(op, "the inputs", inputs), axis, -1);
  Shape rows = x.shape();
  rows.pop_back();
  if (targets.shape() != rows || !issubdtype(targets.dtype(), integer))
    throw_invalid(op, "targets must be integers of shape " + to_string(rows) + "; they are " + to_string(targets.shape()) + " " + dtype_name(targets.dtype()));
  return reduced(-squeeze(take_along_axis(x, expand_dims(targets, -1), -1), -1), reduction);
}

array gaussian_nll_loss(const array& inputs, const array& targets, const array& vars, bool full, float eps, Reduction reduction) {
  const char* op = "losses.gaussian_nll_loss";
  check_same(op, inputs, vars);
  const array d = difference(op, inputs, targets), var = maximum(astype(vars, d.dtype()), as(eps, d));
  const array each = as(0.5, d) * (log(var) + square(d) / var);
  return reduced(full ? each + as(0.5 * std::log(2 * std::numbers::pi), d) : each, reduction);
}

array kl_div_loss(const array& inputs, const array& targets, int axis, Reduction reduction) {
  const array d = difference("losses.kl_div_loss", inputs, targets);
  return reduced(sum(exp(astype(targets, d.dtype())) * -d, axis), reduction);
}

array triplet_loss(const array& anchors, const array& positives, const array& negatives, int axis, int p, float margin, float eps, Reduction reduction) {
  const char* op = "losses.triplet_loss";
  check_same(op, anchors, positives);
  check_same(op, anchors, negatives);
  if (p < 1) throw_invalid(op, "p must be at least 1; it is " + std::to_string(p));
  const array a = precise(op, "the anchors", anchors);
  const array near = distance(a, astype(positives, a.dtype()), axis, p, eps), far = distance(a, astype(negatives, a.dtype()), axis, p, eps);
  return reduced(relu(near - far + as(margin, a)), reduction);
}

array hinge_loss(const array& inputs, const array& targets, Reduction reduction) {
  check_same("losses.hinge_loss", inputs, targets);
  const array x = precise("losses.hinge_loss", "the inputs", inputs);
  return reduced(relu(as(1, x) - x * astype(targets, x.dtype())), reduction);
}

array cosine_similarity_loss(const array& x1, const array& x2, int axis, float eps, Reduction reduction) {
  const char* op = "losses.cosine_similarity_loss";
  check_same(op, x1, x2);
  const array a = precise(op, "x1", x1), b = astype(x2, a.dtype());
  const array norms = sqrt(sum(square(a), axis)) * sqrt(sum(square(b), axis));
  return reduced(sum(a * b, axis) / maximum(norms, as(eps, a)), reduction);
}

array margin_ranking_loss(const array& inputs1, const array& inputs2, const array& targets, float margin, Reduction reduction) {
  const array d = difference("losses.margin_ranking_loss", inputs1, inputs2);
  check_same("losses.margin_ranking_loss", d, targets);
  return reduced(relu(as(margin, d) - astype(targets, d.dtype()) * d), reduction);
}

}  // namespace weft::nn::losses
