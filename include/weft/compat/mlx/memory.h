#pragma once
#include "weft/memory.h"

namespace mlx {
namespace core = ::weft;
}
