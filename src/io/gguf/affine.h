#pragma once
// Affine codes as quantized_matmul takes them, in groups of 32, and blocks of a GGUF file: three arrays, and one
// tensor.
#include <optional>
#include <string>
#include <unordered_map>

#include "io/gguf/types.h"
#include "weft/array.h"

namespace weft::io::gguf {

/// The arrays of a matrix of shape [..., k]: codes [..., k · bits / 32], scales and biases [..., k / 32].
struct AffineArrays {
  array codes, scales, biases;
};

/// Returns what the names of scales and biases begin with: the name of the codes without ".weight".
std::string affine_prefix(const std::string& name);

/// Returns the arrays that `blocks` blocks are; `shape` is that of the matrix.
AffineArrays unpack_blocks(const TensorType& type, const uint8_t* data, uint64_t blocks, const Shape& shape);

/// Returns the arrays of a matrix in codes that has this name, where there are all three and their shapes and dtypes
/// fit.
std::optional<AffineArrays> find_affine(const std::unordered_map<std::string, array>& arrays, const std::string& name);
/// Returns the type that holds the codes with all scales and biases, or null where none does.
const TensorType* type_of(const AffineArrays& a);
/// Returns the blocks that the codes are.
std::string pack_blocks(const TensorType& type, const AffineArrays& a);

}  // namespace weft::io::gguf
