// Trees of arrays: what a tree is, and functions that walk over one or several of them.
#include "weft/tree.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <ostream>
#include <set>
#include <string_view>

#include "base/error.h"

namespace weft {

namespace {

const char* kind_of(const Tree& tree) {
  return tree.is_leaf() ? "an array" : tree.is_list() ? "a list" : tree.is_dict() ? "a dict" : "empty";
}

std::string joined(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

bool has_no_entries(const Tree& tree) { return !tree.is_leaf() && tree.size() == 0; }

/// Returns a node of the same kind with fn(key, entry) for each entry; `tree` is a list or a dict.
template <class F>
Tree with_entries(const Tree& tree, const F& fn) {
  if (tree.is_list()) {
    Tree::List entries;
    for (size_t i = 0; i < tree.size(); ++i) entries.push_back(fn(std::to_string(i), tree.at(i)));
    return Tree::list(std::move(entries));
  }
  Tree::Dict entries;
  for (const auto& [key, entry] : tree.items()) entries.emplace_back(key, fn(key, entry));
  return Tree::dict(std::move(entries));
}

using Nodes = std::vector<const Tree*>;
using NodeFunction = std::function<Tree(const std::string&, const Nodes&)>;

Tree mapped(const NodeFunction& fn, const Nodes& nodes, const IsLeaf& is_leaf, const std::string& path) {
  const Tree& first = *nodes.front();
  if (first.is_leaf() || (is_leaf && is_leaf(first))) return fn(path, nodes);
  if (first.is_empty()) return first;
  size_t index = 0;
  return with_entries(first, [&](const std::string& key, const Tree&) {
    Nodes below;
    for (const Tree* node : nodes) below.push_back(first.is_list() ? &node->at(index) : &node->at(key));
    ++index;
    return mapped(fn, below, is_leaf, joined(path, key));
  });
}

std::vector<Tree> copies(const Nodes& nodes) {
  std::vector<Tree> out;
  for (const Tree* node : nodes) out.push_back(*node);
  return out;
}

Nodes pointers(const char* op, const std::vector<Tree>& trees) {
  if (trees.empty()) throw_invalid(op, "there must be at least one tree");
  Nodes out;
  for (const Tree& tree : trees) out.push_back(&tree);
  return out;
}

void collect(const Tree& tree, const std::string& path, const IsLeaf& is_leaf, Tree::Dict& out) {
  if (tree.is_leaf() || (is_leaf && is_leaf(tree))) out.emplace_back(path.empty() ? path : path.substr(1), tree);
  else if (tree.is_list())
    for (size_t i = 0; i < tree.size(); ++i) collect(tree.at(i), path + "." + std::to_string(i), is_leaf, out);
  else
    for (const auto& [key, entry] : tree.items()) collect(entry, path + "." + key, is_leaf, out);
}

/// A leaf and what is left of its path.
struct Rest {
  std::string_view path;
  bool ended;  // the path has been followed to its end
  const Tree* leaf;
};

/// Returns keys as indices of a list, or nothing where they are not different indices.
std::optional<std::vector<size_t>> indices(const std::vector<std::string>& keys) {
  std::vector<size_t> out;
  for (const std::string& key : keys) {
    size_t index = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
    if (key.empty() || error != std::errc() || end != key.data() + key.size()) return std::nullopt;
    out.push_back(index);
  }
  return std::set<size_t>(out.begin(), out.end()).size() == out.size() ? std::optional(out) : std::nullopt;
}

Tree grown(const std::vector<Rest>& leaves) {
  if (leaves.size() == 1 && leaves[0].path.empty()) return *leaves[0].leaf;
  std::vector<std::string> keys;
  std::unordered_map<std::string, std::vector<Rest>> below;
  for (const auto& [path, ended, leaf] : leaves) {
    const size_t dot = path.find('.');
    std::string key(path.substr(0, dot));
    if (ended && below.contains(key)) throw_invalid("tree_unflatten", "two leaves have the same path");
    std::vector<Rest>& at = below[key];
    const bool last = dot == std::string_view::npos;
    at.push_back({last ? std::string_view() : path.substr(dot + 1), last, leaf});
    if (at.size() == 1) keys.push_back(std::move(key));
  }
  const auto places = indices(keys);
  if (!places) {
    Tree::Dict entries;
    for (const std::string& key : keys) entries.emplace_back(key, grown(below[key]));
    return Tree::dict(std::move(entries));
  }
  Tree::List entries(places->empty() ? 0 : *std::max_element(places->begin(), places->end()) + 1, Tree::dict());
  for (size_t i = 0; i < keys.size(); ++i) entries[(*places)[i]] = grown(below[keys[i]]);
  return Tree::list(std::move(entries));
}

}  // namespace

Tree::Tree(array leaf) : value_(std::move(leaf)) {}

Tree Tree::list(List entries) {
  Tree out;
  out.value_ = std::move(entries);
  return out;
}

Tree Tree::dict(Dict entries) {
  std::set<std::string> keys;
  for (const auto& entry : entries)
    if (!keys.insert(entry.first).second) throw_invalid("Tree.dict", "two entries have the key " + entry.first);
  Tree out;
  out.value_ = std::move(entries);
  return out;
}

size_t Tree::size() const { return is_list() ? entries().size() : is_dict() ? items().size() : 0; }

const array& Tree::leaf() const {
  if (const auto* leaf = std::get_if<array>(&value_)) return *leaf;
  throw_invalid("Tree.leaf", std::string("the tree is ") + kind_of(*this) + ", not an array");
}

const Tree::List& Tree::entries() const {
  static const List none;
  if (is_empty()) return none;
  if (const auto* list = std::get_if<List>(&value_)) return *list;
  throw_invalid("Tree.entries", std::string("the tree is ") + kind_of(*this) + ", not a list");
}

const Tree::Dict& Tree::items() const {
  static const Dict none;
  if (is_empty()) return none;
  if (const auto* dict = std::get_if<Dict>(&value_)) return *dict;
  throw_invalid("Tree.items", std::string("the tree is ") + kind_of(*this) + ", not a dict");
}

const Tree* Tree::find(const std::string& key) const {
  const auto* dict = std::get_if<Dict>(&value_);
  if (!dict) return nullptr;
  const auto it = std::find_if(dict->begin(), dict->end(), [&](const auto& entry) { return entry.first == key; });
  return it == dict->end() ? nullptr : &it->second;
}

const Tree& Tree::at(const std::string& key) const {
  if (!is_dict()) throw_invalid("Tree", std::string("the tree is ") + kind_of(*this) + " and has no key " + key);
  if (const Tree* entry = find(key)) return *entry;
  throw_out_of_range("Tree", "the dict has no key " + key);
}

const Tree& Tree::at(size_t index) const {
  if (!is_list())
    throw_invalid("Tree", std::string("the tree is ") + kind_of(*this) + " and has no index " + std::to_string(index));
  if (index < size()) return entries()[index];
  throw_out_of_range("Tree",
                     "the list has " + std::to_string(size()) + " entries and no index " + std::to_string(index));
}

Tree& Tree::operator[](const std::string& key) {
  if (is_empty()) value_ = Dict();
  if (is_dict() && !find(key)) std::get<Dict>(value_).emplace_back(key, Tree());
  return const_cast<Tree&>(at(key));
}

void Tree::push_back(Tree entry) {
  if (is_empty()) value_ = List();
  if (!is_list()) throw_invalid("Tree.push_back", std::string("the tree is ") + kind_of(*this) + ", not a list");
  std::get<List>(value_).push_back(std::move(entry));
}

std::ostream& operator<<(std::ostream& os, const Tree& tree) {
  const char* between = "";
  if (tree.is_leaf()) os << to_string(tree.leaf().shape()) << " " << dtype_name(tree.leaf().dtype());
  if (tree.is_empty()) os << "empty";
  if (tree.is_list()) {
    os << "[";
    for (const Tree& entry : tree.entries()) os << std::exchange(between, ", ") << entry;
    os << "]";
  } else if (tree.is_dict()) {
    os << "{";
    for (const auto& [key, entry] : tree.items()) os << std::exchange(between, ", ") << key << ": " << entry;
    os << "}";
  }
  return os;
}

Tree tree_map(const std::function<array(const array&)>& fn, const Tree& tree) {
  return mapped([&](const std::string&, const Nodes& nodes) -> Tree { return fn(*nodes[0]); }, {&tree}, {}, "");
}

Tree tree_map(const std::function<array(const array&, const array&)>& fn, const Tree& tree, const Tree& other) {
  return mapped([&](const std::string&, const Nodes& nodes) -> Tree { return fn(*nodes[0], *nodes[1]); },
                {&tree, &other}, {}, "");
}

Tree tree_map(const std::function<Tree(const std::vector<Tree>&)>& fn, const std::vector<Tree>& trees,
              const IsLeaf& is_leaf) {
  return mapped([&](const std::string&, const Nodes& nodes) { return fn(copies(nodes)); }, pointers("tree_map", trees),
                is_leaf, "");
}

Tree tree_map_with_path(const std::function<array(const std::string&, const array&)>& fn, const Tree& tree,
                        const std::string& path) {
  return mapped([&](const std::string& at, const Nodes& nodes) -> Tree { return fn(at, *nodes[0]); }, {&tree}, {},
                path);
}

Tree tree_map_with_path(const std::function<Tree(const std::string&, const std::vector<Tree>&)>& fn,
                        const std::vector<Tree>& trees, const IsLeaf& is_leaf, const std::string& path) {
  return mapped([&](const std::string& at, const Nodes& nodes) { return fn(at, copies(nodes)); },
                pointers("tree_map_with_path", trees), is_leaf, path);
}

Tree::Dict tree_flatten(const Tree& tree, const std::string& prefix, const IsLeaf& is_leaf) {
  Tree::Dict out;
  collect(tree, prefix, is_leaf, out);
  return out;
}

Tree tree_unflatten(const Tree::Dict& leaves) {
  std::vector<Rest> rest;
  for (const auto& [path, leaf] : leaves) rest.push_back({path, path.empty(), &leaf});
  return grown(rest);
}

std::unordered_map<std::string, array> tree_to_map(const Tree& tree) {
  std::unordered_map<std::string, array> out;
  for (auto& [path, leaf] : tree_flatten(tree)) out.emplace(std::move(path), leaf.leaf());
  return out;
}

Tree tree_from_map(const std::unordered_map<std::string, array>& arrays) {
  const std::map<std::string, array> sorted(arrays.begin(), arrays.end());
  return tree_unflatten(Tree::Dict(sorted.begin(), sorted.end()));
}

std::vector<array> tree_leaves(const Tree& tree) {
  std::vector<array> out;
  for (const auto& entry : tree_flatten(tree)) out.push_back(entry.second.leaf());
  return out;
}

Tree tree_fill(const Tree& tree, const std::vector<array>& leaves) {
  const size_t count = tree_flatten(tree).size();
  if (count != leaves.size())
    throw_invalid("tree_fill",
                  std::to_string(leaves.size()) + " arrays for the " + std::to_string(count) + " leaves of the tree");
  size_t next = 0;
  return mapped([&](const std::string&, const Nodes&) -> Tree { return leaves[next++]; }, {&tree}, {}, "");
}

array tree_reduce(const std::function<array(const array&, const array&)>& fn, const Tree& tree) {
  const std::vector<array> leaves = tree_leaves(tree);
  if (leaves.empty()) throw_invalid("tree_reduce", "the tree has no leaves; give a value to begin with");
  array total = leaves[0];
  for (size_t i = 1; i < leaves.size(); ++i) total = fn(total, leaves[i]);
  return total;
}

Tree tree_merge(const Tree& a, const Tree& b, const std::function<Tree(const Tree&, const Tree&)>& merge) {
  if (has_no_entries(a) && has_no_entries(b)) {
    if (!a.is_empty() && !b.is_empty() && a.is_list() != b.is_list())
      throw_invalid("tree_merge", "an empty list and an empty dict cannot be merged");
    return a.is_empty() ? b : a;
  }
  if (has_no_entries(a)) return b;
  if (has_no_entries(b)) return a;
  if (a.is_dict() && b.is_dict()) {
    static const Tree nothing;
    const auto other = [&](const std::string& key, const Tree& in) { return in.find(key) ? in.at(key) : nothing; };
    Tree::Dict entries;
    for (const auto& [key, entry] : a.items()) entries.emplace_back(key, tree_merge(entry, other(key, b), merge));
    for (const auto& [key, entry] : b.items())
      if (!a.contains(key)) entries.emplace_back(key, tree_merge(nothing, entry, merge));
    return Tree::dict(std::move(entries));
  }
  if (a.is_list() && b.is_list()) {
    Tree::List entries;
    for (size_t i = 0; i < std::max(a.size(), b.size()); ++i)
      entries.push_back(tree_merge(i < a.size() ? a.at(i) : Tree(), i < b.size() ? b.at(i) : Tree(), merge));
    return Tree::list(std::move(entries));
  }
  if (!merge) throw_invalid("tree_merge", "both trees have a leaf at one path, and there is no function to merge them");
  return merge(a, b);
}

}  // namespace weft
