#pragma once
// The workbench of the tuner: memory for a group's buffers, filled alike for every candidate; runs of a candidate on
// it, timed; and what came out. All that knows where memory lies and when a run is done is in here.
#include <chrono>
#include <map>
#include <vector>

#include "compiler/tune/tune.h"
#include "runtime/buffer.h"
#include "runtime/device.h"

namespace weft::compiler {

class TuneBench {
 public:
  /// `device`: whose memory the candidates work on; null: the host's.
  TuneBench(const TuneItem& item, runtime::Accelerator* device);

  /// Fills every buffer: floats in [-1, 1), or in [1/16, 1) where `positive` (roots and logarithms of random numbers
  /// are better off there), integers in range.
  void fill(bool positive);
  /// Seconds of one run, with caches that hold little of the data. `executable`: of a candidate with code.
  double run(const TuneCandidate& candidate, const target::Executable* executable);
  /// Copies of what a run may have written.
  std::vector<std::vector<char>> results() const;
  /// Are more than half of the numbers in the results finite?
  bool mostly_finite(const std::vector<std::vector<char>>& results) const;
  /// `same_bits`: every byte is the same; otherwise numbers differ by no more than another order of summation may
  /// change.
  bool agree(const std::vector<std::vector<char>>& expected, const std::vector<std::vector<char>>& got,
             bool same_bits) const;

 private:
  struct Memory {
    TuneBuffer about;
    runtime::BufferRef data;
    std::vector<char> pattern;  // repeated all over the buffer
  };
  void fill(Memory& memory) const;
  void evict() const;
  void* address(int node) const;

  void start() const;
  double stop(std::chrono::steady_clock::time_point from);

  std::map<int, Memory> memory_;
  runtime::Accelerator* device_;
  int64_t length_, total_ = 0;
};

}  // namespace weft::compiler
