// Reading GGUF: everything is checked before an array is made.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/half.h"
#include "graph/build.h"
#include "io/gguf/affine.h"
#include "io/gguf/layout.h"
#include "io/gguf/metadata.h"
#include "io/gguf/types.h"
#include "runtime/threads.h"
#include "weft/io.h"

namespace weft {

namespace io::gguf {

namespace {

struct Tensor {
  std::string name;
  std::vector<uint64_t> lengths;  // in the order of an array's axes
  const TensorType* type = nullptr;
  uint64_t told = 0;              // the byte at which the file describes it
  uint64_t begin = 0, bytes = 0;  // its data
};

Shape shape_of(const std::vector<uint64_t>& lengths) { return Shape(std::vector<Dim>(lengths.begin(), lengths.end())); }

class FileReader {
 public:
  explicit FileReader(const Bytes& bytes) : bytes_(bytes), in_(bytes) {}

  GGUFLoad read() {
    read_head();
    for (uint64_t k = 0; k < metadata_; ++k) {
      const uint64_t at = in_.at();
      std::string key = in_.text("the key of a value");
      if (key == alignment_key) alignment_at_ = at;
      GGUFMetaData value = read_value(bytes_, in_, key);
      if (!out_.second.emplace(key, std::move(value)).second) bytes_.fail("metadata '" + key + "' occurs twice", at);
    }
    std::vector<Tensor> tensors;
    for (uint64_t k = 0; k < count_; ++k) tensors.push_back(read_tensor());
    locate(tensors);
    for (const Tensor& t : tensors) make(t);
    return std::move(out_);
  }

 private:
  void read_head() {
    if (in_.take(std::min<uint64_t>(in_.left(), 4), "the file's mark") != magic)
      bytes_.fail("this is no GGUF file, which begins with \"GGUF\"", 0);
    auto version = in_.number<uint32_t>("the version");
    const bool swap = (version & 0xffff) == 0 && version != 0;
    if (swap) version = version >> 24 | (version >> 8 & 0xff00);
    if (version < 1 || version > newest_version)
      bytes_.fail(fmt::format("the file has version {} of GGUF; versions 1 to {} are read", version, newest_version),
                  4);
    in_.set_format(version > 1, swap);
    count_ = in_.length("the number of tensors");
    metadata_ = in_.length("the number of metadata");
  }

  Tensor read_tensor() {
    Tensor t;
    t.told = in_.at();
    t.name = in_.text("the name of a tensor");
    const auto fail = [&](const std::string& what) { bytes_.fail("tensor '" + t.name + "' " + what, t.told); };
    const auto axes = in_.number<uint32_t>("the axes of a tensor");
    if (axes > most_axes) fail(fmt::format("has {} axes; {} are read", axes, most_axes));
    for (uint32_t k = 0; k < axes; ++k) t.lengths.push_back(in_.length("the lengths of a tensor"));
    const uint64_t row = t.lengths.empty() ? 1 : t.lengths.front();
    std::reverse(t.lengths.begin(), t.lengths.end());
    const auto id = in_.number<uint32_t>("the type of a tensor");
    t.type = find_type(id);
    if (!t.type) fail(fmt::format("has the type {} ({}), which is not read", id, name_of_type(id)));
    t.begin = in_.number<uint64_t>("the offset of a tensor");
    if (row % t.type->elements != 0)
      fail(fmt::format("has rows of {} elements, which are no whole blocks of {}", row, t.type->name));
    if (in_.swaps() && !t.type->dtype) fail("is quantised in a file of the other byte order, which is not read");
    uint64_t elements = 0, wide = 0;
    if (!byte_count(t.lengths, uint8, elements) || !byte_count(t.lengths, float64, wide) ||
        std::any_of(t.lengths.begin(), t.lengths.end(), [](uint64_t n) { return n > INT64_MAX; }))
      fail("has more elements than 63 bits count");
    t.bytes = elements / t.type->elements * t.type->bytes;
    return t;
  }

