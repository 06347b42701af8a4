#pragma once
/// mlx/dtype.h of MLX: weft/dtype.h under the namespace mlx::core.
#include "weft/dtype.h"

namespace mlx {
namespace core = ::weft;
}
