#pragma once
// Text generation: a decoder that reads and continues token sequences, and a sampler that draws tokens from logits.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/text_model.h"
#include "weft/transforms.h"

namespace weft::models {

/// Options of Decoder.
struct DecoderOptions {
  /// Whether the step of one token has the same shapes for every length of the text (TextModel::next), so that a GPU
  /// replays it as one CUDA graph. On a CPU shapes that grow are faster. Default: true where the default device is a
  /// GPU.
  std::optional<bool> fixed_shapes = std::nullopt;
};

/// Reads and continues token sequences with a key-value cache; two programs (prefill, one token) serve all lengths. The
/// model must outlive it; it is used in eval mode, and its weights may change between calls. When the context is full,
/// its last half is read again, and generation continues from there.
class WEFT_API Decoder {
 public:
  explicit Decoder(TextModel& model, DecoderOptions options = {});
  /// Starts a new text with `ids`, of which the last `context` ones are read. Returns the logits [vocab] of the next
  /// token. Throws std::invalid_argument where there is no token.
  std::vector<float> prefill(std::span<const int32_t> ids);
  /// Reads one more token. Returns the logits [vocab] of the next one. Throws std::invalid_argument before prefill.
  std::vector<float> append(int32_t id);
  /// Reads `id`, then generates `count` tokens, each the argmax of the logits (the first of equal ones). With fixed
  /// shapes they are chosen on the device, and the host waits once for all of them.
  std::vector<int32_t> generate_greedy(int32_t id, int64_t count);
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
  // State of the greedy step on the device: the token [1, 1], the length of the text with it [1], and the token that
  // was generated after each position [context]; all int32.
  array token_, size_, generated_;
  ArrayFunction prefill_, append_, greedy_step_;
};

/// Options of Sampler.
struct SamplerOptions {
  float temperature = 1;  ///< 0: always the most likely token
  int64_t top_k = 0;      ///< only the k most likely tokens; 0: all
  float top_p = 1;        ///< only the most likely tokens whose probabilities sum to p
  uint64_t seed = 0;
};

/// Draws tokens from logits. Draw k of a seed is always the same.
class WEFT_API Sampler {
 public:
  /// Throws std::invalid_argument for options out of range.
  explicit Sampler(SamplerOptions options);
  /// Returns a token drawn by the logits [vocab]. Throws std::invalid_argument for no logits or a NaN.
  int32_t operator()(std::span<const float> logits);

 private:
  SamplerOptions options_;
  uint64_t draws_ = 0;
};

}  // namespace weft::models
