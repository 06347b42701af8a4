// The header is Python text, but always a dictionary of three fields: it is parsed as that, and every value is checked.
#include "io/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "base/error.h"

namespace weft {

namespace io {

namespace {

constexpr std::string_view magic("\x93NUMPY", 6);

struct Kind {
  std::string_view code;  // after the byte order
  Dtype dtype;
};
constexpr Kind kinds[] = {{"b1", bool_},   {"u1", uint8},   {"u2", uint16},    {"u4", uint32},      {"u8", uint64},
                          {"i1", int8},    {"i2", int16},   {"i4", int32},     {"i8", int64},       {"f2", float16},
                          {"f4", float32}, {"f8", float64}, {"c8", complex64}, {"c16", complex128}, {"V2", bfloat16}};

/// Returns why an element type cannot be read.
std::string reason(std::string_view code) {
  if (code.starts_with('O')) return "Python objects, which only Python can read: save it with allow_pickle=False";
  if (code.starts_with('c'))
    return "a complex type wider than complex128, which Weft has not: convert it to complex128";
  if (code.starts_with('f'))
    return "a float type of " + std::string(code.substr(1)) + " bytes, which Weft has not: convert it to float64";
  if (code.starts_with('S') || code.starts_with('U') || code.starts_with('a'))
    return "text, which is no array of numbers";
  if (code.starts_with('M') || code.starts_with('m')) return "dates or durations: convert them to int64";
  if (code.starts_with('V')) return "raw bytes of no known meaning";
  return "no type that is known here";
}

class Parser {
 public:
  Parser(const Bytes& bytes, uint64_t at, uint64_t end) : bytes_(bytes), at_(at), end_(end) {}

  void read() {
    expect('{');
    while (!take('}')) {
      const uint64_t offset = at_;
      const std::string key = quoted();
      expect(':');
      if (key == "descr") field(descr_, offset, key, [&] { return read_type(); });
      else if (key == "fortran_order") field(fortran_, offset, key, [&] { return read_truth(); });
      else if (key == "shape") field(shape_, offset, key, [&] { return read_shape(); });
      else bytes_.fail("the header has a field '" + key + "' other than descr, fortran_order and shape", offset);
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    if (at_ != end_) bytes_.fail("something follows the dictionary of the header", at_);
    if (!descr_ || !fortran_ || !shape_)
      bytes_.fail(std::string("the header lacks ") + (!descr_ ? "descr" : !fortran_ ? "fortran_order" : "shape"), at_);
  }

  Dtype dtype() const { return descr_->first; }
  bool swap() const { return descr_->second; }
  bool fortran() const { return *fortran_; }
  const std::vector<uint64_t>& shape() const { return *shape_; }

 private:
  template <class T, class F>
  void field(std::optional<T>& into, uint64_t offset, const std::string& key, F read) {
    if (into) bytes_.fail("the field '" + key + "' occurs twice", offset);
    skip();
    into = read();
  }

  void skip() {
    while (at_ < end_ && std::string_view(" \t\r\n\f\v").find(bytes_.view[at_]) != std::string_view::npos) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= end_ || bytes_.view[at_] != c) return false;
    ++at_;
    skip();
    return true;
  }
  void expect(char c) {
    if (!take(c)) bytes_.fail(std::string("the header is no dictionary of an array: a '") + c + "' is missing", at_);
  }

  std::string quoted() {
    skip();
    const char quote = at_ < end_ ? bytes_.view[at_] : '\0';
    if (quote != '\'' && quote != '"')
      bytes_.fail("the header is no dictionary of an array: a quoted text is missing", at_);
    const size_t close = bytes_.view.substr(0, end_).find(quote, at_ + 1);
    if (close == std::string_view::npos) bytes_.fail("a text in the header does not end", at_);
    const std::string text(bytes_.view.substr(at_ + 1, close - at_ - 1));
    for (const char c : text)
      if (c < ' ' || c > '~') bytes_.fail("a text in the header holds other than letters, digits and signs", at_);
    at_ = close + 1;
    skip();
    return text;
  }

  std::pair<Dtype, bool> read_type() {
    const uint64_t offset = at_;
    if (at_ < end_ && (bytes_.view[at_] == '[' || bytes_.view[at_] == '('))
      bytes_.fail("the elements are structures, which Weft has not: save the fields one by one", offset);
    const std::string text = quoted();
    const char order = text.empty() ? '\0' : text[0];
    if (order != '<' && order != '>' && order != '|' && order != '=')
      bytes_.fail("the element type '" + text + "' does not start with a byte order", offset);
    for (const Kind& kind : kinds) {
      if (kind.code != std::string_view(text).substr(1)) continue;
      if (order == '|' && kind.dtype.size() > 1)
        bytes_.fail("the element type '" + text + "' has no byte order", offset);
      return {kind.dtype, order == '>'};
    }
    bytes_.fail("the elements are '" + text + "': " + reason(std::string_view(text).substr(1)), offset);
  }

  bool read_truth() {
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}})
      if (bytes_.view.substr(0, end_).substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    bytes_.fail("fortran_order is neither True nor False", at_);
  }

