#pragma once
// The parts of TextModel::append and TextModel::next that do not depend on the architecture: the append to a key-value
// cache, the last row of a sequence, the greedy choice of a token.
#include <optional>
#include <utility>

#include "models/text_model.h"

namespace weft::models {

/// Appends keys and values [1, heads, t, d] of t new tokens to a layer's cache [1, 2 · heads, context, d] at
/// `positions` (int32 [t]). Returns the keys and values in the cache [1, heads, n, d], n = `length` or the whole
/// context.
std::pair<array, array> append_rows(array& cache, const array& keys, const array& values, const array& positions,
                                    std::optional<Dim> length = std::nullopt);
/// Returns the row [1, width] of x [1, t, width] at the largest of `positions` [t], or x where t is 1. It is a masked
/// sum: t may be symbolic, and then has no last index.
array last_row(const array& x, const array& positions);
/// Returns the argmax of logits [vocab] as int32 [1, 1], the first of equal ones.
array argmax_token(const array& logits);
/// Throws std::invalid_argument where ids are not [1, t] with t positions.
void check_append(const char* what, const array& ids, const array& positions);

}  // namespace weft::models
