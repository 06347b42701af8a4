// Trees of arrays: values and exceptions of mlx.utils, and transforms of functions of trees.
#include "weft/tree.h"

#include <doctest/doctest.h>

#include <sstream>

#include "weft/ops.h"

using namespace weft;

namespace {

Tree scalar(float value) { return array(value); }

/// {layers: [{weight: 1, bias: 2}, {}, 3], scale: 4}
Tree sample() {
  return Tree::dict(
      {{"layers", Tree::list({Tree::dict({{"weight", scalar(1)}, {"bias", scalar(2)}}), Tree::dict(), scalar(3)})},
       {"scale", scalar(4)}});
}

/// Returns the structure with scalars as numbers.
std::string text(const Tree& tree) {
  if (tree.is_leaf()) return std::to_string(static_cast<int>(tree.leaf().item<float>()));
  std::string out;
  for (size_t i = 0; i < tree.size(); ++i)
    out +=
        (i ? " " : "") + (tree.is_list() ? text(tree[i]) : tree.items()[i].first + ":" + text(tree.items()[i].second));
  return tree.is_empty() ? "-" : tree.is_list() ? "[" + out + "]" : "{" + out + "}";
}

std::string text(const Tree::Dict& flat) {
  std::string out;
  for (const auto& [path, leaf] : flat) out += path + "=" + text(leaf) + " ";
  return out;
}

bool is_dict(const Tree& tree) { return tree.is_dict(); }

}  // namespace

TEST_CASE("a tree is an array, a list, a dict or empty") {
  Tree tree;
  CHECK(tree.is_empty());
  tree["b"] = array(1.0f);
  tree["a"].push_back(array({1, 2}));
  tree["a"].push_back(Tree());
  CHECK(tree.is_dict());
  CHECK(tree.size() == 2);
  CHECK(tree.items()[0].first == "b");  // in the order of insertion
  CHECK(tree["a"].is_list());
  CHECK(tree["a"][1].is_empty());
  std::ostringstream os;
  os << tree;
  CHECK(os.str() == "{b: () float32, a: [(2) int32, empty]}");

  const Tree& same = tree;
  CHECK((same["b"] + array(2.0f)).item<float>() == 3);  // a leaf is an array
  CHECK_THROWS_WITH_AS(same["c"], "[Tree] the dict has no key c", std::out_of_range);
  CHECK_THROWS_WITH_AS(tree["a"][2], "[Tree] the list has 2 entries and no index 2", std::out_of_range);
  CHECK_THROWS_WITH_AS(same["a"]["b"], "[Tree] the tree is a list and has no key b", std::invalid_argument);
  CHECK_THROWS_WITH_AS(tree["b"][0], "[Tree] the tree is an array and has no index 0", std::invalid_argument);
  CHECK_THROWS_WITH_AS(tree.leaf(), "[Tree.leaf] the tree is a dict, not an array", std::invalid_argument);
  CHECK_THROWS_AS(tree.push_back(Tree()), std::invalid_argument);
  CHECK_THROWS_AS(tree.entries(), std::invalid_argument);
  CHECK_THROWS_AS(tree["a"].items(), std::invalid_argument);
  CHECK_THROWS_WITH_AS(Tree::dict({{"a", Tree()}, {"a", Tree()}}), "[Tree.dict] two entries have the key a",
                       std::invalid_argument);
  CHECK(same.find("a") == &same["a"]);
  CHECK_FALSE(same.contains("c"));
}

TEST_CASE("tree_map: one tree, two, several, and nodes as leaves") {
  CHECK(text(tree_map([](const array& x) { return x * 2; }, sample())) == "{layers:[{weight:2 bias:4} {} 6] scale:8}");
  CHECK(text(tree_map([](const array& x, const array& y) { return x + y; }, sample(), sample())) ==
        "{layers:[{weight:2 bias:4} {} 6] scale:8}");
  CHECK(text(tree_map([](const array& x) { return x + 1; }, scalar(1))) == "2");
  CHECK(tree_map([](const array& x) { return x; }, Tree()).is_empty());

  // Further trees may have more entries and go on below a leaf.
  const Tree more = Tree::dict({{"b", scalar(7)}, {"a", Tree::dict({{"v", scalar(5)}})}});
  const Tree sums =
      tree_map([](const std::vector<Tree>& in) -> Tree { return in[0].leaf() + in[1]["v"].leaf() + in[2].leaf(); },
               {Tree::dict({{"a", scalar(1)}}), more, Tree::dict({{"a", scalar(3)}})});
  CHECK(text(sums) == "{a:9}");
  const auto keys = [](const std::vector<Tree>& in) -> Tree { return array(static_cast<float>(in[0].size())); };
  CHECK(text(tree_map(keys, {sample()["layers"]}, [](const Tree& t) { return is_dict(t) || t.is_leaf(); })) ==
        "[2 0 0]");

  const auto add = [](const array& x, const array& y) { return x + y; };
  CHECK_THROWS_AS(tree_map(add, Tree::dict({{"a", scalar(1)}}), Tree::dict({{"b", scalar(1)}})), std::out_of_range);
  CHECK_THROWS_AS(tree_map(add, Tree::list({scalar(1), scalar(2)}), Tree::list({scalar(1)})), std::out_of_range);
  CHECK_THROWS_AS(tree_map(add, Tree::list({scalar(1)}), Tree::dict({{"0", scalar(1)}})), std::invalid_argument);
  CHECK_THROWS_AS(tree_map(add, scalar(1), Tree::list()), std::invalid_argument);
  CHECK_THROWS_AS(tree_map(keys, std::vector<Tree>{}), std::invalid_argument);
}

