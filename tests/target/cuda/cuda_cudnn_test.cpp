// Attention and convolutions through cuDNN: the operations that it is given (no device needed), and on a device the
// numbers against float64.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "kernels/attention_desc_case.h"
#include "target/cuda/libraries/cudnn.h"
#include "target/cuda/libraries/cudnn_regions.h"

namespace cuda = weft::target::cuda;
using namespace weft;
using namespace weft::test;
using kernel::AttentionDesc;
using kernel::CallDesc;

TEST_CASE("cudnn: it accepts every operation of attention") {
  if (!cuda::cudnn::api()) {
    MESSAGE("skipped: there is no cuDNN here");
    return;
  }
  for (const bool derivative : {false, true})
    for (const bool causal : {false, true})
      for (const int64_t kv_heads : {4, 2})
        for (const bool deterministic : {false, true}) {
          const AttentionDesc d = packed(bfloat16, 2, 4, kv_heads, 64, 96, 64, causal, derivative);
          CAPTURE(d.to_string());
          std::string why;
          try {
            const cuda::AttentionGraph graph = cuda::attention_graph(d, deterministic);
            CHECK(graph.operands.size() == (derivative ? 9 : 5));
            CHECK(graph.extras.size() == (!derivative ? 0 : deterministic ? 1 : 2));
          } catch (const cuda::cudnn::Declined& declined) {
            why = declined.what;
          }
          CHECK(why == "");
        }
}

TEST_CASE("cudnn: what it refuses is said with its own words") {
  if (!cuda::cudnn::api()) return;
  std::string why;
  try {
    cuda::cudnn::Graph g;
    const auto a = g.tensor(cuda::cudnn::type_float, {2, 4, 8}, {32, 8, 1}),
               b = g.tensor(cuda::cudnn::type_float, {2, 9, 4}, {36, 4, 1});
    g.matmul(a, b, g.tensor(cuda::cudnn::type_float, {2, 4, 4}, {16, 4, 1}));  // 8 is not 9
  } catch (const cuda::cudnn::Declined& declined) {
    why = declined.what;
  }
  CHECK(why.find("an operation: CUDNN_STATUS") == 0);
}

TEST_CASE("attention descriptors: work, digest and text") {
  const AttentionDesc d = packed(bfloat16, 2, 4, 2, 64, 64, 32, false);
  CHECK(d.flops() == 2.0 * 8 * 64 * 64 * 64);
  AttentionDesc causal = d;
  causal.causal = true;
  CHECK(causal.flops() == 2.0 * 8 * (64 * 65 / 2) * 64);
  CHECK(causal.digest() != d.digest());
  CHECK(causal.to_string() == "attention bf16 [2,4]x64x64x32 2 key heads causal");
}

TEST_CASE("cudnn on the device: attention forward") {
  if (!on_device()) return;
  cuda::Context& context = test::context();
  for (const AttentionDesc& d :
       {packed(bfloat16, 2, 4, 4, 128, 128, 64, true), packed(float16, 2, 4, 4, 128, 128, 64, false),
        packed(bfloat16, 1, 4, 2, 75, 75, 64, true), packed(bfloat16, 2, 4, 1, 33, 75, 64, true),
        packed(bfloat16, 1, 2, 2, 200, 200, 128, true), packed(bfloat16, 2, 3, 3, 64, 64, 32, false)}) {
    CAPTURE(d.to_string());
    std::string why;
    const auto call = cuda::cudnn_attention(d, context, {}, &why);
    REQUIRE_MESSAGE(call, why);
    const PackedAttention x = reference(d);
    const DeviceArray qkv(context, x.qkv, d.dtype), o(context, std::vector<double>(x.o.size(), 9), d.dtype),
        lse(context, std::vector<double>(x.lse.size(), 9), float32);
    char* base = static_cast<char*>(qkv.address());
    call->run(std::vector<void*>{base, base + k_begin(d) * 2, base + v_begin(d) * 2, o.address(), lse.address()});
    CHECK(beside_largest(o.values(), x.o) < (d.dtype == float16 ? 2e-3 : 1.2e-2));
    CHECK(worst_error(lse.values(), x.lse) < 1e-4);
    MESSAGE(call->name() << ": " << d.to_string());
    const std::vector<double> first = o.values();
    const auto again = cuda::cudnn_attention(d, context, {}, &why);  // its plan comes from the cache folder
    REQUIRE_MESSAGE(again, why);
    CHECK(again->name() == call->name());
    again->run(std::vector<void*>{base, base + k_begin(d) * 2, base + v_begin(d) * 2, o.address(), lse.address()});
    CHECK(o.values() == first);
  }
}

