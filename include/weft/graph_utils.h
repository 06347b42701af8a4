#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/array.h"

/// Shows graphs as text and as pictures: what is still to be computed for some arrays. Arrays with data, numbers and
/// the arguments of a trace are inputs; every other node is an operation of docs/operators.md, or a region or call
/// under its own name.
namespace weft {

/// Names of arrays: those that were set, else A, B, …, Z, AA, … in the order in which they are asked for.
struct WEFT_API NodeNamer {
  std::unordered_map<std::uintptr_t, std::string> names;  ///< by result of a node, which handles share

  /// Returns the name of an array, and gives it the next one where it has none.
  const std::string& get_name(const array& x);
  /// Sets the name of an array.
  void set_name(const array& x, std::string n);
};

/// Arrays, one or more.
template <class... A>
concept Arrays = sizeof...(A) > 0 && (std::is_same_v<std::remove_cvref_t<A>, array> && ...);

/// Prints "Inputs: A [(2,3), float32]", "Outputs: …", then one line for each operation in an order in which they can
/// run: "exp A [(2,3), float32] -> B [(2,3), float32]".
WEFT_API void print_graph(std::ostream& os, NodeNamer namer, const std::vector<array>& outputs);
inline void print_graph(std::ostream& os, const std::vector<array>& outputs) { print_graph(os, NodeNamer{}, outputs); }
/// Prints the graph of the arrays that are given one by one.
template <class... A>
requires Arrays<A...>
void print_graph(std::ostream& os, A&&... outputs) {
  print_graph(os, NodeNamer{}, std::vector<array>{std::forward<A>(outputs)...});
}
template <class... A>
requires Arrays<A...>
void print_graph(std::ostream& os, NodeNamer namer, A&&... outputs) {
  print_graph(os, std::move(namer), std::vector<array>{std::forward<A>(outputs)...});
}

/// Writes the graph for Graphviz: boxes are operations, ellipses arrays; inputs are at the top, results that nothing
/// reads at the bottom.
WEFT_API void export_to_dot(std::ostream& os, NodeNamer namer, const std::vector<array>& outputs);
inline void export_to_dot(std::ostream& os, const std::vector<array>& outputs) {
  export_to_dot(os, NodeNamer{}, outputs);
}
/// Writes the graph of the arrays that are given one by one.
template <class... A>
requires Arrays<A...>
void export_to_dot(std::ostream& os, A&&... outputs) {
  export_to_dot(os, NodeNamer{}, std::vector<array>{std::forward<A>(outputs)...});
}
template <class... A>
requires Arrays<A...>
void export_to_dot(std::ostream& os, NodeNamer namer, A&&... outputs) {
  export_to_dot(os, std::move(namer), std::vector<array>{std::forward<A>(outputs)...});
}

}  // namespace weft
