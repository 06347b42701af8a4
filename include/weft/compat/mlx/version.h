#pragma once
#include "weft/backends.h"

/// The MLX whose C++ API these headers follow, for code that asks. mlx::core::version() is Weft's own.
#define MLX_VERSION_MAJOR 0
#define MLX_VERSION_MINOR 32
#define MLX_VERSION_PATCH 2
#define MLX_VERSION_NUMERIC (100000 * MLX_VERSION_MAJOR + 1000 * MLX_VERSION_MINOR + MLX_VERSION_PATCH)

namespace mlx {
namespace core = ::weft;
}
