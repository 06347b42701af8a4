// Random graphs: what fusion makes of them computes what their operators compute one by one, in no more launches.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "compiler/program.h"
#include "device.h"
#include "target/target.h"
#include "thinning.h"
#include "tools/weft/bench/workloads/random_graph.h"
#include "weft/compile.h"
#include "weft/ops.h"

using namespace weft;
using namespace weft::tool;

namespace {

const int graphs = static_cast<int>(weft::test::some_of(2000));
const int computed = graphs / 4;  // compiling one takes thirty times as long as counting its launches
const RandomGraphSizes small{.lengths = {4, 9, 16}, .least_operators = 4, .most_operators = 12};

ArrayFunction compiled(const RandomGraph& graph) {
  return compile([&graph](const std::vector<array>& in) { return apply(graph, in); }, CompileOptions{});
}

/// Launches, library calls and copies of the graph as one program, on the target that is set.
int count_of(const RandomGraph& graph) {
  const compiler::BuildRecord record;
  compiled(graph)(random_inputs(graph));
  return record.programs().empty() ? 0 : record.programs().back()->stats().count();
}

/// The same of each operator as a program of its own, added up; `known` keeps what has been counted.
int count_one_by_one(const RandomGraph& graph, std::map<std::string, int>& known) {
  int sum = 0;
  for (const RandomNode& node : graph.nodes) {
    if (node.inputs.empty()) continue;
    RandomGraph alone{"alone", {}, {static_cast<int>(node.inputs.size())}};
    for (const int i : node.inputs) {
      const RandomNode& from = graph.nodes[static_cast<size_t>(i)];
      const bool indices = from.op == "indices";
      alone.nodes.push_back(
          {indices ? "indices" : "input", {}, from.shape, indices ? from.attributes : std::vector<int>{}});
    }
    alone.nodes.push_back(node);
    for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i)
      alone.nodes.back().inputs[static_cast<size_t>(i)] = i;
    const auto [found, added] = known.try_emplace(to_json(alone), 0);
    if (added) found->second = count_of(alone);
    sum += found->second;
  }
  return sum;
}

std::vector<array> in_float64(std::vector<array> arrays) {
  for (array& a : arrays)
    if (a.dtype() == float32) a = astype(a, float64);
  return arrays;
}

double largest(const array& a) { return static_cast<double>(max(abs(a)).item<double>()); }

/// Returns the graph with the conditions of its "where" as outputs behind its own.
RandomGraph with_conditions(RandomGraph graph) {
  for (const RandomNode& node : graph.nodes)
    if (node.op == "where") graph.outputs.push_back(node.inputs[0]);
  return graph;
}

/// Whether a condition of "where" is so close to its bound that rounding decides.
bool rounding_decides(const std::vector<array>& values, size_t results) {
  for (size_t i = results; i < values.size(); ++i)
    if (min(abs(values[i] - array(static_cast<double>(where_bound), float64))).item<double>() < 1e-4) return true;
  return false;
}

/// Sets the target of compiled functions, and then the one from before.
class TargetFor {
 public:
  explicit TargetFor(target::Target& target) : before_(compiler::default_target()) {
    compiler::set_default_target(target);
  }
  ~TargetFor() { compiler::set_default_target(before_); }
  TargetFor(const TargetFor&) = delete;
  TargetFor& operator=(const TargetFor&) = delete;

 private:
  target::Target& before_;
};

}  // namespace

TEST_CASE("random graphs: one program has no more launches than its operators one by one") {
  const TargetFor null(target::null());
  std::map<std::string, int> known;
  int fused = 0, unfused = 0;
  for (int i = 0; i < graphs; ++i) {
    const RandomGraph graph = random_graph(1, i, small);
    CAPTURE(to_json(graph));
    const int count = count_of(graph), bound = count_one_by_one(graph, known);
    CHECK(count <= bound);
    fused += count, unfused += bound;
  }
  CHECK(fused < 0.6 * unfused);
}

TEST_CASE("random graphs: one program computes what its operators compute one by one, in float64 and float32") {
  int compared = 0;
  for (int i = 0; i < computed; ++i) {
    const RandomGraph graph = random_graph(2, i, small);
    CAPTURE(to_json(graph));
    const std::vector<array> in = random_inputs(graph);
    const std::vector<array> exact = apply(with_conditions(graph), in_float64(in), true);
    if (rounding_decides(exact, graph.outputs.size())) continue;
    const std::vector<array> fused = compiled(graph)(in), unfused = apply(graph, in, true);
    for (size_t k = 0; k < fused.size(); ++k) {
      CAPTURE(k);
      const double scale = 1 + largest(exact[k]);
      const double error = largest(astype(fused[k], float64) - exact[k]),
                   usual = largest(astype(unfused[k], float64) - exact[k]);
      CHECK(error <= 2e-6 * scale + 8 * usual);
    }
    ++compared;
  }
  CHECK(compared > 0.9 * computed);
}

TEST_CASE("random graphs: graphs are functions of seed and index and hold every operator") {
  CHECK(to_json(random_graph(7, 3, small)) == to_json(random_graph(7, 3, small)));
  CHECK(to_json(random_graph(7, 3, small)) != to_json(random_graph(7, 4, small)));
  CHECK(to_json(random_graph(7, 3, small)) != to_json(random_graph(8, 3, small)));
  std::map<std::string, int> met;
  for (int i = 0; i < 200; ++i)
    for (const RandomNode& node : random_graph(7, i, small).nodes) ++met[node.op];
  for (const std::string& name : random_operators()) {
    CAPTURE(name);
    CHECK(met[name] > 0);
  }
}
