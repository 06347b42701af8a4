#pragma once
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "weft/array.h"
#include "weft/compile.h"

/// Trees of arrays, as mlx.utils: parameters, gradients, the state of optimizers. A path names a leaf by the keys and
/// indices that lead to it, joined by dots: "layers.0.weight".
///
/// Where MLX throws KeyError or IndexError, std::out_of_range is thrown, for ValueError and TypeError
/// std::invalid_argument.
namespace weft {

/// A value: an array (a leaf), a list of trees, a dict of trees, or empty. A dict keeps the order in which its keys
/// were added, as a dict of Python. What is empty is no leaf: functions of leaves pass it by.
///
///     Tree tree = Tree::dict({{"layers", Tree::list({Tree::dict({{"weight", ones({2, 3})}})})}});
///     array w = tree["layers"][0]["weight"];
///     tree["bias"] = zeros({3});  // adds a key
class WEFT_API Tree {
 public:
  /// The entries of a list.
  using List = std::vector<Tree>;
  /// The entries of a dict, in the order in which they were added.
  using Dict = std::vector<std::pair<std::string, Tree>>;

  Tree() = default;
  /// Makes a leaf.
  Tree(array leaf);
  /// Returns a list.
  static Tree list(List entries = {});
  /// Returns a dict. Throws std::invalid_argument where two entries have one key.
  static Tree dict(Dict entries = {});

  /// Returns whether the tree is an array.
  bool is_leaf() const { return std::holds_alternative<array>(value_); }
  /// Returns whether it is a list.
  bool is_list() const { return std::holds_alternative<List>(value_); }
  /// Returns whether it is a dict.
  bool is_dict() const { return std::holds_alternative<Dict>(value_); }
  /// Returns whether it is none of them.
  bool is_empty() const { return std::holds_alternative<std::monostate>(value_); }
  /// Returns the number of entries of a list or dict; 0 for the others.
  size_t size() const;

  /// Returns the array of a leaf; throws std::invalid_argument for another tree.
  const array& leaf() const;
  /// Returns the same.
  operator const array&() const { return leaf(); }
  /// Returns the entries of a list, none of what is empty; throws std::invalid_argument for another tree.
  const List& entries() const;
  /// Returns the entries of a dict, none of what is empty; throws std::invalid_argument for another tree.
  const Dict& items() const;

  /// Returns whether the tree is a dict with this key.
  bool contains(const std::string& key) const { return find(key) != nullptr; }
  /// Returns the entry of a dict, or null where there is none.
  const Tree* find(const std::string& key) const;
  /// Returns an entry of a dict. Throws std::out_of_range where there is none, std::invalid_argument for no dict.
  const Tree& at(const std::string& key) const;
  /// Returns an entry of a list. Throws std::out_of_range where there is none, std::invalid_argument for no list.
  const Tree& at(size_t index) const;
  /// Returns what `at` does; the first of them adds an empty entry where there is none, and makes a dict of what is
  /// empty.
  Tree& operator[](const std::string& key);
  const Tree& operator[](const std::string& key) const { return at(key); }
  Tree& operator[](size_t index) { return const_cast<Tree&>(at(index)); }
  const Tree& operator[](size_t index) const { return at(index); }
  /// Adds an entry to a list, and makes a list of what is empty; throws std::invalid_argument for another tree.
  void push_back(Tree entry);