TEST_CASE("cudnn: slices of attention keep no more probabilities than they may, and make up the whole") {
  for (const AttentionDesc& d :
       {packed(bfloat16, 12, 8, 2, 128, 128, 64, true, true), packed(bfloat16, 7, 6, 6, 100, 130, 64, false, true),
        packed(bfloat16, 1, 16, 16, 16384, 16384, 128, true, true)})
    for (size_t most = 1; most < size_t{1} << 36; most *= 3) {
      const cuda::AttentionSlices s = cuda::attention_slices(d, most);
      CAPTURE(d.to_string());
      CAPTURE(most);
      CHECK(s.each.batch * s.batches == d.batch);
      CHECK(s.each.heads * s.heads == d.heads);
      CHECK(s.each.kv_heads * s.heads == d.kv_heads);
      CHECK((s.each.batch == 1 || s.heads == 1));
      const auto bytes = static_cast<size_t>(s.each.batch * s.each.heads * d.queries * d.keys * 2);
      CHECK((bytes <= most || (s.each.batch == 1 && s.each.kv_heads == 1)));
      if (most >= static_cast<size_t>(d.batch * d.heads * d.queries * d.keys * 2))
        CHECK((s.batches == 1 && s.heads == 1));
    }
}

TEST_CASE("cudnn on the device: the derivative of attention, both ways, and its bits") {
  if (!on_device()) return;
  cuda::Context& context = test::context();
  for (const AttentionDesc& d :
       {packed(bfloat16, 2, 4, 4, 128, 128, 64, true, true), packed(float16, 2, 4, 4, 128, 128, 64, false, true),
        packed(bfloat16, 1, 4, 2, 75, 75, 64, true, true), packed(bfloat16, 1, 2, 2, 256, 256, 128, true, true)})
    for (const auto& [deterministic, most] :
         {std::pair{true, size_t{1} << 30}, {true, size_t{1} << 16}, {true, size_t{1}}, {false, size_t{1} << 30}}) {
      CAPTURE(d.to_string());
      CAPTURE(deterministic);
      CAPTURE(most);
      cuda::CudnnOptions options;
      options.deterministic = deterministic;
      options.most_probabilities = most;
      std::string why;
      const auto call = cuda::cudnn_attention(d, context, options, &why);
      REQUIRE_MESSAGE(call, why);
      const PackedAttention x = reference(d);
      const DeviceArray qkv(context, x.qkv, d.dtype), o(context, x.o, d.dtype), lse(context, x.lse, float32),
          g(context, x.g, d.dtype), dqkv(context, std::vector<double>(x.dqkv.size(), 0), d.dtype);
      char *base = static_cast<char*>(qkv.address()), *to = static_cast<char*>(dqkv.address());
      const int64_t k = k_begin(d) * 2, v = v_begin(d) * 2;
      const std::vector<void*> operands = {base,        base + k, base + v, o.address(), lse.address(),
                                           g.address(), to,       to + k,   to + v};
      call->run(operands);
      const std::vector<double> first = dqkv.values();
      CHECK(beside_largest(first, x.dqkv) < (d.dtype == float16 ? 5e-3 : 2e-2));
      call->run(operands);
      if (deterministic) CHECK(dqkv.values() == first);
      else CHECK(beside_largest(dqkv.values(), first) < 1e-2);
      MESSAGE(call->name() << ": " << d.to_string());
    }
}

