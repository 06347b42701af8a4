#pragma once
// Running states of rows: what a loop along rows carries instead of the rows themselves.
#include <cmath>

#include "weft/kernel.h"

namespace weft::k {

/// The online softmax (Milakov and Gimelshein, 2018) of rows that come block by block: their maxima, and the sums of
/// exponentials beneath them, to base 2.
class OnlineSoftmax {
 public:
  /// What one block gives.
  struct Step {
    /// 2 to the power of each score less the row's maximum so far [rows, n].
    Tile<f32, 2> weights;
    /// By what all that was summed with the weights of earlier blocks is to be multiplied [rows].
    Tile<f32, 1> rescale;
  };
  /// Begins with no scores of `rows` rows.
  explicit OnlineSoftmax(int64_t rows, Line at = Line::here())
      : most_(full<f32>({rows}, -INFINITY, at), at), sum_(zeros<f32>({rows}, at), at) {}
  /// Takes a block of scores [rows, n], to base 2; -inf takes no part. A row whose scores are all -inf sums to 0.
  Step add(const Tile<f32, 2>& scores, Line at = Line::here()) {
    const auto larger = maximum(most_.get(at), max(scores, 1, at), at);
    const auto beneath = where(larger == -INFINITY, 0.0, larger, at);
    const Step step{exp2(scores - col(beneath, at), at), exp2(most_.get(at) - beneath, at)};
    sum_ = sum_.get(at) * step.rescale + k::sum(step.weights, 1, at);
    most_ = larger;
    return step;
  }
  /// Returns the sum of all weights of each row [rows].
  Tile<f32, 1> sum(Line at = Line::here()) const { return sum_.get(at); }
  /// Returns the largest score of each row [rows].
  Tile<f32, 1> most(Line at = Line::here()) const { return most_.get(at); }
  /// Returns the logarithm to base 2 of each row's sum of exponentials [rows]; -inf of a row without scores.
  Tile<f32, 1> log2_sum(Line at = Line::here()) const { return most_.get(at) + log2(sum_.get(at), at); }

 private:
  Mut<f32, 1> most_, sum_;
};

/// Number, mean and sum of squared deviations of samples: the state of Welford (1962), which two parts combine without
/// a difference of large numbers (Chan, Golub and LeVeque, 1979).
template <int R>
struct Moments {
  /// The number of samples, as float32.
  Tile<f32, R> count;
  /// Their mean, and the sum of the squares of what they differ from it.
  Tile<f32, R> mean, squares;
};
/// Returns the moments of two sets of samples together; of no samples at all, zeros.
template <int R>
Moments<R> merged(const Moments<R>& a, const Moments<R>& b, Line at = Line::here()) {
  const auto count = a.count + b.count;
  const auto share = where(count == 0, 0.0, b.count / maximum(count, 1.0, at), at);
  const auto apart = b.mean - a.mean;
  return {count, a.mean + apart * share, a.squares + b.squares + apart * apart * a.count * share};
}
/// Returns the moments of the first `valid` columns of a tile [rows, n], for each row; all that follow are left out.
template <TileLike V>
Moments<1> moments_of(const V& v, const Index& valid, Line at = Line::here()) {
  static_assert(rank_of<V> == 2 && std::same_as<ElementOf<V>, f32>, "moments_of takes a tile of float32 [rows, n]");
  const auto x = detail::as_tile(v, at);
  const int64_t rows = x.dim(0, at), n = x.dim(1, at);
  const auto count = cast<f32>(maximum(minimum(valid, n, at), 0, at), at);
  const auto inside = row(arange(n, at), at) < reshape(valid, {1, 1}, at);
  const auto mean = sum(where(inside, x, 0.0, at), 1, at) / maximum(count, 1.0, at);
  const auto apart = where(inside, x - col(mean, at), 0.0, at);
  return {broadcast_to(count, {rows}, at), mean, sum(apart * apart, 1, at)};
}

/// Moments of rows that come block by block.
class Welford {
 public:
  /// Begins with no samples of `rows` rows.
  explicit Welford(int64_t rows, Line at = Line::here())
      : count_(zeros<f32>({rows}, at), at), mean_(zeros<f32>({rows}, at), at), squares_(zeros<f32>({rows}, at), at) {}
  /// Takes moments of further samples [rows].
  void add(const Moments<1>& more, Line at = Line::here()) {
    const Moments<1> both = merged(get(at), more, at);
    count_ = both.count, mean_ = both.mean, squares_ = both.squares;
  }
  /// Takes the first `valid` columns of a block [rows, n].
  template <TileLike V>
  void add(const V& v, const Index& valid, Line at = Line::here()) {
    add(moments_of(v, valid, at), at);
  }
  /// Returns the moments so far.
  Moments<1> get(Line at = Line::here()) const { return {count_.get(at), mean_.get(at), squares_.get(at)}; }
  /// Returns the mean square of what samples differ from the mean [rows]; 0 without samples.
  Tile<f32, 1> variance(Line at = Line::here()) const { return squares_.get(at) / maximum(count_.get(at), 1.0, at); }

 private:
  Mut<f32, 1> count_, mean_, squares_;
};

}  // namespace weft::k
