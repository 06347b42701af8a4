#pragma once
/// mlx/distributed/ops.h of MLX: weft/distributed.h under the namespace mlx::core.
#include "weft/distributed.h"

namespace mlx {
namespace core = ::weft;
}
