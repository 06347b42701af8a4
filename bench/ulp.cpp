// The largest error of generated code's functions of one float32 argument, over all float32 values or every n-th of
// them, against the C library in double precision: what the ulp column of src/kernel/scalar.cpp states.
//   ulp [--stride N] [function …]
#include <fmt/format.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "kernel/expand_run.h"
#include "kernel/ulp.h"
#include "runtime/threads.h"
#include "target/target.h"

using namespace weft;
using namespace weft::kernel;

namespace {

struct Worst {
  double error = 0;
  float at = 0, got = 0;
};

/// Chunk `chunk` of 2^16 values, `stride` apart.
Worst examine(ScalarOp op, const target::Executable& code, uint64_t chunk, uint64_t stride) {
  constexpr int64_t n = 1 << 16;
  std::vector<float> x(n), y(n);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::bit_cast<float>(static_cast<uint32_t>((chunk * n + i) * stride));
  void* buffers[] = {x.data(), y.data()};
  const int64_t symbols[] = {n};
  const target::Segment segment{buffers, symbols, n / 256};
  code.run(std::span<const target::Segment>(&segment, 1), 0);
  Worst worst;
  for (size_t i = 0; i < x.size(); ++i) {
    const Number argument = Number::of_real(x[i]);
    const double error = test::ulp_error(y[i], reference(op, float64, &argument).real());
    if (error > worst.error) worst = {error, x[i], y[i]};
  }
  return worst;
}

void measure(ScalarOp op, uint64_t stride) {
  const auto start = std::chrono::steady_clock::now();
  const Kernel kernel = test::scalar_kernel(op, float32);
  const auto code = target::cpu().compile(std::span<const Kernel>(&kernel, 1))[0];
  const int64_t chunks = static_cast<int64_t>((uint64_t{1} << 16) / stride);
  Worst worst;
  std::mutex mutex;
  runtime::parallel_for(chunks, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const Worst here = examine(op, *code, static_cast<uint64_t>(chunk), stride);
      const std::lock_guard lock(mutex);
      if (here.error > worst.error) worst = here;
    }
  });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("{:10} stated {:4} ulp, largest {:7.4f} at {:a} (gives {:a}), {:.0f} s\n", info(op).name, info(op).ulp,
             worst.error, worst.at, worst.got, seconds);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t stride = 1;
  std::set<std::string> wanted;
  for (int k = 1; k < argc; ++k) {
    const std::string word = argv[k];
    if (word == "--stride" && k + 1 < argc) stride = std::strtoull(argv[++k], nullptr, 10);
    else wanted.insert(word);
  }
  if (stride < 1 || stride > 1 << 16) {
    fmt::print(stderr, "ulp: a stride lies between 1 and 65536\n");
    return 2;
  }
  for (int k = 0; k < static_cast<int>(ScalarOp::count_); ++k) {
    const ScalarOp op = static_cast<ScalarOp>(k);
    const ScalarInfo& row = info(op);
    if (row.arity != 1 || !row.floats || row.basic || (!wanted.empty() && !wanted.contains(std::string(row.name))))
      continue;
    measure(op, stride);
  }
  return 0;
}
