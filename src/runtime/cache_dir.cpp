// The cache folder: one file an entry, <folder>/<kind>/<digest in hex>, with magic, length and checksum before the
// payload. There are no locks: an entry appears by rename, a reader that opened a file before it was deleted still
// reads all of it, and an invalid entry is a miss.
#include "runtime/cache_dir.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "base/error.h"

namespace weft::runtime {
namespace {

namespace fs = std::filesystem;

constexpr char magic[8] = {'W', 'E', 'F', 'T', 'C', 'A', '0', '1'};

struct Header {
  char magic[8];
  uint64_t bytes;
  uint64_t check_hi, check_lo;
};
static_assert(sizeof(Header) == 32);

Digest checksum(const std::string& kind, const Digest& key, const void* data, size_t bytes) {
  return Hasher().text(kind).digest(key).bytes(data, bytes).finish();  // covers the key, so that a renamed file is a
                                                                       // miss
}

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }
  bool open() const { return fd_ >= 0; }

  bool read_all(void* to, size_t bytes) const {
    auto* p = static_cast<char*>(to);
    while (bytes > 0) {
      const ssize_t got = ::read(fd_, p, bytes);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      p += got, bytes -= static_cast<size_t>(got);
    }
    return true;
  }

  bool write_all(const void* from, size_t bytes) const {
    const auto* p = static_cast<const char*>(from);
    while (bytes > 0) {
      const ssize_t put = ::write(fd_, p, bytes);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return false;
      p += put, bytes -= static_cast<size_t>(put);
    }
    return true;
  }

 private:
  int fd_;
};

std::string wanted_dir() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value ? value : "";
  };
  if (std::string dir = variable("WEFT_CACHE_DIR"); !dir.empty()) return dir;
  if (std::string dir = variable("XDG_CACHE_HOME"); !dir.empty()) return dir + "/weft";
  if (std::string dir = variable("HOME"); !dir.empty()) return dir + "/.cache/weft";
  return "";
}

bool make_dir(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  return ::access(path.c_str(), R_OK | W_OK | X_OK) == 0;
}

/// This process's view of the folder: its size when last scanned, and the bytes put since (by this process only).
struct Usage {
  std::mutex mutex;
  std::string wanted, dir;  // the folder last asked for, and the one that was had for it
  bool looked = false;
  uint64_t bytes = 0;
  int puts = 0;
};
Usage& usage() {
  static Usage* instance = new Usage;  // entries may be put while the process ends
  return *instance;
}
std::atomic<uint64_t> limit{uint64_t{1} << 30};
std::atomic<uint64_t> temporaries{0};

/// Deletes files left by dead processes and, if all entries exceed the limit, the oldest ones down to 7/8 of it.
/// Returns the bytes left.
uint64_t trim(const std::string& dir, uint64_t most) {
  struct Entry {
    fs::path path;
    uint64_t bytes;
    fs::file_time_type time;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(dir, fs::directory_options::skip_permission_denied, error), end;
       !error && it != end; it.increment(error)) {
    std::error_code gone;  // other processes delete as well
    if (it.depth() != 1 || !it->is_regular_file(gone)) continue;
    const uint64_t bytes = it->file_size(gone);
    const auto time = it->last_write_time(gone);
    if (gone) continue;
    if (it->path().extension() == ".tmp" && fs::file_time_type::clock::now() - time > std::chrono::hours(1)) {
      fs::remove(it->path(), gone);
      continue;
    }
    entries.push_back({it->path(), bytes, time});
    total += bytes;
  }
  if (total <= most) return total;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.time < b.time; });
  for (const Entry& entry : entries) {
    if (total <= most - most / 8) break;
    if (entry.path.extension() == ".tmp") continue;  // another process is writing it
    std::error_code gone;
    fs::remove(entry.path, gone);
    total -= entry.bytes;
  }
  return total;
}

void account(const std::string& dir, uint64_t bytes) {
  Usage& u = usage();
  std::lock_guard lock(u.mutex);
  u.bytes += bytes;
  // Scanning the folder from time to time finds entries of other processes.
  if (u.looked && u.bytes <= limit && ++u.puts < 64) return;
  u.bytes = trim(dir, limit);
  u.looked = true;
  u.puts = 0;
}

std::string entry_path(const std::string& dir, const std::string& kind, const Digest& key) {
  return dir + "/" + kind + "/" + key.hex();
}

bool plain(const std::string& kind) {
  return !kind.empty() && std::all_of(kind.begin(), kind.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

}  // namespace

std::string cache_dir() {
  const std::string wanted = wanted_dir();
  Usage& u = usage();
  std::lock_guard lock(u.mutex);
  if (u.wanted != wanted) {
    u.wanted = wanted;
    u.dir = !wanted.empty() && make_dir(wanted) ? wanted : "";
    u.looked = false;
    u.bytes = 0;
  }
  return u.dir;
}

std::optional<std::vector<char>> cache_get(const std::string& kind, const Digest& key) {
  check(plain(kind), "cache", "an entry's kind has only a-z, 0-9, _ and -");
  const std::string dir = cache_dir();
  if (dir.empty()) return std::nullopt;
  const File file(::open(entry_path(dir, kind, key).c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status;
  Header header;
  if (!file.open() || ::fstat(file.fd(), &status) != 0 || !file.read_all(&header, sizeof header)) return std::nullopt;
  // The length is compared with the file's before it is used.
  if (std::memcmp(header.magic, magic, sizeof magic) != 0 ||
      static_cast<uint64_t>(status.st_size) - sizeof header != header.bytes)
    return std::nullopt;
  std::vector<char> data(header.bytes);
  if (!file.read_all(data.data(), data.size())) return std::nullopt;
  if (checksum(kind, key, data.data(), data.size()) != Digest{header.check_hi, header.check_lo}) return std::nullopt;
  ::futimens(file.fd(), nullptr);  // marks it as used: the oldest are deleted first
  return data;
}

void cache_put(const std::string& kind, const Digest& key, const void* data, size_t bytes) {
  check(plain(kind), "cache", "an entry's kind has only a-z, 0-9, _ and -");
  const std::string dir = cache_dir();
  if (dir.empty() || bytes + sizeof(Header) > limit) return;
  const std::string path = entry_path(dir, kind, key);
  const std::string temporary = path + "." + std::to_string(::getpid()) + "." + std::to_string(temporaries++) + ".tmp";
  const auto create = [&] { return ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); };
  int fd = create();
  if (fd < 0 && errno == ENOENT && make_dir(dir + "/" + kind)) fd = create();
  bool whole = false;
  {
    const File file(fd);
    if (!file.open()) return;  // a full or read-only disk: the next process compiles again
    const Digest check = checksum(kind, key, data, bytes);
    Header header{{}, bytes, check.hi, check.lo};
    std::memcpy(header.magic, magic, sizeof magic);
    whole = file.write_all(&header, sizeof header) && file.write_all(data, bytes);
  }
  if (!whole || ::rename(temporary.c_str(), path.c_str()) != 0) {
    ::unlink(temporary.c_str());
    return;
  }
  account(dir, bytes + sizeof(Header));
}

void set_cache_dir_limit(uint64_t bytes) {
  limit = bytes;
  Usage& u = usage();
  std::lock_guard lock(u.mutex);
  u.looked = false;  // the next put scans the folder
}

}  // namespace weft::runtime
