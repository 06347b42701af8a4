#pragma once
// The types of tensors in a GGUF file, a row each: numbers as they are, and blocks of quantised numbers, which are kept
// in affine codes or become numbers.
#include <cstdint>
#include <optional>
#include <string_view>

#include "weft/dtype.h"

namespace weft::io::gguf {

/// A block in affine codes: element k is scale · codes[k] + bias.
struct AffineBlock {
  uint8_t codes[32];
  float16_t scale, bias;
};

struct TensorType {
  uint32_t id;
  std::string_view name;
  uint32_t elements, bytes;                                     // of a block
  std::optional<Dtype> dtype = {};                              // of numbers that are taken as they are
  void (*decode)(const uint8_t* block, float* out) = nullptr;   // makes the numbers of a block
  void (*codes)(const uint8_t* block, AffineBlock&) = nullptr;  // keeps a block in codes
  void (*pack)(const AffineBlock&, uint8_t* block) = nullptr;   // makes a block of codes again
  int bits = 0;                                                 // of those
  int zero = 0;  // the code of 0, where the bias is -zero · scale and not in the block; 0 where it is in the block
};

/// Returns the row of a type, or null for one that is not read.
const TensorType* find_type(uint32_t id);
/// Returns the row whose numbers have this dtype, or null.
const TensorType* find_type(Dtype dtype);
/// Returns the row of codes of `bits` bits with this code of 0, or null.
const TensorType* find_type(int bits, int zero);
/// Returns the name of a type in messages: that of a known one that is not read, else its number.
std::string_view name_of_type(uint32_t id);

}  // namespace weft::io::gguf
