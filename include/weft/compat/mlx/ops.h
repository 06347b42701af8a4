#pragma once
/// mlx/ops.h of MLX: weft/ops.h under the namespace mlx::core.
#include "weft/ops.h"

namespace mlx {
namespace core = ::weft;
}
