#pragma once
// What some targets have beside target.h: blocks of threads that work together on one program, and memory that the
// threads of a block share.
#include <cstdint>

#include "target/target.h"

namespace weft::target {

class Clusters {
 public:
  /// How many blocks run the rounds of a parallel loop (kernel/tile.h) side by side.
  virtual int64_t blocks_together() const = 0;
  /// The same where they need most of what a multiprocessor has, or are to be as many as possible.
  virtual int64_t most_blocks_together() const { return blocks_together(); }

 protected:
  ~Clusters() = default;
};

class SharedMemory {
 public:
  /// The most bytes of it that one block may ask for.
  virtual int64_t shared_bytes() const = 0;

 protected:
  ~SharedMemory() = default;
};

/// 1 where rounds come one after the other.
inline int64_t blocks_together(const Target& target) {
  const auto* clusters = dynamic_cast<const Clusters*>(&target);
  return clusters ? clusters->blocks_together() : 1;
}

inline int64_t most_blocks_together(const Target& target) {
  const auto* clusters = dynamic_cast<const Clusters*>(&target);
  return clusters ? clusters->most_blocks_together() : 1;
}

/// No bound where scratch is ordinary memory.
inline int64_t shared_bytes(const Target& target) {
  const auto* shared = dynamic_cast<const SharedMemory*>(&target);
  return shared ? shared->shared_bytes() : INT64_MAX;
}

}  // namespace weft::target