 private:
  std::variant<std::monostate, array, List, Dict> value_;
};

/// Prints the structure with shapes and dtypes: {layers: [{weight: (2,3) float32}]}.
WEFT_API std::ostream& operator<<(std::ostream& os, const Tree& tree);

/// Whether a node counts as a leaf, whatever is below it. None: arrays are leaves.
using IsLeaf = std::function<bool(const Tree& node)>;

/// Returns a tree of the structure of `tree`, or of the first one, with fn(leaf, …) at each leaf. The entries of
/// further trees at the leaf's path are the further arguments; these trees may have more entries and may go on below
/// the leaf, so `nodes` holds a node of each. Throws std::out_of_range where one of them lacks an entry,
/// std::invalid_argument where it has a node of another kind.
///
///     Tree halves = tree_map([](const array& x) { return x * 0.5f; }, tree);
WEFT_API Tree tree_map(const std::function<array(const array&)>& fn, const Tree& tree);
WEFT_API Tree tree_map(const std::function<array(const array&, const array&)>& fn, const Tree& tree, const Tree& other);
WEFT_API Tree tree_map(const std::function<Tree(const std::vector<Tree>& nodes)>& fn, const std::vector<Tree>& trees,
                       const IsLeaf& is_leaf = {});
/// Returns what tree_map does with fn(path, leaf, …). `path` is that of the tree itself, which the leaves' begin with.
WEFT_API Tree tree_map_with_path(const std::function<array(const std::string& path, const array&)>& fn,
                                 const Tree& tree, const std::string& path = "");
WEFT_API Tree tree_map_with_path(const std::function<Tree(const std::string& path, const std::vector<Tree>& nodes)>& fn,
                                 const std::vector<Tree>& trees, const IsLeaf& is_leaf = {},
                                 const std::string& path = "");

/// Returns the leaves with their paths, in the tree's order. Empty trees, lists and dicts leave no trace. `prefix`
/// stands before each path, without its first character, a dot by convention: ".model" gives "model.weight".
///
///     for (const auto& [path, leaf] : tree_flatten(tree)) std::cout << path << " " << leaf.leaf().shape() << "\n";
WEFT_API Tree::Dict tree_flatten(const Tree& tree, const std::string& prefix = "", const IsLeaf& is_leaf = {});
/// Returns the tree whose leaves have these paths. Where the keys of a node are different indices it becomes a list,
/// with an empty dict at each index that has no key; otherwise a dict. Nothing at all becomes an empty list. Throws
/// std::invalid_argument for two leaves with one path.
WEFT_API Tree tree_unflatten(const Tree::Dict& leaves);
/// Returns the arrays by their paths, as files hold them.
WEFT_API std::unordered_map<std::string, array> tree_to_map(const Tree& tree);
/// Returns tree_unflatten of the arrays, in the order of their names.
WEFT_API Tree tree_from_map(const std::unordered_map<std::string, array>& arrays);

/// Returns the arrays of all leaves, in the tree's order.
WEFT_API std::vector<array> tree_leaves(const Tree& tree);
/// Returns a tree of the same structure with other arrays, in the order of tree_leaves. Throws std::invalid_argument
/// where their number is another.
WEFT_API Tree tree_fill(const Tree& tree, const std::vector<array>& leaves);

/// Returns fn(… fn(fn(initializer, leaf0), leaf1) …, leafN).
template <class T, class F>
T tree_reduce(const F& fn, const Tree& tree, T initializer, const IsLeaf& is_leaf = {}) {
  for (const auto& entry : tree_flatten(tree, "", is_leaf)) initializer = fn(std::move(initializer), entry.second);
  return initializer;
}
/// Returns the same, beginning with the first leaf. Throws std::invalid_argument for a tree without leaves, for which
/// MLX returns None.
WEFT_API array tree_reduce(const std::function<array(const array&, const array&)>& fn, const Tree& tree);

/// Returns a tree with the leaves of both trees. What is empty, or has no entries, gives way to what the other tree has
/// there. Lists are merged index by index. `merge` makes one node of two that share a path and are not both lists or
/// both dicts; without it they throw std::invalid_argument, and so do an empty list and an empty dict.
WEFT_API Tree tree_merge(const Tree& a, const Tree& b,
                         const std::function<Tree(const Tree& a, const Tree& b)>& merge = {});

/// A function of trees.
using TreeFunction = std::function<Tree(const std::vector<Tree>&)>;
/// A function of trees whose result is a scalar (shape []).
using ScalarTreeFunction = std::function<array(const std::vector<Tree>&)>;
/// Returns a function of arrays for the transforms of transforms.h: it fills trees of the structures of `like` with its
/// arguments, calls `fun` with them and returns the leaves of the result, whose structure it writes to `*result`.
WEFT_API ArrayFunction flat_function(const TreeFunction& fun, const std::vector<Tree>& like,
                                     const std::shared_ptr<Tree>& result = nullptr);

/// Returns a function that computes a scalar and its gradients: a tree of the structure of each argument in `argnums`.
/// Throws std::invalid_argument in the call as value_and_grad does.
///
///     auto loss_and_grads = tree_value_and_grad([&](const Tree& p) { return mean(square(matmul(x, p["w"]) - y)); });
///     auto [loss, slopes] = loss_and_grads(parameters);
WEFT_API std::function<std::pair<array, Tree>(const Tree&)> tree_value_and_grad(
    const std::function<array(const Tree&)>& fun);
WEFT_API std::function<std::pair<array, std::vector<Tree>>(const std::vector<Tree>&)> tree_value_and_grad(
    const ScalarTreeFunction& fun, const std::vector<int>& argnums = {0});
/// Returns a function that computes the gradients alone.
WEFT_API std::function<Tree(const Tree&)> tree_grad(const std::function<array(const Tree&)>& fun);
/// Returns the function applied to every element along an axis, all at once: that of in_axes for all leaves of an
/// argument (-1: the same for all elements; none at all: 0 for every argument), `out_axis` for all leaves of the
/// result.
WEFT_API TreeFunction tree_vmap(const TreeFunction& fun, const std::vector<int>& in_axes = {}, int out_axis = 0);
/// Returns the function as a program, as compile does, traced for each structure of the arguments. Axes of
/// CompileOptions::dynamic count leaves as arguments. The structure of the result may depend on that of the arguments,
/// not on shapes: std::invalid_argument is thrown where another trace has another one.
WEFT_API TreeFunction tree_compile(const TreeFunction& fun, const CompileOptions& options = {});

}  // namespace weft
