#pragma once
// What running kernels say: lines that they print, and conditions that do not hold.
#include <cstdint>
#include <string>

namespace weft::target {

/// Prints a line in which each {} of the text stands for a value: a pair of words, the first one 0 for an integer, 1
/// for a double.
void print_values(const char* text, int64_t count, const int64_t* values);

/// Notes a failure of a kernel; the first one of a launch counts.
void report_failure(const char* message);
/// Returns the failure that was noted since the last call; "" where there is none.
std::string take_failure();

}  // namespace weft::target
