// Reading: APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.3. The directory decides; the headers before the members must agree
// with it.
#include "io/zip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/error.h"
#include "runtime/buffer.h"

namespace weft::io {

namespace {

constexpr uint32_t member_mark = 0x04034b50, entry_mark = 0x02014b50, end_mark = 0x06054b50, end64_mark = 0x06064b50,
                   locator64_mark = 0x07064b50;
constexpr uint64_t end_bytes = 22, locator_bytes = 20, end64_bytes = 56, entry_bytes = 46, member_bytes = 30;

/// Reads little-endian numbers at checked positions.
class Fields {
 public:
  Fields(const Bytes& bytes, uint64_t at, uint64_t size, const char* what) : bytes_(bytes), at_(at) {
    if (at > bytes.size() || size > bytes.size() - at)
      bytes.fail(fmt::format("the archive ends within {}", what), std::min<uint64_t>(at, bytes.size()));
  }
  uint64_t operator()(uint64_t offset, int width) const {
    uint64_t v = 0;
    for (int k = width; k-- > 0;)
      v = v << 8 | static_cast<uint8_t>(bytes_.view[at_ + offset + static_cast<uint64_t>(k)]);
    return v;
  }

 private:
  const Bytes& bytes_;
  uint64_t at_;
};

struct Directory {
  uint64_t at, size, count;
};

uint64_t find_end(const Bytes& zip) {
  if (zip.size() < end_bytes) zip.fail("the file is too short for a zip archive", 0);
  const uint64_t last = zip.size() - end_bytes, first = last - std::min<uint64_t>(last, 0xffff);
  for (uint64_t at = last + 1; at-- > first;) {
    const Fields f(zip, at, end_bytes, "its end record");
    if (f(0, 4) == end_mark && at + end_bytes + f(20, 2) == zip.size()) return at;
  }
  zip.fail("there is no end record: this is no zip archive, or it is truncated", zip.size());
}

Directory find_directory(const Bytes& zip) {
  const uint64_t end = find_end(zip);
  const Fields f(zip, end, end_bytes, "its end record");
  if (f(4, 2) != f(6, 2) || f(8, 2) != f(10, 2)) zip.fail("archives in several parts are not read", end);
  Directory d{f(16, 4), f(12, 4), f(10, 2)};
  uint64_t limit = end;
  if (end >= locator_bytes && Fields(zip, end - locator_bytes, 4, "")(0, 4) == locator64_mark) {
    const uint64_t at = Fields(zip, end - locator_bytes, locator_bytes, "its zip64 locator")(8, 8);
    const Fields wide(zip, at, end64_bytes, "its zip64 end record");
    if (wide(0, 4) != end64_mark) zip.fail("the zip64 end record is not where the locator says", at);
    if (at + end64_bytes > end - locator_bytes) zip.fail("the zip64 end record is after its locator", at);
    d = {wide(48, 8), wide(40, 8), wide(32, 8)};
    limit = at;
  }
  if (d.at > limit || d.size > limit - d.at) zip.fail("the directory runs past the end record", end);
  return d;
}

/// Reads sizes and position of an entry from its zip64 field, where its 32-bit fields say so.
void read_wide(const Bytes& zip, uint64_t at, uint64_t length, uint64_t* const (&fields)[3]) {
  const auto all_ones = [](const uint64_t* v) { return *v == 0xffffffff; };
  if (std::none_of(std::begin(fields), std::end(fields), all_ones)) return;
  for (uint64_t k = 0; k + 4 <= length;) {
    const Fields head(zip, at + k, 4, "an extra field");
    const uint64_t size = head(2, 2);
    if (size > length - k - 4) zip.fail("an extra field runs past its entry", at + k);
    if (head(0, 2) == 1) {
      uint64_t used = 0;
      for (uint64_t* field : fields) {
        if (!all_ones(field)) continue;
        if (used + 8 > size) zip.fail("a zip64 field is too short", at + k);
        *field = Fields(zip, at + k + 4 + used, 8, "a zip64 field")(0, 8);
        used += 8;
      }
      return;
    }
    k += 4 + size;
  }
}

/// Returns where a member's data begins, by the header before it.
uint64_t data_offset(const Bytes& zip, const ZipMember& m, uint64_t header, uint64_t limit) {
  const Fields f(zip, header, member_bytes, "a member's header");
  const std::string who = "member '" + m.name + "'";
  if (f(0, 4) != member_mark) zip.fail(who + " does not begin where the directory says", header);
  const uint64_t name = f(26, 2), begin = header + member_bytes + name + f(28, 2);
  if (begin > limit || m.packed > limit - begin) zip.fail(who + " runs into the directory", header);
  if (zip.view.substr(header + member_bytes, name) != m.name)
    zip.fail(who + " has another name in its own header", header + member_bytes);
  return begin;
}

/// Reads one entry of the directory. Returns where the next begins.
uint64_t read_entry(const Bytes& zip, uint64_t at, uint64_t end, uint64_t limit, ZipMember& m, uint64_t& header) {
  const Fields f(zip, at, entry_bytes, "its directory");
  if (f(0, 4) != entry_mark) zip.fail("the directory is damaged", at);
  const uint64_t name = f(28, 2), extra = f(30, 2), next = at + entry_bytes + name + extra + f(32, 2);
  if (next > end) zip.fail("an entry runs past the directory", at);
  m.name = zip.view.substr(at + entry_bytes, name);
  const uint64_t flags = f(8, 2), method = f(10, 2);
  if (flags & 1) zip.fail("member '" + m.name + "' is encrypted", at);
  if (method != 0 && method != 8)
    zip.fail(fmt::format("member '{}' is packed by method {}; stored and deflated members are read", m.name, method),
             at);
  m.deflated = method == 8;
  m.checksum = static_cast<uint32_t>(f(16, 4));
  m.packed = f(20, 4), m.size = f(24, 4), header = f(42, 4);
  read_wide(zip, at + entry_bytes + name, extra, {&m.size, &m.packed, &header});
  m.at = data_offset(zip, m, header, limit);
  // Deflate makes at most 1032 bytes of one: a larger claim is refused before memory is allocated for it.
  const bool credible = m.deflated ? m.size / 1032 <= m.packed : m.size == m.packed;
  if (!credible) zip.fail(fmt::format("member '{}' claims {} bytes of content in {}", m.name, m.size, m.packed), at);
  return next;
}

void refuse_shared_bytes(const Bytes& zip, const std::vector<ZipMember>& members,
                         const std::vector<uint64_t>& headers) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (size_t k = 0; k < members.size(); ++k) ranges.emplace_back(headers[k], members[k].at + members[k].packed);
  std::sort(ranges.begin(), ranges.end());
  for (size_t k = 1; k < ranges.size(); ++k)
    if (ranges[k].first < ranges[k - 1].second) zip.fail("two members share bytes of the archive", ranges[k].first);
}

/// Unpacks raw deflate data; throws unless all of the input makes exactly `size` bytes.
void inflate_all(const Bytes& archive, const ZipMember& m, unsigned char* to) {
  z_stream z{};
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK) throw_failure(archive.op, archive.name + ": zlib has no memory");
  const auto* from = reinterpret_cast<const unsigned char*>(archive.view.data()) + m.at;
  uint64_t in = m.packed, out = m.size;
  int state = Z_OK;
  while (state == Z_OK) {
    constexpr uint64_t most = 1 << 30;
    const auto give = static_cast<uInt>(std::min(in, most)), room = static_cast<uInt>(std::min(out, most));
    z.next_in = const_cast<unsigned char*>(from), z.avail_in = give;
    z.next_out = to, z.avail_out = room;
    state = inflate(&z, Z_NO_FLUSH);
    from += give - z.avail_in, in -= give - z.avail_in;
    to += room - z.avail_out, out -= room - z.avail_out;
  }
  inflateEnd(&z);
  if (state != Z_STREAM_END || in != 0 || out != 0)
    archive.fail("member '" + m.name + "' cannot be unpacked: its data is damaged", m.at + (m.packed - in));
}

}  // namespace

