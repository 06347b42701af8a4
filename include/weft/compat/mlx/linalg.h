#pragma once
/// mlx/linalg.h of MLX: weft/linalg.h under the namespace mlx::core.
#include "weft/linalg.h"

namespace mlx {
namespace core = ::weft;
}
