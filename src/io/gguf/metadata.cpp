#include "io/gguf/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "io/gguf/layout.h"

namespace weft::io::gguf {

namespace {

/// Lists of lists are read this deep.
constexpr size_t deepest = 8;

std::optional<Dtype> number_dtype(uint32_t id) {
  for (const NumberType& t : number_types)
    if (t.id == id) return t.dtype;
  return std::nullopt;
}

std::optional<uint32_t> id_of(Dtype dtype) {
  for (const NumberType& t : number_types)
    if (t.dtype == dtype) return t.id;
  return std::nullopt;
}

/// Collects the numbers of a list, or of lists in lists, to one array.
class NumberList {
 public:
  NumberList(const Bytes& bytes, Cursor& in, const std::string& key) : bytes_(bytes), in_(in), key_(key) {}

  /// Takes elements of type `type`, which the list at `level` has `n` of.
  void take(uint32_t type, uint64_t n, size_t level) {
    set_length(n, level);
    if (type == list_type) {
      if (level + 1 == deepest) fail("is nested too deeply");
      for (uint64_t k = 0; k < n; ++k) {
        const auto inner = in_.number<uint32_t>("a list");
        take(inner, in_.length("a list"), level + 1);
      }
      return;
    }
    const auto dtype = number_dtype(type);
    if (!dtype) fail(type == text_type ? "has texts in lists of lists" : fmt::format("has the unknown type {}", type));
    if (dtype_ && (*dtype_ != *dtype || levels_ != level)) fail("is a list of lists that differ in type");
    dtype_ = dtype, levels_ = level;
    if (n > in_.left() / dtype->size()) fail(fmt::format("claims {} numbers, which the file does not hold", n));
    const uint64_t begin = in_.at();
    append(in_.take(n * dtype->size(), "a list of numbers"), *dtype, begin);
  }

  array result() {
    const Dtype dtype = dtype_.value_or(float32);
    uint64_t bytes = 0;
    if (!byte_count(lengths_, dtype, bytes) || bytes != data_.size()) fail("is a list of lists that differ in length");
    return array::from_data(data_.data(), Shape(std::vector<Dim>(lengths_.begin(), lengths_.end())), dtype);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { bytes_.fail("metadata '" + key_ + "' " + what, in_.at()); }

  void set_length(uint64_t n, size_t level) {
    if (n > INT64_MAX) fail(fmt::format("claims {} elements, which the file does not hold", n));
    if (level < lengths_.size() && lengths_[level] != n) fail("is a list of lists that differ in length");
    if (level == lengths_.size()) lengths_.push_back(n);
  }

  void append(std::string_view elements, Dtype dtype, uint64_t begin) {
    const size_t from = data_.size(), width = dtype.size();
    data_ += elements;
    for (size_t k = from; in_.swaps() && k < data_.size(); k += width)
      std::reverse(data_.begin() + static_cast<int64_t>(k), data_.begin() + static_cast<int64_t>(k + width));
    if (dtype != bool_) return;
    const auto bad = std::find_if(elements.begin(), elements.end(), [](char c) { return c != 0 && c != 1; });
    if (bad != elements.end())
      bytes_.fail("metadata '" + key_ + "' has a bool that is neither 0 nor 1",
                  begin + static_cast<uint64_t>(bad - elements.begin()));
  }

  const Bytes& bytes_;
  Cursor& in_;
  const std::string& key_;
  std::vector<uint64_t> lengths_;
  std::optional<Dtype> dtype_;
  size_t levels_ = 0;
  std::string data_;
};

GGUFMetaData read_list(const Bytes& bytes, Cursor& in, const std::string& key) {
  const auto type = in.number<uint32_t>("a list");
  const uint64_t n = in.length("a list");
  if (type == text_type) {
    std::vector<std::string> texts;
    for (uint64_t k = 0; k < n; ++k) texts.push_back(in.text("a text"));
    return texts;
  }
  NumberList list(bytes, in, key);
  list.take(type, n, 0);
  return list.result();
}

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_text(std::string& out, const std::string& text) {
  put(out, uint64_t{text.size()});
  out += text;
}

/// Appends axis `axis` of the elements from `data` on as a list, or as a number where there are no more axes.
void put_axis(std::string& out, const Shape& shape, size_t axis, size_t width, uint32_t type, const char*& data) {
  const bool last = axis + 1 == shape.size();
  put(out, last ? type : list_type);
  put(out, static_cast<uint64_t>(shape[axis].bound()));
  for (int64_t k = 0; !last && k < shape[axis].bound(); ++k) put_axis(out, shape, axis + 1, width, type, data);
  if (!last) return;
  const size_t bytes = width * static_cast<size_t>(shape[axis].bound());
  out.append(data, bytes);
  data += bytes;
}

void put_array(std::string& out, const std::string& key, const array& a) {
  const auto type = id_of(a.dtype());
  if (!type)
    throw_invalid("save_gguf", fmt::format("metadata '{}' is {}, which GGUF has not for metadata: cast it to float32",
                                           key, dtype_name(a.dtype())));
  if (a.size() == 0) throw_failure("save_gguf", "metadata '" + key + "' is an array without elements");
  if (a.ndim() > deepest) throw_failure("save_gguf", fmt::format("metadata '{}' has {} axes", key, a.ndim()));
  const auto* data = static_cast<const char*>(a.raw_data());
  put(out, a.ndim() == 0 ? *type : list_type);
  if (a.ndim() == 0) out.append(data, a.itemsize());
  else put_axis(out, a.shape(), 0, a.itemsize(), *type, data);
}

}  // namespace

GGUFMetaData read_value(const Bytes& bytes, Cursor& in, const std::string& key) {
  const uint64_t at = in.at();
  const auto type = in.number<uint32_t>("the type of a value");
  if (type == text_type) return in.text("a text");
  if (type == list_type) return read_list(bytes, in, key);
  const auto dtype = number_dtype(type);
  if (!dtype) bytes.fail(fmt::format("metadata '{}' has the unknown type {}", key, type), at);
  NumberList one(bytes, in, key);
  one.take(type, 1, 0);
  const array list = one.result();
  return array::from_data(list.raw_data(), {}, *dtype);
}

void write_value(std::string& out, const std::string& key, const GGUFMetaData& value) {
  if (const auto* a = std::get_if<array>(&value)) return put_array(out, key, *a);
  if (const auto* text = std::get_if<std::string>(&value)) {
    put(out, text_type);
    return put_text(out, *text);
  }
  const auto* texts = std::get_if<std::vector<std::string>>(&value);
  if (!texts) throw_invalid("save_gguf", "metadata '" + key + "' has no value");
  put(out, list_type);
  put(out, text_type);
  put(out, uint64_t{texts->size()});
  for (const std::string& text : *texts) put_text(out, text);
}

}  // namespace weft::io::gguf
