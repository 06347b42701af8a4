#pragma once
#include "weft/export.h"

namespace mlx {
namespace core = ::weft;
}
