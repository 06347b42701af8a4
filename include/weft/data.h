#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/array.h"
#include "weft/text.h"

/// Data sets of texts and images, and the batches made of them. A batch is a pure function of a seed and its number.
namespace weft::data {

/// Random numbers as a pure function of (seed, counter): resuming at counter k needs no history.
class WEFT_API CounterRandom {
 public:
  explicit CounterRandom(uint64_t seed) : seed_(seed) {}
  /// Returns 64 random bits.
  uint64_t bits(uint64_t counter) const;
  /// Returns a uniform integer in [0, n), n > 0.
  uint64_t below(uint64_t counter, uint64_t n) const;
  /// Returns a uniform number in [0, 1) with 53 bits.
  double uniform(uint64_t counter) const;

 private:
  uint64_t seed_;
};

/// A batch of windows of a text.
struct Batch {
  array inputs, targets;  ///< int32 [batch, context]; targets[b, t] is the token after inputs[b, t]
};
/// A batch in which only some positions count.
struct EvalBatch {
  array inputs, targets, mask;  ///< int32, int32 and float32 [batch, context]; positions with mask 1 count
  int64_t tokens;               ///< number of positions that count
};

/// A text as a sequence of token ids, kept as 16-bit numbers where the vocabulary allows. Throws std::invalid_argument
/// for an id outside the vocabulary.
class WEFT_API TokenDataset {
 public:
  TokenDataset(std::span<const int32_t> tokens, int32_t vocab_size);
  /// Returns the number of tokens.
  int64_t size() const;
  /// Returns token i.
  int32_t operator[](int64_t i) const;

  /// Returns batch k of the seed: `batch` windows at random positions. Throws std::invalid_argument where the text has
  /// fewer than context + 1 tokens.
  Batch random_batch(uint64_t seed, int64_t k, int batch, int context) const;

  /// Returns the number of batches of eval_batch. Throws std::invalid_argument for a text of fewer than two tokens.
  int64_t eval_batches(int batch, int context) const;
  /// Returns batch k of windows of `context` targets one after the other, `batch` windows at a time, each target once
  /// (all tokens but the first). The end is filled up under mask 0, so that every batch has one shape.
  EvalBatch eval_batch(int64_t k, int batch, int context) const;

 private:
  std::vector<uint16_t> narrow_;
  std::vector<int32_t> wide_;
};

/// A text in two parts.
struct Split {
  TokenDataset train, validation;  ///< the first part, and the rest
};
/// Returns the first `fraction` of the tokens to train on and the rest to validate on (nanoGPT: 0.9, cut at int(n ·
/// fraction) characters).
WEFT_API Split split_tokens(std::span<const int32_t> tokens, int32_t vocab_size, double fraction = 0.9);

/// The contents of an idx file (Yann LeCun's format of MNIST) of unsigned bytes.
struct Idx {
  std::vector<int64_t> extents;  ///< lengths of the axes
  std::vector<uint8_t> bytes;    ///< row-major
};
/// Reads an idx file of unsigned bytes, plain or gzip. Throws std::runtime_error naming the file and what is wrong with
/// it: no idx file, another type of elements, impossible extents, cut off, or longer than it says.
WEFT_API Idx read_idx(const std::string& path);

/// A batch of images with their classes.
struct ImageBatch {
  array images;  ///< uint8 [batch, rows, columns, 1]
  array labels;  ///< int32 [batch]
};

/// Grey images [count, rows, columns] with a class each, labels [count] below `classes`. Throws std::invalid_argument
/// where they do not fit together.
class WEFT_API ImageDataset {
 public:
  ImageDataset(Idx images, Idx labels, int classes = 10);

  /// Returns the number of images.
  int64_t size() const { return images_.extents[0]; }
  /// Returns the height of an image.
  int64_t rows() const { return images_.extents[1]; }
  /// Returns the width of an image.
  int64_t columns() const { return images_.extents[2]; }
  /// Returns images first … first + count - 1.
  ImageBatch in_order(int64_t first, int count) const;
  /// Returns batch k of the epoch, in which the order of the images is a function of (seed, epoch). Images that do not
  /// fill a batch are left out.
  ImageBatch shuffled_batch(uint64_t seed, int64_t epoch, int64_t k, int batch) const;
  /// Returns the number of whole batches of an epoch.
  int64_t batches(int batch) const { return size() / batch; }

 private:
  ImageBatch gather(const std::vector<int64_t>& which) const;
  Idx images_, labels_;
};

/// Images to train on and to test with.
struct ImageSplit {
  ImageDataset train, test;  ///< disjoint
};
/// Reads the four files of MNIST in a folder, each plain or with .gz. Throws std::runtime_error naming those that are
/// missing or damaged.
WEFT_API ImageSplit load_mnist(const std::string& folder);
/// Makes images 28 × 28 of ten simple shapes, moved, scaled and with noise, to train on where there is no data. A
/// function of the seed.
WEFT_API ImageSplit synthetic_digits(int64_t train, int64_t test, uint64_t seed);

}  // namespace weft::data
