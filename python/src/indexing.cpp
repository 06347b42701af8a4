#include "indexing.h"

#include "weft/indexing.h"

#include "weft/ops.h"

namespace weft::python {

namespace {

Slice::Bound bound(nb::handle h) {
  if (h.is_none()) return std::nullopt;
  int64_t value = 0;
  if (is_array(h) && array_of(h).size() == 1) return array_of(h).item<int64_t>();
  if (!read_int(h, value)) throw nb::type_error("[index] the bounds of a slice must be ints or None");
  return value;
}

Index entry_of(nb::handle h) {
  PyObject* p = h.ptr();
  if (PySlice_Check(p)) return Slice(bound(h.attr("start")), bound(h.attr("stop")), bound(h.attr("step")));
  if (h.is_none()) return newaxis;
  if (p == Py_Ellipsis) return ellipsis;
  if (is_array(h)) {
    const array& a = array_of(h);
    if (a.dtype() != bool_ && !issubdtype(a.dtype(), integer))
      throw std::invalid_argument(std::string("[index] an index has dtype ") + dtype_name(a.dtype()) +
                                  "; it must be integers or a bool mask");
    return a;
  }
  if (PyBool_Check(p)) return array(p == Py_True);
  if (int64_t value = 0; read_int(h, value)) return value;
  if (PyFloat_Check(p) || PyUnicode_Check(p) || PyDict_Check(p))
    throw std::invalid_argument("[index] an index must be an int, a slice, None, ..., or an array of integers; got " +
                                nb::cast<std::string>(nb::str(h.type())));
  const array a = to_array(h);
  return a.size() == 0 ? astype(a, int32) : entry_of(nb::cast(a));
}

std::vector<Index> entries_of(nb::handle key) {
  std::vector<Index> out;
  if (!PyTuple_Check(key.ptr())) return {entry_of(key)};
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(key.ptr()); ++k) out.push_back(entry_of(PyTuple_GET_ITEM(key.ptr(), k)));
  return out;
}

/// Returns values for elements of `a`, in its dtype. Leading axes of length 1 go: they broadcast to any selection.
array value_for(const array& a, const array& value) {
  Shape shape = value.shape();
  while (!shape.empty() && shape[0] == 1) shape.erase(shape.begin());
  return astype(shape.size() == value.ndim() ? value : reshape(value, shape), a.dtype());
}

/// Returns `a` with values at a key. A mask without axes chooses all of it or nothing.
array assigned(const array& a, const std::vector<Index>& entries, const array& values) {
  const array* mask = entries.size() == 1 ? std::get_if<array>(&entries[0].entry()) : nullptr;
  if (mask && mask->dtype() == bool_ && mask->ndim() == 0) return where(*mask, broadcast_to(values, a.shape()), a);
  return IndexedArray(a, entries).set(values);
}

/// Selected elements to be updated: `x.at[key]`.
struct At {
  array source;
  std::optional<std::vector<Index>> entries;
};

using Update = array (IndexedArray::*)(const array&) const;

void define_updates(nb::module_& m) {
  nb::class_<At> at(m, "ArrayAt",
                    "Elements of an array to be updated: x.at[rows].add(values). Each update returns the "
                    "whole array; elements that are selected several times take part each time.");
  at.def(
      "__getitem__",
      [](const At& self, nb::handle key) {
        return At{self.source, entries_of(key)};
      },
      nb::arg("indices").none(), nb::sig("def __getitem__(self, indices: Any) -> ArrayAt"));
  const auto define = [&](const char* name, Update update, const char* doc) {
    at.def(
        name,
        [update](const At& self, const Operand& value) {
          if (!self.entries) throw std::invalid_argument("[at] select elements first: x.at[indices]");
          const array values = value_for(self.source, value.beside(self.source.dtype()));
          return (IndexedArray(self.source, *self.entries).*update)(values);
        },
        nb::arg("value"), doc);
  };
  define("add", &IndexedArray::add, "Returns the array with the values added.");
  define("subtract", &IndexedArray::subtract, "Returns the array with the values subtracted.");
  define("multiply", &IndexedArray::multiply, "Returns the array with the elements multiplied by the values.");
  define("divide", &IndexedArray::divide, "Returns the array with the elements divided by the values.");
  define("maximum", &IndexedArray::maximum, "Returns the array with the larger of element and value.");
  define("minimum", &IndexedArray::minimum, "Returns the array with the smaller of element and value.");
}

}  // namespace

void define_indexing(nb::module_& m, nb::class_<array>& c) {
  define_updates(m);
  c.def_prop_ro(
      "at",
      [](const array& a) {
        return At{a, std::nullopt};
      },
      "Selects elements to be updated: x.at[indices].add(values).");
  c.def(
      "__getitem__", [](const array& a, nb::handle key) { return index(a, entries_of(key)); }, nb::arg("key").none(),
      nb::sig("def __getitem__(self, key: Any) -> array"));
  c.def(
      "__setitem__",
      [](array& a, nb::handle key, nb::handle value) {
        Operand operand;
        const array values = operand.take(value) ? operand.beside(a.dtype()) : to_array(value, a.dtype());
        a = assigned(a, entries_of(key), value_for(a, values));
      },
      nb::arg("key").none(), nb::arg("value"), nb::sig("def __setitem__(self, key: Any, value: Any) -> None"));
}

}  // namespace weft::python
