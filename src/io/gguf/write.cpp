// Writing GGUF: tensors and metadata in the order of their names, so that equal content gives equal bytes.
#include <fmt/format.h>

#include <map>

#include "base/error.h"
#include "io/gguf/layout.h"
#include "io/gguf/metadata.h"
#include "io/gguf/types.h"
#include "weft/io.h"

namespace weft {

namespace io::gguf {

namespace {

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_text(std::string& out, const std::string& text) {
  append(out, uint64_t{text.size()});
  out += text;
}

uint64_t chosen_alignment(const std::unordered_map<std::string, GGUFMetaData>& metadata) {
  const auto found = metadata.find(std::string(alignment_key));
  if (found == metadata.end()) return usual_alignment;
  const auto* a = std::get_if<array>(&found->second);
  if (!a || a->ndim() != 0 || a->dtype() != uint32 || !is_alignment(a->item<uint32_t>()))
    throw_invalid("save_gguf", "general.alignment must be a power of two as uint32, without axes");
  return a->item<uint32_t>();
}

/// Appends the description of a tensor whose data is at `offset`.
void append_tensor(std::string& out, const std::string& name, const array& a, uint64_t offset) {
  const TensorType* type = find_type(a.dtype());
  if (!type)
    throw_failure("save_gguf", fmt::format("tensor '{}' is {}, which GGUF has not: cast it to a float or signed "
                                           "integer dtype",
                                           name, dtype_name(a.dtype())));
  if (a.ndim() > most_axes)
    throw_failure("save_gguf", fmt::format("tensor '{}' has {} axes; GGUF has {}", name, a.ndim(), most_axes));
  append_text(out, name);
  append(out, static_cast<uint32_t>(a.ndim()));
  for (size_t k = a.ndim(); k-- > 0;) append(out, static_cast<uint64_t>(a.shape()[k].bound()));
  append(out, type->id);
  append(out, offset);
}

/// Calls put(pieces) with the file as pieces that are written one after the other.
template <class F>
void write_file(const std::unordered_map<std::string, array>& arrays,
                const std::unordered_map<std::string, GGUFMetaData>& metadata, F put) {
  const std::map<std::string, array> tensors(arrays.begin(), arrays.end());
  const std::map<std::string, GGUFMetaData> values(metadata.begin(), metadata.end());
  const uint64_t alignment = chosen_alignment(metadata);
  std::string head(magic);
  append(head, newest_version);
  append(head, uint64_t{tensors.size()});
  append(head, uint64_t{values.size()});
  for (const auto& [key, value] : values) {
    append_text(head, key);
    write_value(head, key, value);
  }
  std::vector<array> all;
  uint64_t at = 0;
  for (const auto& [name, a] : tensors) {
    append_tensor(head, name, a, at);
    all.push_back(a);
    at = aligned(at + a.nbytes(), alignment);
  }
  head.resize(aligned(head.size(), alignment));
  eval(all);
  const std::string padding(alignment, '\0');
  std::vector<std::string_view> pieces{head};
  for (const array& a : all) {
    pieces.emplace_back(static_cast<const char*>(a.raw_data()), a.nbytes());
    pieces.emplace_back(padding.data(), aligned(a.nbytes(), alignment) - a.nbytes());
  }
  put(pieces);
}

}  // namespace

}  // namespace io::gguf

void save_gguf(std::string file, std::unordered_map<std::string, array> array_map,
               std::unordered_map<std::string, GGUFMetaData> meta_data) {
  io::gguf::write_file(array_map, meta_data, [&](const auto& pieces) {
    io::write_file_atomically(io::with_extension(file, ".gguf"), pieces);
  });
}
void save_gguf(const std::shared_ptr<io::Writer>& out, std::unordered_map<std::string, array> array_map,
               std::unordered_map<std::string, GGUFMetaData> meta_data) {
  io::gguf::write_file(array_map, meta_data, [&](const auto& pieces) { io::write_all("save_gguf", *out, pieces); });
}

}  // namespace weft
