#pragma once
// A file's bytes, mapped or in memory, and arrays that use them.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/array.h"
#include "weft/io.h"

namespace weft::io {

/// Bytes with their owner, and their name in messages. They may be written to: no other reader sees it.
struct Bytes {
  std::string op;    // "load_npz"
  std::string name;  // "weights.npz"
  std::string_view view;
  std::shared_ptr<const void> owner;

  size_t size() const { return view.size(); }
  /// Throws std::runtime_error "[op] name: what, at byte N".
  [[noreturn]] void fail(const std::string& what, uint64_t byte) const;
};

/// Returns the bytes of a file, mapped where it is an ordinary file. Throws std::runtime_error "[op] path: the system's
/// reason".
Bytes map_file(const std::string& op, const std::string& path);
/// Returns the remaining bytes of `in`.
Bytes read_all(const std::string& op, Reader& in);
void write_all(const std::string& op, Writer& out, const std::vector<std::string_view>& pieces);

/// Returns the array whose first element is at byte `at` of `bytes`: in place where the address is a multiple of the
/// element's size, else a copy; with `swap`, of the other byte order. The caller has checked that all of it is inside.
/// Throws for a bool that is neither 0 nor 1.
array array_in(const Bytes& bytes, uint64_t at, const Shape& shape, Dtype dtype, bool column_major = false,
               bool swap = false);

/// Computes the bytes of an array of that shape. Returns false where a size, or the product of those that are not zero,
/// does not fit 63 bits.
bool byte_count(const std::vector<uint64_t>& shape, Dtype dtype, uint64_t& bytes);

/// Returns `file` with `extension` at its end, added where it is missing.
std::string with_extension(const std::string& file, const std::string& extension);

}  // namespace weft::io
