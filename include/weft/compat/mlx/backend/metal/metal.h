#pragma once
#include "weft/backends.h"

namespace mlx {
namespace core = ::weft;
}
