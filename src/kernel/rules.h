#pragma once
// The rules for one instruction, given the types of its operands and results. They are stated once, for the builder (as
// instructions are appended) and for the verifier (which adds scopes). Also the text of an instruction for messages.
#include <string>

#include "kernel/tile.h"

namespace weft::kernel {

/// Returns the rule that `inst` breaks, or "" if it is well-formed. Operands must be values of the kernel. Blocks are
/// not checked.
std::string broken_rule(const Kernel& kernel, const Inst& inst);

/// Returns whether targets render the instruction as it is: tiles of up to two axes; broadcasts of a scalar, [n] to
/// [m,n], [m,1] and [1,n]; reshapes between [n], [n,1] and [1,n]; reductions of a power of two by a reducer; dots of
/// two axes whose operands have one dtype.
bool is_basic(const Kernel& kernel, const Inst& inst);
bool is_basic(const Kernel& kernel);

/// Returns whether a block has an instruction of a kind, at any depth.
bool has_instruction(const Block& block, Op op);
/// Returns whether programs of a kernel meet at barriers of the grid: all of them run at once.
inline bool programs_meet(const Kernel& kernel) { return has_instruction(kernel.body, Op::grid_barrier); }
/// Returns whether a block has code of a target (Op::inline_code, Op::source).
bool has_code(const Block& block);
/// Throws std::invalid_argument "[kernel NAME] file:line: …": the code is for GPUs alone.
[[noreturn]] void refuse_code(const Kernel& kernel, const Inst& inst);

bool is_local(const Kernel& kernel, Ref ref);
bool is_ref(const Kernel& kernel, Ref ref);
/// Returns whether the elements of a local buffer are barriers.
bool is_barrier(const Kernel& kernel, Ref ref);
Dtype ref_dtype(const Kernel& kernel, Ref ref);
/// Returns the position of the first limit among the arguments of a load or store.
size_t first_limit(Op op);

/// Returns "f32[4,64]", "i64".
std::string to_string(const Type& type);
std::string_view op_name(Op op);
/// Returns one line, numbered as in print(kernel); a loop or when without its body.
std::string print_inst(const Kernel& kernel, const Inst& inst);

}  // namespace weft::kernel
