#pragma once
/// mlx/transforms.h of MLX: weft/transforms.h under the namespace mlx::core.
#include "weft/transforms.h"

namespace mlx {
namespace core = ::weft;
}
