#pragma once
// Code of GPUs in a kernel: CUDA C++ or PTX for each element of tiles, beside what CPUs and the interpreter run.
//
//   const k::Code fast{"rsqrt", {"x"}, {"y"}, "y = rsqrtf(x);"};
//   auto y = k::cuda<float>(fast, [](auto x) { return k::rsqrt(x); }, tile);
//   const k::Code add{"add2", "=r,r,r", "vadd2.s32.s32.s32 $0, $1, $2, 0;", 2};   // two 16-bit elements in a word
//   auto z = k::cuda<int16_t>(add, k::gpu_only, a, b);
#include <array>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "weft/kernel.h"

namespace weft::k {

/// Code that runs for each element, or for `pack` elements at once. The compiler may run it more than once for an
/// element, and in any order. It is part of the kernel's key, and named in dumps and messages.
struct Code {
  /// Its name in dumps and messages.
  std::string name;
  /// Statements of CUDA C++, or PTX with $0, $1, … for its operands, the results first.
  std::string text;
  /// What CUDA C++ calls the arguments and results: values and references of their types, with `pack` above 1 pointers
  /// to so many. float16 and bfloat16 are their bits, as unsigned short.
  std::vector<std::string> inputs = {}, outputs = {};
  /// The constraints of PTX's operands, as of asm, the results first: "=r,r,r" (r 32 bits, h 16, l 64, f float, d
  /// double). An operand takes a register for each 32 bits (64 of wider elements) of its `pack` elements.
  std::string constraints = {};
  /// The elements for which it runs at once: 1, 2, 4, 8 or 16.
  int pack = 1;
  /// Whether it does more than compute its results: it then runs even if nobody reads them.
  bool effects = false;
  /// The line where it begins, which the compiler's messages count from.
  Line line = {};

  /// CUDA C++.
  Code(std::string n, std::vector<std::string> in, std::vector<std::string> out, std::string code, int elements = 1,
       Line at = Line::here())
      : name(std::move(n)), text(std::move(code)), inputs(std::move(in)), outputs(std::move(out)), pack(elements),
        line(at) {}
  /// PTX.
  Code(std::string n, std::string operands, std::string code, int elements = 1, Line at = Line::here())
      : name(std::move(n)), text(std::move(code)), constraints(std::move(operands)), pack(elements), line(at) {}
  /// Returns the code as one that has effects.
  Code with_effects() const {
    Code out = *this;
    out.effects = true;
    return out;
  }
};

/// In place of a counterpart: the kernel runs on GPUs alone.
struct GpuOnly {};
/// The object `gpu_only`.
inline constexpr GpuOnly gpu_only{};

/// What a CPU and the interpreter compute in place of code: from tiles of the arguments' types those of the results.
using Counterpart = std::function<std::vector<Any>(const std::vector<Any>&)>;
/// Runs code on tiles of one shape (scalars repeat) and returns results of the dtypes. Without a counterpart the kernel
/// is for GPUs alone. Throws std::invalid_argument where names, constraints or pack do not fit.
WEFT_API std::vector<Any> inline_code(const Code& code, std::span<const Any> args, std::span<const Dtype> results,
                                      const Counterpart& counterpart, Line at = Line::here());

namespace detail {
template <class T, int R, class V>
Tile<T, R> as_result(const V& v, Line at) {
  static_assert(std::same_as<TileOf<V>, Tile<T, R>>, "the counterpart returns tiles of the results' types and rank");
  return as_tile(v, at);
}
template <int R, class... T, class V>
std::vector<Any> results_of(const V& made, Line at) {
  if constexpr (sizeof...(T) == 1) {
    return {as_result<T..., R>(made, at).any()};
  } else {
    return std::apply([&](const auto&... each) { return std::vector<Any>{as_result<T, R>(each, at).any()...}; }, made);
  }
}
}  // namespace detail

/// Runs code on tiles and returns a tile of T, or a tuple for several types. `counterpart`, a function of tiles of the
/// arguments' types and one rank, returns the same on CPUs and in the interpreter; or gpu_only.
template <class... T, class F, TileLike... V>
auto cuda(const Code& code, const F& counterpart, const V&... v) {
  static_assert(sizeof...(T) >= 1 && sizeof...(V) >= 1, "code takes tiles and makes tiles: cuda<float>(code, f, x)");
  constexpr int rank = std::max({rank_of<V>...});
  static_assert(((rank_of<V> == rank || rank_of<V> == 0) && ...), "the arguments have one rank, or are scalars");
  const Line at = code.line;
  Counterpart other;
  if constexpr (!std::same_as<F, GpuOnly>) {
    other = [&]<size_t... I>(std::index_sequence<I...>) {
      return [&](const std::vector<Any>& given) {
        return detail::results_of<rank, T...>(counterpart(Tile<ElementOf<V>, rank>(given[I])...), at);
      };
    }
    (std::index_sequence_for<V...>{});
  }
  const std::array<Any, sizeof...(V)> args{detail::as_tile(v, at).any()...};
  const std::array<Dtype, sizeof...(T)> dtypes{detail::dtype_of<T>()...};
  const std::vector<Any> made = inline_code(code, args, dtypes, other, at);
  return [&]<size_t... I>(std::index_sequence<I...>) {
    if constexpr (sizeof...(T) == 1) return Tile<T..., rank>(made[0]);
    else return std::make_tuple(Tile<T, rank>(made[I])...);
  }
  (std::index_sequence_for<T...>{});
}

}  // namespace weft::k
