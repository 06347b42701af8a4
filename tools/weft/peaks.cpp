#include "peaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/buffer.h"
#include "runtime/threads.h"
#include "weft/compile.h"
#include "weft/ops.h"
#include "weft/random.h"

namespace weft::tool {

namespace {

template <class F> double best_seconds(int runs, F f) {
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
      std::memcpy(static_cast<char*>(to->data()) + begin * block, static_cast<const char*>(from->data()) + begin * block, static_cast<size_t>((end - begin) * block));
    });
  };
  copy();  // pages come in
  return 2.0 * static_cast<double>(bytes) / best_seconds(5, copy) / 1e9;
}

double product_gflops(Dtype dtype) {
  const int n = 1024;
  const array a = random::normal({n, n}, dtype, 0, 1, random::key(0)), b = random::normal({n, n}, dtype, 0, 1, random::key(1));
  eval(a, b);
  const auto program = compile([](const std::vector<array>& in) { return std::vector<array>{matmul(in[0], in[1])}; }, CompileOptions{});
  const auto run = [&] { eval(program({a, b})); };
  run();
  return 2.0 * n * n * n / best_seconds(5, run) / 1e9;
}

}  // namespace

const Peaks& machine_peaks() {
  static const Peaks peaks{copy_gbs(), product_gflops(float32), product_gflops(bfloat16)};
  return peaks;
}

double floor_seconds(const Peaks& peaks, double bytes, double flops, bool half) {
  return std::max(bytes / peaks.copy_gbs, flops / (half ? peaks.gflops_half : peaks.gflops_f32)) / 1e9;
}

std::string to_string(const Peaks& p) {
  return fmt::format("{:.1f} GB/s copied, {:.0f} GFLOP/s in float32 products, {:.0f} in bfloat16", p.copy_gbs, p.gflops_f32, p.gflops_half);
}

}  // namespace weft::tool