std::vector<ZipMember> read_zip(const Bytes& zip) {
  const Directory d = find_directory(zip);
  std::vector<ZipMember> members;
  std::vector<uint64_t> headers;
  std::set<std::string> names;
  uint64_t at = d.at;
  for (uint64_t k = 0; k < d.count; ++k) {
    const uint64_t offset = at;
    if (at >= d.at + d.size)
      zip.fail(fmt::format("the directory has {} entries, not the {} that the end record says", k, d.count), at);
    ZipMember m;
    uint64_t header = 0;
    at = read_entry(zip, at, d.at + d.size, d.at, m, header);
    if (!names.insert(m.name).second) zip.fail("member '" + m.name + "' occurs twice", offset);
    members.push_back(std::move(m));
    headers.push_back(header);
  }
  if (at != d.at + d.size) zip.fail("something follows the last entry of the directory", at);
  refuse_shared_bytes(zip, members, headers);
  return members;
}

Bytes content(const Bytes& archive, const ZipMember& m) {
  Bytes out{archive.op, archive.name + ": " + m.name, archive.view.substr(m.at, m.packed), archive.owner};
  if (m.deflated) {
    const runtime::BufferRef buffer = runtime::allocate(m.size);
    inflate_all(archive, m, static_cast<unsigned char*>(buffer->data()));
    out.view = {static_cast<const char*>(buffer->data()), m.size};
    out.owner = buffer;
  }
  if (crc32_z(0, reinterpret_cast<const unsigned char*>(out.view.data()), out.view.size()) != m.checksum)
    archive.fail("member '" + m.name + "' does not match its checksum: it is damaged", m.at);
  return out;
}