TEST_CASE("tree_map_with_path names the leaves") {
  std::string seen;
  const auto note = [&](const std::string& path, const array& x) {
    seen += path + " ";
    return x;
  };
  CHECK(text(tree_map_with_path(note, sample())) == text(sample()));
  CHECK(seen == "layers.0.weight layers.0.bias layers.2 scale ");
  seen.clear();
  tree_map_with_path(note, sample()["layers"][0], "model");
  CHECK(seen == "model.weight model.bias ");
  seen.clear();
  tree_map_with_path(
      [&](const std::string& path, const std::vector<Tree>& in) {
        seen += path + " ";
        return in[1];
      },
      {sample(), sample()}, is_dict);
  CHECK(seen == " ");  // the tree itself
}

TEST_CASE("tree_flatten and tree_unflatten") {
  CHECK(text(tree_flatten(sample())) == "layers.0.weight=1 layers.0.bias=2 layers.2=3 scale=4 ");
  CHECK(text(tree_flatten(sample(), ".model")) ==
        "model.layers.0.weight=1 model.layers.0.bias=2 model.layers.2=3 model.scale=4 ");
  CHECK(text(tree_flatten(scalar(1))) == "=1 ");
  CHECK(tree_flatten(Tree()).empty());
  CHECK(text(tree_flatten(sample()["layers"], "", is_dict)) == "0={weight:1 bias:2} 1={} 2=3 ");

  CHECK(text(tree_unflatten(tree_flatten(sample()))) == text(sample()));
  CHECK(text(tree_unflatten({{"", scalar(1)}})) == "1");
  CHECK(text(tree_unflatten({})) == "[]");
  CHECK(text(tree_unflatten({{"a.1", scalar(1)}})) == "{a:[{} 1]}");
  CHECK(text(tree_unflatten({{"a.1", scalar(1)}, {"a.b", scalar(2)}})) == "{a:{1:1 b:2}}");
  CHECK(text(tree_unflatten({{"2", scalar(1)}, {"02", scalar(2)}})) == "{2:1 02:2}");  // one index twice
  CHECK(text(tree_unflatten({{"-1", scalar(1)}})) == "{-1:1}");
  CHECK_THROWS_WITH_AS(tree_unflatten({{"a", scalar(1)}, {"a", scalar(2)}}),
                       "[tree_unflatten] two leaves have the same path", std::invalid_argument);

  const auto arrays = tree_to_map(sample());
  CHECK(arrays.size() == 4);
  CHECK(arrays.at("layers.0.bias").item<float>() == 2);
  CHECK(text(tree_from_map(arrays)) == "{layers:[{bias:2 weight:1} {} 3] scale:4}");
}

TEST_CASE("leaves of a tree, and a tree of other leaves") {
  std::vector<array> leaves = tree_leaves(sample());
  REQUIRE(leaves.size() == 4);
  for (array& leaf : leaves) leaf = leaf * 10;
  CHECK(text(tree_fill(sample(), leaves)) == "{layers:[{weight:10 bias:20} {} 30] scale:40}");
  leaves.pop_back();
  CHECK_THROWS_WITH_AS(tree_fill(sample(), leaves), "[tree_fill] 3 arrays for the 4 leaves of the tree",
                       std::invalid_argument);
}

TEST_CASE("tree_reduce goes through the leaves in order") {
  CHECK(tree_reduce([](const array& a, const array& b) { return a * 10 + b; }, sample()).item<float>() == 1234);
  CHECK(tree_reduce([](int64_t n, const array& x) { return n + static_cast<int64_t>(x.size()); }, sample(),
                    int64_t{100}) == 104);
  CHECK(tree_reduce([](int n, const Tree& node) { return n + static_cast<int>(node.size()); }, sample()["layers"], 0,
                    is_dict) == 2);
  CHECK(tree_reduce([](int n, const array&) { return n + 1; }, Tree::list(), 7) == 7);
  CHECK_THROWS_AS(tree_reduce([](const array& a, const array&) { return a; }, Tree::list()), std::invalid_argument);
}

