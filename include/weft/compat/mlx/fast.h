#pragma once
#include "weft/fast.h"

namespace mlx {
namespace core = ::weft;
}
