#pragma once
// Families of kernels: those that differ in numbers alone. The first one that is seen has code of its own. With the
// second one comes code for all that differ where these two do, and later ones find that code made.
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "kernel/tile.h"

namespace weft::kernel {

/// A kernel that does another one's work where it is given numbers, as the last of its symbols.
struct General {
  Kernel kernel;
  std::vector<int64_t> numbers;
};

/// What is known of families. Thread-safe.
class Families {
 public:
  /// Returns the kernel that is to be compiled for this one: itself, without numbers, or one of its family.
  General general(const Kernel& kernel);

 private:
  struct Family {
    std::vector<int64_t> first;  // the numbers of the first kernel
    std::vector<int> arguments;  // of which symbol each of them is the value; -1: all kernels so far have the first's
    Kernel kernel;               // that takes them
  };
  std::mutex mutex_;
  std::unordered_map<Digest, Family> families_;
};

}  // namespace weft::kernel
