#pragma once
// What one instruction must satisfy, given the types of its operands and results: stated once, for the builder (as
// instructions are appended) and for the verifier (which adds scopes). Also the text of one instruction, for their
// messages and the interpreter's.
#include <string>

#include "kernel/tile.h"

namespace weft::kernel {

/// Empty where `inst` is well-formed on its own; else what is wrong. Operands must be values of the kernel. Bodies are
/// not looked into.
std::string broken_rule(const Kernel& kernel, const Inst& inst);

bool is_local(const Kernel& kernel, Ref ref);
bool is_ref(const Kernel& kernel, Ref ref);
Dtype ref_dtype(const Kernel& kernel, Ref ref);
/// Where the limits of a load or store stand in its arguments, and how many there are.
size_t first_limit(Op op);

/// "f32[4,64]", "i64".
std::string to_string(const Type& type);
std::string_view op_name(Op op);
/// One line, numbered as in print(kernel); a loop or when without its body.
std::string print_inst(const Kernel& kernel, const Inst& inst);

}  // namespace weft::kernel
