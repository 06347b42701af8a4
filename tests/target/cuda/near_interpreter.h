#pragma once
// Kernels whose sums a GPU adds in another order than the interpreter: run on the host, their results are near its.
#include "target/cuda/cuda_support.h"
#include "target/cuda/host_kernels.h"

namespace weft::test {

/// A case with numbers of moderate size in all buffers.
inline RandomCase moderate(kernel::Kernel kernel, std::vector<int64_t> elements, int64_t grid) {
  kernel.any_size = true;
  RandomCase c = make_case(std::move(kernel), std::move(elements), {}, grid);
  for (size_t p = 0; p < c.buffers.size(); ++p) {
    const Dtype t = c.kernel.params[p].dtype;
    const std::vector<double> drawn = numbers(static_cast<size_t>(c.elements[p]), p + 1);
    for (size_t i = 0; i < drawn.size(); ++i)
      kernel::write_element(c.buffers[p].data(), t, static_cast<int64_t>(i),
                            kernel::round_to(Number::of_real(drawn[i]), t));
  }
  return c;
}

/// Returns how far a case's outputs are from the interpreter's, beside the largest.
inline double distance(const RandomCase& wanted, const RandomCase& got) {
  double most = 0;
  for (size_t p = 0; p < got.buffers.size(); ++p) {
    const Dtype t = got.kernel.params[p].dtype;
    const auto bytes = [&](const RandomCase& c) {
      const char* const data = reinterpret_cast<const char*>(c.buffers[p].data());
      return decode({data, data + c.buffers[p].size()}, t);
    };
    if (got.kernel.params[p].written)
      most = larger(most, beside_largest(bytes(got), bytes(wanted)) / (is_low_float(t) ? 100 : 1));
  }
  return most;
}

inline void check_near(const std::vector<RandomCase>& cases, const target::cuda::Features& features = {}) {
  const HostKernels host(cases, {}, features);
  for (size_t n = 0; n < cases.size(); ++n) {
    CAPTURE(n);
    CAPTURE(kernel::print(cases[n].kernel));
    RandomCase got = cases[n];
    host.run(n, got);
    CHECK(distance(interpreted(cases[n]), got) < 1e-4);
  }
}

}  // namespace weft::test
