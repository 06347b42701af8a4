#pragma once
// Split-KV for attention of one query over many keys (flash decoding): the keys of a head are split over several
// programs, so that few heads keep a GPU busy; the partial results are combined with the softmax of their logsumexps as
// weights. The splits depend on the bound of the length alone, and so do the bits.
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Replaces each attention region of one query by two nodes, the splits and their combination; `attrs.integers` says
/// which a node is.
Ir split_attention(Ir ir);

}  // namespace weft::compiler
