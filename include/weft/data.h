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

  /// Batch number k of the seed: `batch` windows at random places. Throws std::invalid_argument where the text has
  /// fewer than context + 1 tokens.
  Batch random_batch(uint64_t seed, int64_t k, int batch, int context) const;

  /// Windows of `context` targets one after the other, each target once (all tokens but the first), `batch` windows at
  /// a time; the end is filled up under mask 0, so that every batch has one shape. At least two tokens are needed.
  int64_t eval_batches(int batch, int context) const;
  EvalBatch eval_batch(int64_t k, int batch, int context) const;

 private:
  std::vector<uint16_t> narrow_;
  std::vector<int32_t> wide_;
};

/// The first `fraction` of the tokens to train on, the rest to validate on (nanoGPT: 0.9, cut at int(n·fraction)
/// characters).
struct Split {
  TokenDataset train, validation;
};
WEFT_API Split split_tokens(std::span<const int32_t> tokens, int32_t vocab_size, double fraction = 0.9);

/// An idx file (Yann LeCun's format of MNIST): unsigned bytes with their extents, as they lie in the file.
struct Idx {
  std::vector<int64_t> extents;
  std::vector<uint8_t> bytes;
};
/// Reads an idx file of unsigned bytes, plain or gzip. Throws std::runtime_error naming the file and what is wrong with
/// it: no idx file, another type of elements, impossible extents, cut off, or longer than it says.
WEFT_API Idx read_idx(const std::string& path);

struct ImageBatch {
  array images;  ///< uint8 [batch, rows, columns, 1]
  array labels;  ///< int32 [batch]
};

/// Grey images with a class each.
class WEFT_API ImageDataset {
 public:
  /// images [count, rows, columns], labels [count], below `classes`; throws std::invalid_argument where they do not fit
  /// together.
  ImageDataset(Idx images, Idx labels, int classes = 10);

  int64_t size() const { return images_.extents[0]; }
  int64_t rows() const { return images_.extents[1]; }
  int64_t columns() const { return images_.extents[2]; }
  /// Images `first` … `first + count` in their order.
  ImageBatch in_order(int64_t first, int count) const;
  /// Batch k of the epoch: the images in an order that is a function of (seed, epoch). What does not fill a batch is
  /// left out.
  ImageBatch shuffled_batch(uint64_t seed, int64_t epoch, int64_t k, int batch) const;
  int64_t batches(int batch) const { return size() / batch; }

 private:
  ImageBatch gather(const std::vector<int64_t>& which) const;
  Idx images_, labels_;
};

struct ImageSplit {
  ImageDataset train, test;
};
/// The four files of MNIST in a folder, each plain or with .gz; throws std::runtime_error naming those that are missing
/// or damaged.
WEFT_API ImageSplit load_mnist(const std::string& folder);
/// Images 28 × 28 of ten simple shapes, moved, scaled and with noise: something to train on where there is no data. A
/// function of the seed.
WEFT_API ImageSplit synthetic_digits(int64_t train, int64_t test, uint64_t seed);

}  // namespace weft::data
