// Packed integers and stochastic casts, made of other functions of the language.
#include <array>

#include <fmt/format.h>

#include "kernel/language/trace.h"
#include "weft/kernel.h"

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

}  // namespace weft::k::detail
