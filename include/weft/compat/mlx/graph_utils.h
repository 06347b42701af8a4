#pragma once
/// mlx/graph_utils.h of MLX: weft/graph_utils.h under the namespace mlx::core.
#include "weft/graph_utils.h"

namespace mlx {
namespace core = ::weft;
}
