#pragma once
#include "weft/utils.h"

namespace mlx {
namespace core = ::weft;
}
