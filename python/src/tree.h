#pragma once
#include <functional>

#include "convert.h"

/// Trees: arrays in nested lists, tuples and dicts, in MLX's order (dicts in the order of their keys' insertion).
namespace weft::python {

/// The state of the calling thread's default random sequence as a list of one array: `mx.random.state`.
struct RandomState {};

/// A leaf of a tree: where it lies, so that it can be replaced.
struct Leaf {
  nb::object container;  ///< none for the tree itself
  nb::object key;
  nb::object value;
  /// Puts another object there. Tuples cannot change: throws std::invalid_argument.
  void replace(const nb::object& by) const;
};

/// Calls `visit` with every leaf: what is no list, tuple, dict or RandomState.
void visit_leaves(nb::handle tree, const std::function<void(nb::handle)>& visit);
/// Appends the leaves that are arrays, with where they lie.
void array_leaves(nb::handle tree, std::vector<Leaf>& leaves);
/// Returns the arrays of a tree.
std::vector<array> arrays_of(nb::handle tree);
/// Returns the tree with each leaf replaced by what `change` returns.
nb::object map_tree(nb::handle tree, const std::function<nb::object(nb::handle)>& change);
/// Replaces each array by what `change` returns: in the lists and dicts themselves, while tuples are made anew. Returns
/// the tree.
nb::object replace_arrays(nb::handle tree, const std::function<nb::object(nb::handle)>& change);
/// Returns the tree with its arrays replaced, one after the other, from values[at] on; `at` moves on.
nb::object with_arrays(nb::handle tree, const std::vector<array>& values, size_t& at);
/// Returns the tree with its arrays replaced, from the first value on.
inline nb::object filled(nb::handle tree, const std::vector<array>& values) {
  size_t at = 0;
  return with_arrays(tree, values, at);
}
/// Appends to `key` what a tree is apart from the values of its arrays: its structure, dtypes and shapes, and
/// constants. Other leaves than arrays, numbers, strings, bytes and None throw std::invalid_argument with the name
/// `op`, or, in `state`, are told apart by their identity. Appends the leaves that are arrays to `leaves`, if given, as
/// array_leaves does.
void append_key(std::string& key, nb::handle tree, const char* op, bool state = false,
                std::vector<Leaf>* leaves = nullptr);

}  // namespace weft::python
