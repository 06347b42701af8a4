// Safetensors files: tensors stream from the file into their arrays one at a time.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <tuple>

#include "base/error.h"
#include "io/safetensors_header.h"
#include "weft/io.h"
#include "weft/ops.h"

namespace weft {

namespace {

std::string read_bytes(std::ifstream& in, const std::string& file, uint64_t size, uint64_t at) {
  std::string bytes(size, '\0');
  if (!in.read(bytes.data(), static_cast<std::streamsize>(size))) io::fail_at(file, "the file ends too early", at + static_cast<uint64_t>(in.gcount()));
  return bytes;
}

array read_tensor(std::ifstream& in, const std::string& file, const io::TensorEntry& t, uint64_t data_start) {
  const std::string bytes = read_bytes(in, file, t.end - t.begin, data_start + t.begin);
  if (t.dtype == bool_) {
    const auto bad = std::find_if(bytes.begin(), bytes.end(), [](char c) { return c != 0 && c != 1; });
    if (bad != bytes.end()) io::fail_at(file, "a BOOL that is neither 0 nor 1", data_start + t.begin + static_cast<uint64_t>(bad - bytes.begin()));
  }
  return array::from_data(bytes.data(), t.shape, t.dtype);
}

}  // namespace

SafetensorsLoad load_safetensors(const std::string& file, StreamOrDevice) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  const std::streamoff size = in ? static_cast<std::streamoff>(in.tellg()) : -1;
  // A folder opens, and then has no size that makes sense.
  if (!in || size < 0 || size == INT64_MAX) throw_failure("load_safetensors", file + ": " + (errno ? std::strerror(errno) : "cannot be read"));
  in.seekg(0);
  const uint64_t total = static_cast<uint64_t>(size);
  if (total < 8) io::fail_at(file, "the file has only " + std::to_string(total) + " bytes, less than the length of a header", total);
  uint64_t length = 0;
  std::memcpy(&length, read_bytes(in, file, 8, 0).data(), 8);
  if (length == 0) io::fail_at(file, "the header is empty", 0);
  if (length >= io::max_header_bytes) io::fail_at(file, "the header's length " + std::to_string(length) + " is not credible: this is no safetensors file", 0);
  if (length > total - 8)
    io::fail_at(file, "the header should have " + std::to_string(length) + " bytes, but only " + std::to_string(total - 8) + " follow: the file is truncated or no safetensors file", 0);
  const std::string text = read_bytes(in, file, length, 8);
  const auto header = io::parse_header(file, text, total - 8 - length);

  SafetensorsLoad out;
  out.second = header.metadata;
  for (const auto& t : header.tensors) out.first.emplace(t.name, read_tensor(in, file, t, 8 + length));
  return out;
}

void save_safetensors(const std::string& file, const std::unordered_map<std::string, array>& arrays, const std::unordered_map<std::string, std::string>& metadata) {
  std::vector<std::pair<std::string, array>> sorted(arrays.begin(), arrays.end());
  // Wide dtypes first keeps every tensor aligned to its dtype.
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::make_tuple(-static_cast<int>(a.second.itemsize()), std::cref(a.first)) < std::make_tuple(-static_cast<int>(b.second.itemsize()), std::cref(b.first));
  });
  io::SafetensorsHeader header;
  header.metadata = metadata;
  std::vector<array> all;
  uint64_t at = 0;
  for (const auto& [name, a] : sorted) {
    header.tensors.push_back({name, a.dtype(), a.shape(), at, at + a.nbytes()});
    at += a.nbytes();
    all.push_back(a);
  }
  const std::string head = io::write_header(header);  // refuses what cannot be written before anything is computed
  weft::eval(all);
  std::vector<std::string_view> pieces{head};
  for (const auto& a : all) pieces.emplace_back(static_cast<const char*>(a.raw_data()), a.nbytes());
  io::write_file_atomically(file, pieces);
}

}  // namespace weft
