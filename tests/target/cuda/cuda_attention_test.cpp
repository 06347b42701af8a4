// Attention of descriptors by generated kernels (kernels/attention/desc.h) on a GPU: their code keeps sums and scores
// in registers, and they compute what they should, alone and beside cuDNN's plan.
#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>

#include "kernels/attention/desc.h"
#include "kernels/attention_desc_case.h"
#include "target/cuda/driver/nvrtc.h"
#include "target/cuda/inspect.h"
#include "target/cuda/libraries/cudnn.h"
#include "target/cuda/routine_call.h"
#include "target/target.h"

namespace cuda = weft::target::cuda;
using namespace weft;
using namespace weft::test;
using kernel::AttentionDesc;

namespace {

/// The operands of a descriptor on the device. `offset`: bytes before those of dtype.
class OnDevice {
 public:
  OnDevice(const AttentionDesc& d, const PackedAttention& x, size_t offset = 0)
      : desc_(d), qkv_(context(), x.qkv, d.dtype, offset), o_(context(), x.o, d.dtype, offset),
        lse_(context(), x.lse, float32), g_(context(), x.g, d.dtype, offset),
        dqkv_(context(), std::vector<double>(x.qkv.size()), d.dtype, offset) {}

  void run(const target::LibraryCall& call) const { call.run(operands()); }
  std::vector<void*> operands() const {
    return packed_operands(desc_, qkv_.address(), o_.address(), lse_.address(), g_.address(), dqkv_.address());
  }
  /// Returns what the call writes.
  std::vector<double> results() const { return desc_.derivative ? dqkv_.values() : o_.values(); }
  std::vector<double> lse() const { return lse_.values(); }
  void check(const PackedAttention& x) const {
    if (desc_.derivative) check_derivative(desc_, x, dqkv_.values());
    else check_attention(desc_, x, o_.values(), lse_.values());
  }

 private:
  AttentionDesc desc_;
  DeviceArray qkv_, o_, lse_, g_, dqkv_;
};

/// Returns the numbers of a descriptor without results of the forward pass, which take long on a CPU.
PackedAttention inputs(const AttentionDesc& d) {
  const auto outputs = static_cast<size_t>(d.batch * d.queries * d.heads * d.width);
  PackedAttention x{numbers(packed_size(d), 1),
                    std::vector<double>(outputs),
                    std::vector<double>(static_cast<size_t>(d.batch * d.heads * d.queries)),
                    numbers(outputs, 2),
                    {}};
  x.qkv = rounded(x.qkv, d.dtype), x.g = rounded(x.g, d.dtype);
  return x;
}

/// Of this run of the test alone: choices outlive it in the cache folder.
Digest fresh_key() {
  static int64_t count = 0;
  return Hasher()
      .number(static_cast<int64_t>(::getpid()))
      .number(std::chrono::steady_clock::now().time_since_epoch().count())
      .number(++count)
      .finish();
}

std::unique_ptr<cuda::Candidates> choice(const std::shared_ptr<const target::LibraryCall>& library,
                                         const cuda::Candidate& own, const Digest& key) {
  return std::make_unique<cuda::Candidates>(std::make_unique<cuda::EventTimer>(context(), "attention"),
                                            std::vector<cuda::Candidate>{{library, "cudnn", 16}, own},
                                            cuda::Candidates::Choose::by_measurement, key);
}

std::vector<AttentionDesc> small_descs(bool derivative) {
  return {packed(bfloat16, 2, 4, 4, 128, 128, 64, true, derivative),
          packed(float16, 2, 4, 4, 128, 128, 64, false, derivative),
          packed(bfloat16, 1, 4, 2, 75, 75, 64, true, derivative),
          packed(bfloat16, 1, 2, 2, 256, 256, 128, true, derivative),
          packed(bfloat16, 1, 2, 1, 130, 200, 128, false, derivative)};
}

}  // namespace

TEST_CASE("attention of descriptors: sums and scores stay in registers") {
  std::string why;
  if (!cuda::nvrtc_available(&why)) {
    MESSAGE("skipped: " << why);
    return;
  }
  for (const char* name : {"NVIDIA H200", "NVIDIA A100"})
    for (const auto& [width, length] : {std::pair{64, 1024}, {128, 4096}, {64, 1000}})
      for (const bool derivative : {false, true}) {
        const AttentionDesc d = packed(bfloat16, 8, 16, 16, length, length, width, true, derivative);
        CAPTURE(d.to_string());
        CAPTURE(name);
        const target::Machine& machine = target::stated_machine(name);
        const bool hopper = machine.arch == "sm_90a";
        const auto routine = kernels::attention_routine(d, machine);
        // Without warpgroups a thread has no registers for sums of dK and of dV of such heads.
        CHECK(routine.has_value() == (hopper || width == 64 || !derivative));
        if (!routine || (!hopper && length == 1000)) continue;
        CHECK(routine->launches.size() == (derivative ? 3 : 1));
        for (const kernel::Kernel& kernel : routine->kernels) {
          CAPTURE(kernel.name);
          const cuda::KernelCode code = cuda::code_of(kernel, machine);
          // Those sums are 128 registers of a thread; a few words beside them are spilled.
          const int64_t words = !hopper && kernel.name == "attention_keys" ? 4 : 0;
          CHECK(!code.serialized);
          CHECK(code.usage.spill_store_bytes <= 4 * words);
          CHECK(code.usage.stack_bytes <= 4 * words);
          const bool by_warpgroups = hopper && kernel.name != "attention_delta";
          CHECK((code.source.find("wgmma of bfloat16 by ") != std::string::npos) == by_warpgroups);
        }
      }
}

