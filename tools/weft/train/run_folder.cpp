#include "tools/weft/train/run_folder.h"

#include <fmt/format.h>

namespace weft::tool {

void take_stored_options(OptionSet stored, OptionSet& set, const Checkpoint& from) {
  stored.set_json(from.state.options, from.folder + "/state.json");
  for (const auto& option : set.all())
    if (option.fixed && option.given && option.text() != stored.find(option.name).text())
      throw UsageError(fmt::format(
          "{} {} contradicts the checkpoint {}, which has {}: leave it out, or start a new run without --resume",
          option.shown(), option.text(), from.folder, stored.find(option.name).text()));
  set.set_json(from.state.options, from.folder + "/state.json");
}

std::string folder_to_write(const std::string& out, const std::optional<Checkpoint>& from) {
  std::string path = !out.empty() ? out : from ? from->run_folder() : "out";
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool check_output(const std::string& out, bool overwrite, const std::optional<Checkpoint>& from,
                  const std::string& kind) {
  const bool goes_on = from && same_folder(from->run_folder(), out);
  const bool occupied = !goes_on && has_checkpoint(out);
  if (occupied && !overwrite)
    throw UsageError(
        fmt::format("{0} holds a run already: resume it by `weft train {1} --resume {0}`, choose another folder "
                    "with --out, or give --overwrite",
                    out, kind));
  prepare_folder(out);
  return occupied;
}

}  // namespace weft::tool