TEST_CASE("cudnn on the device: forms of attention's engines are measured, and the one that is taken is kept") {
  if (!on_device()) return;
  cuda::Context& context = test::context();
  cuda::CudnnOptions options;
  options.least_searched_flops = 0;
  for (const AttentionDesc& d :
       {packed(bfloat16, 2, 4, 4, 256, 256, 64, true), packed(bfloat16, 1, 2, 2, 256, 256, 128, true)}) {
    CAPTURE(d.to_string());
    const PackedAttention x = reference(d);
    const DeviceArray qkv(context, x.qkv, d.dtype), o(context, std::vector<double>(x.o.size(), 9), d.dtype),
        lse(context, std::vector<double>(x.lse.size(), 9), float32);
    char* base = static_cast<char*>(qkv.address());
    std::vector<double> first;
    std::string name;
    for (int round = 0; round < 2; ++round) {  // measured, then from the cache folder
      const auto call = cuda::cudnn_attention(d, context, options);
      REQUIRE(call);
      for (int run = 0; run < 2; ++run) {
        call->run(std::vector<void*>{base, base + k_begin(d) * 2, base + v_begin(d) * 2, o.address(), lse.address()});
        if (first.empty()) first = o.values(), name = call->name();
        CHECK(o.values() == first);
        CHECK(call->name() == name);
      }
    }
    CHECK(beside_largest(first, x.o) < 1.2e-2);
    CHECK(worst_error(lse.values(), x.lse) < 1e-4);
    MESSAGE(name << ": " << d.to_string());
  }
}

TEST_CASE("cudnn on the device: attention within a captured graph") {
  if (!on_device()) return;
  cuda::Context& context = test::context();
  const AttentionDesc d = packed(bfloat16, 2, 4, 4, 128, 128, 64, true);
  const auto call = cuda::cudnn_attention(d, context);
  REQUIRE(call);
  const PackedAttention x = reference(d);
  const DeviceArray qkv(context, x.qkv, d.dtype), o(context, std::vector<double>(x.o.size(), 9), d.dtype),
      lse(context, std::vector<double>(x.lse.size(), 9), float32);
  char* base = static_cast<char*>(qkv.address());
  const cuda::Driver& driver = cuda::driver();
  cuda::GraphHandle graph = nullptr;
  cuda::GraphExecHandle exec = nullptr;
  cuda::check_result(driver.stream_begin_capture(context.stream(), cuda::CaptureMode::relaxed), "cuStreamBeginCapture");
  call->run(std::vector<void*>{base, base + k_begin(d) * 2, base + v_begin(d) * 2, o.address(), lse.address()});
  cuda::check_result(driver.stream_end_capture(context.stream(), &graph), "cuStreamEndCapture");
  cuda::check_result(driver.graph_instantiate(&exec, graph, 0), "cuGraphInstantiate");
  CHECK(o.values()[0] == 9);
  cuda::check_result(driver.graph_launch(exec, context.stream()), "cuGraphLaunch");
  CHECK(beside_largest(o.values(), x.o) < 1.2e-2);
  driver.graph_exec_destroy(exec);
  driver.graph_destroy(graph);
}

