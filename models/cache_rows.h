#pragma once
// Rows of caches and of what is computed beside them: the parts of TextModel::append that do not depend on the
// architecture.
#include <optional>
#include <utility>

#include "models/text_model.h"

namespace weft::models {

/// Writes keys and values [1, heads, t, d] of t new tokens into a layer's cache at `positions` [t], and gives all its
/// keys and values: of the first `length` places, or of the whole context.
std::pair<array, array> enter_rows(array& cache, const array& keys, const array& values, const array& positions,
                                   std::optional<Dim> length = std::nullopt);
/// The row of x [1, time, width] at the largest position. A length that may be symbolic is not indexed but folded.
array last_row(const array& x, const array& positions);
/// Where the largest of logits [vocab] stands, the first of several: int32 [1, 1]. In two steps, each of which keeps a
/// device busy or is short.
array likeliest(const array& logits);
/// Throws std::invalid_argument where ids are not [1, t] with t positions.
void check_append(const char* what, const array& ids, const array& positions);

}  // namespace weft::models
