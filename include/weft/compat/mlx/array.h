#pragma once
#include "weft/array.h"

namespace mlx {
namespace core = ::weft;
}
