#pragma once
/// MLX's C++ API over Weft: found where a target links weft::mlx (docs/mlx.md).
#include "weft/compat/mlx/version.h"
#include "weft/weft.h"

namespace mlx {
namespace core = ::weft;
}
