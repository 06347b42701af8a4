// Whole files: read at once, written so that no reader ever sees a part.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/error.h"
#include "weft/io.h"

namespace weft::io {

namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

[[noreturn]] void fail(const char* op, const std::string& path, int error) {
  throw_failure(op, path + ": " + std::strerror(error));
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> count{0};
  return path + ".tmp." + std::to_string(::getpid()) + "." + std::to_string(count++);
}

void write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), std::min<size_t>(bytes.size(), size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("write_file", path, errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

/// Makes a new file in the folder of `path`, without a name where the system can do that: then a killed process leaves
/// nothing.
int open_temporary(const std::string& path, const std::string& name, bool& named) {
#ifdef O_TMPFILE
  if (const int fd = ::open(folder_of(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666); fd >= 0) {
    named = false;
    return fd;
  }
#endif
  named = true;
  const int fd = ::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (fd < 0) fail("write_file", path, errno);
  return fd;
}

/// Gives the complete file its temporary name. Returns false where that is not possible here (no /proc).
bool give_name(int fd, const std::string& name) {
  const std::string self = "/proc/self/fd/" + std::to_string(fd);
  return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

void write_and_sync(int fd, std::span<const std::string_view> pieces, const std::string& path) {
  for (const auto piece : pieces) write_all(fd, piece, path);
  if (::fsync(fd) != 0) fail("write_file", path, errno);
}

void write_named(const std::string& name, std::span<const std::string_view> pieces, const std::string& path) {
  Descriptor file(::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666));
  if (file.get() < 0) fail("write_file", path, errno);
  write_and_sync(file.get(), pieces, path);
}

}  // namespace

void write_file_atomically(const std::string& path, std::span<const std::string_view> pieces) {
  const std::string name = temporary_name(path);
  bool named = false;
  try {
    Descriptor file(open_temporary(path, name, named));
    write_and_sync(file.get(), pieces, path);
    if (!named) {
      named = true;
      if (!give_name(file.get(), name)) write_named(name, pieces, path);
    }
    if (::close(file.release()) != 0) fail("write_file", path, errno);
    if (::rename(name.c_str(), path.c_str()) != 0) fail("write_file", path, errno);
  } catch (...) {
    if (named) ::unlink(name.c_str());
    throw;
  }
  // The new name is on disk only once its folder is; some file systems cannot sync a folder, and need not.
  const Descriptor folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0 && ::fsync(folder.get()) != 0 && errno != EINVAL && errno != ENOTSUP)
    fail("write_file", path, errno);
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  write_file_atomically(path, std::span<const std::string_view>(&bytes, 1));
}

std::string read_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail("read_file", path, errno);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) fail("read_file", path, errno);
  if (S_ISDIR(info.st_mode)) fail("read_file", path, EISDIR);
  std::string bytes;
  size_t used = 0;
  bytes.resize(S_ISREG(info.st_mode) ? static_cast<size_t>(info.st_size) + 1
                                     : 1 << 16);  // one more byte finds the end without a second read
  for (;;) {
    const ssize_t n = ::read(file.get(), bytes.data() + used, std::min<size_t>(bytes.size() - used, size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("read_file", path, errno);
    if (n == 0) break;
    used += static_cast<size_t>(n);
    if (used == bytes.size()) bytes.resize(used * 2);
  }
  bytes.resize(used);
  return bytes;
}

}  // namespace weft::io
