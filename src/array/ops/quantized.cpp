// weft/ops/quantized.h. Everything is made of other operations, so that a program fuses the unpacking of weights into
// the product that reads them, and derivatives and vmap follow.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "array/op_support.h"
#include "base/error.h"
#include "weft/ops.h"

namespace weft {
namespace {

using detail::describe;

constexpr int word_bits = 32;
constexpr double largest_e2m1 = 6, largest_e4m3 = 448;

/// How a mode scales a group, and what its codes are.
enum class Scaled : uint8_t { by_range, by_power_of_two, by_e4m3 };

struct Mode {
  const char* name;
  Scaled scaled;
  std::vector<int> groups, bits;  // that there are
  int usual_group, usual_bits;
};

const std::vector<Mode>& modes() {
  static const std::vector<Mode> table{
      {"affine", Scaled::by_range, {32, 64, 128}, {1, 2, 3, 4, 5, 6, 8}, 64, 4},
      {"mxfp4", Scaled::by_power_of_two, {32}, {4}, 32, 4},
      {"mxfp8", Scaled::by_power_of_two, {32}, {8}, 32, 8},
      {"nvfp4", Scaled::by_e4m3, {16}, {4}, 16, 4},
  };
  return table;
}

/// The way a matrix is quantised, as a call names it.
struct Form {
  const char* op;
  const Mode* mode;
  int group, bits;
  bool affine() const { return mode->scaled == Scaled::by_range; }
};

std::string listed(const std::vector<int>& numbers) {
  std::string out;
  for (const int n : numbers) out += (out.empty() ? "" : ", ") + std::to_string(n);
  return out;
}

Form form_of(const char* op, std::optional<int> group, std::optional<int> bits, const std::string& mode,
             const std::optional<array>& global_scale = std::nullopt) {
  const auto found = std::find_if(modes().begin(), modes().end(), [&](const Mode& m) { return m.name == mode; });
  if (found == modes().end()) throw_invalid(op, "there is no mode '" + mode + "': give affine, mxfp4, mxfp8 or nvfp4");
  const Form f{op, &*found, group.value_or(found->usual_group), bits.value_or(found->usual_bits)};
  const auto has = [](const std::vector<int>& list, int n) {
    return std::find(list.begin(), list.end(), n) != list.end();
  };
  if (!has(found->groups, f.group))
    throw_invalid(op, "mode " + mode + " has groups of " + listed(found->groups) + " elements, not of " +
                          std::to_string(f.group));
  if (!has(found->bits, f.bits))
    throw_invalid(op, "mode " + mode + " has " + listed(found->bits) + " bits, not " + std::to_string(f.bits));
  if (global_scale && found->scaled != Scaled::by_e4m3)
    throw_invalid(op, "mode " + mode + " has no global scale, which is for nvfp4 alone");
  if (global_scale && (global_scale->dtype() != float32 || global_scale->size() != 1))
    throw_invalid(op, "the global scale is one float32, got " + describe(*global_scale));
  return f;
}

array constants(const std::vector<uint32_t>& numbers, Shape shape) { return array(numbers.data(), std::move(shape)); }
array word(uint32_t n) { return array(n, uint32); }
int64_t size_of(const array& a, int axis) { return a.shape(axis).bound(); }

/// Returns the last axis [n · size] as two axes [n, size].
array split_last(const array& a, int64_t size, StreamOrDevice s) {
  Shape shape = a.shape();
  shape.back() = shape.back().bound() / size;
  shape.push_back(size);
  return reshape(a, shape, s);
}

array join_last(const array& a, StreamOrDevice s) { return flatten(a, -2, -1, s); }

/// Returns a row's elements, each times or plus its group's number [..., groups].
array to_elements(const array& of_groups, const Form& f, StreamOrDevice s) {
  Shape shape = of_groups.shape();
  shape.push_back(f.group);
  return join_last(broadcast_to(expand_dims(of_groups, -1, s), shape, s), s);
}

/// The fewest codes of a width that fill whole words, and by word and code how far a code lies above the word's lowest
/// bit, or below it. 32 where it does not: shifts by 32 leave nothing.
struct Block {
  int codes, words;
  std::vector<uint32_t> above, below;
};

Block block_of(int bits) {
  const int codes = word_bits / std::gcd(bits, word_bits), words = codes * bits / word_bits;
  Block out{codes, words, {}, {}};
  for (int w = 0; w < words; ++w)
    for (int k = 0; k < codes; ++k) {
      const int at = k * bits - w * word_bits;
      out.above.push_back(static_cast<uint32_t>(at >= 0 && at < word_bits ? at : word_bits));
      out.below.push_back(static_cast<uint32_t>(at < 0 && at > -bits ? -at : word_bits));
    }
  return out;
}

/// Packs codes [..., k] of uint32 into words.
array pack(const array& codes, int bits, StreamOrDevice s) {
  const Block b = block_of(bits);
  const array each = expand_dims(split_last(codes, b.codes, s), -2, s);
  array parts = left_shift(each, constants(b.above, {b.words, b.codes}), s);
  if (b.words > 1) parts = bitwise_or(parts, right_shift(each, constants(b.below, {b.words, b.codes}), s), s);
  return join_last(sum(parts, -1, false, s), s);
}

/// Returns the codes [..., k] of words, as uint32. Widths that do not divide 32 look at each word of a block: no word
/// is read at an index that is computed, so that a product can unpack them.
array unpack(const array& words, int bits, StreamOrDevice s) {
  const Block b = block_of(bits);
  const array block = split_last(words, b.words, s), above = constants(b.above, {b.words, b.codes}),
              below = constants(b.below, {b.words, b.codes});
  std::optional<array> all;
  for (int w = 0; w < b.words; ++w) {
    const auto of_word = [&](const array& table) {
      return reshape(slice(table, {w, 0}, {w + 1, b.codes}, s), {b.codes}, s);
    };
    Shape from(block.ndim(), 0), to = block.shape();
    from.back() = w, to.back() = w + 1;
    const array one = slice(block, from, to, s);
    array part = right_shift(one, of_word(above), s);
    if (b.words > 1) part = bitwise_or(part, left_shift(one, of_word(below), s), s);
    all = all ? bitwise_or(*all, part, s) : part;
  }
  return join_last(bitwise_and(*all, word((1U << bits) - 1), s), s);
}

/// Returns the E2M1 codes of float32 numbers: of the nearest, towards zero of two; numbers that become 0 lose their
/// sign.
array to_e2m1(const array& v, StreamOrDevice s) {
  const array size = abs(v, s);
  array code = zeros(v.shape(), uint32, s);
  for (const float above : {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f})
    code = add(code, astype(greater(size, array(above), s), uint32, s), s);
  const array below = logical_and(less(v, array(0.0f), s), greater(code, word(0), s), s);
  return add(code, left_shift(astype(below, uint32, s), word(3), s), s);
}

/// Returns ±n as float32, for the sign bit `sign` of codes and whole numbers n of uint32.
array with_signs(const array& n, const array& codes, uint32_t sign, StreamOrDevice s) {
  const array one(1, int32), two(2, int32);
  const array shift = word(static_cast<uint32_t>(std::countr_zero(sign)) - 1);
  const array factor = subtract(one, bitwise_and(astype(right_shift(codes, shift, s), int32, s), two, s), s);
  return astype(multiply(astype(n, int32, s), factor, s), float32, s);
}

/// Returns twice the numbers of E2M1 codes as float32: 0, 1, 2, 3, 4, 6, 8, 12 stand in a word. No table lies in memory
/// and no bits become floats, so that a product computes it as it loads the codes.
array twice_e2m1(const array& codes, StreamOrDevice s) {
  const array at = left_shift(bitwise_and(codes, word(7), s), word(2), s);
  return with_signs(bitwise_and(right_shift(word(0xc8643210), at, s), word(15), s), codes, 8, s);
}

/// Returns the numbers of E4M3 codes times 2^10 as float32: 8 + fraction, shifted by the exponent, or twice the
/// fraction where that is 0. 0x7f is NaN.
array scaled_e4m3(const array& codes, StreamOrDevice s) {
  const array exponent = bitwise_and(right_shift(codes, word(3), s), word(15), s),
              fraction = bitwise_and(codes, word(7), s);
  const array n = where(equal(exponent, word(0), s), add(fraction, fraction, s),
                        left_shift(add(fraction, word(8), s), exponent, s), s);
  const array number = with_signs(n, codes, 128, s), nan(std::numeric_limits<float>::quiet_NaN());
  return where(equal(bitwise_and(codes, word(127), s), word(127), s), nan, number, s);
}

/// Returns 2^(e - 127) of exponents [..., groups] of uint8; 2^-127 is subnormal.
array power_of_two(const array& exponent, StreamOrDevice s) {
  const array e = astype(exponent, uint32, s);
  const array bits = where(equal(e, word(0), s), word(1U << 22), left_shift(e, word(23), s), s);
  return view(bits, float32, s);
}

/// Returns what scales of 8-bit modes stand for, as float32.
array scale_values(const array& scales, const Form& f, const std::optional<array>& global_scale, StreamOrDevice s) {
  if (f.mode->scaled == Scaled::by_power_of_two) return power_of_two(scales, s);
  const array number = from_fp8(scales, float32, s);
  if (!global_scale) return number;
  const array unit =
      multiply(reshape(*global_scale, {}, s), array(static_cast<float>(1 / (largest_e2m1 * largest_e4m3))), s);
  return multiply(number, unit, s);
}

/// Returns the smallest power of two, as its exponent + 127, that is not below a float32 number. 127 for 0.
array exponent_above(const array& v, StreamOrDevice s) {
  const array bits = view(v, uint32, s), fraction = bitwise_and(bits, word((1U << 23) - 1), s);
  const array exponent = add(right_shift(bits, word(23), s), astype(greater(fraction, word(0), s), uint32, s), s);
  const array finite = where(isinf(v, s), word(128), minimum(exponent, word(254), s), s);
  return astype(where(equal(v, array(0.0f), s), word(127), finite, s), uint8, s);
}

/// Quantises groups by their range: a scale and a bias, such that the number that is farthest from 0 is exact.
std::vector<array> quantize_affine(const array& w, const Form& f, StreamOrDevice s) {
  const Dtype exact = detail::accumulator(w.dtype());
  const auto number = [&](double v) { return array(v, exact); };
  const array groups = split_last(astype(w, exact, s), f.group, s);
  const array high = max(groups, -1, false, s), low = min(groups, -1, false, s);
  const double steps = std::ldexp(1.0, f.bits) - 1;
  array scale = maximum(divide(subtract(high, low, s), number(steps), s), number(1e-7f), s), bias = low;
  if (f.bits > 1) {
    const array from_low = greater(abs(low, s), abs(high, s), s);
    scale = where(from_low, scale, negative(scale, s), s);
    const array edge = where(from_low, low, high, s), most = round(divide(edge, scale, s), 0, s);
    const array moves = not_equal(most, number(0), s);
    scale = where(moves, divide(edge, where(moves, most, number(1), s), s), scale, s);
    bias = where(moves, edge, number(0), s);
  }
  const auto each = [&](const array& v) { return expand_dims(v, -1, s); };
  const array code =
      clip(round(divide(subtract(groups, each(bias), s), each(scale), s), 0, s), number(0), number(steps), s);
  return {pack(join_last(astype(code, uint32, s), s), f.bits, s), astype(scale, w.dtype(), s),
          astype(bias, w.dtype(), s)};
}

/// Quantises groups to floats of 4 or 8 bits, by the largest number of a group.
std::vector<array> quantize_floats(const array& w, const Form& f, const std::optional<array>& global_scale,
                                   StreamOrDevice s) {
  const array groups = split_last(astype(w, float32, s), f.group, s), largest = max(abs(groups, s), -1, false, s);
  // MLX computes it in the matrix's dtype: in float16 it may be 0.
  array ratio = divide(largest, array(static_cast<float>(f.bits == 4 ? largest_e2m1 : largest_e4m3)), s);
  if (f.mode->scaled == Scaled::by_power_of_two) ratio = astype(astype(ratio, w.dtype(), s), float32, s);
  array scales = ratio;
  if (f.mode->scaled == Scaled::by_power_of_two) scales = exponent_above(ratio, s);
  else {
    if (global_scale)
      ratio = multiply(
          ratio, divide(array(static_cast<float>(largest_e2m1 * largest_e4m3)), reshape(*global_scale, {}, s), s), s);
    scales = to_fp8(ratio, s);
  }
  const array scale = scale_values(scales, f, global_scale, s), none = equal(scale, array(0.0f), s);
  const auto each = [&](const array& v) { return expand_dims(v, -1, s); };
  const array v = where(each(none), array(0.0f), divide(groups, each(where(none, array(1.0f), scale, s)), s), s);
  const array code = f.bits == 4 ? to_e2m1(v, s) : astype(to_fp8(v, s), uint32, s);
  return {pack(join_last(code, s), f.bits, s), scales};
}

/// Throws unless codes, scales and biases belong together.
void check_codes(const Form& f, const array& w, const array& scales, const std::optional<array>& biases) {
  if (f.affine() && !biases) throw_invalid(f.op, "mode affine needs biases");
  if (!f.affine() && biases) throw_invalid(f.op, std::string("mode ") + f.mode->name + " has no biases");
  if (w.dtype() != uint32) throw_invalid(f.op, "codes are uint32, got " + describe(w));
  if (w.ndim() < 2) throw_invalid(f.op, "a matrix is needed, got " + describe(w));
  const auto fits = [&](const array& of_groups) {
    Shape expected = w.shape();
    expected.back() = expected.back().bound() * word_bits / f.bits / f.group;
    return of_groups.shape() == expected && size_of(w, -1) * word_bits % (f.bits * f.group) == 0;
  };
  if (!fits(scales) || (biases && !fits(*biases)))
    throw_invalid(f.op, "codes " + describe(w) + " of " + std::to_string(f.bits) + " bits do not go with scales " +
                            describe(scales) + (biases ? " and biases " + describe(*biases) : "") + " of groups of " +
                            std::to_string(f.group));
  if (f.affine() ? !is_float(scales.dtype()) || !is_float(biases->dtype()) : scales.dtype() != uint8)
    throw_invalid(f.op, std::string("scales of mode ") + f.mode->name + (f.affine() ? " are floats" : " are uint8") +
                            ", got " + describe(scales) + (biases ? " and biases " + describe(*biases) : ""));
}

/// Returns the numbers of codes, in the dtype that they are computed in.
array dequantized(const Form& f, const array& w, const array& scales, const std::optional<array>& biases,
                  const std::optional<array>& global_scale, StreamOrDevice s) {
  const array codes = unpack(w, f.bits, s);
  if (f.affine()) {
    const Dtype exact = detail::accumulator(promote_types(scales.dtype(), biases->dtype()));
    const auto of_elements = [&](const array& v) { return to_elements(astype(v, exact, s), f, s); };
    return add(multiply(of_elements(scales), astype(codes, exact, s), s), of_elements(*biases), s);
  }
  const array number = f.bits == 4 ? twice_e2m1(codes, s) : scaled_e4m3(codes, s);
  const array scale = multiply(scale_values(scales, f, global_scale, s), array(f.bits == 4 ? 0.5f : 0x1p-10f), s);
  return multiply(number, to_elements(scale, f, s), s);
}

/// Returns the dtype of a product with a quantised matrix.
Dtype dtype_of_product(const Form& f, const array& x, const array& scales) {
  const Dtype t = f.affine() ? promote_types(x.dtype(), scales.dtype()) : x.dtype();
  if (!is_float(t)) throw_invalid(f.op, "floats are multiplied, got " + describe(x));
  return t;
}

void check_product(const Form& f, const array& x, const array& w, bool transpose) {
  if (x.ndim() < 1) throw_invalid(f.op, "a vector or a matrix is needed, got " + describe(x));
  const int64_t wide = size_of(w, -1) * word_bits / f.bits, high = size_of(w, -2), contracted = transpose ? wide : high;
  if (size_of(x, -1) != contracted)
    throw_invalid(f.op, describe(x) + " has rows of " + std::to_string(size_of(x, -1)) + " elements, and codes " +
                            describe(w) + " of " + std::to_string(f.bits) + " bits stand for a matrix of " +
                            std::to_string(high) + " x " + std::to_string(wide) + (transpose ? ", transposed" : ""));
}

/// Multiplies by the numbers of a quantised matrix, which are rounded to the dtype of the product.
array product(const array& x, const array& numbers, Dtype dtype, bool transpose, StreamOrDevice s) {
  const array matrix = astype(numbers, dtype, s);
  return matmul(astype(x, dtype, s), transpose ? swapaxes(matrix, -1, -2, s) : matrix, s);
}

/// Returns what quantising leaves of numbers, in their dtype, with the derivative of the numbers themselves.
array rounded(const Form& f, const array& v, const std::optional<array>& global_scale, StreamOrDevice s) {
  const std::vector<array> q = quantize_floats(stop_gradient(v, s), f, global_scale, s);
  const array near = astype(dequantized(f, q[0], q[1], std::nullopt, global_scale, s), v.dtype(), s);
  return add(stop_gradient(near, s), subtract(v, stop_gradient(v, s), s), s);
}

/// Returns the matrices that indices choose among those of the flattened leading axes; all without indices. Codes are
/// chosen before they are unpacked.
array matrices_at(const Form& f, const array& a, const std::optional<array>& indices, StreamOrDevice s) {
  if (a.ndim() < 2) throw_invalid(f.op, "matrices are needed, got " + describe(a));
  if (!indices) return a;
  detail::require_integer(f.op, "indices", *indices);
  return take(reshape(a, {-1, a.shape(-2), a.shape(-1)}, s), *indices, 0, s);
}

void check_unquantized(const Form& f, const array& v) {
  if (!is_float(v.dtype()) || v.dtype() == float64)
    throw_invalid(f.op, "float32, float16 and bfloat16 are multiplied, got " + describe(v));
  if (v.ndim() < 1 || v.shape(-1) % f.group != 0)
    throw_invalid(f.op, "the last axis is made of groups of " + std::to_string(f.group) + ", got " + describe(v));
}

/// Returns the numbers of both sides of a product of quantised matrices.
std::pair<array, array> both_sides(const Form& f, const array& x, const array& w, const std::optional<array>& scales,
                                   const std::optional<array>& of_x, const std::optional<array>& of_w,
                                   StreamOrDevice s) {
  if (f.mode->scaled == Scaled::by_range || std::string(f.mode->name) == "mxfp4")
    throw_invalid(f.op, std::string("mode ") + f.mode->name + " is not multiplied so: give nvfp4 or mxfp8");
  check_unquantized(f, x);
  const array left = rounded(f, x, of_x, s);
  if (scales) {
    check_codes(f, w, *scales, std::nullopt);
    check_product(f, x, w, true);
    return {left, astype(dequantized(f, w, *scales, std::nullopt, of_w, s), x.dtype(), s)};
  }
  check_unquantized(f, w);
  if (w.ndim() < 2 || w.shape(-1) != x.shape(-1))
    throw_invalid(f.op, "rows of " + describe(x) + " and of " + describe(w) + " are multiplied: their sizes differ");
  return {left, astype(rounded(f, w, of_w, s), x.dtype(), s)};
}

}  // namespace

std::vector<array> quantize(const array& w, std::optional<int> group_size, std::optional<int> bits,
                            const std::string& mode, const std::optional<array>& global_scale, StreamOrDevice s) {
  const detail::OnStream on_stream("quantize", s);
  const Form f = form_of("quantize", group_size, bits, mode, global_scale);
  if (!is_float(w.dtype())) throw_invalid("quantize", "floats are quantised, got " + describe(w));
  if (w.ndim() < 2) throw_invalid("quantize", "a matrix is needed, got " + describe(w));
  if (w.shape(-1) % f.group != 0)
    throw_invalid("quantize",
                  "the last axis of " + describe(w) + " is not made of groups of " + std::to_string(f.group));
  return f.affine() ? quantize_affine(w, f, s) : quantize_floats(w, f, global_scale, s);
}

array dequantize(const array& w, const array& scales, const std::optional<array>& biases, std::optional<int> group_size,
                 std::optional<int> bits, const std::string& mode, const std::optional<array>& global_scale,
                 std::optional<Dtype> dtype, StreamOrDevice s) {
  const detail::OnStream on_stream("dequantize", s);
  const Form f = form_of("dequantize", group_size, bits, mode, global_scale);
  check_codes(f, w, scales, biases);
  if (dtype && !is_float(*dtype))
    throw_invalid("dequantize", std::string("the result is of floats, not of ") + dtype_name(*dtype));
  const Dtype out = dtype.value_or(f.affine() ? scales.dtype() : bfloat16);
  return astype(dequantized(f, w, scales, biases, global_scale, s), out, s);
}

array quantized_matmul(const array& x, const array& w, const array& scales, const std::optional<array>& biases,
                       bool transpose, std::optional<int> group_size, std::optional<int> bits, const std::string& mode,
                       StreamOrDevice s) {
  const detail::OnStream on_stream("quantized_matmul", s);
  const Form f = form_of("quantized_matmul", group_size, bits, mode);
  check_codes(f, w, scales, biases);
  check_product(f, x, w, transpose);
  return product(x, dequantized(f, w, scales, biases, std::nullopt, s), dtype_of_product(f, x, scales), transpose, s);
}

array qqmm(const array& x, const array& w, const std::optional<array>& w_scales, std::optional<int> group_size,
           std::optional<int> bits, const std::string& mode, const std::optional<array>& global_scale_x,
           const std::optional<array>& global_scale_w, StreamOrDevice s) {
  const detail::OnStream on_stream("qqmm", s);
  const Form f = form_of("qqmm", group_size, bits, mode, global_scale_x ? global_scale_x : global_scale_w);
  if (w.ndim() != 2) throw_invalid("qqmm", "one matrix of weights is multiplied, got " + describe(w));
  const auto [left, right] = both_sides(f, x, w, w_scales, global_scale_x, global_scale_w, s);
  return matmul(left, swapaxes(right, -1, -2, s), s);
}

array gather_qmm(const array& x, const array& w, const array& scales, const std::optional<array>& biases,
                 std::optional<array> lhs_indices, std::optional<array> rhs_indices, bool transpose,
                 std::optional<int> group_size, std::optional<int> bits, const std::string& mode,
                 const std::optional<array>& global_scale, bool, StreamOrDevice s) {
  const detail::OnStream on_stream("gather_qmm", s);
  const Form f = form_of("gather_qmm", group_size, bits, mode, global_scale);
  check_codes(f, w, scales, biases);
  check_product(f, x, w, transpose);
  const auto chosen = [&](const array& a) { return matrices_at(f, a, rhs_indices, s); };
  const array numbers =
      dequantized(f, chosen(w), chosen(scales), biases ? std::optional(chosen(*biases)) : biases, global_scale, s);
  return product(matrices_at(f, x, lhs_indices, s), numbers, dtype_of_product(f, x, scales), transpose, s);
}

array gather_qqmm(const array& x, const array& w, const std::optional<array>& scales_w,
                  const std::optional<array>& lhs_indices, const std::optional<array>& rhs_indices,
                  std::optional<int> group_size, std::optional<int> bits, const std::string& mode,
                  const std::optional<array>& global_scale_x, const std::optional<array>& global_scale_w, bool,
                  StreamOrDevice s) {
  const detail::OnStream on_stream("gather_qqmm", s);
  const Form f = form_of("gather_qqmm", group_size, bits, mode, global_scale_x ? global_scale_x : global_scale_w);
  const auto chosen = [&](const array& a) { return matrices_at(f, a, rhs_indices, s); };
  const std::optional<array> scales = scales_w ? std::optional(chosen(*scales_w)) : scales_w;
  const auto [left, right] =
      both_sides(f, matrices_at(f, x, lhs_indices, s), chosen(w), scales, global_scale_x, global_scale_w, s);
  return matmul(left, swapaxes(right, -1, -2, s), s);
}

}  // namespace weft
