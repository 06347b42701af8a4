#pragma once
#include "weft/graph_utils.h"

namespace mlx {
namespace core = ::weft;
}
