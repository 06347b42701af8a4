#pragma once
// The CUDA C++ that is part of the library: the text of every .cu and .cuh of src/target/cuda, embedded when Weft is
// built (cmake/EmbedText.cmake).
#include <cstddef>
#include <string>
#include <string_view>

namespace weft::target::cuda {

/// A file as it was when Weft was built; `name`: its path below src ("target/cuda/handwritten/gemm.cu").
struct EmbeddedFile {
  std::string_view name, text;
};
extern const EmbeddedFile embedded_files[];
extern const size_t embedded_file_count;

/// Returns the text of a file, with those that it includes by `#include "…"` in their place. Throws WeftError where
/// there is no such file.
std::string cuda_source(std::string_view name);

/// Returns the text in front of every generated kernel.
std::string_view prelude();

}  // namespace weft::target::cuda
