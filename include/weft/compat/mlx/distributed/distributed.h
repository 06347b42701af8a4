#pragma once
/// mlx/distributed/distributed.h of MLX: weft/distributed.h under the namespace mlx::core.
#include "weft/distributed.h"

namespace mlx {
namespace core = ::weft;
}
