// Parses untrusted headers: every number is checked before it is used.
#include "io/safetensors_header.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"

namespace weft::io {

namespace {

using nlohmann::json;

struct Name {
  const char* text;
  Dtype dtype;
};
constexpr Name names[] = {{"BOOL", bool_},  {"U8", uint8},      {"U16", uint16},          {"U32", uint32},
                          {"U64", uint64},  {"I8", int8},       {"I16", int16},           {"I32", int32},
                          {"I64", int64},   {"F16", float16},   {"BF16", bfloat16},       {"F32", float32},
                          {"F64", float64}, {"C64", complex64}, {"F8_E4M3", float8_e4m3}, {"F8_E5M2", float8_e5m2}};

std::string printable(std::string_view text) {
  return json(std::string(text)).dump(-1, ' ', true, json::error_handler_t::replace);
}

/// Returns the position of a name in the file, for messages (where its JSON is escaped, the header's start).
uint64_t offset_of(std::string_view text, const std::string& name) {
  const size_t at = text.find(printable(name));
  return 8 + (at == std::string_view::npos ? 0 : at);
}

json parse_header(const std::string& file, std::string_view text) {
  // Throws for names that occur twice, of which the parser would silently keep the last. Depth: {name: {field:
  // [number]}} and no more.
  std::vector<std::set<std::string>> open;
  const auto watch = [&](int depth, json::parse_event_t event, json& value) {
    if (depth > 3) fail_at(file, "the header is nested too deeply", 8);
    if (event == json::parse_event_t::object_start) open.emplace_back();
    if (event == json::parse_event_t::object_end) open.pop_back();
    if (event == json::parse_event_t::key && !open.back().insert(value.get<std::string>()).second)
      fail_at(file, "the name " + printable(value.get<std::string>()) + " occurs twice",
              offset_of(text, value.get<std::string>()));
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), watch);
  } catch (const json::parse_error& e) {
    fail_at(file, "the header is not JSON", 8 + (e.byte ? e.byte - 1 : 0));
  } catch (const json::out_of_range&) {
    fail_at(file, "the header holds a number that is out of range", 8);
  }
}

class HeaderReader {
 public:
  HeaderReader(const std::string& file, std::string_view text, uint64_t data_bytes)
      : file_(file), text_(text), data_bytes_(data_bytes) {}

  SafetensorsHeader read() {
    if (text_.empty() || text_.front() != '{') fail_at(file_, "the header does not start with '{'", 8);
    // The parser takes a zero byte for the end of its input.
    if (const size_t zero = text_.find('\0'); zero != std::string_view::npos)
      fail_at(file_, "the header is not JSON", 8 + zero);
    const json root = parse_header(file_, text_);
    SafetensorsHeader header;
    for (const auto& [name, value] : root.items()) {
      if (name == "__metadata__") header.metadata = read_metadata(value);
      else header.tensors.push_back(read_tensor(name, value));
    }
    check_cover(header.tensors);
    return header;
  }

