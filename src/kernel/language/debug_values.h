#pragma once
// What a debugger shows: values and arrays of a kernel by name, and parts of them by indices.
#include <string>
#include <string_view>
#include <vector>

#include "kernel/interpreter/observer.h"
#include "kernel/language/trace.h"

namespace weft::k::detail {

/// A part of a value or an array, row-major.
struct Looked {
  std::vector<int64_t> dims;
  std::vector<Number> elements;  // the first ones, where there are more than are shown
  int64_t size = 1;              // of all
};
/// Returns what "sum", "%7", "p0[2, 0:8]" stand for. Throws std::invalid_argument where there is no such thing.
Looked looked_up(const Program::Data& program, const kernel::Moment& moment, std::string_view what);
/// Returns "[[1, 2], [3, 4]]".
std::string text_of(const Looked& part);
/// Returns the names of values that were computed, of arrays and of buffers.
std::vector<std::string> names_of(const Program::Data& program, const kernel::Moment& moment);

}  // namespace weft::k::detail
