#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/array.h"
#include "weft/text.h"

namespace weft::data {

/// Numbers as a pure function of (seed, counter): resuming at counter k needs no history.
class WEFT_API CounterRandom {
 public:
  explicit CounterRandom(uint64_t seed) : seed_(seed) {}
  uint64_t bits(uint64_t counter) const;
  uint64_t below(uint64_t counter, uint64_t n) const;  ///< uniform in [0, n), n > 0
  double uniform(uint64_t counter) const;              ///< in [0, 1), 53 bits

 private:
  uint64_t seed_;
};

/// inputs[b, t] is followed by targets[b, t] in the text. int32 [batch, context].
struct Batch {
  array inputs, targets;
};
/// A Batch of which only the places with mask 1 count (float32 [batch, context]); `tokens` is their number.
struct EvalBatch {
  array inputs, targets, mask;
  int64_t tokens;
};

/// A text as one row of tokens, kept as 16-bit numbers where the vocabulary allows.
class WEFT_API TokenDataset {
 public:
  TokenDataset(std::span<const int32_t> tokens, int32_t vocab_size);
  int64_t size() const;
  int32_t operator[](int64_t i) const;

  /// Batch number k of the seed: `batch` windows at random places. Throws std::invalid_argument where the text has fewer than context + 1 tokens.
  Batch random_batch(uint64_t seed, int64_t k, int batch, int context) const;

  /// Windows of `context` targets one after the other, each target once (all tokens but the first), `batch` windows at a time;
  /// the end is filled up under mask 0, so that every batch has one shape. At least two tokens are needed.
  int64_t eval_batches(int batch, int context) const;
  EvalBatch eval_batch(int64_t k, int batch, int context) const;

 private:
  std::vector<uint16_t> narrow_;
  std::vector<int32_t> wide_;
};

/// The first `fraction` of the tokens to train on, the rest to validate on (nanoGPT: 0.9, cut at int(n·fraction) characters).
struct Split {
  TokenDataset train, validation;
};
WEFT_API Split split_tokens(std::span<const int32_t> tokens, int32_t vocab_size, double fraction = 0.9);

}  // namespace weft::data
