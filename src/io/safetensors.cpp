// Safetensors files, whose arrays use the file's bytes in place.
#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/error.h"
#include "io/bytes.h"
#include "io/json.h"
#include "io/safetensors_header.h"
#include "weft/io.h"

namespace weft {

namespace {

using Named = std::pair<std::string, array>;
using Metadata = std::unordered_map<std::string, std::string>;

SafetensorsLoad parse(const io::Bytes& bytes) {
  const std::string& file = bytes.name;
  const uint64_t total = bytes.size();
  if (total < 8)
    io::fail_at(file, "the file has only " + std::to_string(total) + " bytes, less than the length of a header", total);
  uint64_t length = 0;
  std::memcpy(&length, bytes.view.data(), 8);
  if (length == 0) io::fail_at(file, "the header is empty", 0);
  if (length >= io::max_header_bytes)
    io::fail_at(file, "the header's length " + std::to_string(length) + " is not credible: this is no safetensors file",
                0);
  if (length > total - 8)
    io::fail_at(file,
                "the header should have " + std::to_string(length) + " bytes, but only " + std::to_string(total - 8) +
                    " follow: the file is truncated or no safetensors file",
                0);
  const auto header = io::parse_header(file, bytes.view.substr(8, length), total - 8 - length);

  SafetensorsLoad out;
  out.second = header.metadata;
  for (const auto& t : header.tensors)
    out.first.emplace(t.name, io::array_in(bytes, 8 + length + t.begin, t.shape, t.dtype));
  return out;
}

/// Reads from the index which file of the set holds each tensor.
std::map<std::string, std::set<std::string>> parse_index(const io::Bytes& index) {
  if (io::nested_deeper(index.view, 16)) index.fail("the index is nested too deeply", 0);
  nlohmann::json root;
  try {
    root = nlohmann::json::parse(index.view);
  } catch (const nlohmann::json::parse_error& e) {
    index.fail("the index is not JSON", e.byte ? e.byte - 1 : 0);
  } catch (const nlohmann::json::out_of_range&) {
    index.fail("the index holds a number that is out of range", 0);
  }
  const auto map = root.is_object() ? root.find("weight_map") : root.end();
  if (!root.is_object() || map == root.end() || !map->is_object()) index.fail("the index has no object weight_map", 0);
  std::map<std::string, std::set<std::string>> files;
  for (const auto& [tensor, file] : map->items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    // Only files next to the index are read, no other folder.
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos)
      index.fail("the index names no file next to it for tensor " + nlohmann::json(tensor).dump(), 0);
    files[name].insert(tensor);
  }
  return files;
}

SafetensorsLoad load_sharded(const io::Bytes& index) {
  const size_t slash = index.name.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : index.name.substr(0, slash + 1);
  SafetensorsLoad all;
  for (const auto& [file, tensors] : parse_index(index)) {
    SafetensorsLoad part = parse(io::map_file(index.op, folder + file));
    for (const std::string& name : tensors)
      if (!part.first.contains(name))
        throw_failure(index.op, folder + file + ": tensor " + nlohmann::json(name).dump() + " is not in it, though " +
                                    index.name + " says so");
    for (const auto& [name, a] : part.first)
      if (!tensors.contains(name))
        throw_failure(index.op, folder + file + ": tensor " + nlohmann::json(name).dump() + " is in it, though " +
                                    index.name + " does not say so");
    all.first.merge(part.first);
    all.second.merge(part.second);
  }
  return all;
}

// Wide dtypes first keeps every tensor aligned to its dtype.
std::vector<Named> in_order(const std::unordered_map<std::string, array>& arrays) {
  std::vector<Named> sorted(arrays.begin(), arrays.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::make_tuple(-static_cast<int>(a.second.itemsize()), std::cref(a.first)) <
           std::make_tuple(-static_cast<int>(b.second.itemsize()), std::cref(b.first));
  });
  return sorted;
}

template <class F>
void write(const std::vector<Named>& sorted, const Metadata& metadata, F put) {
  io::SafetensorsHeader header;
  header.metadata = metadata;
  std::vector<array> all;
  uint64_t at = 0;
  for (const auto& [name, a] : sorted) {
    header.tensors.push_back({name, a.dtype(), a.shape(), at, at + a.nbytes()});
    at += a.nbytes();
    all.push_back(a);
  }
  const std::string head = io::write_header(header);  // throws for what cannot be written before anything is computed
  weft::eval(all);
  std::vector<std::string_view> pieces{head};
  for (const auto& a : all) pieces.emplace_back(static_cast<const char*>(a.raw_data()), a.nbytes());
  put(pieces);
}

/// Splits the names in order where the next tensor would exceed the limit.
std::vector<std::vector<Named>> cut(const std::unordered_map<std::string, array>& arrays, size_t max_bytes) {
  const std::map<std::string, array> sorted(arrays.begin(), arrays.end());
  std::vector<std::vector<Named>> parts(1);
  size_t bytes = 0;
  for (const auto& [name, a] : sorted) {
    if (!parts.back().empty() && bytes + a.nbytes() > max_bytes) {
      parts.emplace_back();
      bytes = 0;
    }
    parts.back().emplace_back(name, a);
    bytes += a.nbytes();
  }
  return parts;
}

}  // namespace

SafetensorsLoad load_safetensors(const std::string& file, StreamOrDevice) {
  const io::Bytes bytes = io::map_file("load_safetensors", file);
  return file.ends_with(".index.json") ? load_sharded(bytes) : parse(bytes);
}
SafetensorsLoad load_safetensors(const std::shared_ptr<io::Reader>& in, StreamOrDevice) {
  return parse(io::read_all("load_safetensors", *in));
}

void io::save_safetensors_as(const std::string& file, const std::unordered_map<std::string, array>& arrays,
                             const Metadata& metadata) {
  write(in_order(arrays), metadata, [&](const auto& pieces) { io::write_file_atomically(file, pieces); });
}
void save_safetensors(const std::string& file, const std::unordered_map<std::string, array>& arrays,
                      const Metadata& metadata) {
  io::save_safetensors_as(io::with_extension(file, ".safetensors"), arrays, metadata);
}
void save_safetensors(const std::shared_ptr<io::Writer>& out, const std::unordered_map<std::string, array>& arrays,
                      const Metadata& metadata) {
  write(in_order(arrays), metadata, [&](const auto& pieces) { io::write_all("save_safetensors", *out, pieces); });
}

std::string save_sharded_safetensors(const std::string& folder, const std::unordered_map<std::string, array>& arrays,
                                     size_t max_bytes, const Metadata& metadata) {
  const auto parts = cut(arrays, max_bytes);
  const auto numbered = [](size_t k) {
    const std::string digits = std::to_string(k);
    return std::string(5 - std::min<size_t>(digits.size(), 5), '0') + digits;
  };
  nlohmann::ordered_json index;
  uint64_t total = 0;
  std::map<std::string, std::string> map;
  for (size_t k = 0; k < parts.size(); ++k) {
    const std::string name = "model-" + numbered(k + 1) + "-of-" + numbered(parts.size()) + ".safetensors";
    std::unordered_map<std::string, array> part(parts[k].begin(), parts[k].end());
    save_safetensors(folder + "/" + name, part, metadata);
    for (const auto& [tensor, a] : parts[k]) {
      map[tensor] = name;
      total += a.nbytes();
    }
  }
  index["metadata"]["total_size"] = total;
  index["weight_map"] = map;
  const std::string path = folder + "/model.safetensors.index.json";
  io::write_file_atomically(path, index.dump(2) + "\n");
  return path;
}

}  // namespace weft
