#pragma once
// A training run's folder and the options that it goes on with.
#include <optional>
#include <string>

#include "tools/weft/options.h"
#include "tools/weft/train/checkpoint.h"

namespace weft::tool {

/// The resumed run's own options, under what this command line gives. What the checkpoint was made with and cannot
/// change is held against it: `stored` is the command's table over options of its own, which then hold what the
/// checkpoint says.
void take_stored_options(OptionSet stored, OptionSet& set, const Checkpoint& from);
/// --out, or the folder that is resumed, or "out"; without a slash at the end.
std::string folder_to_write(const std::string& out, const std::optional<Checkpoint>& from);
/// Whether the folder can take this run of `weft train KIND`; true where an old one in it must go first.
bool check_output(const std::string& out, bool overwrite, const std::optional<Checkpoint>& from,
                  const std::string& kind);

}  // namespace weft::tool
