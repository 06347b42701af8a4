#pragma once
#include "weft/linalg.h"

namespace mlx {
namespace core = ::weft;
}
