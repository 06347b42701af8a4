#pragma once
// What some targets have beside target.h: blocks of threads that work together on one program.
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

/// 1 where rounds come one after the other.
inline int64_t blocks_together(const Target& target) {
  const auto* clusters = dynamic_cast<const Clusters*>(&target);
  return clusters ? clusters->blocks_together() : 1;
}

inline int64_t most_blocks_together(const Target& target) {
  const auto* clusters = dynamic_cast<const Clusters*>(&target);
  return clusters ? clusters->most_blocks_together() : 1;
}

}  // namespace weft::target
