// What a device of many threads makes of arrays that are read across and of rows: tiles that are turned as a whole, rows of any width. The kernels are tile IR like any
// other: the CPU's code generator runs them, and a GPU where tests have one.
#include "compiler/many_threads.h"
#include "compiler/support.h"
#include "graph/composites.h"
#include "graph/instances.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

HostTensor random_values(graph::testing::Random& r, const graph::Type& type) {
  HostTensor t{type, {}};
  for (int64_t k = num_elements(type.shape); k > 0; --k) t.data.push_back(kernel::round_to(Number::of_real(static_cast<double>(r.below(4001)) / 1000.0 - 2), type.dtype));
  return t;
}

std::vector<HostTensor> run_on(target::Target& target, const Graph& g, const std::vector<HostTensor>& inputs) {
  const auto program = build({g, {}, {}}, target);
  std::vector<graph::Storage> storages;
  for (const HostTensor& t : inputs) storages.push_back(to_storage(t));
  const auto results = program->run(storages);
  std::vector<HostTensor> outputs;
  for (size_t k = 0; k < results.size(); ++k) outputs.push_back(from_storage(results[k], g.outputs[k].type()));
  return outputs;
}

}  // namespace

TEST_CASE("tiles that are turned as a whole, at sizes that no tile divides") {
  weft::test::ManyThreads many;
  graph::testing::Random r(5);
  struct Case {
    Shape shape;
    Dtype dtype;
  };
  for (const Case& c : {Case{{3, 200, 160}, float32}, Case{{1, 1000, 1010}, bfloat16}, Case{{1, 1024, 1090}, bfloat16}, Case{{2, 100, 72}, float64}, Case{{1, 96, 80}, int8}}) {
    CAPTURE(to_string(c.shape));
    const Shape turned{c.shape[0], c.shape[2], c.shape[1]};
    const Value x = parameter({c.shape, c.dtype}), y = parameter({turned, c.dtype}), z = parameter({{c.shape[2], 1}, c.dtype});
    // Across, along, and one number a row.
    const Graph g{{x, y, z}, {permute(x, {0, 2, 1}), permute(x, {0, 2, 1}) + y * graph::broadcast(z, turned)}};
    std::vector<HostTensor> inputs;
    for (const Value& v : g.inputs) inputs.push_back(random_values(r, v.type()));
    const auto expected = evaluate_reference(g, inputs);
    for (target::Target* target : std::initializer_list<target::Target*>{&many, &weft::test::target_under_test()}) {
      const auto got = run_on(*target, g, inputs);
      CHECK(difference(got[0], expected[0], 0) == "");
      CHECK(difference(got[1], expected[1], 2, is_low_float(c.dtype) ? 0.03 : 0) == "");
    }
  }
}
