#pragma once
#include "weft/fft.h"

namespace mlx {
namespace core = ::weft;
}