 private:
  /// MLX writes null where there is none.
  std::unordered_map<std::string, std::string> read_metadata(const json& value) const {
    if (value.is_null()) return {};
    const uint64_t at = offset_of(text_, "__metadata__");
    if (!value.is_object()) fail_at(file_, "__metadata__ is not an object", at);
    std::unordered_map<std::string, std::string> out;
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) fail_at(file_, "the metadata " + printable(key) + " is not a text", at);
      out.emplace(key, text.get<std::string>());
    }
    return out;
  }

  uint64_t whole(const std::string& name, const char* field, const json& value) const {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
      fail_at(file_, "tensor " + printable(name) + ": " + field + " must hold whole numbers from 0 to 2^63 - 1",
              offset_of(text_, name));
    return value.get<uint64_t>();
  }

  Dtype read_dtype(const std::string& name, const json& value) const {
    if (!value.is_string())
      fail_at(file_, "tensor " + printable(name) + ": dtype is not a text", offset_of(text_, name));
    const std::string text = value.get<std::string>();
    for (const auto& known : names)
      if (text == known.text) return known.dtype;
    fail_at(file_,
            "tensor " + printable(name) + " has dtype " + printable(text) +
                ", which Weft does not have (it reads BOOL, U8 to U64, I8 to I64, F16, BF16, F32, F64, C64)",
            offset_of(text_, name));
  }

  TensorEntry read_tensor(const std::string& name, const json& value) const {
    const uint64_t at = offset_of(text_, name);
    const std::string who = "tensor " + printable(name);
    if (!value.is_object()) fail_at(file_, who + " is not an object", at);
    for (const char* field : {"dtype", "shape", "data_offsets"})
      if (!value.contains(field)) fail_at(file_, who + " lacks " + field, at);
    if (value.size() != 3) fail_at(file_, who + " has fields other than dtype, shape and data_offsets", at);
    const json& shape = value["shape"];
    const json& offsets = value["data_offsets"];
    if (!shape.is_array()) fail_at(file_, who + ": shape is not a list", at);
    if (!offsets.is_array() || offsets.size() != 2)
      fail_at(file_, who + ": data_offsets is not a list of two numbers", at);

    TensorEntry entry{name,
                      read_dtype(name, value["dtype"]),
                      {},
                      whole(name, "data_offsets", offsets[0]),
                      whole(name, "data_offsets", offsets[1])};
    // The product of all sizes, zeros left out, must fit as well: strides are made of it.
    uint64_t product = entry.dtype.size();
    bool empty = false;
    for (const auto& size : shape) {
      const uint64_t n = whole(name, "shape", size);
      entry.shape.push_back(n);
      if (n == 0) empty = true;
      else if (product > static_cast<uint64_t>(INT64_MAX) / n)
        fail_at(file_, who + ": the shape " + to_string(entry.shape) + " overflows", at);
      else product *= n;
    }
    const uint64_t bytes = empty ? 0 : product;
    if (entry.begin > entry.end) fail_at(file_, who + ": its data ends before it begins", at);
    if (entry.end > data_bytes_)
      fail_at(file_,
              who + ": its data ends " + std::to_string(entry.end - data_bytes_) + " bytes past the end of the file",
              8 + text_.size() + entry.begin);
    if (entry.end - entry.begin != bytes)
      fail_at(file_,
              who + ": " + to_string(entry.shape) + " " + dtype_name(entry.dtype) + " takes " + std::to_string(bytes) +
                  " bytes, its data_offsets span " + std::to_string(entry.end - entry.begin),
              at);
    return entry;
  }

  /// Checks that the tensors' data follow each other without overlaps or gaps.
  void check_cover(std::vector<TensorEntry>& tensors) const {
    std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
      return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
    });
    uint64_t at = 0;
    for (const auto& t : tensors) {
      if (t.begin != at)
        fail_at(file_,
                "tensor " + printable(t.name) + ": its data " +
                    (t.begin < at ? "overlaps another tensor's" : "leaves a gap before it"),
                8 + text_.size() + t.begin);
      at = t.end;
    }
    if (at != data_bytes_)
      fail_at(file_, std::to_string(data_bytes_ - at) + " bytes after the last tensor belong to none",
              8 + text_.size() + at);
  }

  const std::string& file_;
  std::string_view text_;
  uint64_t data_bytes_;
};

}  // namespace

void fail_at(const std::string& file, const std::string& what, uint64_t byte) {
  throw_failure("load_safetensors", file + ": " + what + ", at byte " + std::to_string(byte));
}

SafetensorsHeader parse_header(const std::string& file, std::string_view text, uint64_t data_bytes) {
  return HeaderReader(file, text, data_bytes).read();
}

std::string write_header(const SafetensorsHeader& header) {
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) {
    const std::map<std::string, std::string> sorted(header.metadata.begin(), header.metadata.end());
    root["__metadata__"] = sorted;
  }
  for (const auto& t : header.tensors) {
    const auto name =
        std::find_if(std::begin(names), std::end(names), [&](const Name& n) { return n.dtype == t.dtype; });
    if (name == std::end(names))
      throw_invalid("save_safetensors",
                    t.name + " is " + dtype_name(t.dtype) +
                        ", which safetensors files cannot hold: convert it with astype, or save its parts");
    if (t.name == "__metadata__") throw_invalid("save_safetensors", "'__metadata__' cannot be the name of a tensor");
    auto shape = nlohmann::ordered_json::array();
    for (const Dim& d : t.shape) shape.push_back(static_cast<int64_t>(d));
    root[t.name] = {{"dtype", name->text}, {"shape", shape}, {"data_offsets", {t.begin, t.end}}};
  }
  std::string text;
  try {
    text = root.dump();
  } catch (const nlohmann::json::exception&) {
    throw_invalid("save_safetensors", "names and metadata must be UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > max_header_bytes)
    throw_invalid("save_safetensors", "the header would be longer than 100,000,000 bytes: too many or too long names");
  static_assert(std::endian::native == std::endian::little);
  const uint64_t length = text.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  return out + text;
}

}  // namespace weft::io
