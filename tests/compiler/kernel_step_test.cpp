// Kernels of users in programs: steps of their own among the compiler's, in-out arrays in place or copied, what is
// counted and named.
#include "compiler/null_machine.h"
#include "compiler/support.h"
#include "graph/instances.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::graph::testing;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

HostTensor filled(const graph::Type& type, uint64_t seed = 1) {
  graph::testing::Random r(seed);
  return random_tensor(r, type);
}

std::string check(const Graph& g, const std::vector<Strides>& strides = {}) {
  std::vector<HostTensor> inputs;
  for (const Value& v : g.inputs) inputs.push_back(filled(v.type(), inputs.size() + 1));
  const auto expected = evaluate_reference(g, inputs);
  const auto got = compile_and_run(g, inputs, strides);
  for (size_t k = 0; k < expected.size(); ++k)
    if (auto error = difference(got.outputs[k], expected[k], 4, 1e-6); !error.empty())
      return error + "\n" + got.program->print("plan");
  return {};
}

const Program& built(const Graph& g, const std::vector<Update>& updates = {}) {
  static std::vector<std::shared_ptr<const Program>> kept;
  kept.push_back(build({g, {}, updates}, target::null(), Policy{}));
  return *kept.back();
}

struct Counts {
  int launches, copies;
  bool operator==(const Counts&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Counts& c) {
  return out << c.launches << " launches, " << c.copies << " copies";
}
Counts counts(const Graph& g, const std::vector<Update>& updates = {}) {
  const Stats& stats = built(g, updates).stats();
  CHECK(stats.library_calls == 0);
  return {stats.launches, stats.copies};
}

const graph::Type list{{21}, int32};

Value affine(const Value& x, const Value& b, double a = 3) {
  return kernel_call(affine_program(x.shape(), x.dtype(), a), {x, b})[0];
}
Values accumulate(const Value& state, const Value& x) {
  return kernel_call(accumulate_program(x.shape(), x.dtype()), {state, x});
}

}  // namespace

TEST_CASE("a kernel is one launch by its name") {
  const Value x = parameter({{40, 3}, float32}), b = parameter({{}, float32});
  const Graph g{{x, b}, {affine(x, b)}};
  CHECK(counts(g) == Counts{1, 0});
  const Program& program = built(g);
  REQUIRE(program.steps().size() == 1);
  const StepInfo& step = program.steps()[0];
  CHECK(step.name == "affine");
  CHECK(std::string(step.kind) == "kernel");
  CHECK(step.what == "kernel affine -> f32(40,3)");
  CHECK(step.bytes == 4 * (120 + 120 + 1));
  CHECK(step.flops >= 2 * 120);
  CHECK(program.print("plan").find("affine") != std::string::npos);
  CHECK(check(g) == "");
}

TEST_CASE("what a kernel reads is computed before it, what it gives is read as any other array") {
  const Value x = parameter({{6, 5}, float32}), y = parameter({{5, 6}, float32}), b = parameter({{}, float32});
  const Value product = exp(x) * permute(y, {1, 0});
  const Graph g{{x, y, b}, {sum(affine(product, b * 2) * 2, {1}), affine(reshape(x, {30}), b)}};
  CHECK(check(g) == "");
  CHECK(check(g, {{1, 6}, {13, 2}, {}}) == "");
  CHECK(counts({{x, b}, {exp(affine(x + 1, b))}}) == Counts{1, 0});  // both move into the kernel
  CHECK(counts({{x, b}, {affine(reshape(x, {30}), b)}}) == Counts{1, 0});
  const Value none = parameter({{0, 4}, float32});
  CHECK(check({{none, b}, {affine(none, b), exp(b)}}) == "");
  CHECK(check({{b}, {affine(full({3, 4}, float32, Number::of_real(2)), b)}}) == "");
}

TEST_CASE("results that nobody reads") {
  const Value x = parameter(list), state = parameter(list);
  const Values y = accumulate(state, x);
  CHECK(check({{state, x}, {y[0], y[1]}}) == "");
  CHECK(check({{state, x}, {y[0]}}) == "");
  CHECK(check({{state, x}, {y[1]}}) == "");
  CHECK(counts({{state, x}, {y[0]}}) == Counts{1, 1});
  CHECK(counts({{state, x}, {y[1]}}) == Counts{1, 1});  // the kernel still writes to state
}

