#pragma once
#include "weft/dtype.h"

namespace mlx {
namespace core = ::weft;
}