TEST_CASE("attention of descriptors on the device: alone and measured beside cuDNN, and the bits of the winner") {
  if (!on_device()) return;
  target::Target& gpu = target::gpu(gpu_ordinal());
  for (const bool derivative : {false, true})
    for (const AttentionDesc& d : small_descs(derivative)) {
      CAPTURE(d.to_string());
      const std::vector<cuda::Candidate> own = cuda::generated_attention(d, gpu, &context());
      REQUIRE(own.size() == 1);
      const PackedAttention x = reference(d);
      const OnDevice alone(d, x);
      alone.run(*own[0].call), alone.check(x);
      const std::vector<double> first = alone.results();
      alone.run(*own[0].call);
      CHECK(alone.results() == first);

      std::string why;
      const auto library = cuda::cudnn_attention(d, context(), {}, &why);
      REQUIRE_MESSAGE(library, why);
      alone.run(*library), alone.check(x);
      const Digest key = fresh_key();
      const auto measured = choice(library, own[0], key);
      const OnDevice both(d, x);
      both.run(*measured), both.check(x);
      const auto recorded = choice(library, own[0], key);
      CHECK(recorded->name() == measured->name());
      const std::vector<double> winner = both.results();
      both.run(*recorded);
      CHECK(both.results() == winner);
      CHECK((measured->name() == own[0].call->name() ? first : alone.results()) == winner);
      MESSAGE(measured->name() << ": " << d.to_string());
    }
}

TEST_CASE("attention of descriptors on the device: operands that cuDNN does not take go to the kernels") {
  if (!on_device()) return;
  const AttentionDesc d = packed(bfloat16, 1, 2, 2, 128, 128, 64, true);
  const std::vector<cuda::Candidate> own = cuda::generated_attention(d, target::gpu(gpu_ordinal()), &context());
  REQUIRE(own.size() == 1);
  const auto library = cuda::cudnn_attention(d, context());
  REQUIRE(library);
  const PackedAttention x = reference(d);
  const OnDevice odd(d, x, 2);
  odd.run(*choice(library, own[0], fresh_key()));
  odd.check(x);
}

TEST_CASE("attention of descriptors on the device: within a captured graph") {
  if (!on_device()) return;
  const AttentionDesc d = packed(bfloat16, 2, 4, 2, 128, 128, 64, true, true);
  const std::vector<cuda::Candidate> own = cuda::generated_attention(d, target::gpu(gpu_ordinal()), &context());
  REQUIRE(own.size() == 1);
  const PackedAttention x = reference(d);
  const OnDevice plain(d, x), captured(d, x);
  plain.run(*own[0].call);
  const cuda::Driver& driver = cuda::driver();
  cuda::GraphHandle graph = nullptr;
  cuda::GraphExecHandle exec = nullptr;
  cuda::check_result(driver.stream_begin_capture(context().stream(), cuda::CaptureMode::relaxed),
                     "cuStreamBeginCapture");
  captured.run(*own[0].call);
  cuda::check_result(driver.stream_end_capture(context().stream(), &graph), "cuStreamEndCapture");
  cuda::check_result(driver.graph_instantiate(&exec, graph, 0), "cuGraphInstantiate");
  cuda::check_result(driver.graph_launch(exec, context().stream()), "cuGraphLaunch");
  CHECK(captured.results() == plain.results());
  captured.check(x);
  driver.graph_exec_destroy(exec);
  driver.graph_destroy(graph);
}

TEST_CASE("attention of descriptors on the device: the target's choice, for a large one") {
  if (!on_device()) return;
  const target::Target& gpu = target::gpu(gpu_ordinal());
  AttentionDesc forward = packed(bfloat16, 8, 12, 12, 1024, 1024, 64, true), backward = forward;
  backward.derivative = true;
  CHECK(!cuda::generated_attention(backward, target::gpu(gpu_ordinal()), &context()).empty());
  PackedAttention x = inputs(forward);
  for (const AttentionDesc& d : {forward, backward}) {
    CAPTURE(d.to_string());
    const auto call = gpu.attention(d);
    REQUIRE(call);
    CHECK(gpu.attention(d) == call);
    call->begin();
    std::string why;
    const auto library = cuda::cudnn_attention(d, context(), {}, &why);
    REQUIRE_MESSAGE(library, why);
    REQUIRE(call->ready());
    const OnDevice by_choice(d, x), by_library(d, x);
    by_choice.run(*call), by_library.run(*library);
    CHECK(beside_largest(by_choice.results(), by_library.results()) < 2e-2);
    MESSAGE(call->name() << ": " << d.to_string());
    if (!d.derivative) x.o = by_library.results(), x.lse = by_library.lse();
  }
}
