#pragma once
/// mlx/random.h of MLX: weft/random.h under the namespace mlx::core.
#include "weft/random.h"

namespace mlx {
namespace core = ::weft;
}
