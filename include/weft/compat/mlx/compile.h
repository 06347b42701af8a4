#pragma once
#include "weft/compile.h"

namespace mlx {
namespace core = ::weft;
}
