#pragma once
#include <cstddef>
#include <cstdint>
#include <ios>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/array.h"
#include "weft/io/gguf.h"
#include "weft/io/torch.h"

/// Reads and writes files of arrays. Loading checks a file whole before an array is made: one that is damaged,
/// truncated, hostile, or of a dtype that Weft lacks, throws std::runtime_error as "[load_safetensors]
/// model.safetensors: … at byte 17".
///
/// A file given by its path is mapped, not read: where its bytes are what the array needs (machine byte order,
/// aligned), the array uses the mapping, pages are read when they are used, and the mapping lives as long as any of its
/// arrays. Arrays never see a later change that Weft makes, since saving replaces a file and leaves the old one to its
/// readers; a mapping cannot guard against another program that overwrites or truncates the file in place.
///
/// weft/io/gguf.h and weft/io/torch.h have the formats of llama.cpp and PyTorch.
///
/// Saving evaluates the arrays. The file appears under its name when it is complete and on disk: a reader of that name
/// finds the old file or the new one, never a part. Equal content gives equal bytes.
namespace weft {

namespace io {

/// A source of bytes: what the `load` functions take other than a path. They read from the current position to the end.
class WEFT_API Reader {
 public:
  virtual ~Reader();
  /// Returns whether the source can be read.
  virtual bool is_open() const = 0;
  /// Returns whether no error has occurred.
  virtual bool good() const = 0;
  /// Returns the position in bytes from the start.
  virtual size_t tell() = 0;
  /// Moves the position.
  virtual void seek(int64_t offset, std::ios_base::seekdir way = std::ios_base::beg) = 0;
  /// Reads n bytes and moves on. Throws std::runtime_error where fewer are left.
  virtual void read(char* data, size_t n) = 0;
  /// Reads n bytes at `offset` from the start; the position stays.
  virtual void read(char* data, size_t n, size_t offset) = 0;
  /// Returns the name of the source in messages.
  virtual std::string label() const = 0;
};

/// A sink of bytes: where the `save` functions write to other than a path.
class WEFT_API Writer {
 public:
  virtual ~Writer();
  /// Returns whether the sink can be written.
  virtual bool is_open() const = 0;
  /// Returns whether no error has occurred.
  virtual bool good() const = 0;
  /// Returns the position in bytes from the start.
  virtual size_t tell() = 0;
  /// Moves the position.
  virtual void seek(int64_t offset, std::ios_base::seekdir way = std::ios_base::beg) = 0;
  /// Writes n bytes and moves on.
  virtual void write(const char* data, size_t n) = 0;
  /// Returns the name of the sink in messages.
  virtual std::string label() const = 0;
};

/// Reads bytes in memory.
class WEFT_API MemoryReader : public Reader {
 public:
  explicit MemoryReader(std::string bytes, std::string label = "memory")
      : bytes_(std::move(bytes)), label_(std::move(label)) {}
  bool is_open() const override { return true; }
  bool good() const override { return true; }
  size_t tell() override { return at_; }
  void seek(int64_t offset, std::ios_base::seekdir way = std::ios_base::beg) override;
  void read(char* data, size_t n) override;
  void read(char* data, size_t n, size_t offset) override;
  std::string label() const override { return label_; }

 private:
  std::string bytes_, label_;
  size_t at_ = 0;
};

/// Writes bytes to memory.
class WEFT_API MemoryWriter : public Writer {
 public:
  bool is_open() const override { return true; }
  bool good() const override { return true; }
  size_t tell() override { return at_; }
  void seek(int64_t offset, std::ios_base::seekdir way = std::ios_base::beg) override;
  void write(const char* data, size_t n) override;
  std::string label() const override { return "memory"; }
  /// Returns what was written.
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

}  // namespace io

/// Returns one array in NumPy's format, versions 1 to 3: either byte order, row- or column-major. bfloat16 is "<V2", as
/// ml_dtypes writes it; objects, structures, texts, dates, complex128 and float128 throw std::runtime_error.
WEFT_API array load(const std::string& file, StreamOrDevice s = {});
WEFT_API array load(const std::shared_ptr<io::Reader>& in, StreamOrDevice s = {});
/// Writes one array in NumPy's format, row-major in machine byte order. ".npy" is added to a name without it.
WEFT_API void save(const std::string& file, const array& a);
WEFT_API void save(const std::shared_ptr<io::Writer>& out, const array& a);

/// Returns the arrays of NumPy's archive by name: a zip file of .npy members, stored or deflated, with their checksums;
/// zip64 too. Members in machine byte order that are stored are mapped, as all that `savez` writes.
WEFT_API std::unordered_map<std::string, array> load_npz(const std::string& file, StreamOrDevice s = {});
WEFT_API std::unordered_map<std::string, array> load_npz(const std::shared_ptr<io::Reader>& in, StreamOrDevice s = {});
/// Writes the arrays as NumPy's archive, stored. ".npz" is added to a name without it.
WEFT_API void savez(const std::string& file, const std::unordered_map<std::string, array>& arrays);
WEFT_API void savez(const std::shared_ptr<io::Writer>& out, const std::unordered_map<std::string, array>& arrays);
/// Writes the arrays as NumPy's archive, deflated.
WEFT_API void savez_compressed(const std::string& file, const std::unordered_map<std::string, array>& arrays);
WEFT_API void savez_compressed(const std::shared_ptr<io::Writer>& out,
                               const std::unordered_map<std::string, array>& arrays);

/// Tensors by name, and the file's metadata.
using SafetensorsLoad = std::pair<std::unordered_map<std::string, array>, std::unordered_map<std::string, std::string>>;

/// Returns the tensors and metadata of a safetensors file; or, where the name ends in ".index.json", those of all files
/// that the index names, which must hold just the tensors that it says.
WEFT_API SafetensorsLoad load_safetensors(const std::string& file, StreamOrDevice s = {});
WEFT_API SafetensorsLoad load_safetensors(const std::shared_ptr<io::Reader>& in, StreamOrDevice s = {});
/// Writes a safetensors file in a fixed order: wide dtypes first, then by name. ".safetensors" is added to a name
/// without it.
WEFT_API void save_safetensors(const std::string& file, const std::unordered_map<std::string, array>& arrays,
                               const std::unordered_map<std::string, std::string>& metadata = {});
WEFT_API void save_safetensors(const std::shared_ptr<io::Writer>& out,
                               const std::unordered_map<std::string, array>& arrays,
                               const std::unordered_map<std::string, std::string>& metadata = {});
/// Writes the tensors to as many files as are needed for none to hold more than `max_bytes` of data (but at least one
/// tensor), in the order of their names: folder/model-00001-of-00003.safetensors …, and last
/// folder/model.safetensors.index.json, whose path it returns.
WEFT_API std::string save_sharded_safetensors(const std::string& folder,
                                              const std::unordered_map<std::string, array>& arrays, size_t max_bytes,
                                              const std::unordered_map<std::string, std::string>& metadata = {});

namespace io {

/// Writes the bytes under `path`, through a temporary file in the same folder, fsync and rename. Throws
/// std::runtime_error with the path and the system's reason.
WEFT_API void write_file_atomically(const std::string& path, std::string_view bytes);
/// Writes the pieces one after the other, as one file.
WEFT_API void write_file_atomically(const std::string& path, std::span<const std::string_view> pieces);
/// Returns the bytes of a file. Throws std::runtime_error with the path and the system's reason.
WEFT_API std::string read_file(const std::string& path);

}  // namespace io

}  // namespace weft
