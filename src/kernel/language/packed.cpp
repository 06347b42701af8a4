// Packed integers, stochastic casts and products of quantised operands, made of other functions of the language.
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "kernel/language/trace.h"
#include "weft/kernel.h"
#include "weft/kernel/library/scaled.h"

namespace weft::k::detail {
namespace {

/// Builds expressions of the tiles of one call.
struct Expressions {
  Line at;
  Any number(Dtype t, Scalar v) const { return constant(t, v, {}, at); }
  Any call(std::string_view op, const Any& a, const Any& b) const { return apply(op, std::array{a, b}, at); }
  Any call(std::string_view op, const Any& a) const { return apply(op, std::array{a}, at); }
  Any select(const Any& condition, const Any& a, const Any& b) const {
    return apply("select", std::array{condition, a, b}, at);
  }
  /// Returns 0, bits, 2 · bits, … as [1, parts].
  Any shifts(Dtype t, int64_t parts, int bits) const {
    return reshape(call("mul", iota(parts, t, at), number(t, bits)), {1, parts}, at);
  }
};

/// Returns how many integers of `bits` bits a word holds.
int64_t parts_of(Trace& t, std::string_view what, Dtype word, int bits, Line at) {
  const auto width = static_cast<int>(word.size()) * 8;
  if ((bits != 1 && bits != 2 && bits != 4 && bits != 8) || bits > width)
    t.refuse(at,
             fmt::format("{}: integers of {} bits in words of {}: give 1, 2, 4 or 8", what, bits, dtype_name(word)));
  return width / bits;
}

int64_t size_of(const std::vector<int64_t>& dims) {
  int64_t size = 1;
  for (const int64_t d : dims) size *= d;
  return size;
}

int64_t mask_of_bits(int bits) { return (int64_t{1} << bits) - 1; }

}  // namespace

Any unpacked(const Any& words, int bits, Dtype to, Line at) {
  Trace& t = Trace::current("unpack", at);
  std::vector<int64_t> dims = words.dims(at);
  const Dtype word = words.dtype(at);
  const int64_t parts = parts_of(t, "unpack", word, bits, at);
  if (dims.empty()) t.refuse(at, "unpack: a scalar has no axis that the integers lie along: reshape it to [1]");
  if (static_cast<int>(to.size()) * 8 < bits)
    t.refuse(at,
             fmt::format("unpack: integers of {} bits do not fit into {}: take a wider type", bits, dtype_name(to)));
  const Expressions e{at};
  const Any moved = e.call("shr", reshape(words, {size_of(dims), 1}, at), e.shifts(word, parts, bits));
  Any v = cast(e.call("bit_and", moved, e.number(word, mask_of_bits(bits))), to, at);
  if (!is_unsigned(to) && bits < static_cast<int>(to.size()) * 8) {  // the sign bit, subtracted twice its value
    const Any sign = e.number(to, int64_t{1} << (bits - 1));
    v = e.call("sub", e.call("bit_xor", v, sign), sign);
  }
  dims.back() *= parts;
  return reshape(v, dims, at);
}

Any packed(const Any& values, int bits, Dtype word, Line at) {
  Trace& t = Trace::current("pack", at);
  std::vector<int64_t> dims = values.dims(at);
  const int64_t parts = parts_of(t, "pack", word, bits, at);
  if (dims.empty() || dims.back() % parts != 0)
    t.refuse(at, fmt::format("pack: the last axis of {} is no multiple of the {} integers of {} bits in a word of {}: "
                             "pad it",
                             text(t.type(values, at)), parts, bits, dtype_name(word)));
  const Expressions e{at};
  const Any kept = e.call("bit_and", cast(values, word, at), e.number(word, mask_of_bits(bits)));
  dims.back() /= parts;
  const Any lines = reshape(kept, {size_of(dims), parts}, at);
  return reshape(reduce("sum", e.call("shl", lines, e.shifts(word, parts, bits)), 1, at), dims, at);
}

/// Rounds by the distance to the next number toward zero, in units of the last place of the narrower float. bfloat16
/// has float32's exponents, so that a random number is added to the bits that go; the others' units are float32
/// numbers.
Any cast_stochastic(const Any& v, const Any& bits, Dtype to, Line at) {
  Trace& t = Trace::current("cast_stochastic", at);
  common_shape(t, "cast_stochastic", std::array{t.value(v, at), t.value(bits, at)}, at);
  const Expressions e{at};
  const auto word = [&](int64_t n) { return e.number(uint32, n); };
  const auto real = [&](double n) { return e.number(float32, n); };
  const Any pattern = bitcast(v, uint32, at),
            finite = e.call("lt", e.call("bit_and", pattern, word(0x7fffffff)), word(0x7f800000));
  Any rounded;
  if (to == bfloat16) {
    const Any more = e.call("add", pattern, e.call("shr", bits, word(16)));
    rounded = bitcast(e.call("bit_and", more, word(0xffff0000)), float32, at);
  } else {
    struct Form {
      Dtype dtype;
      int mantissa, least_exponent;  // bits of fraction; of the smallest normal number
    };
    static const Form forms[] = {{float16, 10, -14}, {float8_e4m3, 3, -6}, {float8_e5m2, 2, -14}};
    const Form& form = to == float16 ? forms[0] : to == float8_e4m3 ? forms[1] : forms[2];
    const Any exponent = e.call("bit_and", e.call("shr", pattern, word(23)), word(255));
    const Any raised = e.call("max", exponent, word(127 + form.least_exponent));
    const Any unit = bitcast(e.call("shl", e.call("sub", raised, word(form.mantissa)), word(23)), float32, at);
    const Any count = e.call("div", e.call("abs", v), unit), whole = e.call("floor", count);
    const Any chance = e.call("mul", cast(e.call("shr", bits, word(8)), float32, at), real(0x1p-24));
    const Any up = e.select(e.call("lt", chance, e.call("sub", count, whole)), real(1), real(0));
    const Any magnitude = e.call("mul", e.call("add", whole, up), unit);
    const Any negative = e.call("ne", e.call("shr", pattern, word(31)), word(0));
    rounded = e.select(negative, e.call("neg", magnitude), magnitude);
  }
  return cast(e.select(finite, rounded, v), to, at);
}

namespace {

/// The scales of one operand, as float32 tiles.
class Scales {
 public:
  /// `rows`: the axis of the operand that is not contracted.
  Scales(std::string_view name, const Any& operand, const Any& scales, size_t rows, Line at)
      : make_{at}, rows_(rows), extents_(operand.dims(at)) {
    const std::vector<int64_t> dims = scales.dims(at);
    for (size_t axis = 0; axis < dims.size(); ++axis)
      if (dims[axis] < 1 || extents_[axis] % dims[axis] != 0)
        Trace::current("dot_scaled", at)
            .refuse(at,
                    fmt::format("dot_scaled: [{}] scales of the {} operand do not divide [{}]: give extents that do",
                                fmt::join(dims, ","), name, fmt::join(extents_, ",")));
    scales_ = number(scales);
    if (!dims.empty()) extents_of_scales_ = {dims[rows], dims[1 - rows]};
  }

