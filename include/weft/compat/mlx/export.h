#pragma once
/// mlx/export.h of MLX: weft/export.h under the namespace mlx::core.
#include "weft/export.h"

namespace mlx {
namespace core = ::weft;
}
