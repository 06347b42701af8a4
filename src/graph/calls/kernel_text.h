#pragma once
// Kernels of users as text: what files hold of them.
#include <memory>
#include <string>
#include <string_view>

#include "graph/calls/kernel_call.h"

namespace weft::graph {

/// Returns the tile IR with names, extents and the number of programs.
std::string text_of(const KernelProgram& program);
enum class CodeInText : uint8_t { refused, taken };
/// Reads what text_of wrote; the program has the same key. Throws std::invalid_argument where the text is no kernel,
/// has code of GPUs and `code` does not allow that, the verifier refuses it, or kernel_program does; kernel::TextError
/// where it knows the position.
std::shared_ptr<const KernelProgram> program_of_text(std::string_view text, CodeInText code = CodeInText::refused);

}  // namespace weft::graph
