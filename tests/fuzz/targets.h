#pragma once
// What is fuzzed: each parser of bytes from outside as a function of those bytes. libFuzzer runs one of them in each
// fuzz_NAME program (preset `fuzz`); the test program beside this runs all of them over the seeds and over every input
// that once did harm (tests/fuzz/corpus/NAME).
#include <span>
#include <string_view>

namespace weft::fuzz {

struct Target {
  const char* name;
  /// Returns where the bytes are taken or refused as they should be. Anything else leaves as an exception, or ends in a
  /// sanitizer.
  void (*run)(std::string_view bytes);
};

std::span<const Target> targets();
/// Throws std::out_of_range.
const Target& target(std::string_view name);

}  // namespace weft::fuzz
