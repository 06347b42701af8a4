#pragma once
// Rows added to those that their numbers say, in no order: where sums need not be the same bits at every run, atomic
// additions spare the sort of the numbers (kernel/routines/routine_scatter.cpp).
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernel/describe/desc.h"
#include "target/cuda/driver/context.h"
#include "target/target.h"

namespace weft::target::cuda {

/// The kernel's source for a `scatter_rows` that it takes: float32 sums of rows of four or a multiple of four elements;
/// "" for others.
std::string row_adds_source(const kernel::CallDesc& desc);

using CompileSource = std::function<std::vector<char>(const std::string& source)>;

/// Null where it does not take the call. `ordered`: the same by a routine that takes operands wherever they begin.
std::shared_ptr<const LibraryCall> row_adds_call(const kernel::CallDesc& desc, Context& context,
                                                 const CompileSource& compile,
                                                 std::shared_ptr<const LibraryCall> ordered);

}  // namespace weft::target::cuda
