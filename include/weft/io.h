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

// Files of arrays. Loading checks a file whole before an array is made: one that is damaged, truncated, hostile, or of
// a dtype that Weft has not, throws std::runtime_error as "[load_safetensors] model.safetensors: … at byte 17".
//
// A file given by its path is mapped, not read: where its bytes are what the array needs (machine byte order, aligned),
// the array lies in the mapping, pages come in when they are used, and the mapping lives as long as any of its arrays.
// Arrays never see a later change that Weft makes, since saving replaces a file and leaves the old one to its readers;
// a file that somebody else overwrites or cuts short in place while arrays still use it is beyond what a mapping can
// guard.
//
// Saving evaluates the arrays. The file appears under its name when it is complete and on disk: whoever reads that name
// finds the old file or the new one, never a part. Equal content gives equal bytes.

namespace weft {

namespace io {

/// Bytes from somewhere: what the `load` functions take beside a path. All is read from the current position to the
/// end.
class WEFT_API Reader {
 public:
  virtual ~Reader();
  virtual bool is_open() const = 0;
  virtual bool good() const = 0;
  virtual size_t tell() = 0;
  virtual void seek(int64_t offset, std::ios_base::seekdir way = std::ios_base::beg) = 0;
  /// Throws std::runtime_error where fewer than n bytes are left.
  virtual void read(char* data, size_t n) = 0;
  virtual void read(char* data, size_t n, size_t offset) = 0;  ///< from the start; the position stays
  virtual std::string label() const = 0;                       ///< what messages call it
};

/// Where the `save` functions write to beside a path.
class WEFT_API Writer {
 public:
  virtual ~Writer();
  virtual bool is_open() const = 0;
  virtual bool good() const = 0;
  virtual size_t tell() = 0;
  virtual void seek(int64_t offset, std::ios_base::seekdir way = std::ios_base::beg) = 0;
  virtual void write(const char* data, size_t n) = 0;
  virtual std::string label() const = 0;
};

/// Bytes in memory.
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

class WEFT_API MemoryWriter : public Writer {
 public:
  bool is_open() const override { return true; }
  bool good() const override { return true; }
  size_t tell() override { return at_; }
  void seek(int64_t offset, std::ios_base::seekdir way = std::ios_base::beg) override;
  void write(const char* data, size_t n) override;
  std::string label() const override { return "memory"; }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

}  // namespace io

/// One array in NumPy's format, versions 1 to 3: either byte order, row- or column-major. bfloat16 is "<V2", as
/// ml_dtypes writes it; objects, structures, texts, dates, complex128 and float128 are refused.
WEFT_API array load(const std::string& file, StreamOrDevice s = {});
WEFT_API array load(const std::shared_ptr<io::Reader>& in, StreamOrDevice s = {});
/// Row-major, machine byte order. ".npy" is added to a name without it.
WEFT_API void save(const std::string& file, const array& a);
WEFT_API void save(const std::shared_ptr<io::Writer>& out, const array& a);

/// NumPy's archives of named arrays: zip files of .npy members, stored or deflated, with their checksums; zip64 too.
/// Members in machine byte order that are stored lie in the mapping, as everything that `savez` writes.
WEFT_API std::unordered_map<std::string, array> load_npz(const std::string& file, StreamOrDevice s = {});
WEFT_API std::unordered_map<std::string, array> load_npz(const std::shared_ptr<io::Reader>& in, StreamOrDevice s = {});
/// ".npz" is added to a name without it.
WEFT_API void savez(const std::string& file, const std::unordered_map<std::string, array>& arrays);
WEFT_API void savez(const std::shared_ptr<io::Writer>& out, const std::unordered_map<std::string, array>& arrays);
WEFT_API void savez_compressed(const std::string& file, const std::unordered_map<std::string, array>& arrays);
WEFT_API void savez_compressed(const std::shared_ptr<io::Writer>& out,
                               const std::unordered_map<std::string, array>& arrays);

/// Tensors by name, and the file's metadata.
using SafetensorsLoad = std::pair<std::unordered_map<std::string, array>, std::unordered_map<std::string, std::string>>;

/// A safetensors file; or, where the name ends in ".index.json", all files that the index names, which must hold just
/// the tensors that it says.
WEFT_API SafetensorsLoad load_safetensors(const std::string& file, StreamOrDevice s = {});
WEFT_API SafetensorsLoad load_safetensors(const std::shared_ptr<io::Reader>& in, StreamOrDevice s = {});
/// In a fixed order: wide dtypes first, then by name. ".safetensors" is added to a name without it.
WEFT_API void save_safetensors(const std::string& file, const std::unordered_map<std::string, array>& arrays,
                               const std::unordered_map<std::string, std::string>& metadata = {});
WEFT_API void save_safetensors(const std::shared_ptr<io::Writer>& out,
                               const std::unordered_map<std::string, array>& arrays,
                               const std::unordered_map<std::string, std::string>& metadata = {});
/// The tensors in as many files as are needed for none to hold more than `max_bytes` of data (but at least one tensor),
/// in the order of their names: folder/model-00001-of-00003.safetensors …, and folder/model.safetensors.index.json,
/// which is written last. Returns the index's path.
WEFT_API std::string save_sharded_safetensors(const std::string& folder,
                                              const std::unordered_map<std::string, array>& arrays, size_t max_bytes,
                                              const std::unordered_map<std::string, std::string>& metadata = {});

namespace io {

/// The bytes under `path`, through a temporary file in the same folder, fsync and rename. Throws std::runtime_error
/// with the path and the system's reason.
WEFT_API void write_file_atomically(const std::string& path, std::string_view bytes);
/// The pieces one after the other, as one file.
WEFT_API void write_file_atomically(const std::string& path, std::span<const std::string_view> pieces);
/// A whole file. Throws std::runtime_error with the path and the system's reason.
WEFT_API std::string read_file(const std::string& path);

}  // namespace io

}  // namespace weft
