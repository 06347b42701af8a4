#pragma once
#include "weft/ops.h"

namespace mlx {
namespace core = ::weft;
}
