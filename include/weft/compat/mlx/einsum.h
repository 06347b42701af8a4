#pragma once
#include "weft/einsum.h"

namespace mlx {
namespace core = ::weft;
}