  std::vector<uint64_t> read_shape() {
    const uint64_t offset = at_;
    std::vector<uint64_t> shape;
    expect('(');
    while (!take(')')) {
      uint64_t n = 0;
      const char* from = bytes_.view.data() + at_;
      const auto [to, error] = std::from_chars(from, bytes_.view.data() + end_, n);
      if (error != std::errc() || n > static_cast<uint64_t>(INT64_MAX))
        bytes_.fail("the shape must hold whole numbers from 0 to 2^63 - 1", at_);
      at_ += static_cast<uint64_t>(to - from);
      if (at_ < end_ && bytes_.view[at_] == 'L') ++at_;  // as Python 2 wrote long numbers
      shape.push_back(n);
      if (take(',')) continue;
      if (shape.size() == 1 && at_ < end_ && bytes_.view[at_] == ')')
        bytes_.fail("a shape with one size has a comma after it", at_);
      expect(')');
      break;
    }
    if (shape.size() > 64)
      bytes_.fail("the shape has " + std::to_string(shape.size()) + " dimensions, more than the 64 that NumPy knows",
                  offset);
    return shape;
  }

  const Bytes& bytes_;
  uint64_t at_, end_;
  std::optional<std::pair<Dtype, bool>> descr_;
  std::optional<bool> fortran_;
  std::optional<std::vector<uint64_t>> shape_;
};

/// Returns the position of the header's text.
std::pair<uint64_t, uint64_t> header_range(const Bytes& bytes) {
  const std::string_view view = bytes.view;
  if (!view.starts_with(magic)) {
    if (view.starts_with("PK\x03\x04")) bytes.fail("this is a zip archive, not one array: load_npz reads those", 0);
    bytes.fail("this is no .npy file", 0);
  }
  if (view.size() < 10) bytes.fail("the file ends within the first bytes", view.size());
  const auto byte = [&](size_t k) { return static_cast<uint64_t>(static_cast<uint8_t>(view[k])); };
  const uint64_t major = byte(6);
  if (major < 1 || major > 3 || byte(7) != 0)
    bytes.fail(fmt::format("the format's version is {}.{}; 1.0, 2.0 and 3.0 are known", major, byte(7)), 6);
  const uint64_t begin = major == 1 ? 10 : 12;
  if (view.size() < begin) bytes.fail("the file ends within the first bytes", view.size());
  const uint64_t length = byte(8) | byte(9) << 8 | (major == 1 ? 0 : byte(10) << 16 | byte(11) << 24);
  if (length > view.size() - begin)
    bytes.fail(fmt::format("the header should have {} bytes, but only {} follow: the file is truncated", length,
                           view.size() - begin),
               8);
  if (length == 0 || view[begin + length - 1] != '\n')
    bytes.fail("the header does not end with a new line", begin + length);
  return {begin, begin + length};
}

}  // namespace

array parse_npy(const Bytes& bytes) {
  const auto [begin, end] = header_range(bytes);
  Parser header(bytes, begin, end);
  header.read();
  uint64_t size = 0;
  Shape shape;
  for (const uint64_t n : header.shape()) shape.push_back(static_cast<int64_t>(n));
  if (!byte_count(header.shape(), header.dtype(), size))
    bytes.fail("the shape " + to_string(shape) + " overflows", begin);
  const uint64_t left = bytes.size() - end;
  if (left != size)
    bytes.fail(fmt::format("{} {} takes {} bytes, but {} follow the header{}", to_string(shape),
                           dtype_name(header.dtype()), size, left, left < size ? ": the file is truncated" : ""),
               end);
  return array_in(bytes, end, shape, header.dtype(), header.fortran(), header.swap());
}

std::string npy_header(const std::string& op, Dtype dtype, const Shape& shape) {
  if (!is_static(shape)) throw_invalid(op, "an array of shape " + to_string(shape) + " has no size yet");
  const Kind* kind = std::find_if(std::begin(kinds), std::end(kinds), [&](const Kind& k) { return k.dtype == dtype; });
  if (kind == std::end(kinds))
    throw_invalid(op, std::string(dtype_name(dtype)) +
                          " has no name in NumPy's files: view it as an unsigned integer, or use safetensors");
  std::string sizes;
  for (size_t k = 0; k < shape.size(); ++k) sizes += fmt::format("{}{}", k ? ", " : "", static_cast<int64_t>(shape[k]));
  if (shape.size() == 1) sizes += ",";
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                 dtype.size() == 1 ? '|' : '<', kind->code, sizes);
  const bool wide = text.size() + 64 > 0xffff;
  const size_t before = wide ? 12 : 10;
  text.append(63 - (before + text.size()) % 64, ' ');
  text += '\n';
  std::string out(magic);
  out += wide ? '\2' : '\1';
  out += '\0';
  for (size_t k = 0; k < (wide ? 4 : 2); ++k) out += static_cast<char>(text.size() >> (8 * k) & 0xff);
  return out + text;
}

}  // namespace io

array load(const std::string& file, StreamOrDevice) {
  // An existing file may have any name; of a missing one only the name can be checked.
  const std::filesystem::path path(file);
  if (path.extension() != ".npy" && !std::filesystem::exists(path))
    throw_invalid("load", "there is no file " + file +
                              ", and its name is not that of a known format: .npy (load_npz, " +
                              "load_safetensors, load_gguf and load_torch read the others)");
  return io::parse_npy(io::map_file("load", file));
}
array load(const std::shared_ptr<io::Reader>& in, StreamOrDevice) { return io::parse_npy(io::read_all("load", *in)); }

void save(const std::string& file, const array& a) {
  const std::string head = io::npy_header("save", a.dtype(), a.shape());
  const std::string_view pieces[] = {head, {static_cast<const char*>(a.raw_data()), a.nbytes()}};
  io::write_file_atomically(io::with_extension(file, ".npy"), pieces);
}

void save(const std::shared_ptr<io::Writer>& out, const array& a) {
  const std::string head = io::npy_header("save", a.dtype(), a.shape());
  io::write_all("save", *out, {head, {static_cast<const char*>(a.raw_data()), a.nbytes()}});
}

}  // namespace weft
