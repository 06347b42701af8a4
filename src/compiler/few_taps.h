#pragma once
// Gradients of convolution weights where an output sees few inputs (a kernel of 3 × 3 over one channel). As a product such a gradient has a handful of columns and a
// very long sum, for which no library has a good tile; as one sum for each tap it is computed where the gradient of the output is made, from what lies in registers.
#include "compiler/ir.h"

namespace weft::compiler {

/// Is the kept region such a gradient?
bool has_few_taps(const IrNode& node, const Ir& ir);

/// For devices that are filled by many programs: the kept regions `convolution_weights` with few taps become sums of products.
Ir few_taps(Ir ir);

}  // namespace weft::compiler
