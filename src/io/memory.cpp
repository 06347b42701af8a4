// Readers and writers of bytes in memory.
#include <cstring>

#include "base/error.h"
#include "weft/io.h"

namespace weft::io {

namespace {

size_t position(size_t at, size_t size, int64_t offset, std::ios_base::seekdir way) {
  const auto base = static_cast<int64_t>(way == std::ios_base::beg ? 0 : way == std::ios_base::cur ? at : size);
  if (offset < -base || offset > INT64_MAX - base) throw_invalid("seek", "the position would lie before the start");
  return static_cast<size_t>(base + offset);
}

}  // namespace

Reader::~Reader() = default;
Writer::~Writer() = default;

void MemoryReader::seek(int64_t offset, std::ios_base::seekdir way) { at_ = position(at_, bytes_.size(), offset, way); }

void MemoryReader::read(char* data, size_t n) {
  read(data, n, at_);
  at_ += n;
}

void MemoryReader::read(char* data, size_t n, size_t offset) {
  if (offset > bytes_.size() || n > bytes_.size() - offset)
    throw_failure("read", label_ + ": " + std::to_string(n) + " bytes were asked for at byte " +
                              std::to_string(offset) + ", but there are only " + std::to_string(bytes_.size()));
  if (n > 0) std::memcpy(data, bytes_.data() + offset, n);
}

void MemoryWriter::seek(int64_t offset, std::ios_base::seekdir way) { at_ = position(at_, bytes_.size(), offset, way); }

void MemoryWriter::write(const char* data, size_t n) {
  if (at_ + n > bytes_.size()) bytes_.resize(at_ + n);
  if (n > 0) std::memcpy(bytes_.data() + at_, data, n);
  at_ += n;
}

}  // namespace weft::io
