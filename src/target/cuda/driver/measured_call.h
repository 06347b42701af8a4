#pragma once
// Several ways to do a library's work, all right: the first run outside of a capture measures them, unless the cache
// folder knows the winner.
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "target/cuda/driver/context.h"
#include "target/target.h"

namespace weft::target::cuda {

/// `calls`: at least one, in the order in which they are preferred before anything is known; each reads its inputs and
/// writes its results whole. `key`: what they do, and which versions of what does it; device and driver are added.
std::shared_ptr<const LibraryCall> measured_call(Context& context,
                                                 std::vector<std::shared_ptr<const LibraryCall>> calls,
                                                 const Digest& key, const std::string& what);

}  // namespace weft::target::cuda
