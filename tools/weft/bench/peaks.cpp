#include "tools/weft/bench/peaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>

#include "runtime/buffer.h"
#include "runtime/threads.h"
#include "weft/compile.h"
#include "weft/device.h"
#include "weft/ops.h"
#include "weft/random.h"
#include "weft/stream.h"

namespace weft::tool {

namespace {

template <class F>
double best_seconds(int runs, F f) {
  double best = 1e30;
  for (int k = 0; k < runs; ++k) {
    const auto start = std::chrono::steady_clock::now();
    f();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

double copy_gbs() {
  constexpr int64_t bytes = int64_t{128} << 20, block = int64_t{1} << 20;
  const auto from = runtime::allocate(bytes), to = runtime::allocate(bytes);
  std::memset(from->data(), 1, bytes);
  const auto copy = [&] {
    runtime::parallel_for(bytes / block, [&](int64_t begin, int64_t end) {
      std::memcpy(static_cast<char*>(to->data()) + begin * block,
                  static_cast<const char*>(from->data()) + begin * block, static_cast<size_t>((end - begin) * block));
    });
  };
  copy();  // maps the pages
  return 2.0 * static_cast<double>(bytes) / best_seconds(5, copy) / 1e9;
}

/// Returns the seconds of one of several runs that are issued in a row, so that a device does not wait for the host.
double burst_seconds(int runs, const std::function<void()>& f) {
  f();
  synchronize();
  return best_seconds(4,
                      [&] {
                        for (int k = 0; k < runs; ++k) f();
                        synchronize();
                      }) /
         runs;
}

double device_copy_gbs() {
  constexpr int64_t n = int64_t{64} << 20;
  const array from = zeros({n}, float32);
  eval(from);
  const auto program =
      compile([](const std::vector<array>& in) { return std::vector<array>{negative(in[0])}; }, CompileOptions{});
  return 8.0 * n / burst_seconds(10, [&] { program({from}); }) / 1e9;
}

double gemm_gflops(int n, Dtype dtype, int runs) {
  const array a = random::normal({n, n}, dtype, 0, 1, random::key(0)),
              b = random::normal({n, n}, dtype, 0, 1, random::key(1));
  eval(a, b);
  const auto program =
      compile([](const std::vector<array>& in) { return std::vector<array>{matmul(in[0], in[1])}; }, CompileOptions{});
  return 2.0 * n * n * n / burst_seconds(runs, [&] { eval(program({a, b})); }) / 1e9;
}

Peaks measured(bool gpu) {
  if (!gpu) return {copy_gbs(), gemm_gflops(1024, float32, 1), gemm_gflops(1024, bfloat16, 1)};
  return {device_copy_gbs(), gemm_gflops(4096, float32, 4), gemm_gflops(8192, bfloat16, 4)};
}

}  // namespace

const Peaks& machine_peaks() {
  static auto& known = *new std::map<std::pair<bool, int>, Peaks>;
  const Device device = default_device();
  const bool gpu = device.type == Device::gpu;
  const auto [it, fresh] = known.try_emplace({gpu, device.index});
  if (fresh) it->second = measured(gpu);
  return it->second;
}

double floor_seconds(const Peaks& peaks, double bytes, double flops, bool half) {
  return std::max(bytes / peaks.copy_gbs, flops / (half ? peaks.gflops_half : peaks.gflops_f32)) / 1e9;
}

std::string to_string(const Peaks& p) {
  return fmt::format("{:.1f} GB/s copied, {:.0f} GFLOP/s in float32 products, {:.0f} in bfloat16", p.copy_gbs,
                     p.gflops_f32, p.gflops_half);
}

}  // namespace weft::tool
