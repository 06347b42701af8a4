#pragma once
// The notation of expansions: arithmetic on values of a kernel under construction. An Expr is a value; a constant takes
// the type of the Expr that it is combined with. Equal instructions in the block or around it are shared, so that sin
// and cos of one value, or both words of one Threefry block, do their common work once.
#include <array>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "kernel/expand/expand.h"
#include "kernel/expand/expand_precision.h"
#include "kernel/tile.h"

namespace weft::kernel::expansion {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double ln2_high = 0.6931471824645996;  // ln 2 in float32, and the rest
inline constexpr double ln2_low = -1.9046542121259336e-09;

class Emitter {
 public:
  /// Appends new values to `types`. `has`: operators other than the basic ones that may be emitted.
  Emitter(std::vector<Type>& types, const Expansion& has) : has_(has), types_(types) {}

  void open_block();
  std::vector<Inst> close_block();
  /// Appends an instruction of the source kernel unchanged.
  void keep(Inst inst);
  /// Appends an instruction without effects of the source kernel, unless an equal one is visible. Returns the value.
  Value keep_once(Inst inst);

  const Type& type(Value v) const { return types_.at(static_cast<size_t>(v)); }
  Value constant(const Type& type, Number number);
  Value scalar(ScalarOp op, std::vector<Value> args);
  Value cast(Value v, Dtype to);
  Value bitcast(Value v, Dtype to);
  /// Returns, lane by lane, what `body` returns where the condition holds, else `otherwise`.
  std::vector<Value> when(Value condition, const std::vector<Value>& otherwise,
                          const std::function<std::vector<Value>()>& body);
  /// Returns the constant, or null if the value is none.
  const Number* constant_of(Value v) const {
    const auto found = constants_.find(v);
    return found == constants_.end() ? nullptr : &found->second;
  }
  /// Returns whether the value is NaN or at most `limit`: a minimum with a constant, or what is left of a tile when its
  /// largest element, or more, is taken off.
  bool is_at_most(Value v, double limit) const {
    const auto found = limits_.find(v);
    return found != limits_.end() && found->second <= limit;
  }
  const Expansion& has() const { return has_; }

 private:
  using Key = std::vector<int64_t>;
  struct Scope {
    std::vector<Inst> insts;
    std::map<Key, std::vector<Value>> known;
  };
  static Key key_of(const Inst& inst);
  const std::vector<Value>* known(const Key& key) const;
  Value emit(Inst inst);
  void note(const Inst& inst);

