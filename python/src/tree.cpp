#include "tree.h"

#include "weft/random.h"

namespace weft::python {

namespace {

/// Calls `visit(container, key, child)` for each child; returns false for a leaf.
template <class Visit>
bool children(nb::handle tree, const Visit& visit) {
  PyObject* p = tree.ptr();
  if (PyDict_Check(p)) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(p, &at, &key, &value);) visit(tree, nb::handle(key), nb::handle(value));
    return true;
  }
  if (PyList_Check(p) || PyTuple_Check(p)) {
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(p); ++k)
      visit(tree, nb::int_(k), nb::handle(PySequence_Fast_GET_ITEM(p, k)));
    return true;
  }
  if (is_a<RandomState>(tree)) {
    visit(tree, nb::int_(0), nb::cast(random::default_key()));
    return true;
  }
  return false;
}

void append_bytes(std::string& key, char tag, const void* data, size_t size) {
  key += tag;
  key.append(reinterpret_cast<const char*>(&size), sizeof size);
  key.append(static_cast<const char*>(data), size);
}

void append_array(std::string& key, const array& a) {
  key += 'a';
  key += static_cast<char>(a.dtype().val());
  key += static_cast<char>(a.ndim());
  for (const Dim& n : a.shape()) {
    const int64_t length = n.bound();
    key.append(reinterpret_cast<const char*>(&length), sizeof length);
  }
}

bool append_constant(std::string& key, nb::handle leaf) {
  PyObject* p = leaf.ptr();
  if (leaf.is_none()) {
    key += 'n';
  } else if (PyBool_Check(p)) {
    key += p == Py_True ? 't' : 'f';
  } else if (PyLong_Check(p) || PyComplex_Check(p)) {
    const std::string text = nb::cast<std::string>(nb::repr(leaf));
    append_bytes(key, PyLong_Check(p) ? 'i' : 'c', text.data(), text.size());
  } else if (PyFloat_Check(p)) {
    const double value = PyFloat_AS_DOUBLE(p);
    append_bytes(key, 'd', &value, sizeof value);
  } else if (PyUnicode_Check(p)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(p, &size);  // which the text keeps
    if (!text) throw nb::python_error();
    append_bytes(key, 's', text, static_cast<size_t>(size));
  } else if (PyBytes_Check(p)) {
    append_bytes(key, 'b', PyBytes_AS_STRING(p), static_cast<size_t>(PyBytes_GET_SIZE(p)));
  } else if (is_a<Dtype>(leaf)) {
    key += 'y';
    key += static_cast<char>(nb::inst_ptr<Dtype>(leaf)->val());
  } else {
    return false;
  }
  return true;
}

}  // namespace

void Leaf::replace(const nb::object& by) const {
  if (PyDict_Check(container.ptr())) {
    if (PyDict_SetItem(container.ptr(), key.ptr(), by.ptr()) != 0) throw nb::python_error();
  } else if (PyList_Check(container.ptr())) {
    const auto at = nb::cast<Py_ssize_t>(key);
    if (PyList_SetItem(container.ptr(), at, nb::object(by).release().ptr()) != 0) throw nb::python_error();
  } else if (is_a<RandomState>(container)) {
    random::default_key() = array_of(by);
  } else {
    throw std::invalid_argument("[compile] captured state lies in a tuple, which cannot change; use a list or a dict");
  }
}

void visit_leaves(nb::handle tree, const std::function<void(nb::handle)>& visit) {
  if (!children(tree, [&](nb::handle, nb::handle, nb::handle child) { visit_leaves(child, visit); })) visit(tree);
}

void array_leaves(nb::handle tree, std::vector<Leaf>& leaves) {
  if (is_array(tree)) leaves.push_back({nb::none(), nb::none(), nb::borrow(tree)});
  children(tree, [&](nb::handle container, nb::handle key, nb::handle child) {
    if (is_array(child)) leaves.push_back({nb::borrow(container), nb::borrow(key), nb::borrow(child)});
    else array_leaves(child, leaves);
  });
}

std::vector<array> arrays_of(nb::handle tree) {
  std::vector<array> out;
  visit_leaves(tree, [&](nb::handle leaf) {
    if (is_array(leaf)) out.push_back(array_of(leaf));
  });
  return out;
}

namespace {

/// Returns a tuple of the class of another, with other elements.
nb::object tuple_like(nb::handle tuple, const nb::list& elements) {
  if (PyTuple_CheckExact(tuple.ptr())) return nb::tuple(elements);
  if (nb::hasattr(tuple, "_make")) return tuple.type().attr("_make")(elements);  // a named tuple
  return tuple.type()(elements);
}

}  // namespace

nb::object replace_arrays(nb::handle tree, const std::function<nb::object(nb::handle)>& change) {
  if (is_array(tree)) return change(tree);
  if (PyTuple_Check(tree.ptr())) {
    nb::list out;
    children(tree, [&](nb::handle, nb::handle, nb::handle child) { out.append(replace_arrays(child, change)); });
    return tuple_like(tree, out);
  }
  children(tree, [&](nb::handle container, nb::handle key, nb::handle child) {
    const Leaf leaf{nb::borrow(container), nb::borrow(key), nb::borrow(child)};
    if (const nb::object by = replace_arrays(child, change); !by.is(child)) leaf.replace(by);
  });
  return nb::borrow(tree);
}

nb::object map_tree(nb::handle tree, const std::function<nb::object(nb::handle)>& change) {
  PyObject* p = tree.ptr();
  if (PyDict_Check(p)) {
    nb::dict out;
    children(tree, [&](nb::handle, nb::handle key, nb::handle child) { out[key] = map_tree(child, change); });
    return std::move(out);
  }
  if (PyList_Check(p) || PyTuple_Check(p) || is_a<RandomState>(tree)) {
    nb::list out;
    children(tree, [&](nb::handle, nb::handle, nb::handle child) { out.append(map_tree(child, change)); });
    return PyTuple_Check(p) ? tuple_like(tree, out) : nb::object(out);
  }
  return change(tree);
}

nb::object with_arrays(nb::handle tree, const std::vector<array>& values, size_t& at) {
  return map_tree(tree, [&](nb::handle leaf) { return is_array(leaf) ? nb::cast(values.at(at++)) : nb::borrow(leaf); });
}

void append_key(std::string& key, nb::handle tree, const char* op, bool state, std::vector<Leaf>* leaves) {
  if (is_array(tree)) {
    if (leaves) leaves->push_back({nb::none(), nb::none(), nb::borrow(tree)});
    return append_array(key, array_of(tree));
  }
  PyObject* p = tree.ptr();
  key += PyDict_Check(p) ? '{' : PyTuple_Check(p) ? '(' : '[';
  const bool inner = children(tree, [&](nb::handle container, nb::handle name, nb::handle child) {
    if (PyDict_Check(container.ptr()) && !append_constant(key, name)) {
      const std::string text = nb::cast<std::string>(nb::repr(name));
      append_bytes(key, 'k', text.data(), text.size());
    }
    if (!is_array(child)) return append_key(key, child, op, state, leaves);
    if (leaves) leaves->push_back({nb::borrow(container), nb::borrow(name), nb::borrow(child)});
    append_array(key, array_of(child));
  });
  if (inner) {
    key += ')';
    return;
  }
  key.pop_back();
  if (append_constant(key, tree)) return;
  if (state) return append_bytes(key, 'o', &p, sizeof p);
  throw std::invalid_argument(std::string("[") + op + "] arguments must be trees of arrays and constants (numbers, " +
                              "strings, None); got " + nb::cast<std::string>(nb::str(tree.type())));
}

}  // namespace weft::python
