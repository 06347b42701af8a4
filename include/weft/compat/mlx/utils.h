#pragma once
/// mlx/utils.h of MLX: weft/utils.h under the namespace mlx::core.
#include "weft/utils.h"

namespace mlx {
namespace core = ::weft;
}
