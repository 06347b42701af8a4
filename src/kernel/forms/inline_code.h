#pragma once
// Code of a target in a kernel: what a user writes in CUDA C++ or PTX.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace weft::kernel {

/// Code for each element of tiles (Op::inline_code), or of a whole kernel (Op::source).
struct InlineCode {
  std::string name;         // in dumps and messages
  std::string text;         // statements of CUDA C++, or PTX
  std::string constraints;  // of PTX, as of asm: those of the results first, "=r,=r,r"; empty: the text is CUDA C++
  std::vector<std::string> inputs = {}, outputs = {};  // what CUDA C++ calls arguments and results
  std::string header = {};                             // of a whole kernel: what stands before it
  int pack = 1;          // elements for which it runs at once: each input and output is an array of them, or, in PTX,
                         // their bits in words
  bool effects = false;  // it is not left out where nobody reads its results
  // Of a whole kernel: threads of a block and blocks along x, y, z, and the bytes of its dynamic shared memory.
  std::array<int64_t, 3> block = {1, 1, 1}, grid = {1, 1, 1};
  int64_t shared_bytes = 0;
  // Where the text begins in the user's program; not hashed.
  const char* file = "";
  int line = 0;
};

}  // namespace weft::kernel
