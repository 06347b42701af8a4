#pragma once
// Reads the text that `print` writes (kernel/text/README.md has an example).
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/tile.h"

namespace weft::kernel {

/// The arrays and the grid of one launch.
struct Launch {
  struct Array {
    bool read = true;  // false: a parameter that is written, and whose elements the kernel does not begin with
    std::vector<int64_t> dims;
  };
  std::vector<Array> arrays;  // one for each parameter
  int64_t programs = 1;
};

/// Returns the text of a kernel with the extents of its arrays, their names, and the number of programs.
std::string print(const Kernel& kernel, const Launch& launch);

struct ParsedKernel {
  Kernel kernel;                 // verified; its instructions have their lines in the text
  std::optional<Launch> launch;  // where the text has a grid
};

/// Reads one kernel. `parse(print(k)).kernel` has the digest of k. Throws std::invalid_argument "[tile IR] line:column:
/// what, what to do" where the text is no kernel, and where the verifier refuses it.
ParsedKernel parse(std::string_view text);

}  // namespace weft::kernel
