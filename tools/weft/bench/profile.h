#pragma once
// The profile of a step: kernels, library calls and copies by what they compute, compared with the peaks of the device.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/weft/bench/peaks.h"

namespace weft::tool {

/// All steps of one name, summed over a run.
struct ProfileEntry {
  std::string name;
  double launches = 0, ms = 0, bytes = 0, flops = 0, floor_ms = 0;
  double share = 0;  // of the run's time
  double gbs() const { return ms > 0 ? bytes / ms / 1e6 : 0; }
  double tflops() const { return ms > 0 ? flops / ms / 1e9 : 0; }
  double of_peak() const { return ms > 0 ? floor_ms / ms : 0; }
};

struct Profile {
  double ms = 0, floor_ms = 0;        // of a run: the sum of its steps, and of their minimal times
  std::vector<ProfileEntry> entries;  // the longest first
};

/// Returns means over `runs` calls of `f`, which has run before.
Profile profile(int64_t runs, const std::function<void()>& f);

}  // namespace weft::tool
