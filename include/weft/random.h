#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/array.h"

/// Random numbers with MLX's bits: Threefry-2x32 keys, counted, so that the same key gives the same numbers everywhere.
/// Where no key is given, the calling thread's default sequence supplies the next one; it is captured state under `compile`.
namespace weft::random {

WEFT_API array key(uint64_t seed);                 ///< uint32 (2): {seed >> 32, seed & 0xffffffff}
WEFT_API void seed(uint64_t seed);                 ///< restarts the calling thread's default sequence
WEFT_API std::pair<array, array> split(const array& key, StreamOrDevice s = {});
WEFT_API array split(const array& key, int num, StreamOrDevice s = {});  ///< uint32 (num, 2)
/// The state of the calling thread's default sequence: a handle to capture in `compile`, to save and to restore.
WEFT_API array& default_key();

/// `width` 1, 2 or 4 bytes: uint8, uint16 or uint32.
WEFT_API array bits(const Shape& shape, int width = 4, const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
WEFT_API array uniform(const array& low, const array& high, const Shape& shape, Dtype dtype = float32,
                       const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
WEFT_API array uniform(const Shape& shape, Dtype dtype = float32, const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
WEFT_API array normal(const Shape& shape, Dtype dtype = float32, float loc = 0, float scale = 1,
                      const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
WEFT_API array bernoulli(const array& p, const Shape& shape, const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
WEFT_API array randint(const array& low, const array& high, const Shape& shape, Dtype dtype = int32,
                       const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
WEFT_API array gumbel(const Shape& shape, Dtype dtype = float32, const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
/// argmax(gumbel + logits) along the axis: one draw for each distribution; uint32.
WEFT_API array categorical(const array& logits, int axis = -1, const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});

}  // namespace weft::random
