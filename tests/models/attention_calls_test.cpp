// How often a step of a language model calls a library's attention, on a GPU: once a layer forward, and once for the
// derivative, whose three gradients are results of one call.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "compiler/program.h"
#include "models/gpt.h"
#include "models/llama.h"
#include "transforms/traced.h"
#include "weft/nn.h"

using namespace weft;

namespace {

/// Says what it would compute.
class NamedCall final : public target::LibraryCall {
 public:
  explicit NamedCall(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  void run(std::span<void* const>) const override {}

 private:
  std::string name_;
};

/// An H200 with a library for products and for attention in 16-bit floats, which runs nothing.
class Planned final : public target::Target {
 public:
  Planned() : before_(compiler::default_target()) {
    machine_ = target::stated_machine("NVIDIA H200");
    compiler::set_default_target(*this);
  }
  ~Planned() override { compiler::set_default_target(before_); }
  std::string fingerprint() const override { return "planned H200"; }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    return target::null().compile(kernels);
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc& desc) const override {
    return target::null().library(desc);
  }
  std::shared_ptr<const target::LibraryCall> attention(const kernel::AttentionDesc& d) const override {
    if (d.dtype != bfloat16 && d.dtype != float16) return nullptr;
    return std::make_shared<NamedCall>(d.derivative ? "attention derivative" : "attention forward");
  }
  target::CompileStats stats() const override { return {}; }

 private:
  target::Target& before_;
};

struct Calls {
  int forward = 0, derivative = 0;
  int rotations = 0;  // launches that rotate queries or keys, or their gradients
  int all = 0;        // launches, calls and copies
};

/// Counts the calls of one evaluation of the loss and its gradients.
template <class Model>
Calls calls_of(Model& model, bool gradients) {
  const graph::Type tokens{{2, 128}, int32};
  const auto loss = [&](const std::vector<array>& in) { return model.loss(in[0], in[1]); };
  const transforms::Traced traced = transforms::trace_function(
      [&](const std::vector<array>& in) -> std::vector<array> {
        if (!gradients) return {loss(in)};
        auto [value, all] = nn::value_and_grad(model, loss)(in);
        all.push_back(value);
        return all;
      },
      {tokens, tokens}, model.state(), false);
  Calls calls;
  for (const compiler::StepInfo& step : traced.program->steps()) {
    calls.forward += step.what.find("attention forward") != std::string::npos;
    calls.derivative += step.what.find("attention derivative") != std::string::npos;
    calls.rotations += step.what.find("cos") != std::string::npos;
  }
  calls.all = traced.program->stats().count();
  return calls;
}

models::LlamaConfig llama(int64_t kv_heads) {
  return {.vocab = 96,
          .context = 128,
          .layers = 12,
          .heads = 4,
          .kv_heads = kv_heads,
          .width = 64,
          .head_width = 16,
          .hidden = 128};
}

}  // namespace

TEST_CASE("a step of a Llama calls attention once a layer, and its derivative once") {
  int plain = 0;
  for (const int64_t kv_heads : {4, 2, 1}) {
    CAPTURE(kv_heads);
    models::Llama model(llama(kv_heads), nn::mixed(bfloat16));
    const Planned target;
    const Calls forward = calls_of(model, false), both = calls_of(model, true);
    CHECK(forward.forward == 12);
    CHECK(forward.derivative == 0);
    CHECK(both.forward == 12);
    CHECK(both.derivative == 12);
    if (kv_heads == 4) {
      plain = forward.all;
      CHECK(forward.rotations == 12);
      CHECK(both.rotations == 24);  // the derivative reads queries and keys that are rotated already
    } else {
      CHECK(both.rotations == 48);       // queries and keys have different shapes
      CHECK(forward.all <= plain + 24);  // heads that share keys: a launch for their queries, one for copies
    }
  }
}

TEST_CASE("a step of a GPT-2 calls attention once a layer, and its derivative once") {
  models::Gpt model({.vocab = 96, .context = 128, .layers = 12, .heads = 4, .width = 64}, nn::mixed(bfloat16));
  const Planned target;
  const Calls both = calls_of(model, true);
  CHECK(both.forward == 12);
  CHECK(both.derivative == 12);
}
