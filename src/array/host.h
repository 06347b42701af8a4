#pragma once
// Elements in host memory: numbers of any dtype read, written and copied between layouts.
#include "base/number.h"
#include "base/strided.h"
#include "graph/node.h"

namespace weft::detail {

Number load_element(const void* data, Dtype dtype, int64_t index);
void store_element(void* data, Dtype dtype, int64_t index, Number value);  // `value` fits the dtype

/// Returns whether elements are contiguous in row-major order (axes of extent 1 and empty arrays do not matter).
bool is_row_major(const Shape& shape, const Strides& strides);

using weft::copy_strided;

/// Allocates row-major storage for `type`, with undefined contents.
graph::Storage allocate_storage(const graph::Type& type);
/// Returns the address of a storage's first element.
std::byte* address(const graph::Storage& storage, Dtype dtype);

}  // namespace weft::detail
