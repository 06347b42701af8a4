#pragma once
// The routines of the CPU target that are not generated code, by the name of their call. One line in calls.cpp and a file of its own for each.
#include <memory>

#include "target/target.h"

namespace weft::target {

/// Nothing where there is no routine of that name, or it does not take these arrays.
std::shared_ptr<const LibraryCall> cpu_call(const kernel::CallDesc& desc);

std::shared_ptr<const LibraryCall> cpu_sort(const kernel::CallDesc& desc);
std::shared_ptr<const LibraryCall> cpu_searchsorted(const kernel::CallDesc& desc);

}  // namespace weft::target
