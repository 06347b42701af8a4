#include <cmath>
#include <numbers>
#include <sstream>

#include "module.h"
#include "tree.h"
#include "weft/compile.h"
#include "weft/graph_utils.h"
#include "weft/numerics.h"

namespace weft::python {

namespace {

using Number = std::variant<int64_t, double>;
double as_double(const Number& n) {
  return std::visit([](auto v) { return static_cast<double>(v); }, n);
}

array range(const Number& first, const std::optional<Number>& second, const std::optional<Number>& third,
            std::optional<Dtype> dtype, const StreamOrDevice& s) {
  const Number start = second ? first : Number(int64_t{0}), stop = second ? *second : first;
  const Number step = third.value_or(Number(int64_t{1}));
  const bool whole = start.index() == 0 && stop.index() == 0 && step.index() == 0;
  const auto wide = [](const Number& n) {
    const auto* value = std::get_if<int64_t>(&n);
    return value && *value != static_cast<int32_t>(*value);
  };
  const Dtype integers = wide(start) || wide(stop) || wide(step) ? int64 : int32;
  return arange(as_double(start), as_double(stop), as_double(step), dtype.value_or(whole ? integers : float32), s);
}

/// Returns the arrays of several arguments, or of the one list that is given instead.
std::vector<array> several(const nb::args& args) {
  std::vector<array> out;
  const bool list = args.size() == 1 && (PyList_Check(args[0].ptr()) || PyTuple_Check(args[0].ptr()));
  const nb::object all = list ? nb::object(args[0]) : nb::borrow<nb::tuple>(args);
  for (nb::handle h : all) {
    Operand x;
    if (!x.take(h)) throw nb::type_error("arguments must be arrays");
    out.push_back(x.get());
  }
  return out;
}

std::vector<array> one_or_several(nb::handle h) {
  if (is_array(h)) return {array_of(h)};
  return nb::cast<std::vector<array>>(h);
}

void define_variadic(nb::module_& m) {
  const char* const stream = "stream: Stream | ThreadLocalStream | Device | DeviceType | None = None";
  const auto at_least = [&](const char* name, array (*one)(const array&, StreamOrDevice), const char* doc) {
    m.def(
        name,
        [one](const nb::args& args, const StreamOrDevice& s) -> nb::object {
          const std::vector<array> all = several(args);
          if (all.size() == 1 && args.size() == 1) return nb::cast(one(all[0], s));
          std::vector<array> out;
          for (const array& a : all) out.push_back(one(a, s));
          return helpers::list(out);
        },
        nb::arg("arys"), nb::kw_only(), nb::arg("stream") = nb::none(),
        nb::sig((std::string("def ") + name + "(*arys: array, " + stream + ") -> array | list[array]").c_str()), doc);
  };
  at_least("atleast_1d", weft::atleast_1d, "Returns arrays with at least one axis.");
  at_least("atleast_2d", weft::atleast_2d, "Returns arrays with at least two axes.");
  at_least("atleast_3d", weft::atleast_3d, "Returns arrays with at least three axes.");
  m.def(
      "broadcast_arrays",
      [](const nb::args& args, const StreamOrDevice& s) { return helpers::tuple(broadcast_arrays(several(args), s)); },
      nb::arg("arrays"), nb::kw_only(), nb::arg("stream") = nb::none(),
      nb::sig((std::string("def broadcast_arrays(*arrays: array, ") + stream + ") -> tuple[array, ...]").c_str()),
      "Returns all arrays broadcast to their common shape.");
  m.def(
      "meshgrid",
      [](const nb::args& args, bool sparse, const std::string& indexing, const StreamOrDevice& s) {
        return helpers::tuple(meshgrid(several(args), sparse, indexing, s));
      },
      nb::arg("arrays"), nb::kw_only(), nb::arg("sparse") = false, nb::arg("indexing") = "xy",
      nb::arg("stream") = nb::none(),
      nb::sig((std::string("def meshgrid(*arrays: array, sparse: bool = False, indexing: str = \"xy\", ") + stream +
               ") -> tuple[array, ...]")
                  .c_str()),
      "Returns the coordinates of a grid, one array for each vector.");
  m.def(
      "einsum",
      [](const std::string& subscripts, const nb::args& operands, const StreamOrDevice& s) {
        return einsum(subscripts, several(operands), s);
      },
      nb::arg("subscripts"), nb::arg("operands"), nb::kw_only(), nb::arg("stream") = nb::none(),
      nb::sig((std::string("def einsum(subscripts: str, *operands: array, ") + stream + ") -> array").c_str()),
      "Returns the sum of products that the subscripts describe, in Einstein's notation.");
  m.def(
      "einsum_path",
      [](const std::string& subscripts, const nb::args& operands) {
        const auto [path, text] = einsum_path(subscripts, several(operands));
        nb::list pairs;
        for (const std::vector<int>& p : path) pairs.append(nb::tuple(nb::cast(p)));
        return nb::make_tuple(pairs, text);
      },
      nb::arg("subscripts"), nb::arg("operands"),
      nb::sig("def einsum_path(subscripts: str, *operands: array) -> tuple[list[tuple[int, ...]], str]"),
      "Returns in which order einsum multiplies, and a text that describes it.");
  m.def(
      "broadcast_shapes",
      [](const nb::args& shapes) {
        if (shapes.size() == 0) throw std::invalid_argument("[broadcast_shapes] there must be at least one shape");
        Shape out;
        for (nb::handle h : shapes) out = broadcast_shapes(out, nb::cast<Shape>(h));
        return out;
      },
      nb::arg("shapes"), nb::sig("def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]"),
      "Returns the shape that all broadcast to.");
}

void define_evaluation(nb::module_& m) {
  m.def(
      "eval",
      [](const nb::args& args) {
        const std::vector<array> all = arrays_of(args);
        {
          nb::gil_scoped_release released;
          eval(all);
        }
        if (PyErr_CheckSignals() != 0) throw nb::python_error();  // Ctrl-C while it ran
      },
      nb::arg("args"), nb::sig("def eval(*args: Any) -> None"), "Computes all arrays in trees, in one program.");
  m.def(
      "async_eval",
      [](const nb::args& args) {
        const std::vector<array> all = arrays_of(args);
        nb::gil_scoped_release released;
        async_eval(all);
      },
      nb::arg("args"), nb::sig("def async_eval(*args: Any) -> None"),
      "Starts computing all arrays in trees, and returns at once.");
  m.def(
      "depends",
      [](nb::handle inputs, nb::handle dependencies) -> nb::object {
        const std::vector<array> out = depends(one_or_several(inputs), one_or_several(dependencies));
        return is_array(inputs) ? nb::cast(out[0]) : helpers::list(out);
      },
      nb::arg("inputs"), nb::arg("dependencies"),
      nb::sig("def depends(inputs: array | Sequence[array], dependencies: array | Sequence[array]) -> Any"),
      "Returns the inputs as they are; evaluating them also evaluates the dependencies.");
  m.def(
      "export_to_dot",
      [](nb::handle file, const nb::args& args, const nb::kwargs& names) {
        NodeNamer namer;
        for (auto [name, value] : names) namer.set_name(array_of(value), nb::cast<std::string>(name));
        std::vector<array> outputs = arrays_of(args);
        for (const array& a : arrays_of(names)) outputs.push_back(a);
        std::ostringstream text;
        export_to_dot(text, namer, outputs);
        if (nb::hasattr(file, "write")) {
          file.attr("write")(text.str());
          return;
        }
        const nb::object path = nb::module_::import_("builtins").attr("open")(file, "w");
        path.attr("write")(text.str());
        path.attr("close")();
      },
      nb::arg("file"), nb::arg("args"), nb::arg("kwargs"),
      nb::sig("def export_to_dot(file: object, *args: array, **kwargs: array) -> None"),
      "Writes the graph of the arrays for Graphviz, to a path or an object with write(text).");
}

void define_arrays(nb::module_& m) {
  const char* const from_text = "def from_dlpack(x: Any, /, *, copy: bool | None = None) -> array";
  m.def(
      "from_dlpack",
      [](nb::handle x, std::optional<bool> copy) {
        const array a = from_dlpack(x, copy);
        return copy == false ? a : astype(a, usual_dtype(a.dtype()));
      },
      nb::arg("x"), nb::kw_only(), nb::arg("copy") = nb::none(), nb::sig(from_text),
      "Returns an array of the memory of an object with __dlpack__; nothing is copied unless `copy` is true, or the "
      "numbers are float64 or complex128, which become float32 or complex64 unless `copy` is false.");
  m.def(
      "asarray",
      [](nb::handle a, std::optional<Dtype> dtype, std::optional<bool> copy) {
        const bool same = is_array(a) && (!dtype || *dtype == array_of(a).dtype());
        if (copy && !*copy && !same)
          throw std::invalid_argument("[asarray] this object must be copied; copy=False forbids it");
        return to_array(a, dtype);
      },
      nb::arg("a"), nb::arg("dtype") = nb::none(), nb::kw_only(), nb::arg("copy") = nb::none(),
      nb::sig("def asarray(a: Any, dtype: Dtype | None = None, *, copy: bool | None = None) -> array"),
      "Returns an array of the object; an array of that dtype is returned as it is.");
  m.def(
      "arange",
      [](const Number& start, const std::optional<Number>& stop, const std::optional<Number>& step,
         std::optional<Dtype> dtype, const StreamOrDevice& s) { return range(start, stop, step, dtype, s); },
      nb::arg("start"), nb::arg("stop") = nb::none(), nb::arg("step") = nb::none(), nb::arg("dtype") = nb::none(),
      nb::kw_only(), nb::arg("stream") = nb::none(),
      nb::sig("def arange(start: int | float, stop: int | float | None = None, step: int | float | None = None, "
              "dtype: Dtype | None = None, *, "
              "stream: Stream | ThreadLocalStream | Device | DeviceType | None = None) -> array"),
      "Returns start, start + step, … below stop; one number alone is stop, and start is 0. Ints make int32, floats "
      "float32.");
  m.def(
      "arange",
      [](const Number& stop, const std::optional<Number>& step, std::optional<Dtype> dtype, const StreamOrDevice& s) {
        return range(int64_t{0}, stop, step, dtype, s);
      },
      nb::kw_only(), nb::arg("stop"), nb::arg("step") = nb::none(), nb::arg("dtype") = nb::none(),
      nb::arg("stream") = nb::none(),
      nb::sig("def arange(*, stop: int | float, step: int | float | None = None, dtype: Dtype | None = None, "
              "stream: Stream | ThreadLocalStream | Device | DeviceType | None = None) -> array"));
}

void define_numerics(nb::module_& m) {
  nb::class_<Numerics>(m, "Numerics", "What results may give up for speed. By default nothing.")
      .def(
          "__init__",
          [](Numerics* n, bool tf32, bool deterministic) {
            new (n) Numerics{tf32, deterministic};
          },
          nb::kw_only(), nb::arg("tf32") = false, nb::arg("deterministic") = true)
      .def_rw("tf32", &Numerics::tf32, "float32 products of a GPU may round their operands to ten bits of mantissa.")
      .def_rw("deterministic", &Numerics::deterministic, "The same bits on every run.");
  m.def("numerics", &numerics, "Returns what results may give up for speed.");
  m.def("set_numerics", &set_numerics, nb::arg("numerics"),
        "Sets what results of programs that are built from now on may give up for speed.");
}

}  // namespace

void define_functions(nb::module_& m) {
  define_arrays(m);
  define_variadic(m);
  define_evaluation(m);
  define_numerics(m);
  m.attr("pi") = std::numbers::pi;
  m.attr("e") = std::numbers::e;
  m.attr("euler_gamma") = std::numbers::egamma;
  m.attr("inf") = HUGE_VAL;
  m.attr("nan") = std::nan("");
  m.attr("newaxis") = nb::none();
}

}  // namespace weft::python
