#pragma once
// Split-KV for attention of one query over many keys (flash decoding): the keys of a head are split over several
// programs, so that few heads keep a GPU busy. A second step combines the partial results, weighted by the softmax of
// their logsumexps. The number of splits depends on the bound of the length alone, so the bits do too.
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Replaces each attention region of one query by two nodes, the splits and their combination. `attrs.integers` holds
/// the kind of each node.
Ir split_attention(Ir ir);

}  // namespace weft::compiler
