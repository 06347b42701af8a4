#pragma once
// Which of several ways to do the same work is the fastest on this device.
#include <cstddef>
#include <functional>
#include <string>

#include "target/cuda/driver/context.h"

namespace weft::target::cuda {

/// Runs each of `count` candidates a few times on the context's stream and waits: the one with the shortest run.
/// `launch` enqueues a candidate and says whether it could. A candidate that is far behind after its first runs is not
/// run again. Not while the stream is captured.
size_t fastest(Context& context, size_t count, const std::function<bool(size_t)>& launch, const std::string& what);

}  // namespace weft::target::cuda
