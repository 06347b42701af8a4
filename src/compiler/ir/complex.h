#pragma once
// Lowers complex numbers to pairs of their parts, so that later passes see real numbers only.
#include "compiler/program.h"

namespace weft::compiler {

/// The source with each complex value as two real ones; layouts of complex inputs get the axis of the parts.
Source split_complex(const Source& source);
/// `inner`, made from the split source, as a program on the buffers of `graph`.
std::shared_ptr<const Program> complex_program(const graph::Graph& graph, std::shared_ptr<const Program> inner);

}  // namespace weft::compiler