  uint64_t alignment() const {
    const auto found = out_.second.find(std::string(alignment_key));
    if (found == out_.second.end()) return usual_alignment;
    const auto* a = std::get_if<array>(&found->second);
    if (!a || a->ndim() != 0 || !issubdtype(a->dtype(), integer))
      bytes_.fail("general.alignment is no integer", alignment_at_);
    const auto n = a->item<int64_t>();
    if (n < 0 || !is_alignment(static_cast<uint64_t>(n)))
      bytes_.fail(fmt::format("general.alignment is {}, which is no power of two", n), alignment_at_);
    return static_cast<uint64_t>(n);
  }

  /// Sets where tensors begin in the file. Throws where one leaves it, or shares bytes with another.
  void locate(std::vector<Tensor>& tensors) const {
    const uint64_t data = aligned(in_.at(), alignment()),
                   held = bytes_.size() - std::min<uint64_t>(bytes_.size(), data);
    std::vector<const Tensor*> order;
    for (Tensor& t : tensors) {
      if (t.begin > held || t.bytes > held - t.begin)
        bytes_.fail(fmt::format("tensor '{}' should have {} bytes at offset {} of the data, which has {}: the file is "
                                "truncated",
                                t.name, t.bytes, t.begin, held),
                    t.told);
      t.begin += data;
      if (t.bytes > 0) order.push_back(&t);
    }
    std::sort(order.begin(), order.end(), [](const Tensor* a, const Tensor* b) { return a->begin < b->begin; });
    for (size_t k = 1; k < order.size(); ++k)
      if (order[k]->begin - order[k - 1]->begin < order[k - 1]->bytes)
        bytes_.fail("tensors '" + order[k - 1]->name + "' and '" + order[k]->name + "' share bytes", order[k]->told);
  }

  void put(const Tensor& t, const std::string& name, array a) {
    if (!out_.first.emplace(name, std::move(a)).second)
      bytes_.fail("the name '" + name + "' occurs twice among tensors", t.told);
  }

  void make(const Tensor& t) {
    if (t.type->dtype)
      return put(t, t.name,
                 array_in(bytes_, std::min<uint64_t>(t.begin, bytes_.size()), shape_of(t.lengths), *t.type->dtype,
                          false, in_.swaps()));
    if (t.type->decode) put(t, t.name, decoded(t));
    else make_affine(t);
  }

  array decoded(const Tensor& t) const {
    const TensorType& type = *t.type;
    const uint64_t blocks = t.bytes / type.bytes;
    const auto buffer = runtime::allocate(blocks * type.elements * sizeof(float16_t));
    auto* to = static_cast<uint16_t*>(buffer->data());
    const uint8_t* from = data_of(t);
    runtime::parallel_for(static_cast<int64_t>(blocks), [&](int64_t first, int64_t end) {
      float numbers[256];
      for (int64_t k = first; k < end; ++k) {
        type.decode(from + k * type.bytes, numbers);
        for (int64_t i = 0; i < type.elements; ++i) to[k * type.elements + i] = float_to_f16(numbers[i]);
      }
    });
    const Shape shape = shape_of(t.lengths);
    return array(graph::data({shape, float16}, {buffer, 0, row_major_strides(shape)}));
  }

  void make_affine(const Tensor& t) {
    const AffineArrays a = unpack_blocks(*t.type, data_of(t), t.bytes / t.type->bytes, shape_of(t.lengths));
    const std::string prefix = affine_prefix(t.name);
    put(t, t.name, a.codes);
    put(t, prefix + ".scales", a.scales);
    put(t, prefix + ".biases", a.biases);
  }

  const uint8_t* data_of(const Tensor& t) const {
    return reinterpret_cast<const uint8_t*>(bytes_.view.data()) + std::min<uint64_t>(t.begin, bytes_.size());
  }

  const Bytes& bytes_;
  Cursor in_;
  uint64_t count_ = 0, metadata_ = 0, alignment_at_ = 0;
  GGUFLoad out_;
};

}  // namespace

}  // namespace io::gguf

GGUFLoad load_gguf(const std::string& file, StreamOrDevice) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) throw_invalid("load_gguf", "there is no file " + file);
  const io::Bytes bytes = io::map_file("load_gguf", file);
  return io::gguf::FileReader(bytes).read();
}
GGUFLoad load_gguf(const std::shared_ptr<io::Reader>& in, StreamOrDevice) {
  const io::Bytes bytes = io::read_all("load_gguf", *in);
  return io::gguf::FileReader(bytes).read();
}

}  // namespace weft
