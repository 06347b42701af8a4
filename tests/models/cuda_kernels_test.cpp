// The kernels of whole programs for a GPU, without one: all of them compile to a Hopper's machine code, within a budget
// of registers and of what they spill.
#include <doctest/doctest.h>

#include "compiler/program.h"
#include "models/cache_rows.h"
#include "models/gpt.h"
#include "models/llama.h"
#include "models/mnist.h"
#include "target/cuda/cuda.h"
#include "weft/compile.h"
#include "weft/fast.h"
#include "weft/ops.h"
#include "weft/optim.h"
#include "weft/random.h"
#include "weft/transforms.h"

using namespace weft;

namespace {

constexpr int64_t most_spilled_bytes = 16;  // a thread

/// Renders and compiles what is built while it lives, and runs nothing.
class Offline {
 public:
  explicit Offline(const std::string& arch = "sm_90a") : Offline(target::gpu_of(arch)) {}
  explicit Offline(const target::Machine& machine) : before_(compiler::default_target()), target_(machine, false) {
    compiler::set_default_target(target_);
  }
  ~Offline() { compiler::set_default_target(before_); }
  const target::cuda::CudaTarget& target() const { return target_; }

 private:
  target::Target& before_;
  target::cuda::CudaTarget target_;
};

bool no_compiler() {
  std::string why;
  if (target::cuda::nvrtc_available(&why)) return false;
  MESSAGE("skipped: " << why);
  return true;
}

/// A product keeps its sums in registers: it may use all that a thread can have, the others fewer.
void check_usage(const target::cuda::CudaTarget& target, size_t least, bool products = false) {
  const auto usage = target.usage();
  CHECK(usage.size() >= least);
  for (const target::cuda::KernelUsage& use : usage) {
    CAPTURE(use.name);
    CHECK(use.spill_store_bytes <= most_spilled_bytes);
    CHECK(use.spill_load_bytes <= most_spilled_bytes);
    CHECK(use.registers <= (products ? 255 : 168));
  }
}

}  // namespace

TEST_CASE("kernels of a GPT's training step compile for a GPU within a budget of registers") {
  if (no_compiler()) return;
  struct Mode {
    nn::Precision precision;
    optim::Rounding rounding = optim::Rounding::master;
  };
  const nn::Precision half{.parameters = bfloat16, .compute = bfloat16, .residual = bfloat16};
  for (const Mode& mode : {Mode{}, {nn::mixed(bfloat16)}, {half, optim::Rounding::stochastic}}) {
    CAPTURE(to_string(mode.precision));
    models::Gpt model({.vocab = 320, .context = 64, .layers = 2, .heads = 4, .width = 128}, mode.precision);
    optim::AdamW optimizer(
        model.trainable_parameters(),
        {.learning_rate = 1e-3f, .weight_decay = 0.1, .decays = optim::is_matrix, .bias_correction = true});
    optimizer.set_rounding(mode.rounding);
    std::vector<array*> state = model.state();
    for (array* a : optimizer.state()) state.push_back(a);
    const array tokens = zeros({4, 64}, int32);
    eval(tokens);
    for (array* a : state) eval(*a);
    const Offline offline;
    const auto gradients =
        nn::value_and_grad(model, [&](const std::vector<array>& in) { return model.loss(in[0], in[1]); });
    const auto step = compile(
        [&](const std::vector<array>& in) {
          const auto [loss, grads] = gradients(in);
          optimizer.update(grads);
          return std::vector<array>{loss};
        },
        {.state = state});
    CHECK_THROWS_WITH_AS(step({tokens, tokens}), doctest::Contains("only compiles"), std::runtime_error);
    check_usage(offline.target(), 15, true);
  }
}

TEST_CASE("the gradients of a GPT compile for every stated GPU within a budget of registers") {
  if (no_compiler()) return;
  const nn::Precision half = nn::mixed(bfloat16);
  for (const target::Machine& machine : target::stated_machines()) {
    if (!machine.simt) continue;
    CAPTURE(machine.name);
    if (machine.arch == "sm_100a" && target::cuda::nvrtc_version() < 12080) {
      MESSAGE("skipped: " << machine.name << " needs NVRTC 12.8, this is " << target::cuda::nvrtc_version());
      continue;
    }
    models::Gpt model({.vocab = 320, .context = 64, .layers = 1, .heads = 4, .width = 128}, half);
    const array tokens = zeros({4, 64}, int32);
    eval(tokens);
    std::vector<array*> state = model.state();
    for (array* a : state) eval(*a);
    const Offline offline(machine);
    const auto gradients =
        nn::value_and_grad(model, [&](const std::vector<array>& in) { return model.loss(in[0], in[1]); });
    const auto step = compile([&](const std::vector<array>& in) { return gradients(in).second; }, {.state = state});
    CHECK_THROWS_WITH_AS(step({tokens, tokens}), doctest::Contains("only compiles"), std::runtime_error);
    check_usage(offline.target(), 8, true);
  }
}

