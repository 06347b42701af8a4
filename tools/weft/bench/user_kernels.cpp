// weft bench user-kernels: kernels as users write them beside what the compiler makes of the same operations,
// alternately in one run, on either device; on a GPU those of user_kernels_gpu.cpp too.
#include <fmt/format.h>

#include "compiler/program.h"
#include "tools/weft/bench/support.h"
#include "tools/weft/kernel/examples.h"
#include "tools/weft/kernel/subjects.h"
#include "weft/compile.h"
#include "weft/device.h"
#include "weft/transforms.h"

namespace weft::tool {

namespace {

/// Returns what a kernel does, and the name of its rate: operations of products, else bytes of all its arrays.
std::pair<double, const char*> work_and_rate(const array& result) {
  const graph::KernelProgram& program = *result.value().node->attrs().kernel;
  if (program.work.products > 0) return {program.work.products, "gflops"};
  return {least_bytes(program), "GBps"};
}

}  // namespace

void bench_user_kernels(const BenchOptions& o) {
  for (const ExampleKernel& p : example_kernels()) {
    const std::vector<array> inputs = example_arguments(p.shapes);
    for (const array& x : inputs) eval(x);
    const auto [work, rate] = work_and_rate(p.call(inputs)[0]);
    const ArrayFunction user = compiled_as(p.call, inputs, false), own = compiled_as(p.own, inputs, false);
    const auto time = [&](const ArrayFunction& f) {
      return median_of(
          reps_of(o, 9), [&] { eval(f(inputs)), synchronize(); }, o.cpu_time);
    };
    std::vector<double> users, compilers;  // alternately: other work of the machine affects both
    for (int turn = 0; turn < 5; ++turn) {
      users.push_back(time(user));
      compilers.push_back(time(own));
    }
    std::sort(users.begin(), users.end());
    std::sort(compilers.begin(), compilers.end());
    Row(fmt::format("user_kernel_{}", p.figure), o)
        .number("ms", users[2])
        .number(rate, work / users[2] / 1e6)
        .number("compiler_ms", compilers[2])
        .number("of_compiler", compilers[2] / users[2])
        .print();
  }
  if (default_device().type == Device::gpu) bench_tensor_cores(o);
}

}  // namespace weft::tool
