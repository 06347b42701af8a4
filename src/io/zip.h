#pragma once
// Zip archives: members stored or deflated, zip64 where sizes need it, no encryption, one file. They are read by the
// directory at the archive's end.
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/bytes.h"

namespace weft::io {

struct ZipMember {
  std::string name;
  uint64_t at = 0;      // of its data
  uint64_t packed = 0;  // bytes in the archive
  uint64_t size = 0;    // bytes of content
  uint32_t checksum = 0;
  bool deflated = false;
};

/// Returns the members in the order of the directory. Throws where two share bytes of the archive or a name.
std::vector<ZipMember> read_zip(const Bytes& archive);
/// Returns a member's content, checked against its checksum: in the archive where it is stored, else unpacked.
Bytes content(const Bytes& archive, const ZipMember& member);

struct ZipInput {
  std::string name;
  std::vector<std::string_view> pieces;  // of its content
};

/// An archive as pieces that are written one after the other. Stored content begins at a multiple of 64 bytes.
struct ZipImage {
  std::vector<std::string_view> pieces;  // of `texts` and of the inputs
  std::deque<std::string> texts;
};
/// Packs members to an archive. `wide` writes zip64 fields everywhere, although no size needs them.
ZipImage write_zip(const std::string& op, std::span<const ZipInput> inputs, bool deflate, bool wide = false);

}  // namespace weft::io
