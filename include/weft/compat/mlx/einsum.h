#pragma once
/// mlx/einsum.h of MLX: weft/einsum.h under the namespace mlx::core.
#include "weft/einsum.h"

namespace mlx {
namespace core = ::weft;
}
