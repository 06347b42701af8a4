#pragma once
// The interface of language models for training and generation: token ids in, logits and losses out, and a key-value
// cache of the tokens that were read.
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "weft/nn.h"

namespace weft::models {

/// Keys and values of the tokens so far, one array for each layer: [1, 2 · heads, context, head width], the keys of all
/// heads before the values. Rows after the length of the text are not read.
struct WEFT_API KvCache {
  KvCache(int64_t count, int64_t heads, int64_t context, int64_t width, Dtype dtype);
  std::vector<array> layers;
  std::vector<array*> state();  ///< handles, for CompileOptions::state
};

/// A language model.
class WEFT_API TextModel : public nn::Module {
 public:
  explicit TextModel(const nn::Precision& p) : precision(p) {}
  /// Returns the number of tokens.
  virtual int64_t vocab() const = 0;
  /// Returns the most tokens that the model reads at once.
  virtual int64_t context() const = 0;
  /// Returns an empty cache.
  virtual KvCache cache() const = 0;

  /// Returns logits [batch, time, vocab] in the compute dtype for integer ids [batch, time], time ≤ context.
  virtual array logits(const array& ids) const = 0;
  /// Returns the cross-entropy of each token, float32 [batch, time], for targets [batch, time].
  array token_losses(const array& ids, const array& targets) const;
  /// Returns the mean of token_losses.
  array loss(const array& ids, const array& targets) const;
  /// Reads tokens ids [1, t] at `positions` (int32 [t], rising by 1) and appends their keys and values to the cache,
  /// whose first `length` rows are valid then. Returns the float32 logits [vocab] of the token after the last one. t
  /// and `length` may be symbolic, so that one program serves all lengths.
  virtual array append(const array& ids, const array& positions, Dim length, KvCache& cache) const = 0;
  /// Returns the same for one token ids [1, 1], with which the text has `length` (int32 [1]) tokens. No shape depends
  /// on the length, so every token runs the same program on the same addresses.
  virtual array next(const array& ids, const array& length, KvCache& cache) const = 0;

  const nn::Precision precision;
  /// The float32 values that parameters of 16 bits were rounded from, by name, for Optimizer::set_masters. They are
  /// computed when they are used, and take no memory before.
  std::unordered_map<std::string, array> starting_values;
};

}  // namespace weft::models
