#pragma once
// The folder with what is worth keeping between processes: $WEFT_CACHE_DIR, else $XDG_CACHE_HOME/weft, else
// ~/.cache/weft. An entry appears whole or not at all (temporary name, then rename); a truncated or foreign one is a
// miss; several processes may share the folder; the oldest entries go when it grows over its limit.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"

namespace weft::runtime {

std::string cache_dir();  // created on first use; empty where none can be had (everything then is a miss)
std::optional<std::vector<char>> cache_get(const std::string& kind, const Digest& key);
void cache_put(const std::string& kind, const Digest& key, const void* data, size_t bytes);
void set_cache_dir_limit(uint64_t bytes);  // default 1 GiB

}  // namespace weft::runtime
