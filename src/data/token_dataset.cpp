// Batches of a token sequence: random ones as a pure function of (seed, index), and windows in order for evaluation.
#include <limits>

#include "base/error.h"
#include "weft/data.h"

namespace weft::data {

namespace {

// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection that mixes every bit into every other.
uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

constexpr uint64_t golden = 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio, odd

void check_sizes(const char* op, int batch, int context) {
  if (batch <= 0 || context <= 0)
    throw_invalid(
        op, "batch and context must be positive; got " + std::to_string(batch) + " and " + std::to_string(context));
}

array matrix(const std::vector<int32_t>& values, int batch, int context) {
  return array::from_data(values.data(), {batch, context}, int32);
}

}  // namespace

uint64_t CounterRandom::bits(uint64_t counter) const { return mix(mix(seed_ + golden) + golden * (counter + 1)); }

// High half of a 128-bit product; the bias is below n / 2^64.
uint64_t CounterRandom::below(uint64_t counter, uint64_t n) const {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((static_cast<Wide>(bits(counter)) * n) >> 64);
}

double CounterRandom::uniform(uint64_t counter) const { return static_cast<double>(bits(counter) >> 11) * 0x1p-53; }

TokenDataset::TokenDataset(std::span<const int32_t> tokens, int32_t vocab_size) {
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= vocab_size)
      throw_invalid("TokenDataset", "token " + std::to_string(tokens[i]) + " at position " + std::to_string(i) +
                                        " is outside the vocabulary of " + std::to_string(vocab_size));
  if (vocab_size <= std::numeric_limits<uint16_t>::max() + 1) narrow_.assign(tokens.begin(), tokens.end());
  else wide_.assign(tokens.begin(), tokens.end());
}

int64_t TokenDataset::size() const { return static_cast<int64_t>(narrow_.size() + wide_.size()); }

int32_t TokenDataset::operator[](int64_t i) const {
  return wide_.empty() ? narrow_[static_cast<size_t>(i)] : wide_[static_cast<size_t>(i)];
}

Batch TokenDataset::random_batch(uint64_t seed, int64_t k, int batch, int context) const {
  check_sizes("random_batch", batch, context);
  if (size() < int64_t{context} + 1)
    throw_invalid("random_batch", "the text has " + std::to_string(size()) + " tokens; windows of " +
                                      std::to_string(context) + " need at least " + std::to_string(context + 1) +
                                      ": take a longer text or a shorter context");
  const CounterRandom random(seed);
  std::vector<int32_t> x, y;
  for (int b = 0; b < batch; ++b) {
    const uint64_t draw = static_cast<uint64_t>(k) * static_cast<uint64_t>(batch) + static_cast<uint64_t>(b);
    const int64_t start = static_cast<int64_t>(random.below(draw, static_cast<uint64_t>(size() - context)));
    for (int t = 0; t < context; ++t) {
      x.push_back((*this)[start + t]);
      y.push_back((*this)[start + t + 1]);
    }
  }
  return {matrix(x, batch, context), matrix(y, batch, context)};
}

int64_t TokenDataset::eval_batches(int batch, int context) const {
  check_sizes("eval_batches", batch, context);
  if (size() < 2)
    throw_invalid("eval_batches", "the text has " + std::to_string(size()) +
                                      " tokens; at least two are needed to predict one from another");
  const int64_t targets = size() - 1, windows = (targets + context - 1) / context;
  return (windows + batch - 1) / batch;
}

EvalBatch TokenDataset::eval_batch(int64_t k, int batch, int context) const {
  const int64_t count = eval_batches(batch, context), targets = size() - 1;
  if (k < 0 || k >= count)
    throw_out_of_range("eval_batch", "batch " + std::to_string(k) + " of " + std::to_string(count));
  const size_t positions = static_cast<size_t>(batch) * static_cast<size_t>(context);
  std::vector<int32_t> x(positions, 0), y(positions, 0);
  std::vector<float> mask(positions, 0);
  const int64_t first = k * static_cast<int64_t>(positions);  // windows follow each other, so positions are tokens
  int64_t tokens = 0;
  for (size_t p = 0; p < positions && first + static_cast<int64_t>(p) < targets; ++p, ++tokens) {
    x[p] = (*this)[first + static_cast<int64_t>(p)];
    y[p] = (*this)[first + static_cast<int64_t>(p) + 1];
    mask[p] = 1;
  }
  return {matrix(x, batch, context), matrix(y, batch, context),
          array::from_data(mask.data(), {batch, context}, float32), tokens};
}

Split split_tokens(std::span<const int32_t> tokens, int32_t vocab_size, double fraction) {
  if (!(fraction > 0 && fraction < 1))
    throw_invalid("split_tokens", "the training share must lie between 0 and 1; it is " + std::to_string(fraction));
  const size_t cut = static_cast<size_t>(static_cast<double>(tokens.size()) * fraction);
  return {TokenDataset(tokens.first(cut), vocab_size), TokenDataset(tokens.subspan(cut), vocab_size)};
}

}  // namespace weft::data