  int64_t parts() const { return extents_of_scales_.second; }

  /// Returns the scales of part `part` of `parts` along the contracted axis, repeated for all rows or columns.
  Any of_part(int64_t part, int64_t parts) const {
    const auto [lines, along] = extents_of_scales_;
    if (scales_.dims(make_.at).empty()) return scales_;
    Any out = scales_;
    if (along > 1) {
      std::vector<int64_t> start{0, 0}, dims{lines, lines};
      start[1 - rows_] = part * along / parts, dims[1 - rows_] = 1;
      out = slice(out, start, dims, {}, make_.at);
    }
    const int64_t extent = extents_[rows_];
    if (lines == 1 || lines == extent) return out;
    out = broadcast_to(reshape(out, {lines, 1}, make_.at), {lines, extent / lines}, make_.at);
    return reshape(out, rows_ == 0 ? std::vector<int64_t>{extent, 1} : std::vector<int64_t>{1, extent}, make_.at);
  }

 private:
  /// Returns scales in float32; exponents as powers of two.
  Any number(const Any& scales) const {
    constexpr int mantissa_bits = 23, nan = 255;
    if (!(scales.dtype(make_.at) == uint8)) return cast(scales, float32, make_.at);
    const Any e = cast(scales, uint32, make_.at),
              power = bitcast(make_.call("shl", e, make_.number(uint32, mantissa_bits)), float32, make_.at),
              least = make_.number(float32, 0x1p-127);
    const Any some = make_.select(make_.call("eq", e, make_.number(uint32, 0)), least, power);
    return make_.select(make_.call("eq", e, make_.number(uint32, nan)), make_.number(float32, NAN), some);
  }

  Expressions make_;
  size_t rows_;
  std::vector<int64_t> extents_;
  Any scales_;
  std::pair<int64_t, int64_t> extents_of_scales_{1, 1};  // across, and along the contracted axis
};

}  // namespace

Any dot_scaled(const Any& a, const Any& a_scales, const Any& b, const Any& b_scales, const Any& c, Line at) {
  Trace& t = Trace::current("dot_scaled", at);
  const std::vector<int64_t> left = a.dims(at), right = b.dims(at);
  if (left.size() != 2 || right.size() != 2 || left[1] != right[0])
    t.refuse(at, fmt::format("dot_scaled: [{}] and [{}]: tiles [m,k] and [k,n] are wanted", fmt::join(left, ","),
                             fmt::join(right, ",")));
  if (c && c.dims(at) != std::vector{left[0], right[1]})
    t.refuse(at, fmt::format("dot_scaled: the sum [{}] is not [{},{}]", fmt::join(c.dims(at), ","), left[0], right[1]));
  const Scales of_a("left", a, a_scales, 0, at), of_b("right", b, b_scales, 1, at);
  const int64_t parts = std::lcm(of_a.parts(), of_b.parts()), depth = left[1] / parts;
  const Expressions make{at};
  Any sum = c;
  for (int64_t part = 0; part < parts; ++part) {
    const Any x = parts == 1 ? a : slice(a, {0, part * depth}, {left[0], depth}, {}, at),
              y = parts == 1 ? b : slice(b, {part * depth, 0}, {depth, right[1]}, {}, at),
              product = cast(dot(x, y, {}, Precision::exact, at), float32, at),
              scale = make.call("mul", of_a.of_part(part, parts), of_b.of_part(part, parts));
    sum = sum ? apply("fma", std::array{product, scale, sum}, at) : make.call("mul", product, scale);
  }
  return sum;
}

}  // namespace weft::k::detail
