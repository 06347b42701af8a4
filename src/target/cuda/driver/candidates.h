#pragma once
// Several ways to do the same work, all right: which of them runs. The one mechanism for cuBLASLt's algorithms, cuDNN's
// plans, and hand-written kernels beside libraries.
//
// The policy: a choice that was recorded in the cache folder is replayed, so that a program runs the same code in every
// process. Where none is recorded the first run outside of a capture measures the candidates and records the winner;
// until then, and in captures, the first candidate runs. Bits may differ between candidates, but not from run to run.
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "target/cuda/driver/context.h"
#include "target/cuda/driver/launch_timer.h"
#include "target/target.h"

namespace weft::target::cuda {

/// What choices depend on beside the work: the device and its driver.
Digest device_digest(Context& context);

/// The state of one choice. Not for several threads at once.
class Choice {
 public:
  using Record = std::vector<char>;
  /// `folder`: of the cache. `key`: of the device, the work, and the versions of whatever may do it.
  Choice(std::string folder, const Digest& key) : folder_(std::move(folder)), key_(key) {}

  /// Returns what an earlier choice left in the cache folder.
  std::optional<Record> recorded() const;
  /// Writes a record.
  void record(const Record& bytes) const;
  bool settled() const { return settled_; }
  /// Of the candidate to run: 0 until something else is known.
  size_t index() const { return index_; }
  void settle(size_t index) { index_ = index, settled_ = true; }
  /// Returns the candidate to run; measures all of them first unless the choice is settled or nothing may be measured
  /// now, and records what `record_of` makes of the winner (nothing where that is empty).
  size_t choose(LaunchTimer& timer, size_t count, const std::function<bool(size_t)>& launch,
                const std::function<Record(size_t)>& record_of);

 private:
  std::string folder_;
  Digest key_;
  size_t index_ = 0;
  bool settled_ = false;
};

/// One way to do a call's work.
struct Candidate {
  std::shared_ptr<const LibraryCall> call;
  std::string version;    // "gemm 4": a choice holds for the versions among which it was made
  int64_t alignment = 1;  // bytes, of all operands
};

/// A call by the fastest of several candidates. Each reads its inputs and writes its results whole, so that it may be
/// run again.
class Candidates final : public LibraryCall {
 public:
  enum class Choose {
    by_measurement,
    in_order,  // the first that takes the operands as they are aligned
  };
  /// `candidates`: at least one, in the order in which they are preferred before anything is known; the last one takes
  /// operands of any alignment. `key`: of the device, the work, and the versions of libraries.
  Candidates(std::unique_ptr<LaunchTimer> timer, std::vector<Candidate> candidates, Choose how, const Digest& key);

  std::string name() const override;
  void run(std::span<void* const> operands) const override;
  void begin() const override;
  bool ready() const override;
  bool recordable() const override;

 private:
  bool takes(const Candidate& candidate, std::span<void* const> operands) const;

  std::unique_ptr<LaunchTimer> timer_;
  std::vector<Candidate> candidates_;
  mutable std::mutex mutex_;
  mutable Choice choice_;
};

}  // namespace weft::target::cuda
