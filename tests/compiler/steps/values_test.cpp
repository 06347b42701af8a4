// Steps of values: kernels have the form that the steps say, with the same bits; what a group cannot have is refused.
#include "compiler/schedule/steps/values.h"

#include <stdexcept>

#include "compiler/lower/interpreted.h"
#include "compiler/null_machine.h"
#include "compiler/random_program.h"
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/derive/derive.h"
#include "thinning.h"

using namespace weft;
using namespace weft::compiler;
using namespace weft::compiler::testing;
using graph::Value;
using graph::Values;

namespace {

Value by(const Value& v, const char* steps) { return graph::scheduled(v, schedule::parse(steps)); }

std::shared_ptr<const Program> built(const Values& inputs, const Values& outputs, target::Target& target) {
  Policy policy;
  policy.libraries = false;
  return build({{inputs, outputs}, {}, {}}, target, policy);
}

/// Returns the results' bytes for inputs of fixed numbers.
std::vector<std::vector<uint8_t>> bits(const Values& inputs, const Values& outputs, target::Target& target) {
  graph::testing::Random r(5);
  std::vector<graph::Storage> storages;
  for (const Value& v : inputs) storages.push_back(to_storage(graph::testing::random_tensor(r, v.type(), {})));
  std::vector<std::vector<uint8_t>> out;
  const std::vector<graph::Storage> results = built(inputs, outputs, target)->run(storages);
  for (size_t k = 0; k < results.size(); ++k) {
    const auto* data = static_cast<const uint8_t*>(results[k].buffer->data());
    out.emplace_back(data, data + num_elements(outputs[k].shape()) * outputs[k].dtype().size());
  }
  return out;
}

std::string why(const Values& inputs, const Values& outputs, target::Target& target = target::cpu()) {
  try {
    built(inputs, outputs, target);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

/// Returns a program's schedules as `weft explain` prints them.
std::string schedules(const Values& inputs, const Values& outputs, target::Target& target) {
  const BuildRecord record(true);
  return built(inputs, outputs, target)->print("schedules");
}

}  // namespace

TEST_CASE("a map by steps has the kernel that they say, and the same bits") {
  const Value x = graph::parameter({{48, 1200}, float32}), y = graph::parameter({{48, 1200}, float32}, 1);
  const Value z = graph::gelu_tanh(x) * y;
  weft::test::SimtTarget blocks(1);
  for (target::Target* target : {&target::cpu(), static_cast<target::Target*>(&blocks)})
    for (const char* steps : {"split(d1, 16, {block, lane}); bind(block, program); vectorize(lane)",
                              "split(d1, 16, {b, lane}); bind(b, program); vectorize(lane); split(d0, 12, {c, t}); "
                              "bind(c, program)",
                              "reorder({d1, d0}); fuse({d1, d0}, all); split(all, 32, {step, lane}); vectorize(lane)",
                              "fuse({d0, d1}, all); split(all, 64, {b, r}); bind(b, program); split(r, 16, {s, l}); "
                              "vectorize(l); any_length(); guard()"}) {
      CAPTURE(steps);
      CHECK(bits({x, y}, {by(z, steps)}, *target) == bits({x, y}, {z}, *target));
      const std::string text = schedules({x, y}, {by(z, steps)}, *target);
      CHECK_MESSAGE(text.find("d0 (48), d1 (1200)") != std::string::npos, text);
    }
  CHECK(built({x, y}, {by(z, "split(d1, 16, {block, lane}); bind(block, program); vectorize(lane)")}, target::cpu())
            ->print("kernels")
            .find("f32[16]") != std::string::npos);
}

TEST_CASE("steps that explain prints, given back, are the same kernels") {
  const Value x = graph::parameter({{48, 300}, float32});
  weft::test::SimtTarget blocks(1), cluster(4, 8);
  for (target::Target* target :
       {&target::cpu(), static_cast<target::Target*>(&blocks), static_cast<target::Target*>(&cluster)})
    for (const Value& y : {graph::softmax(x, {1}), graph::sum(x, {0}), exp(x) * x}) {
      const std::string text = schedules({x}, {y}, *target);
      const size_t at = text.rfind("): ");
      REQUIRE_MESSAGE(at != std::string::npos, text);
      const std::string steps = text.substr(at + 3, text.size() - at - 4);
      CAPTURE(steps);
      const Value again = by(y, steps.c_str());
      CHECK(built({x}, {again}, *target)->print("kernels") == built({x}, {y}, *target)->print("kernels"));
    }
}

TEST_CASE("a row by steps sums by another width, and says so by its kernel alone") {
  const Value x = graph::parameter({{48, 300}, float32});
  const Value p = graph::softmax(x, {1});
  const Value q = by(p, "split(r0, 16, {step, lane}); vectorize(lane)");
  const std::string text = schedules({x}, {q}, target::cpu());
  CHECK_MESSAGE(text.find("split(r0, 16, {step, lane})") != std::string::npos, text);
  CHECK(built({x}, {q}, target::cpu())->stats().launches == built({x}, {p}, target::cpu())->stats().launches);
}

TEST_CASE("compute_root stores a value, inline and compute_at do not, with the same bits") {
  const Value x = graph::parameter({{64, 256}, float32}), y = graph::parameter({{64, 256}, float32}, 1);
  const auto launches = [&](const Value& v) { return built({x, y}, {v}, target::cpu())->stats().launches; };
  const Value a = exp(x) * y;
  CHECK(launches(tanh(a)) == 1);
  CHECK(launches(tanh(by(a, "compute_root()"))) == 2);
  CHECK(bits({x, y}, {tanh(by(a, "compute_root()"))}, target::cpu()) == bits({x, y}, {tanh(a)}, target::cpu()));

  // What several kernels would compute from many arrays is stored, unless steps say otherwise.
  const Value z = graph::parameter({{64, 256}, float32}, 2);
  const Value many = x * y + z;
  const auto readers = [&](const Value& v) {
    return Values{graph::sum(v, {0}), graph::sum(graph::permute(v, {1, 0}) * graph::permute(x, {1, 0}), {1, 0}),
                  graph::cumulative(kernel::Reducer::sum, v, 1)};
  };
  const auto stored = [&](const Value& v) { return built({x, y, z}, readers(v), target::cpu())->stats().arena_bytes; };
  CHECK(bits({x, y, z}, readers(by(many, "inline()")), target::cpu()) == bits({x, y, z}, readers(many), target::cpu()));
  CHECK(stored(many) == 64 * 256 * 4);
  CHECK(stored(by(many, "compute_root()")) == stored(many));
  CHECK(stored(by(many, "inline()")) == 0);

  // Steps of loops are those of the value's own kernel, which readers are not in.
  CHECK(launches(tanh(by(a, "split(d1, 16, {b, lane}); bind(b, program); vectorize(lane)"))) == 2);

  const Value m = graph::reduce(kernel::Reducer::max, x, {1}, true);
  const Value centred = by(x - graph::broadcast(by(m, "compute_at(out)"), {64, 256}), "name(out)");
  CHECK(launches(centred) == 1);
}

TEST_CASE("split_reduce changes the tree of a sum as it says") {
  const Value x = graph::parameter({{8, 96}, float32});
  const auto tree = [&](int64_t parts) {
    return graph::sum(graph::sum(graph::reshape(x, {8, parts, 96 / parts}), {2}), {1});
  };
  for (const int64_t parts : {2, 4, 8}) {
    const std::string step = "split_reduce(r0, " + std::to_string(parts) + ")";
    const Value split = by(graph::sum(x, {1}), step.c_str());
    CHECK(bits({x}, {split}, target::cpu()) == bits({x}, {tree(parts)}, target::cpu()));
    CHECK(built({x}, {split}, target::cpu())->print("graph").find("f32(8," + std::to_string(parts) + ")") !=
          std::string::npos);
    CHECK(bits({x}, {by(graph::mean(x, {1}), step.c_str())}, target::cpu()).size() == 1);
  }
  CHECK(why({x}, {by(graph::sum(x, {1}), "split_reduce(r0, 7)")}) ==
        "[schedule] split_reduce(r0, 7): 7 parts do not divide the 96 elements of the axis: give a divisor of them");
  CHECK(why({x}, {by(graph::sum(x, {1}), "split_reduce(r1, 2)")}) ==
        "[schedule] split_reduce(r1, 2): there is no axis r1: the reduced axes are r0 (96)");
  CHECK(why({x}, {by(exp(x), "split_reduce(r0, 2)")}) ==
        "[schedule] split_reduce(r0, 2): the value is made by no reduction");
}

TEST_CASE("online_softmax joins the passes of a softmax on a CPU too, and is refused elsewhere") {
  const Value x = graph::parameter({{48, 300}, float32});
  const Value p = graph::softmax(x, {1});
  const auto text = [&](const Value& v) { return built({x}, {v}, target::cpu())->print("graph"); };
  CHECK(text(p).find("logsumexp") == std::string::npos);
  CHECK(text(by(p, "online_softmax(on)")).find("logsumexp") != std::string::npos);
  CHECK(text(by(p, "online_softmax(off)")).find("logsumexp") == std::string::npos);
  CHECK(
      why({x}, {by(exp(x), "online_softmax(on)")}) ==
      "[schedule] online_softmax(on): the value is made of no softmax: of no sum of exp(x - max x), nor of attention");
}

TEST_CASE("what a kernel cannot have is refused when it is compiled, with its axes and the reason") {
  const Value x = graph::parameter({{48, 300}, float32});
  const Value p = graph::softmax(x, {1}), s = graph::sum(x, {0});
  CHECK(why({x}, {by(p, "split(r0, 60, {step, lane}); vectorize(lane)")}) ==
        "[schedule] split(r0, 60, {step, lane}); vectorize(lane): tiles are powers of two; the steps give "
        "row;programs=0:grid48;lanes=1:serial5,lanes60 from the axes d0 (48), r0 (300)");
  CHECK(why({x}, {by(p, "split(r0, 64, {c, r}); bind(c, cluster); vectorize(r)")})
            .find("the machine has no such "
                  "cluster") == std::string::npos);
  CHECK(why({x}, {by(p, "split(r0, 128, {c, r}); bind(c, cluster); split(r, 64, {s, l}); vectorize(l)")}) != "");
  CHECK(why({x}, {by(p, "warps(4)")}) ==
        "[schedule] warps(4): the value is computed by a kernel of rows, which copies and launches as the compiler "
        "chooses: the step is one of products, attention and users' kernels");
  CHECK(why({x}, {by(graph::cumulative(kernel::Reducer::sum, x, 1), "vectorize(d1)")}).find("cumulative") !=
        std::string::npos);
  CHECK(why({x}, {by(s, "inline()") + 1.0f}) ==
        "[schedule] inline(): reduce has a result of its own, which is stored: compute_at joins its kernel to another "
        "one's");
  CHECK(why({x}, {by(x, "compute_root()")}) == "[schedule] compute_root(): the value is an input, which is in memory");
  CHECK(why({x}, {by(exp(x), "inline()")}) ==
        "[schedule] inline(): the value is stored: an output, an operand of a product or of a routine, or read by a "
        "gather");
  CHECK(why({x}, {tanh(by(exp(x), "compute_at(nobody)"))}) ==
        "[schedule] compute_at(nobody): no value is named nobody: name one");
  CHECK(why({x}, {by(by(exp(x), "compute_root(); inline()"), "name(a)")}) ==
        "[schedule] inline(): compute_root() says already where the value is computed");
  CHECK(why({x}, {by(exp(x), "name(a)"), by(tanh(x), "name(a)"), tanh(by(x + x, "compute_at(a)"))}) ==
        "[schedule] compute_at(a): two values have this name: choose another one");
}

TEST_CASE("derivatives and batches of scheduled values") {
  const Value x = graph::parameter({{48, 300}, float32});
  const auto f = [&](bool scheduled, const Value& v) {
    const Value y = exp(v);
    return scheduled ? by(y, "split(d1, 16, {b, lane}); bind(b, program); vectorize(lane)") : y;
  };
  CHECK(bits({x}, {f(true, x)}, target::cpu()) == bits({x}, {f(false, x)}, target::cpu()));
}

TEST_CASE("random programs whose values are scheduled at random compute the same") {
  constexpr int64_t bytes = 1 << 18;
  InterpretedMachine avx2(target::stated_machine("avx2"), bytes),
      clusters(weft::test::SimtTarget(8, 16).machine(), bytes);
  int placed = 0, refused = 0;
  for (int seed = 0; seed < weft::test::some_of(300); ++seed) {
    CAPTURE(seed);
    RandomProgram p = random_program(static_cast<uint64_t>(seed));
    std::vector<graph::Storage> storages;
    for (size_t k = 0; k < p.inputs.size(); ++k)
      storages.push_back(to_storage(p.inputs[k], p.source.layouts.empty() ? Strides{} : p.source.layouts[k].strides));
    // The values themselves are replaced, so that what reads them reads the scheduled ones.
    const auto nodes = graph::topological(p.source.graph.outputs);
    Values from, to;
    for (size_t k = 0; k < nodes.size(); ++k)
      if (!nodes[k]->inputs().empty() && nodes[k]->outputs() == 1 && (seed + k) % 3 == 0) from.push_back({nodes[k], 0});
    if (from.empty()) continue;
    const Value chosen = from[static_cast<size_t>(seed) % from.size()];
    const Value scheduled = by(chosen, seed % 2 ? "compute_root()" : "inline()");
    Source changed = p.source;
    changed.graph.outputs = graph::substitute(p.source.graph.outputs, std::vector{chosen}, std::vector{scheduled});
    target::Target& target = seed % 4 < 2 ? static_cast<target::Target&>(avx2) : clusters;
    std::vector<HostTensor> got;
    try {
      const auto results = build(changed, target)->run(storages);
      for (size_t k = 0; k < results.size(); ++k)
        got.push_back(from_storage(results[k], p.source.graph.outputs[k].type()));
      ++placed;
    } catch (const std::invalid_argument& e) {
      CHECK(std::string(e.what()).starts_with("[schedule] "));
      ++refused;
      continue;
    }
    for (size_t k = 0; k < got.size(); ++k) CHECK(outside(got[k], p.expected(p.source.graph.outputs[k])) == "");
  }
  CHECK(placed > 2 * refused / 3);
  MESSAGE("placed ", placed, ", refused ", refused);
}
