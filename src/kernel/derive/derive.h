#pragma once
// Derivatives of kernels, which are kernels: forward mode of any body, reverse mode where a program's accesses can be
// undone. The caller says what the arrays are; it allocates those of the result (graph/calls/kernel_derive.cpp).
#include <vector>

#include "kernel/length.h"
#include "kernel/tile.h"

namespace weft::kernel {

/// A kernel and what it runs on: `dims[k]` are the extents of parameter k, row-major.
struct Source {
  const Kernel& kernel;
  std::vector<std::vector<int64_t>> dims;
  std::vector<char> begins;          // of each parameter: it holds values before the launch (in, in-out)
  int64_t programs = 1;              // at most
  Length count = {};                 // of programs, where it depends on the symbols
  std::vector<int64_t> bounds = {};  // of the symbols
};

/// A parameter of a derivative.
struct DerivedArray {
  enum class Role : uint8_t {
    value,     // the source's array. Where it is written it is a copy that nobody reads afterwards
    tangent,   // in forward mode: of the source's array, in its dtype
    cotangent  // in reverse mode. Of an array that the source writes it begins as the cotangent of the result; of
               // others it begins as zeros, or as nothing (`begins` false). Behind the last program it is that of the
               // source's argument
  };
  size_t source;  // the source's parameter
  Role role;
  bool begins = true;  // it holds values before the launch
  bool written = false;
  Dtype dtype = float32;  // of a cotangent to which programs add: float32 in place of 16 bits
  int64_t parts = 0;      // > 0: a leading axis of this extent, along which the caller sums
};

struct Derivative {
  Kernel kernel;
  std::vector<DerivedArray> arrays;  // of its parameters
  int64_t programs = 1;              // at most
  Length count = {};                 // of programs, where it depends on the source's symbols, which are the kernel's
};

/// Returns the kernel of the tangents of what the source writes, where those parameters have tangents of which `given`
/// is true; results on which these have no influence have no array. Throws std::invalid_argument "[kernel NAME]
/// file:line: …" for what has no derivative.
Derivative forward_derivative(const Source& source, const std::vector<char>& given);

/// Returns the kernel of the cotangents of all floats that the source reads, given those of the results of which
/// `given` is true. Throws std::invalid_argument "[kernel NAME] file:line: …" where the body cannot be reversed.
Derivative reverse_derivative(const Source& source, const std::vector<char>& given);

}  // namespace weft::kernel
