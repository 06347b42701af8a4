// Arrays of kernels in Python: views, slices, and what loads, stores and updates elements.
#include <array>

#include "kernel_language.h"

namespace weft::python::kernels {

namespace {

using Spans = std::vector<k::Span>;

/// Returns what Python's slice takes of an axis: all of it, or elements from one int to another.
k::Span span_of_slice(const k::AnyRef& ref, size_t axis, nb::handle s, Line at) {
  const nb::object start = s.attr("start"), stop = s.attr("stop"), step = s.attr("step");
  if (start.is_none() && stop.is_none() && step.is_none()) return {.whole = true};
  int64_t from = 0, to = 0, by = 1;
  const auto number = [&](const nb::object& o, int64_t& into) {
    if (!o.is_none() && (is_value(o) || !read_int(o, into)))
      refuse(at, "a slice a:b has ints: write ds(start, size) for a start that the kernel computes");
  };
  if (stop.is_none()) to = ref.dim(static_cast<int>(axis), at);
  number(start, from), number(stop, to), number(step, by);
  if (from < 0 || by < 1 || to <= from)
    refuse(at, "a slice a:b has 0 <= a < b and a positive step: extents are known here, as dim(axis)");
  return {.first = from, .size = (to - from + by - 1) / by, .step = by};
}

k::Span span_of_key(const k::AnyRef& ref, size_t axis, nb::handle key, Line at) {
  if (nb::isinstance<Ds>(key)) return nb::cast<const Ds&>(key).span;
  if (PySlice_Check(key.ptr())) return span_of_slice(ref, axis, key, at);
  if (int64_t i = 0; !is_value(key) && read_int(key, i)) {
    if (i < 0) refuse(at, "an index is not negative: count from the end by dim(axis) - 1");
    return {.first = i, .squeezed = true};
  }
  return {.start = index_of(key, at), .squeezed = true};
}

/// Returns a slice of an array; axes that the key does not name are taken whole.
Part part_of(const Ref& r, nb::handle key, Line at) {
  const nb::tuple keys = PyTuple_Check(key.ptr()) ? nb::borrow<nb::tuple>(key) : nb::make_tuple(key);
  const size_t rank = r.ref.dims.size();
  size_t named = 0;
  for (const nb::handle item : keys) named += item.ptr() == Py_Ellipsis ? 0 : 1;
  if (named > rank)
    refuse(at, "the array has " + std::to_string(rank) + " axes, the subscript names " + std::to_string(named));
  Spans spans;
  for (const nb::handle item : keys) {
    if (item.ptr() == Py_Ellipsis) spans.resize(spans.size() + rank - named, {.whole = true});
    else spans.push_back(span_of_key(r.ref, spans.size(), item, at));
  }
  spans.resize(rank, {.whole = true});
  return {r.ref, std::move(spans)};
}

k::Cache cache_of(const std::string& name, Line at) {
  constexpr const char* caches[] = {"usual", "streaming"};
  return static_cast<k::Cache>(choice_of(caches, name, "cache", at));
}

k::Access access_of(nb::handle mask, nb::handle other, const std::string& cache, Line at) {
  return {.mask = mask.is_none() ? Any() : tile_of(mask, at), .other = scalar_of(other), .cache = cache_of(cache, at)};
}

void define_slices(nb::module_& m) {
  nb::class_<Ds>(m, "ds", "Elements of an axis from `start` on, `step` apart.")
      .def(
          "__init__",
          [](Ds* self, nb::handle start, int64_t size, int64_t step) {
            k::Span span{.size = size, .step = step};
            if (is_value(start) || !read_int(start, span.first)) span.start = index_of(start, here());
            new (self) Ds{span};
          },
          nb::arg("start"), nb::arg("size"), nb::arg("step") = 1,
          nb::sig("def __init__(self, start: Value | int, size: int, step: int = 1) -> None"));
  m.def(
      "block",
      [](nb::handle number, int64_t size) {
        k::Span span{.size = size};
        int64_t i = 0;
        if (!is_value(number) && read_int(number, i)) return span.first = i * size, Ds{span};
        const Line at = here();
        span.start = k::apply("mul", std::array{index_of(number, at), k::constant(int64, size, {}, at)}, at);
        return Ds{span};
      },
      nb::arg("number"), nb::arg("size"), nb::sig("def block(number: Value | int, size: int) -> ds"),
      "Returns block `number` of `size` elements of an axis, as a subscript.");

  nb::class_<Part, Value>(m, "Slice", "A slice of an array. As an operand it is loaded; outside of the array it is 0.")
      .def(
          "load",
          [](const Part& p, nb::handle other, nb::handle mask, const std::string& cache) {
            const Line at = here();
            return Tile(k::load(p.ref, p.spans, access_of(mask, other, cache, at), at));
          },
          nb::arg("other") = 0, nb::kw_only(), nb::arg("mask") = nb::none(), nb::arg("cache") = "usual",
          nb::sig("def load(self, other: float = 0, *, mask: Value | None = None, "
                  "cache: Literal[\"usual\", \"streaming\"] = \"usual\") -> Tile"),
          "Returns the tile. Elements outside of the array, and where the mask is false, are `other`.")
      .def(
          "store",
          [](const Part& p, nb::handle value, nb::handle mask, const std::string& cache) {
            const Line at = here();
            k::store(p.ref, p.spans, operand(value, p.ref.dtype, at), access_of(mask, nb::int_(0), cache, at), at);
          },
          nb::arg("value"), nb::kw_only(), nb::arg("mask") = nb::none(), nb::arg("cache") = "usual",
          nb::sig("def store(self, value: Value | float, *, mask: Value | None = None, "
                  "cache: Literal[\"usual\", \"streaming\"] = \"usual\") -> None"),
          "Stores a tile, where the mask is true. Elements outside of the array are left out.");
}

void define_views(nb::class_<Ref>& c) {
  c.def(
      "fixed",
      [](const Ref& r, const nb::args& indices) {
        const Line at = here();
        return Ref{r.ref.fixed(positions_of(indices, at), at)};
      },
      nb::arg("indices"), nb::sig("def fixed(self, *indices: Value | int) -> Ref"),
      "Returns the view of one element along the first axes, of indices that are known to lie within them.");
  c.def(
      "permute", [](const Ref& r, const std::vector<int>& axes) { return Ref{r.ref.permute(axes, here())}; },
      nb::arg("axes"), "Returns the view whose axis n is axis axes[n].");
  c.def(
      "broadcast", [](const Ref& r, const Lengths& shape) { return Ref{r.ref.broadcast(extents_of(shape), here())}; },
      nb::arg("shape"), "Returns the view with another shape, by NumPy's rule.");
  c.def(
      "limit",
      [](const Ref& r, int axis, nb::handle extent) {
        const Line at = here();
        return Ref{r.ref.limit(axis, index_of(extent, at), at)};
      },
      nb::arg("axis"), nb::arg("extent"), nb::sig("def limit(self, axis: int, extent: Value | int) -> Ref"),
      "Returns the view whose axis ends at an extent, from 0 to its bound: what lies behind is outside.");
}

void define_references(nb::module_& m) {
  nb::class_<Ref> c(m, "Ref", "An array of a kernel, or a view of one. `x[i, :]` is a slice; `x[i, :] = v` stores.");
  c.def_prop_ro(
      "dtype", [](const Ref& r) { return r.ref.dtype; }, nb::sig("def dtype(self) -> Dtype"),
      "The dtype of the elements.");
  c.def_prop_ro(
      "ndim", [](const Ref& r) { return r.ref.dims.size(); }, "The number of axes.");
  c.def_prop_ro(
      "shape",
      [](const Ref& r) {
        nb::list out;
        for (size_t axis = 0; axis < r.ref.dims.size(); ++axis) out.append(r.ref.dim(static_cast<int>(axis), here()));
        return nb::tuple(out);
      },
      nb::sig("def shape(self) -> tuple[int, ...]"), "The extents; throws where one is known at run time alone.");
  c.def(
      "dim", [](const Ref& r, int axis) { return r.ref.dim(axis, here()); }, nb::arg("axis"),
      "Returns the extent of an axis, -1 being the last one.");
  c.def(
      "extent", [](const Ref& r, int axis) { return Tile(r.ref.extent(axis, here())); }, nb::arg("axis"),
      "Returns the extent of an axis as an int64 scalar, which may be known at run time alone.");
  c.def(
      "bound", [](const Ref& r, int axis) { return r.ref.bound(axis, here()); }, nb::arg("axis"),
      "Returns the largest extent that an axis may have.");
  c.def(
      "__getitem__", [](const Ref& r, nb::handle key) { return part_of(r, key, here()); }, nb::arg("key"),
      nb::sig("def __getitem__(self, key: Any) -> Slice"),
      "Returns a slice: for each axis an index, `:`, ints a:b, ds(start, size) or block(i, size). Nothing is loaded.");
  c.def(
      "__setitem__",
      [](const Ref& r, nb::handle key, nb::handle value) {
        const Line at = here();
        const Part p = part_of(r, key, at);
        k::store(p.ref, p.spans, operand(value, p.ref.dtype, at), {}, at);
      },
      nb::arg("key"), nb::arg("value"), nb::sig("def __setitem__(self, key: Any, value: Value | float) -> None"),
      "Stores a tile into a slice. Elements outside of the array are left out.");
  define_views(c);
  nb::class_<In, Ref>(m, "In", "An array that a kernel reads, as the annotation of a parameter.");
  nb::class_<Out, Ref>(m, "Out", "An array that a kernel writes, as the annotation of a parameter.");
  nb::class_<InOut, Ref>(m, "InOut", "An array that a kernel reads and writes, as the annotation of a parameter.");
}

void define_elements(nb::module_& m) {
  m.def(
      "gather",
      [](const Ref& x, const nb::args& positions, nb::handle mask, nb::handle other) {
        const Line at = here();
        return Tile(k::gather(x.ref, positions_of(positions, at), access_of(mask, other, "usual", at), at));
      },
      nb::arg("x"), nb::arg("positions"), nb::kw_only(), nb::arg("mask") = nb::none(), nb::arg("other") = 0,
      nb::sig("def gather(x: Ref, *positions: Value | int, mask: Value | None = None, other: float = 0) -> Tile"),
      "Returns elements at positions: an integer tile for each axis of the array; they broadcast together.");
  m.def(
      "scatter",
      [](const Ref& x, nb::handle value, const nb::args& positions, nb::handle mask) {
        const Line at = here();
        k::scatter(x.ref, positions_of(positions, at), operand(value, x.ref.dtype, at),
                   access_of(mask, nb::int_(0), "usual", at), at);
      },
      nb::arg("x"), nb::arg("value"), nb::arg("positions"), nb::kw_only(), nb::arg("mask") = nb::none(),
      nb::sig("def scatter(x: Ref, value: Value | float, *positions: Value | int, mask: Value | None = None) -> "
              "None"),
      "Stores elements at positions.");
  m.def(
      "atomic",
      [](const std::string& op, nb::handle x, nb::handle value, const nb::args& positions, nb::handle mask,
         const std::string& order, const std::string& scope) {
        const Line at = here();
        const k::Ordering how = ordering_of(order, scope, at);
        const Any where = mask.is_none() ? Any() : tile_of(mask, at);
        if (nb::isinstance<Part>(x)) {
          const Part& p = nb::cast<const Part&>(x);
          return Tile(
              k::atomic(op, p.ref, std::span<const k::Span>(p.spans), operand(value, p.ref.dtype, at), where, how, at));
        }
        const Ref& r = nb::cast<const Ref&>(x);
        return Tile(k::atomic(op, r.ref, std::span<const Any>(positions_of(positions, at)),
                              operand(value, r.ref.dtype, at), where, how, at));
      },
      nb::arg("op"), nb::arg("x"), nb::arg("value"), nb::arg("positions"), nb::kw_only(), nb::arg("mask") = nb::none(),
      nb::arg("order") = "relaxed", nb::arg("scope") = "device",
      nb::sig("def atomic(op: str, x: Ref | Slice, value: Value | float, *positions: Value | int, "
              "mask: Value | None = None, order: str = \"relaxed\", scope: str = \"device\") -> Tile"),
      "Updates elements at positions, or those of a slice, and returns what was there. op: add, min, max, bit_and, "
      "bit_or, bit_xor, exchange.");
  m.def(
      "compare_exchange",
      [](const Ref& x, nb::handle expected, nb::handle value, const nb::args& positions, nb::handle mask,
         const std::string& order, const std::string& scope) {
        const Line at = here();
        return Tile(k::compare_exchange(x.ref, positions_of(positions, at), operand(expected, x.ref.dtype, at),
                                        operand(value, x.ref.dtype, at), mask.is_none() ? Any() : tile_of(mask, at),
                                        ordering_of(order, scope, at), at));
      },
      nb::arg("x"), nb::arg("expected"), nb::arg("value"), nb::arg("positions"), nb::kw_only(),
      nb::arg("mask") = nb::none(), nb::arg("order") = "relaxed", nb::arg("scope") = "device",
      nb::sig("def compare_exchange(x: Ref, expected: Value | float, value: Value | float, "
              "*positions: Value | int, mask: Value | None = None, order: str = \"relaxed\", "
              "scope: str = \"device\") -> Tile"),
      "Replaces elements that are as expected, and returns what was there.");
  m.def(
      "prefetch", [](const Part& p) { k::prefetch(p.ref, p.spans, here()); }, nb::arg("x"),
      nb::sig("def prefetch(x: Slice) -> None"), "Says that a slice is read soon: a hint, which changes no result.");
}

void define_buffers(nb::module_& m) {
  m.def(
      "scratch",
      [](const Lengths& shape, const std::optional<Dtype>& dtype) {
        return Ref{k::scratch(dtype.value_or(float32), extents_of(shape), here())};
      },
      nb::arg("shape"), nb::arg("dtype") = nb::none(), "Returns memory of the program, not initialised (float32).");
}

}  // namespace

std::vector<Any> positions_of(const nb::args& positions, Line at) {
  std::vector<Any> out;
  for (const nb::handle p : positions) out.push_back(index_of(p, at));
  return out;
}

uint8_t choice_of(std::span<const char* const> names, const std::string& name, const char* what, Line at) {
  std::string known;
  for (size_t n = 0; n < names.size(); ++n) {
    if (name == names[n]) return static_cast<uint8_t>(n);
    known += std::string(n > 0 ? ", " : "") + names[n];
  }
  refuse(at, std::string("there is no ") + what + " \"" + name + "\": it is one of " + known);
}

k::Ordering ordering_of(const std::string& order, const std::string& scope, Line at) {
  constexpr const char* orders[] = {"relaxed", "acquire", "release", "acq_rel"};
  constexpr const char* scopes[] = {"block", "cluster", "device", "system"};
  return {static_cast<k::MemoryOrder>(choice_of(orders, order, "memory order", at)),
          static_cast<k::MemoryScope>(choice_of(scopes, scope, "memory scope", at))};
}

void define_arrays(nb::module_& m) {
  define_slices(m);
  define_references(m);
  define_elements(m);
  define_buffers(m);
}

}  // namespace weft::python::kernels
