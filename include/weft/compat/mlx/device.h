#pragma once
#include "weft/device.h"

namespace mlx {
namespace core = ::weft;
}
