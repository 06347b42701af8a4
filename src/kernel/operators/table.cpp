// The rows gathered into one table: what scalar.h says of operators, and their expansions.
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "kernel/operators/rows.h"

namespace weft::kernel {
namespace {

constexpr size_t op_count = static_cast<size_t>(ScalarOp::count_);

constexpr std::string_view names[] = {
#define WEFT_NAME(name) #name,
    WEFT_SCALAR_OPERATORS(WEFT_NAME)
#undef WEFT_NAME
};
static_assert(std::size(names) == op_count);

Number number_of(double v) { return Number::of_real(v); }
Number number_of(bool v) { return Number::of_int(v); }

template <class R>
concept OnFloats = requires {
  &R::reference;
};
template <class R>
concept OnIntegers = requires {
  &R::integers;
};
template <class R>
concept Expanded = requires {
  &R::expansion;
};

template <ScalarOp op>
Number on_floats(Dtype t, const Number* args) {
  using R = Row<op>;
  const auto real = [&](int k) { return args[k].real(); };
  const bool narrow = t != float64;
  if constexpr (requires { R::reference(0.0); }) return number_of(R::reference(real(0)));
  else if constexpr (requires { R::reference(0.0, 0.0); }) return number_of(R::reference(real(0), real(1)));
  else if constexpr (R::columns.arity == 2) return number_of(R::reference(real(0), real(1), narrow));
  else return number_of(R::reference(real(0), real(1), real(2), narrow));
}

template <ScalarOp op>
Number on_integers(Dtype t, const Number* args) {
  const int64_t a = args[0].i, b = Row<op>::columns.arity > 1 ? args[1].i : 0;
  const uint64_t result =
      Row<op>::integers({t, args, a, b, static_cast<uint64_t>(a), static_cast<uint64_t>(b), is_signed(t)});
  return round_to(Number::of_int(static_cast<int64_t>(result)), t);
}

template <ScalarOp op>
Expr expanded(std::span<const Expr> args, Precision precision) {
  using R = Row<op>;
  if constexpr (requires { R::expansion(args[0], precision); }) return R::expansion(args[0], precision);
  else if constexpr (requires { R::expansion(args[0]); }) return R::expansion(args[0]);
  else if constexpr (requires { R::expansion(args[0], args[1]); }) return R::expansion(args[0], args[1]);
  else if constexpr (requires { R::expansion(args[0], args[1], precision); })
    return R::expansion(args[0], args[1], precision);
  else return R::expansion(args);
}

struct Entry {
  ScalarInfo info;
  Number (*floats)(Dtype, const Number*) = nullptr;
  Number (*integers)(Dtype, const Number*) = nullptr;
  Expr (*expansion)(std::span<const Expr>, Precision) = nullptr;
};

template <size_t k>
constexpr Entry entry() {
  constexpr auto op = static_cast<ScalarOp>(k);
  using R = Row<op>;
  static_assert(R::columns.arity >= 1 && R::columns.arity <= most_arguments);
  static_assert(op == ScalarOp::select || OnFloats<R> == R::columns.floats, "floats have a reference");
  static_assert(op == ScalarOp::select || OnIntegers<R> == (R::columns.integers || R::columns.booleans),
                "integers and bools have a reference");
  static_assert(Expanded<R> || R::columns.ulp == 0, "a basic operator is exact");
  Entry e{{R::columns, op, names[k], !Expanded<R>}};
  if constexpr (OnFloats<R>) e.floats = on_floats<op>;
  if constexpr (OnIntegers<R>) e.integers = on_integers<op>;
  if constexpr (Expanded<R>) e.expansion = expanded<op>;
  return e;
}

template <size_t... k>
constexpr auto all(std::index_sequence<k...>) {
  return std::array<Entry, op_count>{entry<k>()...};
}
constexpr auto table = all(std::make_index_sequence<op_count>());

}  // namespace

const ScalarInfo& info(ScalarOp op) { return table.at(static_cast<size_t>(op)).info; }

Number reference(ScalarOp op, Dtype t, const Number* args) {
  if (op == ScalarOp::select) return args[0].i != 0 ? args[1] : args[2];
  const Entry& row = table.at(static_cast<size_t>(op));
  if (!takes(row.info, t)) throw_internal("scalar", std::string(row.info.name) + " is not defined on " + dtype_name(t));
  return is_float(t) ? row.floats(t, args) : row.integers(t, args);
}

Expr expansion::expansion_of(ScalarOp op, std::span<const Expr> args, Precision precision) {
  const Entry& row = table.at(static_cast<size_t>(op));
  if (!row.expansion) throw_internal("expand", std::string(row.info.name) + " has no expansion");
  return row.expansion(args, precision);
}

}  // namespace weft::kernel
