#pragma once
/// mlx/fft.h of MLX: weft/fft.h under the namespace mlx::core.
#include "weft/fft.h"

namespace mlx {
namespace core = ::weft;
}
