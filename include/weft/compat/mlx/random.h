#pragma once
#include "weft/random.h"

namespace mlx {
namespace core = ::weft;
}
