#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "weft/array.h"

namespace weft {

/// Tensors by name, and the file's metadata.
using SafetensorsLoad = std::pair<std::unordered_map<std::string, array>, std::unordered_map<std::string, std::string>>;

/// Reads a safetensors file whole and checks all of it before a tensor is made. A file that is damaged, truncated or of a dtype that Weft has not
/// throws std::runtime_error as "[load_safetensors] model.safetensors: … at byte 17".
WEFT_API SafetensorsLoad load_safetensors(const std::string& file, StreamOrDevice s = {});
/// Evaluates the arrays and writes them in a fixed order (wide dtypes first, then by name), so that equal content gives equal bytes. The file appears under its name when it is
/// complete and on disk: whoever reads that name finds the old file or the new one, never a part.
WEFT_API void save_safetensors(const std::string& file, const std::unordered_map<std::string, array>& arrays,
                               const std::unordered_map<std::string, std::string>& metadata = {});

}  // namespace weft

namespace weft::io {

/// The bytes under `path`, through a temporary file in the same folder, fsync and rename. Throws std::runtime_error with the path and the system's reason.
WEFT_API void write_file_atomically(const std::string& path, std::string_view bytes);
/// The pieces one after the other, as one file.
WEFT_API void write_file_atomically(const std::string& path, std::span<const std::string_view> pieces);
/// A whole file. Throws std::runtime_error with the path and the system's reason.
WEFT_API std::string read_file(const std::string& path);

}  // namespace weft::io