namespace {

/// A convolution with two axes of space, as graph/regions/convolution.h defines it.
struct Convolution {
  int64_t batch, height, width, in, out, kernel, groups = 1, stride = 1, low = 0, high = 0, dilation = 1,
                                                 input_dilation = 1;
  int64_t result(int64_t n) const {
    return ((n - 1) * input_dilation + 1 + low + high - (kernel - 1) * dilation - 1) / stride + 1;
  }
  std::vector<int64_t> x() const { return {batch, height, width, in}; }
  std::vector<int64_t> w() const { return {out, kernel, kernel, in / groups}; }
  std::vector<int64_t> y() const { return {batch, result(height), result(width), out}; }
  std::vector<int64_t> integers() const {
    return {groups, stride, stride, low, low, high, high, dilation, dilation, input_dilation, input_dilation};
  }
};

size_t count(const std::vector<int64_t>& extents) {
  int64_t n = 1;
  for (int64_t e : extents) n *= e;
  return static_cast<size_t>(n);
}

/// Visits every (x, w, y) triple of elements that a product joins.
template <class Visit>
void each_product(const Convolution& c, Visit visit) {
  const int64_t each_in = c.in / c.groups, each_out = c.out / c.groups, rows = c.result(c.height),
                columns = c.result(c.width);
  const auto position = [&](int64_t o, int64_t k, int64_t extent) -> int64_t {
    const int64_t p = o * c.stride + k * c.dilation - c.low;
    return p >= 0 && p % c.input_dilation == 0 && p / c.input_dilation < extent ? p / c.input_dilation : -1;
  };
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        for (int64_t ki = 0; ki < c.kernel; ++ki)
          for (int64_t kj = 0; kj < c.kernel; ++kj) {
            const int64_t row = position(i, ki, c.height), column = position(j, kj, c.width);
            if (row < 0 || column < 0) continue;
            for (int64_t o = 0; o < c.out; ++o)
              for (int64_t l = 0; l < each_in; ++l)
                visit(
                    static_cast<size_t>(((n * c.height + row) * c.width + column) * c.in + o / each_out * each_in + l),
                    static_cast<size_t>(((o * c.kernel + ki) * c.kernel + kj) * each_in + l),
                    static_cast<size_t>(((n * rows + i) * columns + j) * c.out + o));
          }
}

constexpr const char* convolution_calls[] = {"convolution", "convolution_input", "convolution_weights"};

CallDesc call_of(const Convolution& c, Dtype t, const std::string& name) {
  CallDesc d;
  d.name = name;
  const bool weights = name == "convolution_weights", input = name == "convolution_input";
  d.inputs = {{t, input ? c.y() : c.x()}, {t, weights ? c.y() : c.w()}};
  d.outputs = {{t, weights ? c.w() : input ? c.x() : c.y()}};
  d.integers = c.integers();
  return d;
}

std::vector<Convolution> convolutions() {
  const Convolution plain{4, 14, 14, 16, 32, 3};
  const auto edited = [&](auto edit) {
    Convolution c = plain;
    edit(c);
    return c;
  };
  return {
      plain,
      edited([](Convolution& c) { c.low = c.high = 1; }),
      edited([](Convolution& c) { c.in = 1, c.low = c.high = 1; }),  // the first layer on grey images
      edited([](Convolution& c) { c.stride = 2, c.low = 1; }),
      edited([](Convolution& c) { c.dilation = 2, c.low = c.high = 2; }),
      edited([](Convolution& c) { c.groups = 2; }),
      edited([](Convolution& c) {
        c.input_dilation = 2, c.low = c.high = 1;
      }),  // the gradient of a convolution with strides
  };
}

void compare_convolution(const Convolution& c, Dtype t, double tolerance, const cuda::CudnnOptions& options = {}) {
  cuda::Context& context = test::context();
  const std::vector<double> x = rounded(numbers(count(c.x()), 1), t), w = rounded(numbers(count(c.w()), 2), t),
                            g = rounded(numbers(count(c.y()), 3), t);
  std::vector<double> y(g.size()), dx(x.size()), dw(w.size());
  each_product(c,
               [&](size_t a, size_t b, size_t r) { y[r] += x[a] * w[b], dx[a] += g[r] * w[b], dw[b] += x[a] * g[r]; });
  for (const std::string name : convolution_calls) {
    const bool weights = name == "convolution_weights", input = name == "convolution_input";
    const CallDesc d = call_of(c, t, name);
    CAPTURE(d.to_string());
    std::string why;
    const auto call = cuda::cudnn_convolution(d, context, options, &why);
    if (c.input_dilation != 1) {
      CHECK(!call);
      continue;
    }
    REQUIRE_MESSAGE(call, why);
    const std::vector<double>& want = weights ? dw : input ? dx : y;
    const DeviceArray a(context, input ? g : x, t), b(context, weights ? g : w, t),
        r(context, std::vector<double>(want.size(), 9), t);
    const std::vector<void*> operands = {a.address(), b.address(), r.address()};
    call->run(operands);
    const std::vector<double> first = r.values();
    CHECK(beside_largest(first, want) < tolerance);
    call->run(operands);
    CHECK(r.values() == first);
    MESSAGE(call->name() << ": " << d.to_string());
  }
}

}  // namespace

