#pragma once
#include "weft/transforms.h"

namespace mlx {
namespace core = ::weft;
}
