// Transforms of functions of trees: functions of their leaves, between trees that are taken apart and filled again.
#include <sstream>
#include <unordered_map>

#include "base/error.h"
#include "weft/ops.h"
#include "weft/tree.h"

namespace weft {

namespace {

std::vector<array> leaves_of(const std::vector<Tree>& trees) {
  std::vector<array> out;
  for (const Tree& tree : trees)
    for (array& leaf : tree_leaves(tree)) out.push_back(std::move(leaf));
  return out;
}

/// Returns the structure, with a number at each leaf: what may be kept without keeping the arrays.
Tree shell(const Tree& tree) {
  return tree_map([](const array&) { return array(0.0f); }, tree);
}

/// Returns trees of the structures of `like`, filled with the leaves one after the other.
std::vector<Tree> filled_trees(const std::vector<Tree>& like, const std::vector<array>& leaves) {
  std::vector<Tree> out;
  auto next = leaves.begin();
  for (const Tree& tree : like) {
    const auto count = static_cast<std::ptrdiff_t>(tree_leaves(tree).size());
    if (leaves.end() - next < count) throw_invalid("flat_function", "there are fewer arrays than leaves of the trees");
    out.push_back(tree_fill(tree, {next, next + count}));
    next += count;
  }
  if (next != leaves.end()) throw_invalid("flat_function", "there are more arrays than leaves of the trees");
  return out;
}

/// Returns a text that names the structure: equal texts mean equal structures.
std::string structure_of(const Tree& tree) {
  if (tree.is_leaf()) return "*";
  if (tree.is_empty()) return "-";
  std::string out = tree.is_list() ? "[" : "{";
  if (tree.is_list())
    for (const Tree& entry : tree.entries()) out += structure_of(entry) + ",";
  else
    for (const auto& [key, entry] : tree.items())
      out += std::to_string(key.size()) + ":" + key + structure_of(entry) + ",";
  return out + (tree.is_list() ? "]" : "}");
}

std::string structure_of(const std::vector<Tree>& trees) { return structure_of(Tree::list(trees)); }

/// Returns the positions of the leaves of the arguments in `argnums` among the leaves of all.
std::vector<int> positions(const std::vector<Tree>& arguments, const std::vector<int>& argnums) {
  std::vector<int> starts{0};
  for (const Tree& tree : arguments) starts.push_back(starts.back() + static_cast<int>(tree_leaves(tree).size()));
  const int count = static_cast<int>(arguments.size());
  std::vector<int> out;
  for (const int argnum : argnums) {
    const int k = argnum < 0 ? argnum + count : argnum;
    if (k < 0 || k >= count)
      throw_invalid("tree_value_and_grad",
                    "there is no argument " + std::to_string(argnum) + " among " + std::to_string(count));
    for (int i = starts[static_cast<size_t>(k)]; i < starts[static_cast<size_t>(k) + 1]; ++i) out.push_back(i);
  }
  return out;
}

/// A compiled function of the leaves, and the structure of the result.
struct TreeProgram {
  ArrayFunction call;
  std::shared_ptr<Tree> result;
};

TreeProgram program_of(const TreeFunction& fun, const std::vector<Tree>& like, const CompileOptions& options) {
  auto result = std::make_shared<Tree>(), traced = std::make_shared<Tree>();
  const ArrayFunction flat = flat_function(fun, like, traced);
  const auto first = std::make_shared<bool>(true);
  const auto checked = [=](const std::vector<array>& leaves) {
    std::vector<array> out = flat(leaves);
    if (!std::exchange(*first, false) && structure_of(*traced) != structure_of(*result))
      throw_invalid("tree_compile",
                    "the structure of the result depends on shapes, not on that of the arguments alone");
    *result = *traced;
    return out;
  };
  return {compile(ArrayFunction(checked), options), result};
}

}  // namespace

ArrayFunction flat_function(const TreeFunction& fun, const std::vector<Tree>& like,
                            const std::shared_ptr<Tree>& result) {
  std::vector<Tree> shells;
  for (const Tree& tree : like) shells.push_back(shell(tree));
  return [=](const std::vector<array>& leaves) {
    const Tree out = fun(filled_trees(shells, leaves));
    if (result) *result = shell(out);
    return tree_leaves(out);
  };
}

std::function<std::pair<array, std::vector<Tree>>(const std::vector<Tree>&)> tree_value_and_grad(
    const ScalarTreeFunction& fun, const std::vector<int>& argnums) {
  return [=](const std::vector<Tree>& arguments) {
    const auto flat = [&](const std::vector<array>& leaves) { return fun(filled_trees(arguments, leaves)); };
    const std::vector<int> wanted = positions(arguments, argnums);
    if (wanted.empty()) throw_invalid("tree_value_and_grad", "the trees to differentiate by have no leaves");
    auto [value, slopes] = value_and_grad(ScalarFunction(flat), wanted)(leaves_of(arguments));
    std::vector<Tree> like;
    for (const int k : argnums)
      like.push_back(arguments[k < 0 ? arguments.size() - static_cast<size_t>(-k) : static_cast<size_t>(k)]);
    return std::pair(std::move(value), filled_trees(like, slopes));
  };
}

std::function<std::pair<array, Tree>(const Tree&)> tree_value_and_grad(const std::function<array(const Tree&)>& fun) {
  const auto several = tree_value_and_grad([=](const std::vector<Tree>& in) { return fun(in[0]); });
  return [=](const Tree& argument) {
    auto [value, slopes] = several({argument});
    return std::pair(std::move(value), std::move(slopes[0]));
  };
}

std::function<Tree(const Tree&)> tree_grad(const std::function<array(const Tree&)>& fun) {
  return [both = tree_value_and_grad(fun)](const Tree& argument) { return both(argument).second; };
}

TreeFunction tree_vmap(const TreeFunction& fun, const std::vector<int>& in_axes, int out_axis) {
  return [=](const std::vector<Tree>& arguments) {
    if (!in_axes.empty() && in_axes.size() != arguments.size())
      throw_invalid("tree_vmap",
                    std::to_string(in_axes.size()) + " axes for " + std::to_string(arguments.size()) + " arguments");
    std::vector<int> axes;
    for (size_t k = 0; k < arguments.size(); ++k)
      axes.insert(axes.end(), tree_leaves(arguments[k]).size(), in_axes.empty() ? 0 : in_axes[k]);
    const auto result = std::make_shared<Tree>();
    const ArrayFunction flat = flat_function(fun, arguments, result);
    // Batched along the first axis, since vmap asks for the number of results in advance.
    std::vector<array> leaves = vmap(flat, axes)(leaves_of(arguments));
    for (array& leaf : leaves) leaf = moveaxis(leaf, 0, out_axis);
    return tree_fill(*result, leaves);
  };
}

TreeFunction tree_compile(const TreeFunction& fun, const CompileOptions& options) {
  const auto programs = std::make_shared<std::unordered_map<std::string, TreeProgram>>();
  return [=](const std::vector<Tree>& arguments) {
    const std::string key = structure_of(arguments);
    auto at = programs->find(key);
    if (at == programs->end()) at = programs->emplace(key, program_of(fun, arguments, options)).first;
    const std::vector<array> leaves = at->second.call(leaves_of(arguments));
    return tree_fill(*at->second.result, leaves);
  };
}

}  // namespace weft
