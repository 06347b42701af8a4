#pragma once
// The index algebra: integer expressions over loop variables, hash-consed in a Context, simplified as they are built.
//
// Every movement operator of the graph becomes a map from an index tuple to an index tuple (`reindex_*`), and kernels
// read strides, contiguity and vector widths off the result with `affine`. Facts about a node (interval, congruence)
// are computed once, when it is made:
//   min <= value <= max   and   value ≡ rem (mod mod)          (Halide's ExprInfo has the same two facts)
// Arithmetic that could leave int64 makes the facts unbounded, never wrong. Division and modulus round toward minus
// infinity, by a positive constant only. A Context is used by one thread; expressions of two Contexts do not mix.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weft::ix {

enum class Kind : uint8_t {
  constant,  // value
  variable,  // id
  add,       // a + b            canonical: sum of terms, constants last
  mul,       // a * constant     (b is a constant node)
  floordiv,  // floor(a / b), b a positive constant
  mod,       // a - b * floor(a / b), b a positive constant
  min,
  max,     // of a and b
  less,    // a < b   as 0 or 1
  both,    // a and b as 0 or 1
  either,  // a or b  as 0 or 1
};

class Context;

struct Node {
  Kind kind;
  int64_t value;  // constant: its value; variable: its id
  const Node* a = nullptr;
  const Node* b = nullptr;
  int64_t min, max;          // inclusive; INT64_MIN / INT64_MAX where unbounded
  int64_t mod = 1, rem = 0;  // value ≡ rem (mod mod); mod 0 says value == rem
  uint32_t size = 1;         // nodes of the tree, saturating
  uint32_t serial = 0;       // order of creation in the Context: the canonical order of terms
  Context* context = nullptr;
};

/// A handle: one pointer, compared by address.
class Expr {
 public:
  Expr() = default;
  explicit Expr(const Node* node) : node_(node) {}
  const Node* operator->() const { return node_; }
  const Node* get() const { return node_; }
  explicit operator bool() const { return node_ != nullptr; }
  friend bool operator==(Expr, Expr) = default;
  bool is_constant() const { return node_->kind == Kind::constant; }
  bool is_constant(int64_t v) const { return is_constant() && node_->value == v; }

 private:
  const Node* node_ = nullptr;
};

class Context {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Expr constant(int64_t v);
  /// A new variable with an inclusive interval. Ids count up from 0; `name` is for printing.
  Expr variable(const std::string& name, int64_t min, int64_t max);
  const std::string& name(int64_t variable_id) const;
  size_t nodes() const;  // distinct nodes made so far

  Expr add(Expr a, Expr b);
  Expr mul(Expr a, int64_t c);
  Expr floordiv(Expr a, int64_t c);  // c > 0
  Expr mod(Expr a, int64_t c);       // c > 0
  Expr min(Expr a, Expr b);
  Expr max(Expr a, Expr b);
  Expr less(Expr a, Expr b);
  Expr both(Expr a, Expr b);
  Expr either(Expr a, Expr b);

 private:
  struct State;
  std::unique_ptr<State> state_;
  friend struct Builder;
};

Expr operator+(Expr a, Expr b);
Expr operator+(Expr a, int64_t b);
Expr operator-(Expr a, Expr b);
Expr operator-(Expr a, int64_t b);
Expr operator*(Expr a, int64_t b);
Expr operator/(Expr a, int64_t b);  // floordiv
Expr operator%(Expr a, int64_t b);  // mod, never negative
Expr operator<(Expr a, Expr b);
Expr operator<(Expr a, int64_t b);
Expr operator>=(Expr a, int64_t b);
Expr operator&&(Expr a, Expr b);

/// "i*12 + j", for dumps and error messages.
std::string to_string(Expr e);
/// Evaluates e with variable k = values[k]: the definition that every rule is tested against.
int64_t evaluate(Expr e, std::span<const int64_t> values);
/// Returns e with each variable replaced by what `replacement` returns (an empty Expr keeps the variable). Memoised per
/// call.
Expr substitute(Expr e, const std::function<Expr(int64_t variable_id)>& replacement);
/// Copies expressions of another Context to `to`: same names, same facts, terms in the same order.
std::vector<Expr> copy(Context& to, std::span<const Expr> from);
/// Calls `visit` once for each variable that occurs in e.
void variables(Expr e, const std::function<void(Expr)>& visit);
bool depends_on(Expr e, Expr variable);

/// e = base + Σ coefficient[k] · vars[k], base free of every vars[k]; nothing where e is not of that form (a div or mod
/// of a variable).
struct Affine {
  Expr base;
  std::vector<int64_t> coefficients;
};
std::optional<Affine> affine(Expr e, std::span<const Expr> vars);

/// The smallest groups of axes that a reshape merges and splits: both shapes are cut wherever their products agree.
/// (2,3,4) → (6,4) gives {[0,2) → [0,1)} and {[2,3) → [1,2)}; axes of extent 1 join a neighbour. The shapes must have
/// equal, non-zero products.
struct ReshapeGroup {
  int from_begin, from_end, to_begin, to_end;
};
std::vector<ReshapeGroup> reshape_groups(std::span<const int64_t> from, std::span<const int64_t> to);

/// Returns the index tuple before a reshape for the tuple `index` after it. Div and mod stay inside a reshape group.
std::vector<Expr> reindex_reshape(Context& cx, std::span<const Expr> index, std::span<const int64_t> from,
                                  std::span<const int64_t> to);

/// Returns Σ index[k] · strides[k] + offset.
Expr linear(Context& cx, std::span<const Expr> index, std::span<const int64_t> strides, int64_t offset = 0);

}  // namespace weft::ix
