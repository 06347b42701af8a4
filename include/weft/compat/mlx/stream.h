#pragma once
/// mlx/stream.h of MLX: weft/stream.h under the namespace mlx::core.
#include "weft/stream.h"

namespace mlx {
namespace core = ::weft;
}