  Expansion has_;
  std::vector<Type>& types_;
  std::vector<Scope> scopes_;          // innermost last
  std::map<Value, Number> constants_;  // for casts of constants
  std::map<Value, double> limits_;     // of values that are at most a constant: that constant
  /// A tile none of whose elements is above another value, which has all its axes, but of one element along `axis` (-1:
  /// of all of them); `gone`: that axis is missing.
  struct Below {
    Value tile;
    int axis;
    bool gone;
  };
  std::map<Value, std::vector<Below>> below_;
};

struct Expr {
  Emitter* emitter;
  Value value;
};

inline bool is_double(Expr v) { return v.emitter->type(v.value).dtype == float64; }

/// An Expr, or a number that takes the type of another operand.
struct Operand {
  Operand(Expr e) : expr(e), is_number(false) {}             // NOLINT: implicit on purpose
  Operand(double v) : expr{}, number(v), is_number(true) {}  // NOLINT
  Expr expr;
  double number = 0;
  bool is_number;
};

/// Numbers take the type of the last Expr among the operands (select: of its branches, so one of them is an Expr).
Expr apply(ScalarOp op, std::initializer_list<Operand> operands);
Expr bitcast(Expr v, Dtype to);
Expr cast(Expr v, Dtype to);
/// Returns, lane by lane, what `body` returns where the condition holds, else `otherwise`. It is meant for long code
/// that few lanes need: targets skip it where no lane does.
std::vector<Expr> when(Expr condition, const std::vector<Expr>& otherwise,
                       const std::function<std::vector<Expr>()>& body);

inline Expr operator+(Expr a, Operand b) { return apply(ScalarOp::add, {a, b}); }
inline Expr operator-(Operand a, Operand b) { return apply(ScalarOp::sub, {a, b}); }
inline Expr operator*(Expr a, Operand b) { return apply(ScalarOp::mul, {a, b}); }
inline Expr operator/(Operand a, Expr b) { return apply(ScalarOp::div, {a, b}); }
inline Expr operator-(Expr a) { return apply(ScalarOp::neg, {a}); }
inline Expr operator&(Expr a, Operand b) { return apply(ScalarOp::bit_and, {a, b}); }
inline Expr operator|(Expr a, Operand b) { return apply(ScalarOp::bit_or, {a, b}); }
inline Expr operator^(Expr a, Operand b) { return apply(ScalarOp::bit_xor, {a, b}); }
inline Expr operator<<(Expr a, int bits) { return apply(ScalarOp::shl, {a, double(bits)}); }
inline Expr operator>>(Expr a, int bits) { return apply(ScalarOp::shr, {a, double(bits)}); }
inline Expr fma(Operand a, Operand b, Operand c) { return apply(ScalarOp::fma, {a, b, c}); }
inline Expr abs(Expr a) { return apply(ScalarOp::abs, {a}); }
inline Expr sqrt(Expr a) { return apply(ScalarOp::sqrt, {a}); }
inline Expr floor(Expr a) { return apply(ScalarOp::floor, {a}); }
inline Expr round(Expr a) { return apply(ScalarOp::round, {a}); }
inline Expr lt(Operand a, Operand b) { return apply(ScalarOp::lt, {a, b}); }
inline Expr le(Operand a, Operand b) { return apply(ScalarOp::le, {a, b}); }
inline Expr eq(Operand a, Operand b) { return apply(ScalarOp::eq, {a, b}); }
inline Expr select(Expr condition, Operand a, Operand b) { return apply(ScalarOp::select, {condition, a, b}); }
/// Returns v limited to [lo, hi]; NaN stays NaN.
inline Expr clamp(Expr v, double lo, double hi) { return apply(ScalarOp::min, {apply(ScalarOp::max, {v, lo}), hi}); }
/// v + shifter rounds v to an integer h, whose low bits are those of the sum; |h| < 2^22.
inline constexpr double shifter = 12582912;  // 1.5 * 2^23
inline constexpr double one_bits = 0x3F800000, half_bits = 0x3F000000, minus_one_bits = -1082130432;
/// Returns 2^h times the float with the pattern `bits`, a power of two; `shifted` is h + shifter.
inline Expr power_of_two(Expr shifted, double bits) { return bitcast((bitcast(shifted, int32) << 23) + bits, float32); }
/// Returns p 2^n, rounded once; n is `shifted` - shifter, |n| <= 151, and at most `most`. p must be so close to 1 that
/// p 2^(n/2) is a normal number.
Expr scaled(Expr p, Expr shifted, int most = 151);
/// Returns v (not negative) with the sign of `sign`.
inline Expr with_sign(Expr v, Expr sign) {
  return bitcast(bitcast(v, int32) | (bitcast(sign, int32) & -2147483648.0), float32);
}
/// Evaluates a polynomial by Horner's rule, the highest coefficient first.
Expr horner(Expr x, std::initializer_list<double> coefficients);

/// Returns the expansion of a row (kernel/operators); arguments are float32, float64 or integers. `precision`: how many
/// bits of the result readers can see.
Expr expansion_of(ScalarOp op, std::span<const Expr> args, Precision precision);

// The functions, on float32. exp, log and log1p of float64 stay whole, so that what is written in them is written once.
Expr exp(Expr x, Precision precision = Precision::bits24);
Expr exp2(Expr x);
Expr expm1(Expr x);
Expr sigmoid(Expr x, Precision precision = Precision::bits24);
Expr log(Expr x);
Expr log2(Expr x);
Expr log10(Expr x);
Expr log1p(Expr x);
Expr logaddexp(Expr x, Expr y, Precision precision = Precision::bits24);
Expr log_of_normal(Expr x);  // x positive, finite and not subnormal
Expr pow(Expr x, Expr y);
Expr sin(Expr x);
Expr cos(Expr x);
Expr tan(Expr x);
Expr arcsin(Expr x);
Expr arccos(Expr x);
Expr arctan(Expr x);
Expr arctan2(Expr y, Expr x);
Expr sinh(Expr x);
Expr cosh(Expr x);
Expr tanh(Expr x, Precision precision = Precision::bits24);
Expr arcsinh(Expr x);
Expr arccosh(Expr x);
Expr arctanh(Expr x);
Expr erf(Expr x);
Expr erfinv(Expr x);
Expr erfinv_double(Expr x);
/// Word 0 or 1 of Threefry-2x32-20.
Expr threefry(Expr key0, Expr key1, Expr counter0, Expr counter1, int word);

/// Word 0 to 3 of Philox-4x32-10.
Expr philox(std::array<Expr, 2> key, std::array<Expr, 4> counter, int word);

/// Returns whether `inst` computes on float16 or bfloat16 and therefore must be widened to float32.
bool is_low_precision(const Inst& inst, const std::vector<Type>& types);
/// Returns the instruction on float32, with its arguments cast and its type widened. The caller casts the result back.
Inst widen(Emitter& emitter, Inst inst);

}  // namespace weft::kernel::expansion
