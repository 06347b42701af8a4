#pragma once
/// mlx/memory.h of MLX: weft/memory.h under the namespace mlx::core.
#include "weft/memory.h"

namespace mlx {
namespace core = ::weft;
}
