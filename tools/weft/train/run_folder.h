#pragma once
// A training run's folder and the options of a resumed run.
#include <optional>
#include <string>

#include "tools/weft/options.h"
#include "tools/weft/train/checkpoint.h"

namespace weft::tool {

/// Reads the options of a resumed run; those of the command line take precedence. Options of the checkpoint that cannot
/// change are compared: `stored` is the command's table over options of its own, which then hold the checkpoint's
/// values.
void take_stored_options(OptionSet stored, OptionSet& set, const Checkpoint& from);
/// Returns --out, or the folder that is resumed, or "out", without a slash at the end.
std::string folder_to_write(const std::string& out, const std::optional<Checkpoint>& from);
/// Checks that the folder can take this run of `weft train KIND`. Returns true where an old run in it must be removed
/// first.
bool check_output(const std::string& out, bool overwrite, const std::optional<Checkpoint>& from,
                  const std::string& kind);

}  // namespace weft::tool
