#pragma once
// The header of a safetensors file: 8 bytes of length (little endian), that much JSON, then the data of all tensors
// without gaps.
//   {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, …, "__metadata__": {"key": "text"}}
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/array.h"
#include "weft/dtype.h"
#include "weft/shape.h"

namespace weft::io {

struct TensorEntry {
  std::string name;
  Dtype dtype;
  Shape shape;
  uint64_t begin, end;  // bytes, from the end of the header
};

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // in the order of their data
  std::unordered_map<std::string, std::string> metadata;
};

constexpr uint64_t max_header_bytes = 100'000'000;

/// Reads and checks the JSON of a header; `data_bytes` follow it in the file. Throws std::runtime_error
/// "[load_safetensors] file: … at byte N".
SafetensorsHeader parse_header(const std::string& file, std::string_view json, uint64_t data_bytes);
/// Returns length and JSON, padded with blanks to a multiple of 8 bytes.
std::string write_header(const SafetensorsHeader& header);

/// Writes as save_safetensors under exactly this name, without adding an extension.
void save_safetensors_as(const std::string& file, const std::unordered_map<std::string, array>& arrays,
                         const std::unordered_map<std::string, std::string>& metadata);

[[noreturn]] void fail_at(const std::string& file, const std::string& what, uint64_t byte);

}  // namespace weft::io
