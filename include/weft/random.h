#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/array.h"

/// Random numbers with MLX's bits: a counter-based generator (Threefry-2x32), so that the same key gives the same
/// numbers on every device. Where no key is given, the calling thread's default sequence supplies the next one;
/// `compile` captures its state. A key of another shape or dtype than uint32 [2], parameters that do not broadcast to
/// the shape, and dtypes that a distribution does not have throw std::invalid_argument. `dtype` is float32 by default.
namespace weft::random {

/// Returns the key of a seed, uint32 [2]: {seed >> 32, seed & 0xffffffff}.
WEFT_API array key(uint64_t seed);
/// Restarts the calling thread's default sequence.
WEFT_API void seed(uint64_t seed);
/// Returns two independent keys made from one.
WEFT_API std::pair<array, array> split(const array& key, StreamOrDevice s = {});
/// Returns `num` independent keys made from one, uint32 [num, 2].
WEFT_API array split(const array& key, int num, StreamOrDevice s = {});
/// Returns the state of the calling thread's default sequence: a handle to capture in `compile`, to save and to
/// restore.
WEFT_API array& default_key();

/// A sequence of keys that the caller owns: each `next` splits the key, keeps the first half and returns the second.
class WEFT_API KeySequence {
 public:
  explicit KeySequence(uint64_t seed);
  /// Restarts the sequence.
  void seed(uint64_t seed);
  /// Returns the next key.
  array next();
  /// Returns the calling thread's default sequence, whose state is default_key(). Its first seed is the time.
  static KeySequence& default_();

 private:
  friend WEFT_API array& default_key();
  array key_;
};

/// Returns uniform random integers of `width` 1, 2 or 4 bytes: uint8, uint16 or uint32. Other widths throw
/// std::invalid_argument.
WEFT_API array bits(const Shape& shape, int width = 4, const std::optional<array>& key = std::nullopt,
                    StreamOrDevice s = {});
inline array bits(const Shape& shape, const std::optional<array>& key, StreamOrDevice s = {}) {
  return bits(shape, 4, key, s);
}
/// Returns uniform numbers in [low, high), [0, 1) by default. `low` and `high` broadcast to the shape. Throws
/// std::invalid_argument unless `dtype` is floating.
WEFT_API array uniform(const array& low, const array& high, const Shape& shape, Dtype dtype = float32,
                       const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
WEFT_API array uniform(const Shape& shape, Dtype dtype, const std::optional<array>& key = std::nullopt,
                       StreamOrDevice s = {});
inline array uniform(const Shape& shape, const std::optional<array>& key = std::nullopt, StreamOrDevice s = {}) {
  return uniform(shape, float32, key, s);
}
/// Returns normal numbers with mean loc (0 by default) and standard deviation scale (1 by default), which broadcast to
/// the shape. `dtype` is floating, or complex: then both parts are drawn, with half of the variance each.
WEFT_API array normal(const Shape& shape, Dtype dtype, const std::optional<array>& loc,
                      const std::optional<array>& scale, const std::optional<array>& key, StreamOrDevice s = {});
WEFT_API array normal(const Shape& shape, Dtype dtype, float loc, float scale,
                      const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
inline array normal(const Shape& shape, float loc, float scale, const std::optional<array>& key = std::nullopt,
                    StreamOrDevice s = {}) {
  return normal(shape, float32, loc, scale, key, s);
}
inline array normal(const Shape& shape, Dtype dtype, const std::optional<array>& key = std::nullopt,
                    StreamOrDevice s = {}) {
  return normal(shape, dtype, 0.0f, 1.0f, key, s);
}
inline array normal(const Shape& shape, const std::optional<array>& key = std::nullopt, StreamOrDevice s = {}) {
  return normal(shape, float32, 0.0f, 1.0f, key, s);
}
/// Returns normal vectors with this mean [..., n] and covariance [..., n, n], symmetric and positive semidefinite:
/// float32 of the broadcast of `shape` and both leading shapes, then n. Throws std::invalid_argument for any other
/// dtype, and where the shapes do not fit.
WEFT_API array multivariate_normal(const array& mean, const array& cov, const Shape& shape, Dtype dtype = float32,
                                   const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
/// Returns standard normal numbers limited to [lower, upper]. Without a shape: of the broadcast shape of the limits.
WEFT_API array truncated_normal(const array& lower, const array& upper, const Shape& shape, Dtype dtype = float32,
                                const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
WEFT_API array truncated_normal(const array& lower, const array& upper, Dtype dtype = float32,
                                const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
/// Returns Laplace distributed numbers with mean loc (0 by default) and scale (1 by default), in a floating `dtype`.
WEFT_API array laplace(const Shape& shape, Dtype dtype, float loc, float scale,
                       const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
inline array laplace(const Shape& shape, float loc, float scale, const std::optional<array>& key = std::nullopt,
                     StreamOrDevice s = {}) {
  return laplace(shape, float32, loc, scale, key, s);
}
inline array laplace(const Shape& shape, Dtype dtype, const std::optional<array>& key = std::nullopt,
                     StreamOrDevice s = {}) {
  return laplace(shape, dtype, 0.0f, 1.0f, key, s);
}
inline array laplace(const Shape& shape, const std::optional<array>& key = std::nullopt, StreamOrDevice s = {}) {
  return laplace(shape, float32, 0.0f, 1.0f, key, s);
}
/// Returns true with probability p (0.5 by default), bool; of p's shape where no shape is given.
WEFT_API array bernoulli(const array& p, const Shape& shape, const std::optional<array>& key = std::nullopt,
                         StreamOrDevice s = {});
inline array bernoulli(const array& p) { return bernoulli(p, p.shape()); }
template <class T>
requires(std::is_arithmetic_v<T>) array bernoulli(T p) { return bernoulli(array(p)); }
/// Returns the same with a key. It is a template so that bernoulli(p, {2}) means a shape.
template <class Key>
requires(std::is_same_v<Key, array> || std::is_same_v<Key, std::optional<array>>) array
    bernoulli(const array& p, const Key& key, StreamOrDevice s = {}) {
  return bernoulli(p, p.shape(), key, s);
}
inline array bernoulli(const std::optional<array>& key = std::nullopt, StreamOrDevice s = {}) {
  return bernoulli(array(0.5f), key, s);
}
/// Returns uniform integers in [low, high), which broadcast to the shape.
WEFT_API array randint(const array& low, const array& high, const Shape& shape, Dtype dtype = int32,
                       const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
/// Returns Gumbel distributed numbers -log(-log(u)).
WEFT_API array gumbel(const Shape& shape, Dtype dtype = float32, const std::optional<array>& key = std::nullopt,
                      StreamOrDevice s = {});
/// Returns draws from distributions given by their logits along the axis: argmax(gumbel + logits), uint32. Of the shape
/// of the logits without the axis; with `num_samples` also a last axis of so many draws; or of `shape`, to which the
/// distributions broadcast.
WEFT_API array categorical(const array& logits, int axis, const Shape& shape,
                           const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
WEFT_API array categorical(const array& logits, int axis, int num_samples,
                           const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
WEFT_API array categorical(const array& logits, int axis = -1, const std::optional<array>& key = std::nullopt,
                           StreamOrDevice s = {});
/// Returns the numbers 0 … x - 1 (uint32), or the slices of x along the axis, in random order.
WEFT_API array permutation(int x, const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
WEFT_API array permutation(const array& x, int axis = 0, const std::optional<array>& key = std::nullopt,
                           StreamOrDevice s = {});

}  // namespace weft::random
