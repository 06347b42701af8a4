#pragma once
// Attention of one query over many keys, for devices of many threads: the keys of a head are cut into pieces for
// programs of their own, so that the device is busy with few heads, and the pieces' results are joined by the softmax
// of their logsumexps ("flash-decoding"). The cut depends on the bound of the length alone, and so do the bits.
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Attention regions of one query become two nodes of the same region each: `attrs.integers` says which.
Ir split_attention(Ir ir);

}  // namespace weft::compiler
