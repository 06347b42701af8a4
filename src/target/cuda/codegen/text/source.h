#pragma once
// The CUDA C++ that is part of the library: the text of every .cu and .cuh below src/target/cuda, embedded when Weft is
// built (cmake/EmbedText.cmake).
#include <cstddef>
#include <string>
#include <string_view>

namespace weft::target::cuda {

/// A file as it was at build time; `name` is its path below src ("target/cuda/handwritten/scatter_add_rows.cu").
struct EmbeddedFile {
  std::string_view name, text;
};
extern const EmbeddedFile embedded_files[];
extern const size_t embedded_file_count;

/// Returns the text of a file with its `#include "…"` lines replaced by the included text. Throws WeftError if there is
/// no such file.
std::string cuda_source(std::string_view name);

/// Returns the text that precedes every generated kernel.
std::string_view prelude();

}  // namespace weft::target::cuda
