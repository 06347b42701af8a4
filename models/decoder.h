#pragma once
// Writing with a language model: a decoder that reads and continues texts, and a sampler that draws tokens from logits.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/text_model.h"
#include "weft/transforms.h"

namespace weft::models {

struct DecoderOptions {
  /// Whether the step of one token has the same shapes for every length of the text (TextModel::next): then a GPU is
  /// given the whole step as one recorded graph. A CPU is better off with shapes that grow. Default: where the model's
  /// arrays lie on a GPU.
  std::optional<bool> fixed_shapes = std::nullopt;
};

/// Reads and continues texts with a key-value cache; two programs (a prompt, one more token) serve all lengths. The
/// model must outlive it; it is used in eval mode, and its weights may change between calls. Once the context is full,
/// the last half of it is read again, and writing goes on from there.
class WEFT_API Decoder {
 public:
  explicit Decoder(TextModel& model, DecoderOptions options = {});
  /// Starts afresh with a text of at least one token (of a long one, the last `context` tokens); logits for what
  /// follows.
  std::vector<float> prefill(std::span<const int32_t> ids);
  /// One more token; logits for what follows.
  std::vector<float> append(int32_t id);
  /// Reads `id`, then writes: `count` tokens, each the likeliest after those before it (of several, the first). With
  /// fixed shapes they are chosen on the device, and the host waits once, for all of them.
  std::vector<int32_t> write_likeliest(int32_t id, int64_t count);
  int64_t length() const { return static_cast<int64_t>(window_.size()); }  ///< tokens in the cache
  KvCache& cache() { return cache_; }
  bool fixed_shapes() const { return fixed_shapes_; }

 private:
  std::vector<float> read_window();
  bool make_room(int32_t id);
  TextModel& model_;
  KvCache cache_;
  bool fixed_shapes_;
  std::vector<int32_t> window_;
  array token_, size_, written_;  // of the step on the device: [1, 1], tokens read so far with this one [1], and what
                                  // was chosen after each place [context]
  ArrayFunction prefill_, append_, likeliest_;
};

struct SamplerOptions {
  float temperature = 1;  ///< 0: always the likeliest
  int64_t top_k = 0;      ///< only the k likeliest; 0: all
  float top_p = 1;        ///< only the likeliest that together reach p
  uint64_t seed = 0;
};

/// Draws tokens from logits. Draw k of a seed is always the same.
class WEFT_API Sampler {
 public:
  explicit Sampler(SamplerOptions options);  ///< throws std::invalid_argument for impossible values
  int32_t operator()(std::span<const float> logits);

 private:
  SamplerOptions options_;
  uint64_t draws_ = 0;
};

}  // namespace weft::models
