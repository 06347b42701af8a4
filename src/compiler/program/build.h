#pragma once
// All passes, once: what `build` and `lookup_or_build` (compiler/program.h) rest on.
#include "compiler/program.h"

namespace weft::compiler {

/// `texts`: the groups may be asked for later.
std::shared_ptr<const Program> compile_source(const Source& source, target::Target& target, const Policy& policy,
                                              bool texts);

}  // namespace weft::compiler
