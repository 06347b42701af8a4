#pragma once
// What the language models have in common for training and for writing: token ids in, logits and losses out, and a
// cache of keys and values for what was read already.
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "weft/nn.h"

namespace weft::models {

/// Keys and values of the tokens so far, one array a layer: [1, 2 · heads, context, width of a head], the keys of all
/// heads before the values. Rows past the length are not read.
struct WEFT_API KvCache {
  KvCache(int64_t count, int64_t heads, int64_t context, int64_t width, Dtype dtype);
  std::vector<array> layers;
  std::vector<array*> state();  ///< handles, for CompileOptions::state
};

class WEFT_API TextModel : public nn::Module {
 public:
  explicit TextModel(const nn::Precision& p) : precision(p) {}
  virtual int64_t vocab() const = 0;
  virtual int64_t context() const = 0;  ///< the most tokens that it reads at once
  virtual KvCache cache() const = 0;    ///< an empty one

  virtual array logits(
      const array& ids) const = 0;  ///< ids int [batch, time ≤ context] → [batch, time, vocab] of the compute dtype
  array token_losses(const array& ids, const array& targets) const;  ///< float32 [batch, time]
  array loss(const array& ids, const array& targets) const;          ///< their mean
  /// Reads tokens ids [1, t] at `positions` (int32 [t], rising by 1) into the cache, whose first `length` rows are then
  /// valid, and gives float32 logits [vocab] for what follows the last of them. t and `length` may be symbolic, so that
  /// one program serves all lengths.
  virtual array append(const array& ids, const array& positions, Dim length, KvCache& cache) const = 0;
  /// The same for one token ids [1, 1], with which the text has `length` (int32 [1]) tokens: no shape says how long it
  /// is, so that every token runs the same program on the same addresses.
  virtual array next(const array& ids, const array& length, KvCache& cache) const = 0;

  const nn::Precision precision;
  /// The values that parameters of 16 bits were rounded from when they were drawn, by name, for Optimizer::set_masters.
  /// They are computed where they are used and take no memory before.
  std::unordered_map<std::string, array> starting_values;
};

}  // namespace weft::models
