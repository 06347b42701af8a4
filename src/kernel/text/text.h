#pragma once
// Reads the text that `print` writes (kernel/text/README.md has an example).
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/length.h"
#include "kernel/tile.h"

namespace weft::kernel {

/// The arrays and the grid of one launch.
struct Launch {
  struct Array {
    bool read = true;           // false: a parameter that is written, and whose elements the kernel does not begin with
    std::vector<int64_t> dims;  // of symbols the bounds
    std::vector<int32_t> symbols;  // the kernel's symbol that is each extent, -1 of a number; empty: all are numbers
  };
  std::vector<Array> arrays;  // one for each parameter
  struct Extent {
    std::string name;
    int64_t bound = 1;
  };
  std::vector<Extent> symbols;  // of the kernel
  int64_t programs = 1;         // at most
  Length count;                 // of programs, where it depends on the symbols
};

/// Returns the text of a kernel with the extents of its arrays, their names, and the number of programs.
std::string print(const Kernel& kernel, const Launch& launch);

/// A mistake in a text, at a line and column that count from 1: "[tile IR] 3:14: what, what to do".
struct TextError : std::invalid_argument {
  TextError(const std::string& message, int at_line, int at_column)
      : std::invalid_argument(message), line(at_line), column(at_column) {}
  int line, column;
};

struct ParsedKernel {
  Kernel kernel;                 // verified; its instructions have their lines in the text
  std::optional<Launch> launch;  // where the text has a grid
};

/// Reads one kernel. `parse(print(k)).kernel` has the digest of k. Throws TextError where the text is no kernel, and
/// std::invalid_argument where the verifier refuses it as a whole.
ParsedKernel parse(std::string_view text);

}  // namespace weft::kernel
