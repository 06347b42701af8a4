// Functions of tiles in Python: from numbers, movement, reductions and scans, products, random numbers.
#include <array>

#include "kernel_language.h"
#include "weft/kernel.h"

namespace weft::python::kernels {

namespace {

using Many = nb::object;
using Pair = std::pair<Tile, Tile>;

Any filled_tile(const Lengths& shape, nb::handle number, const std::optional<Dtype>& dtype, Line at) {
  return k::constant(dtype.value_or(float32), scalar_of(number), extents_of(shape), at);
}

void define_making(nb::module_& m) {
  m.def(
      "full",
      [](const Lengths& shape, nb::handle number, const std::optional<Dtype>& dtype) {
        return Tile(filled_tile(shape, number, dtype, here()));
      },
      nb::arg("shape"), nb::arg("number"), nb::arg("dtype") = nb::none(),
      nb::sig("def full(shape: int | Sequence[int], number: float, dtype: Dtype | None = None) -> Tile"),
      "Returns a tile that a number fills, float32 if no dtype is given.");
  m.def(
      "zeros",
      [](const Lengths& shape, const std::optional<Dtype>& dtype) {
        return Tile(filled_tile(shape, nb::int_(0), dtype, here()));
      },
      nb::arg("shape"), nb::arg("dtype") = nb::none(),
      nb::sig("def zeros(shape: int | Sequence[int], dtype: Dtype | None = None) -> Tile"),
      "Returns a tile of zeros, float32 if no dtype is given.");
  m.def(
      "scalar",
      [](nb::handle number, const std::optional<Dtype>& dtype) { return Tile(filled_tile({}, number, dtype, here())); },
      nb::arg("number"), nb::arg("dtype") = nb::none(),
      nb::sig("def scalar(number: float, dtype: Dtype | None = None) -> Tile"),
      "Returns a number as a tile without axes, float32 if no dtype is given.");
  m.def(
      "arange",
      [](int64_t n, const std::optional<Dtype>& dtype) { return Tile(k::iota(n, dtype.value_or(int64), here())); },
      nb::arg("n"), nb::arg("dtype") = nb::none(), "Returns 0, 1, … n-1, int64 if no dtype is given.");
}

Any flattened_last(const Any& v, const std::optional<int>& axis, const char* reducer, Line at) {
  if (axis) return k::reduce(reducer, v, *axis, at);
  Any left = v;
  for (int a = v.rank(at); a-- > 0;) left = k::reduce(reducer, left, a, at);
  return left;
}

struct Reduction {
  const char *name, *reducer, *doc;
};

constexpr Reduction tile_reductions[] = {
    {"sum", "sum", "Returns the sum along an axis, or of all elements."},
    {"prod", "prod", "Returns the product along an axis, or of all elements."},
    {"max", "max", "Returns the largest element along an axis, or of all; NaN where one is."},
    {"min", "min", "Returns the smallest element along an axis, or of all; NaN where one is."},
    {"all", "all", "Returns whether all elements along an axis, or all at all, are true."},
    {"any", "any", "Returns whether any element along an axis, or any at all, is true."},
    {"xor_sum", "xor", "Returns the elements combined by exclusive or."},
};
constexpr Reduction indexed_reductions[] = {
    {"argmax", "argmax", "Returns the index of the first largest element, uint32."},
    {"argmin", "argmin", "Returns the index of the first smallest element, uint32."},
    {"logsumexp", "logsumexp", "Returns the logarithm of the sum of exponentials."},
};
constexpr Reduction tile_scans[] = {
    {"cumsum", "sum", "Returns the sums up to each element along an axis."},
    {"cumprod", "prod", "Returns the products up to each element along an axis."},
    {"cummax", "max", "Returns the largest of the elements up to each along an axis."},
    {"cummin", "min", "Returns the smallest of the elements up to each along an axis."},
};

/// Returns a Python function of the states of two parts: f(lower…, upper…) returns a scalar for each tile.
k::CombineAny combine_of(const nb::callable& f, Line at) {
  return [f, at](const std::vector<Any>& low, const std::vector<Any>& high) {
    nb::list args;
    for (const auto* part : {&low, &high})
      for (const Any& v : *part) args.append(Tile(v));
    return tiles_in(f(*args), at);
  };
}

void define_reductions(nb::module_& m) {
  for (const Reduction& r : tile_reductions)
    m.def(
        r.name,
        [reducer = r.reducer](nb::handle v, const std::optional<int>& axis) {
          const Line at = here();
          return Tile(flattened_last(tile_of(v, at), axis, reducer, at));
        },
        nb::arg("v"), nb::arg("axis") = nb::none(),
        nb::sig((std::string("def ") + r.name + "(v: Value, axis: int | None = None) -> Tile").c_str()), r.doc);
  for (const Reduction& r : indexed_reductions)
    m.def(
        r.name,
        [reducer = r.reducer](nb::handle v, int axis) {
          const Line at = here();
          return Tile(k::reduce(reducer, tile_of(v, at), axis, at));
        },
        nb::arg("v"), nb::arg("axis"),
        nb::sig((std::string("def ") + r.name + "(v: Value, axis: int) -> Tile").c_str()), r.doc);
  for (const Reduction& r : tile_scans)
    m.def(
        r.name,
        [reducer = r.reducer](nb::handle v, int axis, bool reverse) {
          const Line at = here();
          return Tile(k::scan(reducer, tile_of(v, at), axis, reverse, at));
        },
        nb::arg("v"), nb::arg("axis"), nb::arg("reverse") = false,
        nb::sig((std::string("def ") + r.name + "(v: Value, axis: int, reverse: bool = False) -> Tile").c_str()),
        r.doc);
  m.def(
      "reduce",
      [](nb::handle v, int axis, const nb::callable& f) -> Many {
        const Line at = here();
        return tiles(k::reduce(combine_of(f, at), tiles_in(v, at), axis, at));
      },
      nb::arg("v"), nb::arg("axis"), nb::arg("f"),
      nb::sig("def reduce(v: Value | Sequence[Value], axis: int, f: Callable) -> Any"),
      "Reduces a tile, or several of one shape, by f(lower…, upper…), which combines scalars of two parts and is "
      "associative. The order is fixed (docs/kernels.md).");
  m.def(
      "scan",
      [](nb::handle v, int axis, const nb::callable& f, bool reverse) -> Many {
        const Line at = here();
        return tiles(k::scan(combine_of(f, at), tiles_in(v, at), axis, reverse, at));
      },
      nb::arg("v"), nb::arg("axis"), nb::arg("f"), nb::arg("reverse") = false,
      nb::sig("def scan(v: Value | Sequence[Value], axis: int, f: Callable, reverse: bool = False) -> Any"),
      "Combines each element with those before it, by f as of reduce.");
  m.def(
      "sort",
      [](nb::handle v, int axis, bool descending) -> Many {
        const Line at = here();
        return tiles(k::sort(tiles_in(v, at), axis, descending, at));
      },
      nb::arg("v"), nb::arg("axis") = -1, nb::arg("descending") = false,
      nb::sig("def sort(v: Value | Sequence[Value], axis: int = -1, descending: bool = False) -> Any"),
      "Sorts an axis, of several tiles by the first of them. Equal elements keep their order; NaN comes last.");
  m.def(
      "topk",
      [](nb::handle v, int64_t n) {
        const Line at = here();
        return Tile(k::detail::largest(tile_of(v, at), n, at));
      },
      nb::arg("v"), nb::arg("k"), nb::sig("def topk(v: Value, k: int) -> Tile"),
      "Returns the k largest elements along the last axis, in descending order.");
  m.def(
      "histogram",
      [](nb::handle index, int64_t bins) {
        const Line at = here();
        return Tile(k::histogram(tile_of(index, at), bins, at));
      },
      nb::arg("index"), nb::arg("bins"), nb::sig("def histogram(index: Value, bins: int) -> Tile"),
      "Counts how often each of 0 … bins-1 occurs.");
}

/// Defines a function of one tile and arguments that follow it.
template <class F, class... Extra>
void define_of_tile(nb::module_& m, const char* name, F f, const Extra&... extra) {
  m.def(name, f, nb::arg("v"), extra...);
}

void define_movement(nb::module_& m) {
  define_of_tile(
      m, "cast", [](nb::handle v, Dtype dtype) { return Tile(k::cast(tile_of(v, here()), dtype, here())); },
      nb::arg("dtype"), nb::sig("def cast(v: Value, dtype: Dtype) -> Tile"),
      "Converts the elements: floats to integers toward zero, saturating; to narrower floats to nearest even.");
  define_of_tile(
      m, "bitcast", [](nb::handle v, Dtype dtype) { return Tile(k::bitcast(tile_of(v, here()), dtype, here())); },
      nb::arg("dtype"), nb::sig("def bitcast(v: Value, dtype: Dtype) -> Tile"),
      "Reads the bits of the elements as another dtype of the same width.");
  define_of_tile(
      m, "reshape",
      [](nb::handle v, const Lengths& shape) {
        return Tile(k::reshape(tile_of(v, here()), extents_of(shape), here()));
      },
      nb::arg("shape"), nb::sig("def reshape(v: Value, shape: int | Sequence[int]) -> Tile"),
      "Returns the elements, in row-major order, in another shape.");
  define_of_tile(
      m, "broadcast_to",
      [](nb::handle v, const Lengths& shape) {
        return Tile(k::broadcast_to(tile_of(v, here()), extents_of(shape), here()));
      },
      nb::arg("shape"), nb::sig("def broadcast_to(v: Value, shape: int | Sequence[int]) -> Tile"),
      "Repeats a tile to a shape by NumPy's rule.");
  define_of_tile(
      m, "permute",
      [](nb::handle v, const std::vector<int>& axes) { return Tile(k::permute(tile_of(v, here()), axes, here())); },
      nb::arg("axes"), nb::sig("def permute(v: Value, axes: Sequence[int]) -> Tile"),
      "Returns the tile whose axis n is axis axes[n] of v.");
  define_of_tile(
      m, "expand_dims",
      [](nb::handle v, int axis) { return Tile(k::detail::expanded(tile_of(v, here()), axis, here())); },
      nb::arg("axis"), nb::sig("def expand_dims(v: Value, axis: int) -> Tile"),
      "Returns the tile with a new axis of extent 1.");
  define_of_tile(
      m, "flip", [](nb::handle v, int axis) { return Tile(k::detail::flipped(tile_of(v, here()), axis, here())); },
      nb::arg("axis"), nb::sig("def flip(v: Value, axis: int) -> Tile"), "Reverses an axis.");
  define_of_tile(
      m, "take",
      [](nb::handle v, nb::handle index, int axis) {
        const Line at = here();
        return Tile(k::take(tile_of(v, at), tile_of(index, at), axis, at));
      },
      nb::arg("index"), nb::arg("axis"), nb::sig("def take(v: Value, index: Value, axis: int) -> Tile"),
      "Returns along an axis the elements that the index names.");
  define_of_tile(
      m, "split",
      [](nb::handle v) {
        const Line at = here();
        const Any tile = tile_of(v, at);
        return Pair(k::detail::half(tile, 0, at), k::detail::half(tile, 1, at));
      },
      nb::sig("def split(v: Value) -> tuple[Tile, Tile]"), "Returns the two halves of a last axis of extent 2.");
  m.def(
      "join",
      [](nb::handle a, nb::handle b) {
        return Tile(k::detail::joined(tile_of(a, here()), tile_of(b, here()), here()));
      },
      nb::arg("a"), nb::arg("b"), nb::sig("def join(a: Value, b: Value) -> Tile"),
      "Stacks two tiles along a new last axis of extent 2.");
  m.def(
      "interleave",
      [](nb::handle a, nb::handle b) {
        return Tile(k::detail::interleaved(tile_of(a, here()), tile_of(b, here()), here()));
      },
      nb::arg("a"), nb::arg("b"), nb::sig("def interleave(a: Value, b: Value) -> Tile"),
      "Returns the elements of two tiles in turn along the last axis.");
  m.def(
      "cat",
      [](nb::handle values, int axis) {
        const Line at = here();
        return Tile(k::cat(tiles_in(values, at), axis, at));
      },
      nb::arg("tiles"), nb::arg("axis") = 0, nb::sig("def cat(tiles: Sequence[Value], axis: int = 0) -> Tile"),
      "Joins tiles along an axis.");
}

// The typed functions are over handles that know nothing but dtype and rank, which they do not look at here.
using Seed = k::Tile<k::i64, 0>;
using Counter = k::Tile<k::i64, 1>;

void define_products_and_random(nb::module_& m) {
  m.def(
      "dot",
      [](nb::handle a, nb::handle b, nb::handle c, const std::string& precision) {
        const Line at = here();
        return Tile(k::dot(tile_of(a, at), tile_of(b, at), c.is_none() ? Any() : tile_of(c, at),
                           precision_of(precision, at), at));
      },
      nb::arg("a"), nb::arg("b"), nb::arg("c") = nb::none(), nb::arg("precision") = "exact",
      nb::sig("def dot(a: Value, b: Value, c: Value | None = None, "
              "precision: Literal[\"exact\", \"tf32\", \"tf32x3\"] = \"exact\") -> Tile"),
      "Returns c + a·b, of [m,k] and [k,n] or batches of them, added up in float32 (float64, int32), k ascending; "
      "without c the sum begins at 0.");
  m.def(
      "philox",
      [](nb::handle seed, nb::handle counter) {
        const Line at = here();
        const auto words = k::philox(Seed(index_of(seed, at)), Counter(tile_of(counter, at)), at);
        return std::make_tuple(Tile(words[0].any()), Tile(words[1].any()), Tile(words[2].any()), Tile(words[3].any()));
      },
      nb::arg("seed"), nb::arg("counter"),
      nb::sig("def philox(seed: Value | int, counter: Value) -> tuple[Tile, Tile, Tile, Tile]"),
      "Returns four words of Philox-4x32-10 for each counter, uint32.");
  const auto random = [&](const char* name, auto f, const char* doc) {
    m.def(
        name,
        [f](nb::handle seed, nb::handle counter) {
          const Line at = here();
          return Tile(f(Seed(index_of(seed, at)), Counter(tile_of(counter, at)), at).any());
        },
        nb::arg("seed"), nb::arg("counter"),
        nb::sig((std::string("def ") + name + "(seed: Value | int, counter: Value) -> Tile").c_str()), doc);
  };
  random(
      "rand", [](const Seed& s, const Counter& c, Line at) { return k::rand(s, c, at); },
      "Returns float32 in [0, 1), one for each counter, the same on every device.");
  random(
      "randn", [](const Seed& s, const Counter& c, Line at) { return k::randn(s, c, at); },
      "Returns float32 of the standard normal distribution, one for each counter.");
}

}  // namespace

k::Precision precision_of(const std::string& name, Line at) {
  constexpr const char* precisions[] = {"exact", "tf32", "tf32x3"};
  return static_cast<k::Precision>(choice_of(precisions, name, "precision", at));
}

void define_tile_functions(nb::module_& m) {
  define_making(m);
  define_reductions(m);
  define_movement(m);
  define_products_and_random(m);
}

}  // namespace weft::python::kernels
