// Writing GGUF: tensors and metadata in the order of their names, so that equal content gives equal bytes.
#include <fmt/format.h>

#include <deque>
#include <map>
#include <optional>

#include "base/error.h"
#include "io/gguf/affine.h"
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

/// A tensor of the file: an array, or three of them in codes.
struct Written {
  std::string name;
  const TensorType* type;
  Shape shape;
  array numbers;
  std::optional<AffineArrays> codes;
  uint64_t bytes;
};

Written written(const std::string& name, const array& a, std::optional<AffineArrays> codes) {
  const TensorType* type = codes ? type_of(*codes) : find_type(a.dtype());
  if (!type && codes)
    throw_failure("save_gguf", "tensor '" + name +
                                   "' has codes of 8 bits with biases other than -128 · scale, which "
                                   "GGUF has not");
  if (!type)
    throw_failure("save_gguf", fmt::format("tensor '{}' is {}, which GGUF has not: cast it to a float or signed "
                                           "integer dtype",
                                           name, dtype_name(a.dtype())));
  if (a.ndim() > most_axes)
    throw_failure("save_gguf", fmt::format("tensor '{}' has {} axes; GGUF has {}", name, a.ndim(), most_axes));
  Shape shape = a.shape();
  if (codes) shape.back() = codes->scales.shape(-1) * 32;
  const uint64_t bytes = codes ? codes->scales.size() * type->bytes : a.nbytes();
  return {name, type, std::move(shape), a, std::move(codes), bytes};
}

/// Returns the tensors by name. Codes stand for their scales and biases as well.
std::vector<Written> tensors_of(const std::unordered_map<std::string, array>& arrays) {
  std::map<std::string, array> left(arrays.begin(), arrays.end());
  std::map<std::string, std::optional<AffineArrays>> codes;
  for (const auto& [name, a] : arrays) {
    auto found = a.dtype() == uint32 ? find_affine(arrays, name) : std::nullopt;
    if (!found) continue;
    left.erase(affine_prefix(name) + ".scales");
    left.erase(affine_prefix(name) + ".biases");
    codes[name] = std::move(found);
  }
  std::vector<Written> out;
  for (const auto& [name, a] : left) out.push_back(written(name, a, codes[name]));
  return out;
}

/// Appends the description of a tensor whose data is at `offset`.
void append_tensor(std::string& out, const Written& t, uint64_t offset) {
  append_text(out, t.name);
  append(out, static_cast<uint32_t>(t.shape.size()));
  for (size_t k = t.shape.size(); k-- > 0;) append(out, static_cast<uint64_t>(t.shape[k].bound()));
  append(out, t.type->id);
  append(out, offset);
}

/// Calls put(pieces) with the file as pieces that are written one after the other.
template <class F>
void write_file(const std::unordered_map<std::string, array>& arrays,
                const std::unordered_map<std::string, GGUFMetaData>& metadata, F put) {
  std::vector<array> all;
  for (const auto& entry : arrays) all.push_back(entry.second);
  eval(all);
  const std::vector<Written> tensors = tensors_of(arrays);
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
  uint64_t at = 0;
  for (const Written& t : tensors) {
    append_tensor(head, t, at);
    at = aligned(at + t.bytes, alignment);
  }
  head.resize(aligned(head.size(), alignment));
  const std::string padding(alignment, '\0');
  std::deque<std::string> packed;
  std::vector<std::string_view> pieces{head};
  for (const Written& t : tensors) {
    if (t.codes) pieces.push_back(packed.emplace_back(pack_blocks(*t.type, *t.codes)));
    else pieces.emplace_back(static_cast<const char*>(t.numbers.raw_data()), t.bytes);
    pieces.emplace_back(padding.data(), aligned(t.bytes, alignment) - t.bytes);
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