namespace {

/// What cuDNN says of an H100 when it writes down a device's properties: engines can be asked about it where there is
/// none.
constexpr const char* h100 = R"({"deviceVer":900,"driverVer":13000,"cudaDeviceId":0,"totalGlobalMem":85000000000,)"
                             R"("deviceName":"NVIDIA H100 80GB HBM3","maxGridSize":[2147483647,65535,65535],)"
                             R"("maxBlockSize":[1024,1024,64],)"
                             R"("regsPerBlock":65536,"multiProcessorCount":132,"warpSize":32,)"
                             R"("maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":232448,)"
                             R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,)"
                             R"("maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":9008,)"
                             R"("isTccDriver":0,"supportCoopLaunch":1,)"
                             R"("smClockRateKHz":1980000,"memClockRateKHz":2619000,"l2CacheSize":52428800})";

/// How many engines an H100 has for a graph, without a device; plans of those that need no compilation can be made too.
/// -1: cuDNN cannot be asked.
int64_t engines_of_h100(const cuda::cudnn::Graph& graph) {
  using namespace cuda::cudnn;
  constexpr auto deviceprop_descriptor = static_cast<DescriptorType>(38);
  constexpr auto json_text = static_cast<AttributeType>(24);
  constexpr auto deviceprop_json = static_cast<Attribute>(2702), engineheur_deviceprop = static_cast<Attribute>(204);
  if (api()->version() / 100 != 919) return -1;  // other versions may write other properties
  Descriptor device(deviceprop_descriptor), operations(operationgraph_descriptor), heuristic(engineheur_descriptor);
  device.set_all(deviceprop_json, json_text, static_cast<int64_t>(std::strlen(h100)), h100);
  device.finalize("a device");
  const std::vector<Backend> all = graph.operations();
  operations.set_all(operationgraph_ops, of_backend_descriptor, static_cast<int64_t>(all.size()), all.data());
  operations.finalize("a graph");
  heuristic.set(engineheur_operation_graph, operations);
  heuristic.set(engineheur_mode, of_heur_mode, static_cast<int>(heur_a));
  heuristic.set(engineheur_deviceprop, device);
  heuristic.finalize("a heuristic");
  int64_t count = 0;
  CHECK(api()->get_attribute(heuristic.get(), engineheur_results, of_backend_descriptor, 0, &count, nullptr) == 0);
  return count;
}

}  // namespace

TEST_CASE("cudnn: an H100 has engines for every form of convolution") {
  if (!cuda::cudnn::api()) return;
  for (const Convolution& c : convolutions())
    for (Dtype t : {float32, bfloat16, float16})
      for (const char* name : convolution_calls) {
        const CallDesc d = call_of(c, t, name);
        CAPTURE(d.to_string());
        std::string why;
        try {
          const auto graph = cuda::convolution_graph(d, why);
          CHECK(graph.has_value() == (c.input_dilation == 1));
          if (!graph) continue;
          why = "";
          CHECK(graph->operands.size() == 3);
          const int64_t engines = engines_of_h100(graph->graph);
          if (engines < 0) return;
          CHECK(engines > 0);
        } catch (const cuda::cudnn::Declined& declined) {
          why = declined.what;
        }
        CHECK(why == "");
      }
  Convolution cut = convolutions()[0];
  cut.low = -1;
  std::string why;
  CHECK(!cuda::convolution_graph(call_of(cut, float32, "convolution"), why));
  CHECK(why == "negative padding");
}

TEST_CASE("cudnn on the device: convolutions and their gradients") {
  if (!on_device()) return;
  for (const Convolution& c : convolutions()) {
    compare_convolution(c, float32, 3e-5);
    compare_convolution(c, bfloat16, 1e-2);
  }
  cuda::CudnnOptions options;
  options.tf32 = true;
  compare_convolution(convolutions()[0], float32, 3e-3, options);
  options.search = false;
  compare_convolution(convolutions()[0], float16, 2e-3, options);
}
