#pragma once
#include <vector>

#include "weft/array.h"

/// Changes the dtype or the layout of an array, or its part in the graph, and keeps its values. Part of weft/ops.h.
namespace weft {

/// Returns a's elements converted to `dtype`. Floats are rounded to nearest even, and truncated toward 0 for integers
/// (out of range: to the nearest number of the dtype; NaN: to 0). bool is x != 0; a complex number becomes its real
/// part.
WEFT_API array astype(array a, Dtype dtype, StreamOrDevice s = {});
/// Returns the same bits as elements of `dtype`. Where the width differs the last axis becomes longer or shorter;
/// throws std::invalid_argument where it does not divide, and for a scalar. Bools are true where a byte is not 0.
WEFT_API array view(const array& a, const Dtype& dtype, StreamOrDevice s = {});
/// Returns the array itself: arrays are immutable values, so a copy shares the data.
WEFT_API array copy(array a, StreamOrDevice s = {});
/// Returns `a` as a constant for derivatives: no gradient and no tangent passes.
WEFT_API array stop_gradient(const array& a, StreamOrDevice s = {});
/// Returns the same values, laid out row-major in memory once they are evaluated. With `allow_col_major` an array that
/// is column-major keeps that layout.
WEFT_API array contiguous(const array& a, bool allow_col_major = false, StreamOrDevice s = {});
/// Returns the array of `shape` whose element [i, j, …] is element offset + i·strides[0] + j·strides[1] + … of `a`
/// flattened. Throws std::invalid_argument where an index lies outside of `a`.
WEFT_API array as_strided(const array& a, Shape shape, Strides strides, size_t offset, StreamOrDevice s = {});
/// Returns `inputs` as they are; evaluating one of the results also evaluates `dependencies`.
WEFT_API std::vector<array> depends(const std::vector<array>& inputs, const std::vector<array>& dependencies);
/// Returns the product of the sizes along `axes` as a scalar, or 1 over it where `inverted`. The value of a symbolic
/// size is taken from the call.
WEFT_API array number_of_elements(const array& a, std::vector<int> axes, bool inverted, Dtype dtype = int32,
                                  StreamOrDevice s = {});

}  // namespace weft
