#pragma once
// The folder of data worth keeping between processes: $WEFT_CACHE_DIR, else $XDG_CACHE_HOME/weft, else ~/.cache/weft.
// An entry appears whole or not at all (temporary name, then rename). A truncated or foreign entry is a miss. Several
// processes may share the folder. The oldest entries are deleted when it exceeds its limit.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"

namespace weft::runtime {

std::string cache_dir();  // created on first use; empty if it cannot be (every lookup is then a miss)
std::optional<std::vector<char>> cache_get(const std::string& kind, const Digest& key);
void cache_put(const std::string& kind, const Digest& key, const void* data, size_t bytes);
void set_cache_dir_limit(uint64_t bytes);  // default 1 GiB

}  // namespace weft::runtime
