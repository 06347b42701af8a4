#pragma once
// The configurations of a user's kernel, of which the compiler chooses one (compiler/tune/user_kernels.h). Each is a
// program of its own, with the same arrays. The node's own program is the first one that could be traced.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "graph/calls/kernel_call.h"

namespace weft::graph {

/// A configuration: one word for people and for what is recorded.
struct KernelCandidate {
  std::string word;                              // "{128,64};warps=8"
  std::shared_ptr<const KernelProgram> program;  // null: tracing refused it
  std::string refused = {};                      // why
  std::optional<double> estimate = {};           // seconds, by the user's model
};

/// How an array begins before each run that is measured, where that is not random data.
struct KernelReset {
  size_t array = 0;
  double value = 0;
};

struct KernelTuning {
  std::vector<KernelCandidate> candidates;           // in the user's order
  std::vector<int64_t> shape_key = {};               // what stands for the shapes in keys of choices
  bool keyed = false;                                // the shape key is the user's
  size_t most_measured = 0;                          // by rank; 0: all of them
  std::vector<KernelReset> resets = {};              // of arrays, by their numbers
  std::optional<std::vector<size_t>> restored = {};  // arrays with their old data before each run; default: all in-out
  double compile_limit = 60, run_limit = 10;         // seconds for each configuration
  size_t repetitions = 9;
  Digest key = {};  // of all of this; set by kernel_tuning
};

/// Returns the tuning with its key.
std::shared_ptr<const KernelTuning> kernel_tuning(KernelTuning tuning);

/// Returns a digest of what a kernel does that is the same for shapes of one bucket: extents and whole numbers count by
/// the power of two above them, or with `keyed` not at all.
Digest shape_free_digest(const kernel::Kernel& kernel, bool keyed);

/// Returns the power of two from n on: the bucket of an extent.
int64_t bucket_of(int64_t n);

}  // namespace weft::graph
