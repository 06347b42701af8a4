#pragma once
/// mlx/array.h of MLX: weft/array.h under the namespace mlx::core.
#include "weft/array.h"

namespace mlx {
namespace core = ::weft;
}
