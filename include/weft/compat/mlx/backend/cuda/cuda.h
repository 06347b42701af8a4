#pragma once
/// mlx/backend/cuda/cuda.h of MLX: weft/backends.h under the namespace mlx::core.
#include "weft/backends.h"

namespace mlx {
namespace core = ::weft;
}
