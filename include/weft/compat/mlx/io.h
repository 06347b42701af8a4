#pragma once
#include "weft/io.h"

namespace mlx {
namespace core = ::weft;
}
