#include "io/gguf/affine.h"

#include "graph/build.h"
#include "runtime/buffer.h"
#include "runtime/threads.h"

namespace weft::io::gguf {

namespace {

array array_of(runtime::BufferRef buffer, const Shape& shape, Dtype dtype) {
  return array(graph::data({shape, dtype}, {std::move(buffer), 0, row_major_strides(shape)}));
}

Shape with_last(Shape shape, int64_t last) {
  shape.back() = last;
  return shape;
}

/// Returns the bits of codes by shapes; a matrix without elements may have any.
int bits_of(const AffineArrays& a) {
  const int64_t words = a.codes.shape(-1), groups = a.scales.shape(-1);
  return static_cast<int>(groups == 0 ? 4 : words % groups == 0 ? words / groups : 0);
}

bool fits(const AffineArrays& a) {
  if (a.codes.dtype() != uint32 || a.scales.dtype() != float16 || a.biases.dtype() != float16) return false;
  if (a.scales.shape() != a.biases.shape() || a.codes.ndim() == 0 || a.codes.ndim() != a.scales.ndim()) return false;
  if (with_last(a.codes.shape(), 0) != with_last(a.scales.shape(), 0)) return false;
  const int bits = bits_of(a);
  return bits == 4 || bits == 8;
}

bool has_zero(const AffineArrays& a, int zero) {
  const auto *scales = static_cast<const float16_t*>(a.scales.raw_data()),
             *biases = static_cast<const float16_t*>(a.biases.raw_data());
  for (size_t k = 0; k < a.scales.size(); ++k)
    if (float16_t(static_cast<float>(-zero) * static_cast<float>(scales[k])).bits != biases[k].bits) return false;
  return true;
}

}  // namespace

std::string affine_prefix(const std::string& name) {
  constexpr std::string_view weight = ".weight";
  return name.ends_with(weight) ? name.substr(0, name.size() - weight.size()) : name;
}

AffineArrays unpack_blocks(const TensorType& type, const uint8_t* data, uint64_t blocks, const Shape& shape) {
  const auto words_of_block = static_cast<size_t>(type.bits);  // 32 codes
  const auto words = runtime::allocate(blocks * words_of_block * 4), scales = runtime::allocate(blocks * 2),
             biases = runtime::allocate(blocks * 2);
  auto* w = static_cast<uint32_t*>(words->data());
  auto *scale = static_cast<float16_t*>(scales->data()), *bias = static_cast<float16_t*>(biases->data());
  runtime::parallel_for(static_cast<int64_t>(blocks), [&](int64_t first, int64_t end) {
    AffineBlock block;
    for (int64_t k = first; k < end; ++k) {
      type.codes(data + k * type.bytes, block);
      scale[k] = block.scale, bias[k] = block.bias;
      for (size_t i = 0, codes = 32 / words_of_block; i < words_of_block; ++i) {
        uint32_t word = 0;
        for (size_t j = codes; j-- > 0;) word = word << type.bits | block.codes[i * codes + j];
        w[static_cast<size_t>(k) * words_of_block + i] = word;
      }
    }
  });
  const int64_t groups = shape.back() / 32;
  return {array_of(words, with_last(shape, groups * type.bits), uint32),
          array_of(scales, with_last(shape, groups), float16), array_of(biases, with_last(shape, groups), float16)};
}

std::optional<AffineArrays> find_affine(const std::unordered_map<std::string, array>& arrays, const std::string& name) {
  const std::string prefix = affine_prefix(name);
  const auto codes = arrays.find(name), scales = arrays.find(prefix + ".scales"),
             biases = arrays.find(prefix + ".biases");
  if (codes == arrays.end() || scales == arrays.end() || biases == arrays.end()) return std::nullopt;
  const AffineArrays a{codes->second, scales->second, biases->second};
  return fits(a) ? std::optional(a) : std::nullopt;
}

const TensorType* type_of(const AffineArrays& a) {
  const int bits = bits_of(a), zero = 1 << (bits - 1);
  return find_type(bits, has_zero(a, zero) ? zero : 0);
}

std::string pack_blocks(const TensorType& type, const AffineArrays& a) {
  const auto* words = static_cast<const uint32_t*>(a.codes.raw_data());
  const auto *scales = static_cast<const float16_t*>(a.scales.raw_data()),
             *biases = static_cast<const float16_t*>(a.biases.raw_data());
  std::string out(a.scales.size() * type.bytes, '\0');
  auto* to = reinterpret_cast<uint8_t*>(out.data());
  const auto bits = static_cast<size_t>(type.bits), codes = 32 / bits;
  runtime::parallel_for(static_cast<int64_t>(a.scales.size()), [&](int64_t first, int64_t end) {
    AffineBlock block;
    for (auto k = static_cast<size_t>(first); k < static_cast<size_t>(end); ++k) {
      for (size_t i = 0; i < 32; ++i)
        block.codes[i] = static_cast<uint8_t>(words[k * bits + i / codes] >> (i % codes * bits) & ((1u << bits) - 1));
      block.scale = scales[k], block.bias = biases[k];
      type.pack(block, to + k * type.bytes);
    }
  });
  return out;
}

}  // namespace weft::io::gguf
