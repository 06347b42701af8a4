#pragma once
/// mlx/device.h of MLX: weft/device.h under the namespace mlx::core.
#include "weft/device.h"

namespace mlx {
namespace core = ::weft;
}
