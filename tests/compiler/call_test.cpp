// Calls in programs: operands and results in memory, several results of one call, regions that name a call, what is
// counted.
#include "graph/calls/call.h"
#include "compiler/compiled_when_run.h"
#include "compiler/support.h"
#include "graph/instances.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

HostTensor filled(const Type& type, uint64_t seed = 1) {
  graph::testing::Random r(seed);
  return graph::testing::random_tensor(r, type);
}

std::string check(const Graph& g, const std::vector<HostTensor>& inputs, const std::vector<Strides>& strides = {}) {
  auto expected = evaluate_reference(g, inputs);
  auto got = compile_and_run(g, inputs, strides);
  for (size_t k = 0; k < expected.size(); ++k)
    if (auto error = difference(got.outputs[k], expected[k], 4, 1e-6); !error.empty())
      return error + "\n" + got.program->print("plan");
  return {};
}

const Stats& null_stats(const Graph& g, const Policy& policy = {}) {
  static std::vector<std::shared_ptr<const Program>> kept;
  kept.push_back(build({g, {}, {}}, target::null(), policy));
  return kept.back()->stats();
}

}  // namespace

TEST_CASE("a call is one library call, whichever of its results are read") {
  Value x = parameter({{16, 8}, float32});
  Sorted s = sort(x, 1), again = sort(x, 1);
  for (const Values& outputs :
       {Values{s.values}, Values{s.order}, Values{s.values, s.order}, Values{s.values, again.order}}) {
    const Stats& stats = null_stats({{x}, outputs});
    CHECK(stats.library_calls == 1);
    CHECK(stats.count() == 1);
    CHECK(check({{x}, outputs}, {filled(x.type())}) == "");
  }
  CHECK(null_stats({{x}, {s.values, sort(x, 0).values}}).library_calls == 2);
}

TEST_CASE("operands of a call are computed and laid out before it, results are read as any other array") {
  Value x = parameter({{6, 5}, float32}), y = parameter({{5, 6}, float32});
  Value product = exp(x) * permute(y, {1, 0});
  Graph g{{x, y},
          {sum(sort(product, 0).values * 2, {1}), sort(permute(x, {1, 0}), 1).order, sort(reshape(x, {30}), 0).values}};
  CHECK(check(g, {filled(x.type()), filled(y.type(), 2)}) == "");
  CHECK(check(g, {filled(x.type()), filled(y.type(), 2)}, {{1, 6}, {13, 2}}) == "");
  CHECK(null_stats({{x, y}, {sort(product, 0).values}}).count() == 2);
  CHECK(null_stats({{x}, {sort(reshape(x, {30}), 0).values}}).count() == 1);
}

TEST_CASE("a call reads a product although others would like it transposed") {
  Value a = parameter({{7, 3}, float32}), b = parameter({{3, 9}, float32});
  Value c = matmul(a, b);
  Graph g{{a, b}, {permute(c, {1, 0}) + 1, sort(c, 1).values}};
  CHECK(check(g, {filled(a.type()), filled(b.type(), 2)}) == "");
}

TEST_CASE("calls of constants, of calls, and of nothing") {
  Value x = parameter({{4, 0}, float32}), y = parameter({{5}, int32});
  CHECK(check({{x}, {sort(x, 1).values, sort(x, 0).order}}, {filled(x.type())}) == "");
  CHECK(check({{y},
               {sort(sort(y, 0).order, 0).order, sort(iota({3, 4}, 1, int32), 0).order,
                sort(full({3}, float32, Number::of_int(2)), 0).values}},
              {filled(y.type())}) == "");
}

TEST_CASE("results of a call take over the memory of updated state") {
  Value x = parameter({{40}, float32}), state = parameter({{40}, float32});
  Source source{{{x, state}, {sort(x, 0).values}}, {}, {{0, 1}}};
  HostTensor t = filled(x.type());
  std::vector<graph::Storage> storages{to_storage(t), to_storage(filled(x.type(), 3))};
  auto program = build(source, target::cpu());
  CHECK(program->stats().count() == 1);
  auto out = program->run(storages);
  CHECK(out[0].buffer == storages[1].buffer);
  CHECK(difference(from_storage(out[0], x.type()),
                   evaluate_reference({{x}, {sort(x, 0).values}}, std::vector<HostTensor>{t})[0], 0) == "");
}

namespace {

Value doubled(const Value& x, const std::string& routine) {
  auto region = std::make_shared<Composite>();
  region->name = "doubled";
  region->body = [](std::span<const Value> in) { return Values{exp(in[0]) + exp(in[0])}; };
  region->call = routine;
  region->integers = {3};
  return composite(region, {x})[0];
}

/// Offers one routine, which fills its result with 7.
class OneRoutine : public target::Target {
 public:
  OneRoutine() { machine_ = target::cpu().machine(); }
  std::string fingerprint() const override { return "one routine"; }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    return weft::test::compile_when_run(kernels);
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc&) const override { return nullptr; }
  std::shared_ptr<const target::LibraryCall> call(const kernel::CallDesc& desc) const override {
    if (desc.name != "sevens" || desc.integers != std::vector<int64_t>{3}) return nullptr;
    struct Sevens : target::LibraryCall {
      std::string name() const override { return "sevens"; }
      void run(std::span<void* const> operands) const override {
        std::fill_n(static_cast<float*>(operands[1]), 6, 7.0f);
      }
    };
    return std::make_shared<Sevens>();
  }
  target::CompileStats stats() const override { return {}; }
};

}  // namespace

TEST_CASE("a region that names a routine is answered by it where the target has it, else by its body") {
  Value x = parameter({{2, 3}, float32});
  OneRoutine device;
  HostTensor t = filled(x.type());
  const auto run = [&](const Graph& g, const Policy& policy = {}) {
    auto program = build({g, {}, {}}, device, policy);
    std::vector<graph::Storage> storages{to_storage(t)};
    return std::pair(from_storage(program->run(storages)[0], x.type()), program->stats().library_calls);
  };
  auto [sevens, calls] = run({{x}, {doubled(x, "sevens") + 1}});
  CHECK(calls == 1);
  for (const Number& n : sevens.data) CHECK(n.real() == 8);
  for (const auto& [graph, policy] : {std::pair(Graph{{x}, {doubled(x, "other")}}, Policy{}),
                                      std::pair(Graph{{x}, {doubled(x, "sevens")}}, Policy{false, true})}) {
    auto [values, none] = run(graph, policy);
    CHECK(none == 0);
    CHECK(difference(values, evaluate_reference(graph, std::vector<HostTensor>{t})[0], 4) == "");
  }
  CHECK(null_stats({{x}, {doubled(x, "sevens")}}).library_calls == 1);
  CHECK(null_stats({{x}, {doubled(x, "")}}).library_calls == 0);
}

TEST_CASE("a call that no routine answers is an error with its name") {
  OneRoutine device;
  Value x = parameter({{2, 3}, float32});
  CHECK_THROWS_WITH_AS(build({{{x}, {sort(x, 1).values}}, {}, {}}, device),
                       doctest::Contains("[sort] this device has no routine"), std::invalid_argument);
}

TEST_CASE("mistakes are told when the node is made") {
  Value x = parameter({{2, 3}, float32});
  CHECK_THROWS_WITH_AS(call("sorted", {x}, {0}), doctest::Contains("no routine named 'sorted'"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(call("sort", {x, x}, {0}), doctest::Contains("[sort]"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(call("sort", {x}), doctest::Contains("reads 1 integers"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(call("sort", {x}, {2}), doctest::Contains("axis 2"), std::invalid_argument);
}
