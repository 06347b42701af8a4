#include "io/bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "array/host.h"
#include "base/error.h"
#include "graph/build.h"

namespace weft::io {

namespace {

struct OpenFile {
  int fd;
  ~OpenFile() {
    if (fd >= 0) ::close(fd);
  }
};

[[noreturn]] void fail_system(const std::string& op, const std::string& path, int error) {
  throw_failure(op, path + ": " + std::strerror(error));
}

// Maps privately and writable: a compiled step that owns an array of the file may update it in place, on its own copy
// of the pages.
Bytes mapping(const std::string& op, const std::string& path, int fd, size_t size) {
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
  if (data == MAP_FAILED) fail_system(op, path, errno);
  std::shared_ptr<const void> owner(data, [size](const void* p) { ::munmap(const_cast<void*>(p), size); });
  return {op, path, {static_cast<const char*>(data), size}, std::move(owner)};
}

Bytes owned(const std::string& op, const std::string& name, std::string bytes) {
  auto text = std::make_shared<const std::string>(std::move(bytes));
  return {op, name, *text, text};
}

void check_bools(const Bytes& bytes, uint64_t at, uint64_t size) {
  const auto part = bytes.view.substr(at, size);
  const auto bad = std::find_if(part.begin(), part.end(), [](char c) { return c != 0 && c != 1; });
  if (bad != part.end()) bytes.fail("a bool that is neither 0 nor 1", at + static_cast<uint64_t>(bad - part.begin()));
}

graph::Storage storage_in(const Bytes& bytes, uint64_t at, uint64_t size, Strides strides) {
  void* data = const_cast<char*>(bytes.view.data()) + at;
  auto buffer = std::make_shared<runtime::Buffer>(data, size, [owner = bytes.owner](void*) {});
  return {std::move(buffer), 0, std::move(strides)};
}

graph::Storage storage_copied(const char* from, uint64_t size, Dtype dtype, bool swap, Strides strides) {
  runtime::BufferRef buffer = runtime::allocate(size);
  char* to = static_cast<char*>(buffer->data());
  if (size > 0) std::memcpy(to, from, size);
  const size_t width = real_of(dtype).size();  // parts of complex numbers are swapped separately
  for (uint64_t k = 0; swap && k < size; k += width) std::reverse(to + k, to + k + width);
  return {std::move(buffer), 0, std::move(strides)};
}

Strides column_major_strides(const Shape& shape) {
  Strides strides;
  int64_t step = 1;
  for (const Dim& d : shape) {
    strides.push_back(step);
    step *= std::max<int64_t>(d, 1);
  }
  return strides;
}

}  // namespace

void Bytes::fail(const std::string& what, uint64_t byte) const {
  throw_failure(op, name + ": " + what + ", at byte " + std::to_string(byte));
}

Bytes map_file(const std::string& op, const std::string& path) {
  const OpenFile file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) fail_system(op, path, errno);
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) fail_system(op, path, errno);
  if (S_ISDIR(info.st_mode)) fail_system(op, path, EISDIR);
  if (!S_ISREG(info.st_mode) || info.st_size == 0) return owned(op, path, read_file(path));
  return mapping(op, path, file.fd, static_cast<size_t>(info.st_size));
}

Bytes read_all(const std::string& op, Reader& in) {
  if (!in.is_open() || !in.good()) throw_failure(op, in.label() + ": cannot be read");
  const size_t start = in.tell();
  in.seek(0, std::ios_base::end);
  const size_t end = in.tell();
  in.seek(static_cast<int64_t>(start));
  std::string bytes(end > start ? end - start : 0, '\0');
  in.read(bytes.data(), bytes.size());
  return owned(op, in.label(), std::move(bytes));
}

void write_all(const std::string& op, Writer& out, const std::vector<std::string_view>& pieces) {
  if (!out.is_open() || !out.good()) throw_failure(op, out.label() + ": cannot be written");
  for (const auto piece : pieces) out.write(piece.data(), piece.size());
  if (!out.good()) throw_failure(op, out.label() + ": writing failed");
}

array array_in(const Bytes& bytes, uint64_t at, const Shape& shape, Dtype dtype, bool column_major, bool swap) {
  const uint64_t size = static_cast<uint64_t>(num_elements(shape)) * dtype.size();
  if (dtype == bool_) check_bools(bytes, at, size);
  Strides strides = column_major ? column_major_strides(shape) : row_major_strides(shape);
  const char* from = bytes.view.data() + at;
  const bool in_place =
      size > 0 && !(swap && dtype.size() > 1) && reinterpret_cast<uintptr_t>(from) % real_of(dtype).size() == 0;
  return array(graph::data({shape, dtype},
                           in_place ? storage_in(bytes, at, size, std::move(strides))
                                    : storage_copied(from, size, dtype, swap && dtype.size() > 1, std::move(strides))));
}

bool byte_count(const std::vector<uint64_t>& shape, Dtype dtype, uint64_t& bytes) {
  uint64_t product = dtype.size();
  bool empty = false;
  for (const uint64_t n : shape) {
    if (n == 0) empty = true;
    else if (n > static_cast<uint64_t>(INT64_MAX) / product) return false;
    else product *= n;
  }
  bytes = empty ? 0 : product;
  return true;
}

std::string with_extension(const std::string& file, const std::string& extension) {
  return file.ends_with(extension) ? file : file + extension;
}

}  // namespace weft::io
