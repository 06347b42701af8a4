// What a training step costs before its first kernel runs grows as the model does, not with the square of its layers.
// Work is counted in blocks of memory that are asked for: walks of graphs take some wherever they go.
#include <doctest/doctest.h>

#include <cstdlib>
#include <new>

#include "compiler/program.h"
#include "compiler/simt_target.h"
#include "models/gpt.h"
#include "transforms/traced.h"
#include "weft/nn.h"
#include "weft/optim.h"
#include "weft/random.h"

// The sanitizers have operators of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEFT_TEST_COUNTS_MEMORY 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WEFT_TEST_COUNTS_MEMORY 0
#endif
#endif
#ifndef WEFT_TEST_COUNTS_MEMORY
#define WEFT_TEST_COUNTS_MEMORY 1

namespace {
thread_local int64_t blocks_asked_for = 0;
}

[[gnu::noinline]] void* operator new(size_t bytes) {
  ++blocks_asked_for;
  if (void* block = std::malloc(bytes > 0 ? bytes : 1)) return block;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, size_t) noexcept { std::free(block); }

using namespace weft;

namespace {

/// A device of many threads whose kernels are never made, with a library for products.
class Unmade final : public test::SimtTarget {
 public:
  Unmade() : before_(compiler::default_target()) { compiler::set_default_target(*this); }
  ~Unmade() override { compiler::set_default_target(before_); }
  std::string fingerprint() const override { return "unmade"; }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    return target::null().compile(kernels);
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc& desc) const override {
    return target::null().library(desc);
  }

 private:
  target::Target& before_;
};

/// Blocks that tracing and compiling a model's step take.
int64_t blocks_of_step(int layers) {
  models::Gpt model({.vocab = 96, .context = 32, .layers = layers, .heads = 2, .width = 64},
                    {.parameters = bfloat16, .compute = bfloat16, .residual = bfloat16});
  optim::AdamW optimizer(
      model.trainable_parameters(),
      {.learning_rate = 1e-3f, .weight_decay = 0.1, .decays = optim::is_matrix, .bias_correction = true});
  optimizer.set_rounding(optim::Rounding::master);
  std::vector<array*> state = model.state();
  for (array* a : optimizer.state()) state.push_back(a);
  state.push_back(&random::default_key());
  const auto gradients =
      nn::value_and_grad(model, [&](const std::vector<array>& in) { return model.loss(in[0], in[1]); });
  const auto step = [&](const std::vector<array>& in) {
    const auto [loss, grads] = gradients(in);
    optimizer.update(optim::clip_grad_norm(grads, 1.0f).first);
    return std::vector<array>{loss};
  };
  const graph::Type tokens{{2, 32}, int32};
  const int64_t before = blocks_asked_for;
  const transforms::Traced traced = transforms::trace_function(step, {tokens, tokens}, state, false);
  CHECK(traced.program->stats().launches > layers);
  return blocks_asked_for - before;
}

}  // namespace

TEST_CASE("tracing and compiling a step of twice the layers takes twice the work") {
  const Unmade target;
  blocks_of_step(2);  // tables that are made once
  const int64_t few = blocks_of_step(8), more = blocks_of_step(16), most = blocks_of_step(32);
  CAPTURE(few);
  CAPTURE(more);
  CAPTURE(most);
  CHECK(most - more > 0);
  CHECK(static_cast<double>(most - more) <
        2.1 * static_cast<double>(more - few));  // work that grows with the square makes this 4
}
#endif
