#pragma once
// The optimizers that `weft train --optimizer NAME` offers. A new one is a row in optimizers.cpp.
#include <memory>
#include <string>
#include <vector>

#include "tools/weft/train/train_options.h"
#include "weft/optim.h"

namespace weft::tool {

/// Returns the names that --optimizer takes.
std::vector<std::string> optimizer_names();

/// Makes the optimizer that the options name, with their rate, betas and weight decay, as far as its rule has them.
/// Matrices alone decay, and moments are corrected for their bias. Throws UsageError for an unknown name.
std::unique_ptr<optim::Optimizer> make_optimizer(optim::Parameters parameters, const TrainOptions& options);

}  // namespace weft::tool
