#pragma once
// Chooses between several correct implementations of the same work. This is the only such mechanism: for cuBLASLt's
// algorithms, cuDNN's plans, and hand-written kernels against libraries.
//
// The policy: a choice recorded in the cache folder is reused, so that a program runs the same code in every process.
// Without a record, the first run outside of a capture measures the candidates and records the winner; before that, and
// in captures, the first candidate runs. Candidates may differ in bits, runs of one candidate do not.
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

/// Returns a digest of the device and its driver, on which choices depend besides the work.
Digest device_digest(Context& context);

/// The state of one choice. Not thread-safe.
class Choice {
 public:
  using Record = std::vector<char>;
  /// `folder`: the subfolder of the cache. `key`: a digest of the device, the work, and the versions of all candidates.
  Choice(std::string folder, const Digest& key) : folder_(std::move(folder)), key_(key) {}

  /// Returns what an earlier choice left in the cache folder.
  std::optional<Record> recorded() const;
  /// Writes a record.
  void record(const Record& bytes) const;
  bool settled() const { return settled_; }
  /// Returns the candidate to run; 0 until the choice is settled.
  size_t index() const { return index_; }
  void settle(size_t index) { index_ = index, settled_ = true; }
  /// Returns the candidate to run. Unless the choice is settled or the timer may not measure now, it measures all
  /// candidates first and records `record_of(winner)`, if that is not empty.
  size_t choose(LaunchTimer& timer, size_t count, const std::function<bool(size_t)>& launch,
                const std::function<Record(size_t)>& record_of);

 private:
  std::string folder_;
  Digest key_;
  size_t index_ = 0;
  bool settled_ = false;
};

/// One implementation of a call.
struct Candidate {
  std::shared_ptr<const LibraryCall> call;
  std::string version;    // "gemm 4"; a recorded choice is valid for the same versions only
  int64_t alignment = 1;  // bytes, of all operands
};

/// Runs a call by the fastest of several candidates. Each overwrites its results whole and leaves its inputs alone, so
/// that it can be repeated.
class Candidates final : public LibraryCall {
 public:
  enum class Choose {
    by_measurement,
    in_order,  // the first whose alignment the operands have
  };
  /// `candidates`: at least one, in order of preference; the last one takes operands of any alignment. `key`: a digest
  /// of the device, the work, and the versions of libraries.
  Candidates(std::unique_ptr<LaunchTimer> timer, std::vector<Candidate> candidates, Choose how, const Digest& key);

  std::string name() const override;
  void run(std::span<void* const> operands) const override;
  /// These prepare, or wait for, all candidates, or of a measured choice that is settled the winner alone.
  void begin() const override;
  bool ready() const override;
  bool recordable() const override;

 private:
  std::span<const Candidate> contenders() const;
  bool takes(const Candidate& candidate, std::span<void* const> operands) const;

  std::unique_ptr<LaunchTimer> timer_;
  std::vector<Candidate> candidates_;
  bool measured_;
  mutable std::mutex mutex_;
  mutable Choice choice_;
};

}  // namespace weft::target::cuda