namespace {

std::string number(uint64_t v, int width) {
  std::string out;
  for (int k = 0; k < width; ++k) out += static_cast<char>(v >> (8 * k) & 0xff);
  return out;
}

std::string deflated(const std::string& op, const std::vector<std::string_view>& pieces) {
  z_stream z{};
  if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw_failure(op, "zlib has no memory");
  std::string out, block(1 << 16, '\0');
  const auto feed = [&](std::string_view part, int flush) {
    z.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(part.data())),
    z.avail_in = static_cast<uInt>(part.size());
    do {
      z.next_out = reinterpret_cast<unsigned char*>(block.data()), z.avail_out = static_cast<uInt>(block.size());
      deflate(&z, flush);
      out.append(block, 0, block.size() - z.avail_out);
    } while (z.avail_out == 0);
  };
  for (const std::string_view piece : pieces)
    for (size_t k = 0; k < piece.size(); k += 1 << 30) feed(piece.substr(k, 1 << 30), Z_NO_FLUSH);
  feed({}, Z_FINISH);
  deflateEnd(&z);
  return out;
}

/// Returns the fields that the header before a member shares with its entry in the directory, from the version to the
/// sizes.
std::string common_fields(const ZipInput& in, const ZipMember& m, bool wide) {
  const bool ascii =
      std::all_of(in.name.begin(), in.name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  constexpr uint64_t first_of_1980 = 0x21;
  return number(wide ? 45 : 20, 2) + number(ascii ? 0 : 0x800, 2) + number(m.deflated ? 8 : 0, 2) + number(0, 2) +
         number(first_of_1980, 2) + number(m.checksum, 4) + number(wide ? 0xffffffff : m.packed, 4) +
         number(wide ? 0xffffffff : m.size, 4) + number(in.name.size(), 2);
}

/// Returns padding in the extra field 0xd935, which Android's tools use: the alignment, then as many zeros as needed.
std::string padding(uint64_t begin) {
  uint64_t fill = (64 - begin % 64) % 64;
  if (fill == 0) return {};
  if (fill < 6) fill += 64;
  return number(0xd935, 2) + number(fill - 4, 2) + number(64, 2) + std::string(fill - 6, '\0');
}

std::string end_records(uint64_t at, uint64_t size, uint64_t count, bool wide) {
  std::string out;
  wide = wide || at >= 0xffffffff || size >= 0xffffffff || count >= 0xffff;
  if (wide) {
    out += number(end64_mark, 4) + number(44, 8) + number(45, 2) + number(45, 2) + number(0, 8) + number(count, 8) +
           number(count, 8) + number(size, 8) + number(at, 8);
    out += number(locator64_mark, 4) + number(0, 4) + number(at + size, 8) + number(1, 4);
  }
  const uint64_t n = wide ? 0xffff : count;
  return out + number(end_mark, 4) + number(0, 4) + number(n, 2) + number(n, 2) + number(wide ? 0xffffffff : size, 4) +
         number(wide ? 0xffffffff : at, 4) + number(0, 2);
}

}  // namespace

ZipImage write_zip(const std::string& op, std::span<const ZipInput> inputs, bool deflate, bool force_wide) {
  ZipImage image;
  std::string directory;
  uint64_t at = 0;
  const auto put = [&](std::string_view piece) { image.pieces.push_back(piece), at += piece.size(); };
  for (const ZipInput& in : inputs) {
    if (in.name.size() > 0xffff)
      throw_invalid(op, "a name of " + std::to_string(in.name.size()) + " bytes is too long for a zip archive");
    ZipMember m;
    m.deflated = deflate;
    for (const std::string_view piece : in.pieces) {
      m.size += piece.size();
      m.checksum = static_cast<uint32_t>(
          crc32_z(m.checksum, reinterpret_cast<const unsigned char*>(piece.data()), piece.size()));
    }
    std::vector<std::string_view> data = in.pieces;
    if (deflate) data = {image.texts.emplace_back(deflated(op, in.pieces))};
    m.packed = 0;
    for (const std::string_view piece : data) m.packed += piece.size();
    const bool wide = force_wide || std::max({m.size, m.packed, at}) >= 0xffffffff;
    const uint64_t header = at;
    const std::string fields = common_fields(in, m, wide), sizes = number(m.size, 8) + number(m.packed, 8);
    std::string extra = wide ? number(1, 2) + number(16, 2) + sizes : "";
    if (!deflate) extra += padding(at + member_bytes + in.name.size() + extra.size());
    put(image.texts.emplace_back(number(member_mark, 4) + fields + number(extra.size(), 2) + in.name + extra));
    for (const std::string_view piece : data) put(piece);
    directory += number(entry_mark, 4) + number(wide ? 45 : 20, 2) + fields + number(wide ? 28 : 0, 2) + number(0, 2) +
                 number(0, 2) + number(0, 2) + number(0, 4) + number(wide ? 0xffffffff : header, 4) + in.name +
                 (wide ? number(1, 2) + number(24, 2) + sizes + number(header, 8) : "");
  }
  const uint64_t begin = at, size = directory.size();
  put(image.texts.emplace_back(directory + end_records(begin, size, inputs.size(), force_wide)));
  return image;
}

}  // namespace weft::io