TEST_CASE("kernels of rows, columns, maps and transposes compile for a GPU within a budget of registers") {
  if (no_compiler()) return;
  const array x = random::normal({2048, 1024}, bfloat16), wide = random::normal({64, 50304}, bfloat16),
              w = ones({1024}), b = zeros({1024});
  eval(x, wide, w, b);
  const Offline offline;
  using Fn = std::function<array(const array&)>;
  const Fn functions[] = {
      [](const array& v) { return softmax(v, -1); },
      [](const array& v) { return fast::layer_norm(v, std::nullopt, std::nullopt, 1e-5f); },
      [](const array& v) { return sum(v, -1); },
      [](const array& v) { return sum(v, 0); },
      [](const array& v) { return sum(v); },
      [](const array& v) { return fast::gelu_tanh(v * array(1.5, v.dtype())); },
      [](const array& v) { return contiguous(transpose(v)); },
      [](const array& v) { return contiguous(transpose(astype(v, float8_e4m3))); },
      [](const array& v) { return cumsum(astype(v, float32), 1); },
      [](const array& v) { return argmax(v, -1); },
      [](const array& v) { return logsumexp(v, -1); },
  };
  for (const array& in : {x, wide})
    for (const Fn& f : functions) {
      const auto program =
          compile([&](const std::vector<array>& v) { return std::vector<array>{f(v[0])}; }, CompileOptions{});
      CHECK_THROWS_AS(program({in}), std::runtime_error);
    }
  check_usage(offline.target(), 16);
}

TEST_CASE("maps that are cut at the borders of concats compile for a GPU within a budget of registers") {
  if (no_compiler()) return;
  const array x = random::normal({16, 12, 256, 64}, bfloat16), rows = random::normal({64, 2048}),
              table = random::normal({4096, 64});
  eval(x, rows, table);
  const Offline offline;
  const auto compiled = [](const array& in, const std::function<array(const array&)>& f) {
    const auto program =
        compile([&](const std::vector<array>& v) { return std::vector<array>{f(v[0])}; }, CompileOptions{});
    CHECK_THROWS_AS(program({in}), std::runtime_error);
  };
  compiled(x, [](const array& v) { return fast::rope(v, 64, false, 10000.0f, 1, 0); });
  compiled(rows, [](const array& v) {
    return grad([](const array& z) {
      const auto gates = split(z, 4, -1);
      return sum(sigmoid(gates[0]) * tanh(gates[1]) + sigmoid(gates[2]) * tanh(gates[3]));
    })(v);
  });
  compiled(table, [](const array& v) {
    std::vector<array> all;
    for (int k = 0; k < 27; ++k) all.push_back(v * static_cast<float>(k + 1));
    return stack(all, 1);
  });
  check_usage(offline.target(), 3);
}

TEST_CASE("norms' derivatives keep a row and the sums along the rows in registers") {
  if (no_compiler()) return;
  for (const int width : {40, 80, 384, 512, 1280, 1600}) {
    CAPTURE(width);
    const array x = zeros({4096, width}, bfloat16), w = ones({width}, bfloat16), b = zeros({width}, bfloat16),
                g = zeros({4096, width}, bfloat16), r = zeros({4096, width}, bfloat16);
    eval(x, w, b, g, r);
    const Offline offline;
    const auto norm = [](const std::vector<array>& in) {
      return std::vector<array>{in[0], fast::layer_norm(in[0], in[1], in[2], 1e-5f)};
    };
    const auto gradients = compile(
        [&](const std::vector<array>& in) {
          return vjp(norm, {in[0], in[1], in[2]}, {in[3], in[4]}).second;
        },
        CompileOptions{});
    CHECK_THROWS_AS(gradients({x, w, b, r, g}), std::runtime_error);
    const auto usage = offline.target().usage();
    CHECK(usage.size() >= 2);
    for (const target::cuda::KernelUsage& use : usage) {
      CAPTURE(use.name);
      CHECK(use.spill_store_bytes <= 2 * most_spilled_bytes);
      CHECK(use.spill_load_bytes <= 2 * most_spilled_bytes);
    }
  }
}

TEST_CASE("rows that blocks of threads share compile for devices with clusters, and are one block's on others") {
  if (no_compiler()) return;
  const array few = zeros({8, 1 << 20}, bfloat16), odd = zeros({100, 50257});
  eval(few, odd);
  for (const std::string arch : {"sm_80", "sm_90a", "sm_100a"}) {
    CAPTURE(arch);
    const Offline offline(arch);
    compiler::BuildRecord record(true);
    for (const array& in : {few, odd}) {
      const auto program =
          compile([](const std::vector<array>& v) { return std::vector<array>{softmax(v[0], -1)}; }, CompileOptions{});
      CHECK_THROWS_AS(program({in}), std::runtime_error);
    }
    check_usage(offline.target(), 2);
    std::string kernels;
    for (const auto& program : record.programs()) kernels += program->print("kernels");
    CHECK((kernels.find("loop parallel") != std::string::npos) == (arch != "sm_80"));
  }
}

