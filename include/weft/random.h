#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/array.h"

/// Random numbers with MLX's bits: Threefry-2x32 keys, counted, so that the same key gives the same numbers everywhere.
/// Where no key is given, the calling thread's default sequence supplies the next one; it is captured state under
/// `compile`.
namespace weft::random {

WEFT_API array key(uint64_t seed);  ///< uint32 (2): {seed >> 32, seed & 0xffffffff}
WEFT_API void seed(uint64_t seed);  ///< restarts the calling thread's default sequence
WEFT_API std::pair<array, array> split(const array& key, StreamOrDevice s = {});
WEFT_API array split(const array& key, int num, StreamOrDevice s = {});  ///< uint32 (num, 2)
/// The state of the calling thread's default sequence: a handle to capture in `compile`, to save and to restore.
WEFT_API array& default_key();

/// A sequence of keys of one's own: each `next` splits the key, keeps the first half and returns the second.
class WEFT_API KeySequence {
 public:
  explicit KeySequence(uint64_t seed);
  void seed(uint64_t seed);
  array next();
  /// The calling thread's default sequence, whose state is default_key(). It begins with the time.
  static KeySequence& default_();

 private:
  friend WEFT_API array& default_key();
  array key_;
};

/// `width` 1, 2 or 4 bytes: uint8, uint16 or uint32.
WEFT_API array bits(const Shape& shape, int width = 4, const std::optional<array>& key = std::nullopt,
                    StreamOrDevice s = {});
inline array bits(const Shape& shape, const std::optional<array>& key, StreamOrDevice s = {}) {
  return bits(shape, 4, key, s);
}
WEFT_API array uniform(const array& low, const array& high, const Shape& shape, Dtype dtype = float32,
                       const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
WEFT_API array uniform(const Shape& shape, Dtype dtype, const std::optional<array>& key = std::nullopt,
                       StreamOrDevice s = {});
inline array uniform(const Shape& shape, const std::optional<array>& key = std::nullopt, StreamOrDevice s = {}) {
  return uniform(shape, float32, key, s);
}
/// loc and scale broadcast to the shape. complex64: both parts are drawn, with half of the variance each.
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
/// mean + z · √cov for standard normal z: mean [..., n], cov [..., n, n], symmetric and positive semidefinite. Returns
/// float32 of the broadcast of `shape` and both leading shapes, then n. Throws std::invalid_argument for any other
/// dtype, and where the shapes do not fit.
WEFT_API array multivariate_normal(const array& mean, const array& cov, const Shape& shape, Dtype dtype = float32,
                                   const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
/// Normal numbers between lower and upper.
WEFT_API array truncated_normal(const array& lower, const array& upper, const Shape& shape, Dtype dtype = float32,
                                const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
WEFT_API array truncated_normal(const array& lower, const array& upper, Dtype dtype = float32,
                                const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
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
WEFT_API array bernoulli(const array& p, const Shape& shape, const std::optional<array>& key = std::nullopt,
                         StreamOrDevice s = {});
inline array bernoulli(const array& p) { return bernoulli(p, p.shape()); }
template <class T>
requires(std::is_arithmetic_v<T>) array bernoulli(T p) { return bernoulli(array(p)); }
/// (Takes nothing but a key, so that bernoulli(p, {2}) means a shape.)
template <class Key>
requires(std::is_same_v<Key, array> || std::is_same_v<Key, std::optional<array>>) array
    bernoulli(const array& p, const Key& key, StreamOrDevice s = {}) {
  return bernoulli(p, p.shape(), key, s);
}
inline array bernoulli(const std::optional<array>& key = std::nullopt, StreamOrDevice s = {}) {
  return bernoulli(array(0.5f), key, s);
}
WEFT_API array randint(const array& low, const array& high, const Shape& shape, Dtype dtype = int32,
                       const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
WEFT_API array gumbel(const Shape& shape, Dtype dtype = float32, const std::optional<array>& key = std::nullopt,
                      StreamOrDevice s = {});
/// argmax(gumbel + logits) along the axis: one draw for each distribution; uint32.
WEFT_API array categorical(const array& logits, int axis, const Shape& shape,
                           const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
WEFT_API array categorical(const array& logits, int axis, int num_samples,
                           const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
WEFT_API array categorical(const array& logits, int axis = -1, const std::optional<array>& key = std::nullopt,
                           StreamOrDevice s = {});
/// The numbers 0 … x-1, or slices of x along the axis, in random order.
WEFT_API array permutation(int x, const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
WEFT_API array permutation(const array& x, int axis = 0, const std::optional<array>& key = std::nullopt,
                           StreamOrDevice s = {});

}  // namespace weft::random