TEST_CASE("an in-out array lies in its input's memory where that is free") {
  const Value x = parameter(list), state = parameter(list);
  const Value computed = state * state;
  CHECK(counts({{state, x}, {accumulate(computed, x)[0]}}) == Counts{2, 0});
  CHECK(counts({{state, x}, {accumulate(computed, x)[0] * x}}) == Counts{3, 0});
  CHECK(counts({{state, x}, {accumulate(computed, x)[0], computed}}) == Counts{2, 1});
  CHECK(counts({{state, x}, {accumulate(computed, x)[0], computed * x}}) == Counts{2, 0});
  CHECK(counts({{state, x}, {accumulate(state, x)[0]}}) == Counts{1, 1});
  CHECK(counts({{state, x}, {accumulate(computed, computed)[0]}}) == Counts{2, 1});  // it is read beside
  for (const Values& outputs :
       {Values{accumulate(computed, x)[0]}, Values{accumulate(computed, x)[0] * x},
        Values{accumulate(computed, x)[0], computed}, Values{accumulate(computed, x)[0], computed * x},
        Values{accumulate(computed, computed)[0], x}, Values{accumulate(state, state)[0]}})
    CHECK(check({{state, x}, outputs}) == "");
  // One after another, in one buffer.
  Value chain = state;
  for (int k = 0; k < 5; ++k) chain = accumulate(chain, x)[0];
  CHECK(counts({{state, x}, {chain}}) == Counts{5, 1});
  CHECK(counts({{state, x}, {chain * x}}) == Counts{6, 1});
  CHECK(check({{state, x}, {chain}}) == "");
  CHECK(check({{state, x}, {chain * x}}) == "");
  CHECK(check({{state, x}, {accumulate(reshape(state, {3, 7}), reshape(x, {3, 7}))[0]}}) == "");
}

TEST_CASE("updates of state through in-out arrays are made in place") {
  const Value x = parameter(list), state = parameter(list);
  const Value next = accumulate(state, x)[0];
  CHECK(counts({{state, x}, {next}}, {{0, 0}}) == Counts{1, 0});
  CHECK(counts({{state, x}, {next, state}}, {{0, 0}}).copies >= 1);
  const HostTensor before = filled(list), by = filled(list, 2);
  for (const Values& outputs : {Values{next}, Values{next, state}, Values{next, state * x},
                                Values{accumulate(next, x)[0]}, Values{accumulate(state, state)[0]}}) {
    const Graph g{{state, x}, outputs};
    const auto expected = evaluate_reference(g, std::vector{before, by});
    std::vector<graph::Storage> storages{to_storage(before), to_storage(by)};
    const auto program = build({g, {}, {{0, 0}}}, target::cpu());
    const auto out = program->run(storages);
    CHECK(out[0].buffer == storages[0].buffer);
    for (size_t k = 0; k < out.size(); ++k)
      CHECK_MESSAGE(difference(from_storage(out[k], list), expected[k], 0) == "", program->print("plan"));
  }
}

TEST_CASE("equal kernels on independent arrays are one launch") {
  Values inputs, outputs;
  for (int k = 0; k < 4; ++k) {
    inputs.push_back(parameter(list)), inputs.push_back(parameter({{}, int32}));
    outputs.push_back(affine(inputs[inputs.size() - 2], inputs.back()));
  }
  CHECK(counts({inputs, outputs}) == Counts{1, 0});
  CHECK(check({inputs, outputs}) == "");
  const Value a = affine(inputs[0], inputs[1], 2), b = affine(inputs[0], inputs[1], 3);
  CHECK(counts({{inputs[0], inputs[1]}, {a, b}}) == Counts{2, 0});
  // Equal calls are one.
  CHECK(counts({{inputs[0], inputs[1]}, {affine(inputs[0], inputs[1]), affine(inputs[0], inputs[1])}}) == Counts{1, 0});
}

TEST_CASE("kernels in control flow") {
  const Value x = parameter(list), steps = parameter({{6, 21}, int32});
  const Graph step = graph_over({list, list}, [](std::span<const Value> in) {
    const Values y = accumulate(in[0], in[1]);
    return Values{y[0], y[1]};
  });
  CHECK(check({{x, steps}, scan({}, {x}, {steps}, step, 6, false)}) == "");
}
