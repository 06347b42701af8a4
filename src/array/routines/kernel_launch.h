#pragma once
// Launches of kernels on memory of the caller's, and runs under a debugger there.
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "array/routines/kernel_traced.h"
#include "weft/kernel_function.h"

namespace weft::k::detail {

struct RawEntry;

/// The programs that launches of a kernel were traced for, with their code. Several threads may launch.
class RawPrograms {
 public:
  /// Launches a kernel, which is traced now or was before. Throws std::invalid_argument "[kernel NAME] FILE:LINE:
  /// launch: …" with the caller's line for arrays and run-time extents that do not fit it.
  void launch(const Definition& d, const RawStream& stream, const std::vector<RawArray>& arrays,
              const std::vector<RawExtent>& extents, const AnyConfig& config, Line at);
  /// Runs a kernel in the interpreter on row-major memory of the host's. Throws the same.
  void debug(const Definition& d, const Debugger& debugger, const std::vector<RawArray>& arrays,
             const std::vector<RawExtent>& extents, const AnyConfig& config, Line at);

 private:
  struct Checked {
    std::shared_ptr<RawEntry> entry;
    std::vector<void*> pointers;
    std::vector<int64_t> extents;  // of the program's symbols
  };
  Checked checked(const Definition& d, const std::vector<RawArray>& arrays, const std::vector<RawExtent>& extents,
                  const AnyConfig& config, Line at);
  std::shared_ptr<RawEntry> of(const Definition& d, const std::vector<RawArray>& arrays, std::vector<Strides> strides,
                               const AnyConfig& config);

  std::mutex lock_;
  std::deque<std::shared_ptr<RawEntry>> entries_;  // the latest first
};

}  // namespace weft::k::detail
