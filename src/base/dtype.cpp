// Element types: promotion, categories, names, and the two half formats.
#include "weft/dtype.h"

#include <array>
#include <ostream>

#include "base/error.h"
#include "base/half.h"
#include "base/number.h"

namespace weft {

bfloat16_t::bfloat16_t(float value) : bits(float_to_bf16(value)) {}
bfloat16_t::operator float() const { return bf16_to_float(bits); }
float16_t::float16_t(float value) : bits(float_to_f16(value)) {}
float16_t::operator float() const { return f16_to_float(bits); }

namespace {

struct Row {
  Dtype dtype;
  Dtype::Category category;
  Dtype::Kind kind;
  const char* name;
};

constexpr std::array<Row, 17> dtype_rows{{
    {bool_, generic, Dtype::Kind::b, "bool"},
    {uint8, unsignedinteger, Dtype::Kind::u, "uint8"},
    {uint16, unsignedinteger, Dtype::Kind::u, "uint16"},
    {uint32, unsignedinteger, Dtype::Kind::u, "uint32"},
    {uint64, unsignedinteger, Dtype::Kind::u, "uint64"},
    {int8, signedinteger, Dtype::Kind::i, "int8"},
    {int16, signedinteger, Dtype::Kind::i, "int16"},
    {int32, signedinteger, Dtype::Kind::i, "int32"},
    {int64, signedinteger, Dtype::Kind::i, "int64"},
    {float16, floating, Dtype::Kind::f, "float16"},
    {bfloat16, floating, Dtype::Kind::V, "bfloat16"},
    {float32, floating, Dtype::Kind::f, "float32"},
    {float64, floating, Dtype::Kind::f, "float64"},
    {complex64, complexfloating, Dtype::Kind::c, "complex64"},
    {float8_e4m3, floating, Dtype::Kind::V, "float8_e4m3"},
    {float8_e5m2, floating, Dtype::Kind::V, "float8_e5m2"},
    {complex128, complexfloating, Dtype::Kind::c, "complex128"},
}};

constexpr bool rows_are_in_order() {
  for (size_t i = 0; i < dtype_rows.size(); ++i)
    if (static_cast<size_t>(dtype_rows[i].dtype.val()) != i) return false;
  return true;
}
static_assert(rows_are_in_order());

const Row& row(Dtype t) { return dtype_rows[static_cast<size_t>(t.val())]; }

Dtype::Category category_of(Dtype t) { return row(t).category; }

Dtype signed_of_size(int bytes) { return bytes <= 1 ? int8 : bytes == 2 ? int16 : bytes == 4 ? int32 : int64; }

Dtype promote_integers(Dtype a, Dtype b) {
  if (category_of(a) == category_of(b)) return a.size() >= b.size() ? a : b;
  const Dtype s = category_of(a) == signedinteger ? a : b, u = category_of(a) == signedinteger ? b : a;
  if (u == uint64) return float32;  // no integer holds both
  return signed_of_size(std::max<int>(s.size(), 2 * u.size()));
}

}  // namespace

Dtype::Kind kindof(Dtype t) { return row(t).kind; }

Dtype promote_types(Dtype a, Dtype b) {
  if (a == b || b == bool_) return a;
  if (a == bool_) return b;
  if (is_complex(a) || is_complex(b)) return real_of(a) == float64 || real_of(b) == float64 ? complex128 : complex64;
  const bool float_a = category_of(a) == floating, float_b = category_of(b) == floating;
  if (!float_a && !float_b) return promote_integers(a, b);
  if (float_a != float_b) return float_a ? a : b;
  if (a.size() == b.size()) return float32;  // float16 with bfloat16
  return a.size() > b.size() ? a : b;
}

bool issubdtype(Dtype a, Dtype b) { return a == b; }
bool issubdtype(Dtype a, Dtype::Category b) { return issubdtype(category_of(a), b); }

bool issubdtype(Dtype::Category a, Dtype::Category b) {
  for (;;) {
    if (a == b) return true;
    switch (a) {  // one step up: generic > number > {integer > {signed, unsigned}, inexact > {floating, complex}}
      case complexfloating:
      case floating: a = inexact; break;
      case signedinteger:
      case unsignedinteger: a = integer; break;
      case integer:
      case inexact: a = number; break;
      case number: a = generic; break;
      case generic: return false;
    }
  }
}

const char* dtype_name(Dtype t) { return row(t).name; }

Dtype dtype_from_name(const std::string& name) {
  if (name == "bool_") return bool_;
  std::string known;
  for (const Row& r : dtype_rows) {
    if (name == r.name) return r.dtype;
    known += (known.empty() ? "" : ", ") + std::string(r.name);
  }
  throw_invalid("dtype_from_name", "no dtype is called \"" + name + "\"; there are " + known);
}

std::ostream& operator<<(std::ostream& os, Dtype t) { return os << dtype_name(t); }

}  // namespace weft
