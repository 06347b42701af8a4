#pragma once
// Runs and times the tuner's candidates: allocates a group's buffers, fills them alike for every candidate, and returns
// times and results. It holds all the tuner's knowledge of devices and memory.
#include <chrono>
#include <map>
#include <vector>

#include "compiler/tune/tune.h"
#include "runtime/buffer.h"
#include "runtime/device.h"

namespace weft::compiler {

class TuneBench {
 public:
  /// `device`: the device whose memory the candidates use; null: the host's.
  TuneBench(const TuneItem& item, runtime::Accelerator* device);

  /// Fills every buffer: floats in [-1, 1), or in [1/16, 1) with `positive` (for roots and logarithms), integers in
  /// range.
  void fill(bool positive);
  /// Runs a candidate once and returns the seconds, with caches that hold little of the data. `executable`: the
  /// compiled code, for candidates that have code.
  double run(const TuneCandidate& candidate, const target::Executable* executable);
  /// Returns a copy of what a buffer holds, as far as it is filled.
  std::vector<char> contents(NodeId node) const;
  /// Returns copies of the buffers that a run may have written.
  std::vector<std::vector<char>> results() const;
  /// Returns whether more than half of the results' elements are finite.
  bool mostly_finite(const std::vector<std::vector<char>>& results) const;
  /// Returns whether results agree: byte by byte with `same_bits`, else within what another order of summation may
  /// change.
  bool agree(const std::vector<std::vector<char>>& expected, const std::vector<std::vector<char>>& got,
             bool same_bits) const;

 private:
  struct Memory {
    TuneBuffer about;
    runtime::BufferRef data;
    std::vector<char> pattern;  // repeated all over the buffer
  };
  static void set_pattern(Memory& memory, bool positive, uint64_t seed);
  void fill(Memory& memory) const;
  void evict() const;
  void* address(NodeId node) const;

  void start() const;
  double stop(std::chrono::steady_clock::time_point from);

  std::map<int, Memory>& memory() { return sets_[turn_]; }
  const std::map<int, Memory>& memory() const { return sets_[turn_]; }

  std::vector<std::map<int, Memory>> sets_;  // equal ones, of which runs take the next
  size_t turn_ = 0;
  runtime::Accelerator* device_;
  int64_t length_, total_ = 0;
};

}  // namespace weft::compiler