TEST_CASE("kernels of sorts and searches compile for a GPU within a budget of registers") {
  if (no_compiler()) return;
  target::cuda::CudaTarget target(target::gpu_of("sm_90a"), false);
  const auto compiled = [&](const kernel::CallDesc& desc) {
    const auto call = target.call(desc);
    REQUIRE(call);
    call->begin();
    CHECK(call->ready());
    return call;
  };
  for (Dtype t : {bfloat16, float32, int64}) {
    for (int64_t n : {100, 50304}) compiled({"sort", {{t, {16, n}}}, {{t, {16, n}}, {uint32, {16, n}}}, {1}});
    CHECK(
        compiled({"searchsorted", {{t, {5000}}, {t, {300}}}, {{uint32, {300}}}, {0}})->name().starts_with("generated"));
  }
  compiled({"scatter_rows", {{int32, {65536}}, {bfloat16, {65536, 768}}}, {{float32, {50304, 768}}}, {}});
  check_usage(target, 18);
}

namespace {

/// Launches, library calls and copies of a token that chooses the next one.
int steps_of_a_token(models::TextModel& model) {
  model.eval();
  models::KvCache cache = model.cache();
  array token = zeros({1, 1}, int32), length = ones({1}, int32);
  std::vector<array*> state = model.state();
  for (array* a : cache.state()) state.push_back(a);
  for (array* a : {&token, &length}) state.push_back(a);
  for (array* a : state) eval(*a);
  const Offline offline;
  const compiler::BuildRecord record;
  const auto step = compile(
      [&](const std::vector<array>&) {
        token = models::argmax_token(model.next(token, length, cache));
        length = length + 1;
        return std::vector<array>{};
      },
      {.state = state});
  CHECK_THROWS_WITH_AS(step({}), doctest::Contains("only compiles"), std::runtime_error);
  check_usage(offline.target(), 8);
  REQUIRE(record.programs().size() == 1);
  return record.programs()[0]->stats().count();
}

}  // namespace

TEST_CASE("a token is few launches on a GPU, within a budget of registers") {
  if (no_compiler()) return;
  constexpr int layers = 3;
  const nn::Precision narrow{.parameters = bfloat16, .compute = bfloat16};
  models::Gpt gpt({.vocab = 1024, .context = 256, .layers = layers, .heads = 4, .width = 256}, narrow);
  CHECK(steps_of_a_token(gpt) <= 5 * layers + 5);
  // Five a layer: norms and residuals are part of the products, the three projections are one launch, and so are the
  // two of the gated layer; attention rotates its query and its key and enters its own row into the cache.
  models::Llama llama({.vocab = 1024,
                       .context = 256,
                       .layers = layers,
                       .heads = 8,
                       .kv_heads = 2,
                       .width = 512,
                       .head_width = 64,
                       .hidden = 1024},
                      narrow);
  CHECK(steps_of_a_token(llama) <= 5 * layers + 5);
}

TEST_CASE(
    "products on tensor cores, with what rides on them, compile for several generations of GPUs and spill nothing") {
  if (no_compiler()) return;
  const array x = random::normal({512, 256}, bfloat16), w = random::normal({256, 512}, bfloat16),
              b = zeros({512}, bfloat16), r = zeros({512, 512}, bfloat16);
  const array odd = random::normal({333, 77}, float16), other = random::normal({55, 333}, float16);
  eval(x, w, b, r, odd, other);
  for (const char* arch : {"sm_80", "sm_90a", "sm_100a"}) {
    if (std::string(arch) == "sm_100a" && target::cuda::nvrtc_version() < 12080) continue;
    CAPTURE(std::string(arch));
    const Offline offline(arch);
    const auto finished = compile(
        [](const std::vector<array>& v) {
          return std::vector<array>{fast::gelu_tanh(matmul(v[0], v[1]) + v[2]) + v[3]};
        },
        CompileOptions{});
    const auto ragged = compile(
        [](const std::vector<array>& v) { return std::vector<array>{matmul(transpose(v[0]), transpose(v[1]))}; },
        CompileOptions{});
    const compiler::BuildRecord record(true);
    CHECK_THROWS_AS(finished({x, w, b, r}), std::runtime_error);
    CHECK_THROWS_AS(ragged({odd, other}), std::runtime_error);
    for (const auto& program : record.programs())
      CHECK(program->print("kernels").find("any_size") != std::string::npos);
    check_usage(offline.target(), 2, true);
    for (const target::cuda::KernelUsage& use : offline.target().usage()) CHECK(use.spill_store_bytes == 0);
  }
}
