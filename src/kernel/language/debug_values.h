#pragma once
// What a debugger shows: values and arrays of a kernel by name, and parts of them by indices.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/interpreter/observer.h"
#include "kernel/language/trace.h"

namespace weft::k::detail {

/// What there is to see at a stop: a program with the values of its run-time extents, and where it stands.
struct Scene {
  const Program::Data& program;
  std::span<const int64_t> extents;
  const kernel::Moment& moment;
};

/// A part of a value or an array, row-major.
struct Looked {
  std::vector<int64_t> dims;
  std::vector<Number> elements;  // the first ones, where there are more than are shown
  int64_t size = 1;              // of all
};
/// Returns what "sum", "%7", "p0[2, 0:8]" stand for. Throws std::invalid_argument where there is no such thing.
Looked looked_up(const Scene& scene, std::string_view what);
/// Returns "[[1, 2], [3, 4]]".
std::string text_of(const Looked& part);
/// Returns the names of values that were computed, of arrays, of buffers and of run-time extents.
std::vector<std::string> names_of(const Scene& scene);

}  // namespace weft::k::detail
