#pragma once
// NumPy's format for one array: "\x93NUMPY", two bytes of version, the header's length (2 bytes in version 1, else 4;
// little endian), the header as a Python dictionary, the elements.
//   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
#include <string>

#include "io/bytes.h"

namespace weft::io {

/// Returns the array that all of `bytes` hold.
array parse_npy(const Bytes& bytes);
/// Returns everything before the elements of a row-major array: a multiple of 64 bytes.
std::string npy_header(const std::string& op, Dtype dtype, const Shape& shape);

}  // namespace weft::io
