// What follows a training step's figure: the stages of compiling, and the profile of its kernels.
#include <fmt/format.h>

#include <map>
#include <string_view>

#include "runtime/trace.h"
#include "tools/weft/bench/support.h"
#include "weft/profile.h"

namespace weft::tool {

void print_stages(const runtime::Timeline& timeline) {
  struct Stage {
    double ms = 0;
    int64_t times = 0;
  };
  std::map<std::string, Stage> stages;
  for (const runtime::Slice& s : timeline.slices) {
    if (std::string_view(s.kind) != "compiler") continue;
    Stage& stage = stages[timeline.names[static_cast<size_t>(s.name)]];
    stage.ms += s.length / 1e3, ++stage.times;
  }
  for (const auto& [name, stage] : stages) fmt::print("{:9.1f} ms {:4}x  {}\n", stage.ms, stage.times, name);
}

void print_profile(int64_t runs, const std::function<void()>& f) {
  constexpr size_t most = 40;
  fmt::print("{}", weft::profile(f, static_cast<int>(runs)).by_work().to_string(most));
}

}  // namespace weft::tool
