// Steps of products and of attention: tiles, staging and launching; which of them a machine refuses.
#include <stdexcept>

#include "compiler/lower/interpreted.h"
#include "compiler/null_machine.h"
#include "compiler/schedule/steps/product.h"
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/instances.h"
#include "graph/regions/composites.h"

using namespace weft;
using namespace weft::compiler;
using namespace weft::compiler::testing;
using graph::Value;
using graph::Values;

namespace {

Value by(const Value& v, const char* steps) { return graph::scheduled(v, schedule::parse(steps)); }

std::shared_ptr<const Program> built(const Values& inputs, const Values& outputs, target::Target& target,
                                     bool libraries = false) {
  Policy policy;
  policy.libraries = libraries;
  const BuildRecord record(true);
  return build({{inputs, outputs}, {}, {}}, target, policy);
}

std::string why(const Values& inputs, const Values& outputs, target::Target& target) {
  try {
    built(inputs, outputs, target);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// A machine whose products are tiled, and interpreted.
target::Machine tiled_machine() {
  target::Machine m = target::stated_machine("NVIDIA H200");
  return m;
}

const Value a = graph::parameter({{512, 384}, bfloat16}), b = graph::parameter({{384, 768}, bfloat16}, 1);
const Value product = graph::matmul(a, b);

}  // namespace

TEST_CASE("a product's tiles, stages and order are steps, which explain prints and a user changes") {
  weft::test::NullMachine h200("NVIDIA H200");
  const std::string rules = built({a, b}, {product}, h200)->print("schedules");
  CHECK_MESSAGE(has(rules, "m (512), n (768), k (384): split(m, "), rules);
  CHECK_MESSAGE(has(rules, "raster(8)"), rules);
  const char* steps =
      "split(m, 64, {m_block, m_tile}); bind(m_block, program); split(n, 128, {n_block, n_tile}); "
      "bind(n_block, program); split(k, 32, {k_step, k_tile}); bind(k_step, serial); pipeline(k_step, 4); "
      "raster(2); specialize(off); persistent(off); ping_pong(off); warps(4); registers(128)";
  const auto changed = built({a, b}, {by(product, steps)}, h200);
  CHECK_MESSAGE(has(changed->print("schedules"), steps), changed->print("schedules"));
  const std::string kernel = changed->print("kernels");
  CHECK_MESSAGE(has(kernel, "bf16[64,32]"), kernel);
  CHECK(has(kernel, "bf16[32,128]"));
  CHECK(has(kernel, "any_size warps 4 stages 4 registers 128 specialize 2 persistent 2 ping_pong 2"));
  CHECK(changed->steps()[0].segments == 1);
  // What the steps do not say stays as the rules choose.
  CHECK(has(built({a, b}, {by(product, "pipeline(k, 3)")}, h200)->print("kernels"), "stages 3"));
  CHECK(has(built({a, b}, {by(product, "tile({m, n}, 128, 64, {x, y, u, v})")}, h200)->print("schedules"),
            "split(m, 128, {m_block, m_tile}); bind(m_block, program); split(n, 64, "));
}

TEST_CASE("the steps that explain prints of a product build the same kernel") {
  weft::test::NullMachine h200("NVIDIA H200"), a100("NVIDIA A100");
  for (target::Target* target : {static_cast<target::Target*>(&h200), static_cast<target::Target*>(&a100)})
    for (const Value& v :
         {product, tanh(product), graph::matmul(graph::permute(b, {1, 0}), graph::permute(a, {1, 0}))}) {
      const std::string text = built({a, b}, {v}, *target)->print("schedules");
      const size_t at = text.rfind("): split");
      REQUIRE_MESSAGE(at != std::string::npos, text);
      const std::string steps = text.substr(at + 3, text.size() - at - 4);
      CAPTURE(steps);
      CHECK(built({a, b}, {by(v, steps.c_str())}, *target)->print("kernels") ==
            built({a, b}, {v}, *target)->print("kernels"));
    }
}

TEST_CASE("products of several waves multiply in turns, which steps print, take and refuse") {
  weft::test::NullMachine h200("NVIDIA H200");
  const Value x = graph::parameter({{8192, 768}, bfloat16}), y = graph::parameter({{768, 2304}, bfloat16}, 1);
  const Value z = graph::matmul(x, y);
  const auto text = [&](const char* steps, const char* view) {
    return built({x, y}, {by(z, steps)}, h200)->print(view);
  };
  const std::string rules = built({x, y}, {z}, h200)->print("schedules");
  CHECK_MESSAGE(has(rules, "ping_pong(on)"), rules);
  CHECK(has(built({x, y}, {z}, h200)->print("kernels"), "ping_pong 1"));
  CHECK(!has(text("split(n, 256, {n_block, n_tile})", "schedules"), "ping_pong(on)"));
  CHECK(has(text("tile({m, n}, 128, 128, {p, q, r, s}); ping_pong(on)", "kernels"), "ping_pong 1"));
  CHECK_THROWS_WITH_AS(text("split(n, 256, {n_block, n_tile}); ping_pong(on)", "kernels"),
                       doctest::Contains("do not stay in the registers of one warpgroup: 128 x 128 do"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(text("persistent(off); ping_pong(on)", "kernels"),
                       doctest::Contains("two programs multiply in turns where copies have warps of their own"),
                       std::invalid_argument);
}

TEST_CASE("a product in other tiles of m and n has the same bits") {
  InterpretedMachine gpu(tiled_machine(), int64_t{1} << 18);
  const Value x = graph::parameter({{96, 64}, bfloat16}), y = graph::parameter({{64, 80}, bfloat16}, 1);
  const Value z = graph::matmul(x, y);
  graph::testing::Random r(3);
  std::vector<graph::Storage> storages;
  for (const Value& v : {x, y}) storages.push_back(to_storage(graph::testing::random_tensor(r, v.type(), {})));
  const auto result = [&](const Value& v) { return from_storage(built({x, y}, {v}, gpu)->run(storages)[0], v.type()); };
  const HostTensor rules = result(by(z, "split(k, 64, {step, tile})"));
  for (const char* steps : {"split(m, 64, {b, t}); split(k, 64, {step, tile}); raster(1)",
                            "tile({m, n}, 16, 32, {a, b, c, d}); split(k, 64, {step, tile}); raster(3)",
                            "split(n, 128, {b, t}); split(k, 64, {step, tile}); pipeline(step, 2)"}) {
    CAPTURE(steps);
    CHECK(result(by(z, steps)).data == rules.data);
  }
}

TEST_CASE("steps choose between a library and generated code") {
  weft::test::NullMachine h200("NVIDIA H200");
  const auto calls = [&](const Value& v) { return built({a, b}, {v}, h200, true)->stats().library_calls; };
  CHECK(calls(product) == 1);
  CHECK(calls(by(product, "tensorize(library)")) == 1);
  CHECK(calls(by(product, "tensorize(generated)")) == 0);
  CHECK(calls(by(product, "pipeline(k, 3)")) == 0);
  CHECK(has(why({a, b}, {by(product, "tensorize(library)")}, h200), "no library of this machine takes"));
  const Value f = graph::matmul(graph::cast(a, float32), graph::cast(b, float32));
  CHECK(has(built({a, b}, {by(f, "tensorize(generated)")}, target::cpu(), true)->print("schedules"),
            "tensorize(generated)"));
  CHECK(has(why({a, b}, {by(f, "split(m, 64, {o, i})")}, target::cpu()),
            "products of float32 are not tiled on this machine: only tensorize(generated) and tensorize(library)"));
}

TEST_CASE("what a product cannot have is refused with the reason") {
  weft::test::NullMachine h200("NVIDIA H200"), a100("NVIDIA A100");
  const auto refused = [&](const char* steps, const char* reason, target::Target& target) {
    const std::string text = why({a, b}, {by(product, steps)}, target);
    CHECK_MESSAGE(has(text, reason), steps, ": ", text);
    CHECK(text.starts_with("[schedule] "));
  };
  const std::pair<const char*, const char*> table[] = {
      {"split(m, 48, {o, i})", "tiles of m and n have 16, 32, 64, 128, 192 or 256 elements"},
      {"split(k, 8, {o, i})", "tiles of k have 16, 32, 64 or 128 elements"},
      {"tile({m, n}, 256, 256, {a, b, c, d})", "the sums of the tile do not stay in registers"},
      {"split(k, 128, {o, i}); pipeline(o, 8)", "bytes of shared memory, and a program has"},
      {"pipeline(m, 3)", "m is no loop that copies ahead: that is k"},
      {"pipeline(k, 40)", "a loop has 32 stages at most"},
      {"warps(6)", "a program has a power of two of warps"},
      {"stage(c, shared, 3)", "the operands of a product are a and b"},
      {"stage(a, row_major, 3)", "tensor cores read swizzled tiles"},
      {"tensorize(fma)", "its tiles are multiplied by"},
      {"unroll(k)", "their loops are not unrolled by steps"},
      {"split(m, 64, {o, i}); unroll(o)", "their loops are not unrolled by steps"},
      {"split(m, 64, {o, i}); bind(o, serial)", "axis m is divided into parts that a tiled kernel does not have"},
      {"fuse({m, n}, x)", "axes of a tiled kernel are not fused"},
      {"split(q, 64, {o, i})", "there is no axis q: the axes here are m (512), n (768), k (384)"},
  };
  for (const auto& [steps, reason] : table) refused(steps, reason, h200);
  refused("tensorize(wgmma)", "its tiles are multiplied by mma, not by wgmma", a100);
  refused("specialize(on)", "are of products by warpgroups", a100);
  CHECK(why({a, b}, {by(product, "tensorize(wgmma); split(m, 128, {o, i})")}, h200) == "");
  CHECK(why({a, b}, {by(product, "tensorize(mma)")}, a100) == "");
  CHECK(why({a, b}, {by(product, "stage(a, swizzled, 3)")}, h200) == "");
}

TEST_CASE("attention's blocks are steps") {
  weft::test::NullMachine h200("NVIDIA H200");
  const graph::Type heads{{2, 4, 256, 64}, bfloat16};
  const Value q = graph::parameter(heads), k = graph::parameter(heads, 1), v = graph::parameter(heads, 2);
  const Value o = graph::attention(q, k, v, 0.125, false, {});
  const auto program = [&](const Value& y) { return built({q, k, v}, {y}, h200); };
  const std::string rules = program(o)->print("schedules");
  CHECK_MESSAGE(has(rules, "q (256), k (256): split(q, "), rules);
  const char* steps =
      "split(q, 64, {q_block, q_tile}); bind(q_block, program); split(k, 32, {k_step, k_tile}); "
      "bind(k_step, serial); pipeline(k_step, 2)";
  const std::string changed = program(by(o, steps))->print("schedules");
  CHECK_MESSAGE(has(changed, steps), changed);
  CHECK(has(why({q, k, v}, {by(o, "split(q, 48, {a, b})")}, h200), "tiles of attention have 16, 32, 64, 128 or 256"));
  CHECK(has(why({q, k, v}, {by(o, "split(q, 256, {a, b}); split(k, 256, {c, d})")}, h200),
            "do not have the registers or the shared memory"));
  CHECK(has(why({q, k, v}, {by(o, "raster(2)")}, h200), "attention chooses this itself"));
  // Without the online softmax it is products and a softmax.
  CHECK(program(by(o, "online_softmax(off)"))->stats().launches +
            program(by(o, "online_softmax(off)"))->stats().library_calls >
        program(o)->stats().launches + program(o)->stats().library_calls);
  CHECK(why({q, k, v}, {by(o, "online_softmax(on)")}, h200) == "");
}
