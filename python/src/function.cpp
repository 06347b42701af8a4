#include "function.h"

namespace weft::python {

namespace {

TransformedFunction& function_of(PyObject* self) { return *nb::inst_ptr<TransformedFunction>(self); }

/// Returns the class of Python's exception for one of nanobind's.
PyObject* class_of(nb::exception_type type) {
  switch (type) {
    case nb::exception_type::stop_iteration: return PyExc_StopIteration;
    case nb::exception_type::index_error: return PyExc_IndexError;
    case nb::exception_type::key_error: return PyExc_KeyError;
    case nb::exception_type::value_error: return PyExc_ValueError;
    case nb::exception_type::buffer_error: return PyExc_BufferError;
    case nb::exception_type::import_error: return PyExc_ImportError;
    case nb::exception_type::attribute_error: return PyExc_AttributeError;
    case nb::exception_type::type_error:
    case nb::exception_type::next_overload: return PyExc_TypeError;
    default: return PyExc_RuntimeError;
  }
}

PyObject* call(PyObject* self, PyObject* positional, PyObject* named) noexcept {
  try {
    const nb::dict none;
    return function_of(self)(nb::borrow<nb::tuple>(positional), named ? nb::borrow<nb::dict>(named) : none)
        .release()
        .ptr();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const nb::builtin_exception& error) {
    PyErr_SetString(class_of(error.type()), error.what());
  } catch (const std::invalid_argument& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::out_of_range& error) {
    PyErr_SetString(PyExc_IndexError, error.what());
  } catch (const std::overflow_error& error) {
    PyErr_SetString(PyExc_OverflowError, error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

int traverse(PyObject* self, visitproc visit, void* arg) noexcept {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  for (const nb::object& o : function_of(self).held()) Py_VISIT(o.ptr());
  return 0;
}

int clear(PyObject* self) noexcept {
  for (nb::object& o : function_of(self).held()) o.reset();
  return 0;
}

PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(call)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {0, nullptr}};

}  // namespace

nb::object make_function(std::vector<nb::object> held, TransformedFunction::Body body) {
  return nb::cast(TransformedFunction(std::move(held), std::move(body)));
}

void define_function(nb::module_& m) {
  nb::class_<TransformedFunction>(m, "TransformedFunction", nb::type_slots(slots))
      .def_prop_ro("__wrapped__", [](TransformedFunction& f) { return f.held().at(0); })
      .def_prop_ro("__doc__", [](TransformedFunction& f) { return nb::object(f.held().at(0).attr("__doc__")); })
      .def("__getattr__", [](TransformedFunction& f, const nb::str& name) -> nb::object {  // __name__ and its like
        return f.held().at(0).attr(name);
      });
}

}  // namespace weft::python
