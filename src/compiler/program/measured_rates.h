#pragma once
// Measures what a target's machine can do, for reports and predictions of times.
#include "target/rates.h"
#include "target/target.h"

namespace weft::compiler {

/// Measures copies of all footprints, matmuls of all sizes and dtypes, elementwise arithmetic and launches: each the
/// best of several runs. Takes about half a second, and on a GPU 1 GiB of its memory.
target::Rates measure_rates(target::Target& target);

/// Returns the rates of a target's machine: those that are kept in the cache folder, raised by a measurement if this
/// process has made none and few processes have (they ran at different times, so that one of them found the machine
/// idle). `again`: measures in any case, as `weft doctor` does, and reports that find a kernel above a peak. The null
/// target has the stated rates.
target::Rates machine_rates(target::Target& target, bool again = false);

}  // namespace weft::compiler
