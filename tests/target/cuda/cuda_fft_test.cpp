// Fourier transforms of a device without the library for them: the host's routine on copies gives what the library
// gives.
#include "target/cuda/cuda_support.h"
#include "target/cuda/host_call.h"
#include "target/cuda/libraries/cufft.h"

using namespace weft;
using kernel::CallDesc;

TEST_CASE("transforms that the host computes for a device are the library's") {
  if (!test::on_device()) return;
  namespace cuda = target::cuda;
  cuda::Context& context = test::context();
  for (const Dtype t : {float32, float64})
    for (const CallDesc& desc : {CallDesc{"fft", {{t, {3, 60, 2}}}, {{t, {3, 60, 2}}}, {0}},
                                 CallDesc{"fft", {{t, {3, 60, 2}}}, {{t, {3, 60, 2}}}, {1}},
                                 CallDesc{"rfft", {{t, {4, 50}}}, {{t, {4, 26, 2}}}, {}},
                                 CallDesc{"irfft", {{t, {4, 26, 2}}}, {{t, {4, 50}}}, {}}}) {
      CAPTURE(desc.to_string());
      const auto library = cuda::cufft_call(desc, context), host = cuda::host_call(desc, context);
      REQUIRE(library);
      REQUIRE(host);
      CHECK(!host->recordable());
      const std::vector<double> nothing(test::size_of(desc.outputs[0].extents), -1);
      std::vector<double> values = test::numbers(test::size_of(desc.inputs[0].extents), 3);
      if (desc.name == "irfft")  // of real numbers the first and the middle coefficient are real
        for (size_t k = 0; k < values.size(); k += 52) values[k + 1] = values[k + 51] = 0;
      const test::DeviceArray in(context, values, t), a(context, nothing, t), b(context, nothing, t);
      void *const to_a[] = {in.address(), a.address()}, *const to_b[] = {in.address(), b.address()};
      library->run(to_a);
      host->run(to_b);
      context.synchronize();
      CHECK(test::beside_largest(b.values(), a.values()) < (t == float32 ? 1e-5 : 1e-13));
    }
}
