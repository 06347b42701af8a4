#pragma once
/// mlx/fast.h of MLX: weft/fast.h under the namespace mlx::core.
#include "weft/fast.h"

namespace mlx {
namespace core = ::weft;
}
