#pragma once
/// mlx/io.h of MLX: weft/io.h under the namespace mlx::core.
#include "weft/io.h"

namespace mlx {
namespace core = ::weft;
}
