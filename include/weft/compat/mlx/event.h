#pragma once
#include "weft/stream.h"

namespace mlx {
namespace core = ::weft;
}
