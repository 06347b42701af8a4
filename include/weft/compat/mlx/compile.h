#pragma once
/// mlx/compile.h of MLX: weft/compile.h under the namespace mlx::core.
#include "weft/compile.h"

namespace mlx {
namespace core = ::weft;
}
