// Random bits (Salmon et al. 2011). Reads attrs.shape and attrs.generator.
//
// Philox-4x32-10: word n in row-major order is word n mod 4 of philox(key, (n / 4, 0)), the block's number in the two
// low words of the counter.
//
// Threefry-2x32-20 in the layout that JAX and MLX share: N words in row-major order, h = N / 2, o = N mod 2. For i < h,
// threefry(key, (i, i + h + o)) gives words i and i + h + o; where N is odd, word h is the first word of threefry(key,
// (h, 0)).
//
// A key may have axes in front of its two words: then each key draws an array of attrs.shape for itself, and the result
// has those axes in front.
#include <array>
#include <tuple>

#include "base/error.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

std::vector<Shape> random_shape(const Attrs& attrs, TypeSpan in) {
  const Shape& keys = in[0].shape;
  if (keys.empty() || !(keys.back() == 2))
    throw_invalid("random_bits", "the key must be two words, got " + to_string(in[0]));
  if (!is_static(attrs.shape))
    throw_invalid("random_bits",
                  "the shape must be static, got " + weft::to_string(attrs.shape) + ": draw at the bound and slice");
  Shape out(keys.begin(), keys.end() - 1);
  out.insert(out.end(), attrs.shape.begin(), attrs.shape.end());
  return {out};
}

std::vector<Dtype> random_dtype(const Attrs&, TypeSpan in) {
  if (in[0].dtype != uint32) throw_invalid("random_bits", "the key must be uint32, got " + to_string(in[0]));
  return {uint32};
}

Values random_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  return {random_bits(to_front(x[0], axes[0]), node.attrs().shape, node.attrs().generator)};
}

/// Keys may be split; what one key draws stays whole.
Factors random_factors(const Attrs&, TypeSpan in, TypeSpan out) {
  const int keys = in[0].rank() - 1;
  Factors f{{factors_from(0, keys)}, {factors_from(0, keys)}};
  f.inputs[0].push_back(-1);
  f.outputs[0].resize(out[0].shape.size(), -1);
  return f;
}

Number philox_word(const Number* key, int64_t n) {
  const Number args[] = {key[0],
                         key[1],
                         Number::of_int(static_cast<uint32_t>(n / 4)),
                         Number::of_int((n / 4) >> 32),
                         Number::of_int(0),
                         Number::of_int(0)};
  return kernel::reference(static_cast<kernel::ScalarOp>(static_cast<int64_t>(kernel::ScalarOp::philox0) + n % 4),
                           uint32, args);
}

std::vector<HostTensor> random_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan out) {
  HostTensor result = host(out[0]);
  int64_t n = 1;
  for (const Dim& d : attrs.shape) n *= d.bound();
  const int64_t half = n / 2, odd = n % 2;
  for (size_t k = 0; n > 0 && k < result.data.size() / static_cast<size_t>(n); ++k) {
    Number* const drawn = &result.data[k * static_cast<size_t>(n)];
    if (attrs.generator == Generator::philox) {
      for (int64_t i = 0; i < n; ++i) drawn[i] = philox_word(&in[0].data[2 * k], i);
      continue;
    }
    const auto words = [&](int64_t a, int64_t b) {
      const Number args[] = {in[0].data[2 * k], in[0].data[2 * k + 1], Number::of_int(a), Number::of_int(b)};
      return std::pair(kernel::reference(kernel::ScalarOp::threefry0, uint32, args),
                       kernel::reference(kernel::ScalarOp::threefry1, uint32, args));
    };
    for (int64_t i = 0; i < half; ++i) std::tie(drawn[i], drawn[i + half + odd]) = words(i, i + half + odd);
    if (odd) drawn[half] = words(half, 0).first;
  }
  return {result};
}

constexpr auto random_table = std::to_array<Row>({
    {Op::random_bits, "random_bits", 1, 1, random_shape, random_dtype, dtype_interval, None::discrete, None::discrete,
     random_vmap, random_factors, -1, random_reference, 0, "random words of a counter-based generator with a key",
     "shape, generator", "uint32"},
});
static_assert(complete(random_table, Op::random_bits));

}  // namespace

std::span<const Row> random_rows() { return random_table; }

}  // namespace weft::graph
