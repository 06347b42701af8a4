#pragma once
// GGUF, version 3 (versions 1 and 2 differ in the width of lengths):
//   "GGUF", version, number of tensors, number of metadata;
//   metadata: key, type, value;
//   tensors: name, number of axes, lengths (the last axis first), type, offset from the start of the data;
//   padding to a multiple of the alignment (general.alignment, else 32), the data of all tensors.
// A text is its length and its bytes, a list the type of its elements, their number, and the elements.
#include <cstdint>
#include <iterator>
#include <string_view>

#include "weft/dtype.h"

namespace weft::io::gguf {

constexpr std::string_view magic = "GGUF", alignment_key = "general.alignment";
constexpr uint64_t usual_alignment = 32;
constexpr uint32_t newest_version = 3;
constexpr size_t most_axes = 8;

/// The types of metadata that are no arrays.
constexpr uint32_t text_type = 8, list_type = 9;

struct NumberType {
  uint32_t id;
  Dtype dtype;
};
/// The types of metadata that are.
constexpr NumberType number_types[] = {{0, uint8},   {1, int8},  {2, uint16},  {3, int16},  {4, uint32},  {5, int32},
                                       {6, float32}, {7, bool_}, {10, uint64}, {11, int64}, {12, float64}};

/// Returns whether tensors may begin at multiples of n.
constexpr bool is_alignment(uint64_t n) { return n != 0 && (n & (n - 1)) == 0 && n <= 1 << 30; }
constexpr uint64_t aligned(uint64_t at, uint64_t alignment) { return (at + alignment - 1) / alignment * alignment; }

}  // namespace weft::io::gguf
