#pragma once
// Shares code between equal groups: layers of a network often differ only in their buffers. The memo lowers the first
// of them and reuses its kernel for the others.
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/lower/lower.h"

namespace weft::compiler {

/// A lowered group: shared code with the group's own buffers.
struct Lowering {
  std::shared_ptr<const Lowered> code;  // code->params are the first group's
  Digest digest;                        // of the kernel
  std::vector<NodeId> params;           // for each kernel parameter, the node whose buffer it is
};

class LoweringMemo {
 public:
  /// Lowers a group of kind rows. Returns nothing if it cannot have the schedule.
  std::optional<Lowering> rows(const LowerContext& cx, const Group& group,
                               const std::optional<Schedule>& schedule = {});
  Lowering dot(const LowerContext& cx, const Group& group,
               const std::optional<Schedule>& schedule = {});  // by generated code
  Lowering single_query(const LowerContext& cx, const Group& group);

 private:
  struct Entry {
    std::shared_ptr<const Lowered> code;
    Digest digest;
    std::vector<NodeId> params;  // as positions among the nodes in the order of the key's walk
  };
  std::optional<Lowering> find(const Digest& key, const std::vector<NodeId>& owners) const;
  Lowering insert(const Digest& key, const std::vector<NodeId>& owners, Lowered lowered);
  std::unordered_map<Digest, Entry> entries_;
};

}  // namespace weft::compiler
