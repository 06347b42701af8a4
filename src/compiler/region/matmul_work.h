#pragma once
// What a generated matmul of a plan does, as the choice of its tile counts it (kernels/gemm/tiles.h).
#include "compiler/ir/grouping.h"
#include "kernels/gemm/tiles.h"
#include "target/machine.h"

namespace weft::compiler {

/// Returns the work of a product, with what its epilogue reads, computes and stores for each element; `transposed`: of
/// C computed as [n, m].
kernels::GemmWork matmul_work(const DotPlan& plan, const target::Machine& machine, bool transposed);
/// Returns whether a kernel stores C transposed, because its rows are contiguous along m alone.
bool stores_transposed(const DotPlan& plan);
/// Returns whether a GPU computes C as [n, m]: where it is stored so, or else where B is to be the left operand.
bool computes_transposed(const DotPlan& plan, const target::Machine& machine);
/// Returns whether generated code multiplies a product in tiles: on tensor cores, or exactly by a GPU's vector units.
bool takes_matmul_tiles(const DotPlan& plan, const target::Machine& machine);

}  // namespace weft::compiler