TEST_CASE("tree_merge") {
  const Tree a = Tree::dict({{"x", scalar(1)}, {"l", Tree::list({scalar(2), Tree()})}});
  const Tree b = Tree::dict({{"y", scalar(3)}, {"l", Tree::list({Tree::dict(), scalar(4), scalar(5)})}});
  CHECK(text(tree_merge(a, b)) == "{x:1 l:[2 4 5] y:3}");
  CHECK(text(tree_merge(Tree(), a)) == text(a));
  CHECK(text(tree_merge(a, Tree::dict())) == text(a));
  CHECK(text(tree_merge(Tree(), Tree::list())) == "[]");
  CHECK(tree_merge(Tree(), Tree()).is_empty());
  CHECK_THROWS_AS(tree_merge(a, a), std::invalid_argument);
  CHECK_THROWS_AS(tree_merge(scalar(1), a), std::invalid_argument);
  CHECK_THROWS_AS(tree_merge(Tree::list(), Tree::dict()), std::invalid_argument);
  CHECK(text(tree_merge(a, a, [](const Tree& p, const Tree& q) -> Tree { return p.leaf() + q.leaf(); })) ==
        "{x:2 l:[4 -]}");
}

TEST_CASE("derivatives by trees") {
  const Tree p = Tree::dict({{"w", array({1.0f, 2.0f})}, {"layers", Tree::list({scalar(3), Tree::dict()})}});
  const auto loss = [](const Tree& t) { return sum(t["w"] * t["w"]) * t["layers"][0]; };
  const auto [value, slopes] = tree_value_and_grad(loss)(p);
  CHECK(value.item<float>() == 15);
  CHECK(slopes["w"].leaf().to_vector<float>() == std::vector<float>{6, 12});
  CHECK(text(slopes["layers"]) == "[5 {}]");
  CHECK(text(tree_grad(loss)(p)["layers"]) == "[5 {}]");
  // The second derivative of 3 w² by w, in a direction.
  const auto slope_sum = [&](const Tree& t) { return sum(tree_grad(loss)(t)["w"]); };
  CHECK(tree_grad(slope_sum)(p)["w"].leaf().to_vector<float>() == std::vector<float>{6, 6});

  const auto product = [](const std::vector<Tree>& in) { return in[0].leaf() * in[1]["a"] * in[1]["b"]; };
  const Tree second = Tree::dict({{"a", scalar(3)}, {"b", scalar(5)}});
  CHECK(text(tree_value_and_grad(product, {-1, 0})({scalar(2), second}).second[0]) == "{a:10 b:6}");
  CHECK(text(tree_value_and_grad(product, {-1, 0})({scalar(2), second}).second[1]) == "15");
  CHECK_THROWS_AS(tree_value_and_grad(product, {2})({scalar(2), second}), std::invalid_argument);
  CHECK_THROWS_AS(tree_value_and_grad(product, {0})({Tree::list(), second}), std::invalid_argument);
}

TEST_CASE("vmap and compile of functions of trees") {
  const TreeFunction f = [](const std::vector<Tree>& in) {
    return Tree::dict({{"sum", in[0]["a"] + in[0]["b"]}, {"more", Tree::list({in[0]["a"] * in[1].leaf()})}});
  };
  const Tree batch = Tree::dict({{"a", array({1.0f, 2.0f})}, {"b", array({3.0f, 4.0f})}});
  const Tree out = tree_vmap(f, {0, -1})({batch, array({1.0f, 10.0f, 100.0f})});
  CHECK(out["sum"].leaf().to_vector<float>() == std::vector<float>{4, 6});
  CHECK(out["more"][0].leaf().shape() == Shape{2, 3});
  CHECK(tree_vmap(f, {0, -1}, 0)({batch, array({1.0f, 10.0f})})["more"][0].leaf().to_vector<float>() ==
        std::vector<float>{1, 10, 2, 20});
  CHECK_THROWS_AS(tree_vmap(f, {0})({batch, scalar(1)}), std::invalid_argument);

  int traces = 0;
  const TreeFunction program = tree_compile([&](const std::vector<Tree>& in) {
    ++traces;
    return Tree::dict({{"twice", tree_map([](const array& x) { return x * 2; }, in[0])}});
  });
  for (int k = 0; k < 2; ++k) CHECK(text(program({sample()})) == "{twice:{layers:[{weight:2 bias:4} {} 6] scale:8}}");
  CHECK(traces == 1);
  CHECK(text(program({Tree::list({scalar(1)})})) == "{twice:[2]}");  // another structure
  CHECK(traces == 2);
  const TreeFunction changing =
      tree_compile([](const std::vector<Tree>& in) { return in[0].leaf().size() > 1 ? Tree::list({in[0]}) : in[0]; });
  CHECK(text(changing({scalar(1)})) == "1");
  CHECK_THROWS_AS(changing({array({1.0f, 2.0f})}), std::invalid_argument);
}
