#include "models/text_model.h"

#include <algorithm>

#include "base/error.h"
#include "models/cache_rows.h"

namespace weft::models {

KvCache::KvCache(int64_t count, int64_t heads, int64_t context, int64_t width, Dtype dtype) {
  for (int64_t layer = 0; layer < count; ++layer) layers.push_back(zeros({1, 2 * heads, context, width}, dtype));
}

std::vector<array*> KvCache::state() {
  std::vector<array*> out;
  for (array& layer : layers) out.push_back(&layer);
  return out;
}

array TextModel::token_losses(const array& ids, const array& targets) const {
  return nn::losses::cross_entropy(logits(ids), targets, nn::losses::Reduction::none);
}

array TextModel::loss(const array& ids, const array& targets) const {
  return nn::losses::cross_entropy(logits(ids), targets, nn::losses::Reduction::mean);
}

std::pair<array, array> append_rows(array& cache, const array& keys, const array& values, const array& positions,
                                    std::optional<Dim> length) {
  const array rows = concatenate({keys, values}, 1);  // [1, 2 · heads, t, d]
  const Shape &s = rows.shape(), &all = cache.shape();
  // One update [1, 2 · heads, 1, d] for each position, along axis 2.
  cache = scatter(cache, positions, reshape(transpose(rows, {2, 0, 1, 3}), {s[2], s[0], s[1], 1, s[3]}), 2);
  const int64_t heads = all[1].bound() / 2;
  const Dim n = length.value_or(all[2]);
  return {slice(cache, {0, 0, 0, 0}, {1, heads, n, all[3]}), slice(cache, {0, heads, 0, 0}, {1, 2 * heads, n, all[3]})};
}

array last_row(const array& x, const array& positions) {
  const Dim time = x.shape(1);
  if (time == Dim(1)) return x;
  const array is_last = reshape(equal(positions, max(positions, true)), {1, time, 1});
  return sum(where(is_last, x, array(0, x.dtype())), 1);
}

array argmax_token(const array& logits) { return reshape(astype(argmax(logits), int32), {1, 1}); }

void check_append(const char* what, const array& ids, const array& positions) {
  if (ids.ndim() != 2 || ids.shape(0) != Dim(1))
    throw_invalid(what, "ids must be [1, time]; their shape is " + to_string(ids.shape()));
  if (positions.shape() != Shape{ids.shape(1)})
    throw_invalid(what, "there must be one position for each of the ids " + to_string(ids.shape()) + "; got " +
                            to_string(positions.shape()));
}

}  // namespace weft::models
