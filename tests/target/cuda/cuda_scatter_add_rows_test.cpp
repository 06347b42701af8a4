// Rows added by atomics: compiled wherever NVRTC is; on a device, numbers that occur once, often and outside, against
// sums that are exact in any order.
#include <doctest/doctest.h>

#include <tuple>

#include "target/cuda/cuda_support.h"
#include "target/cuda/driver/nvrtc.h"
#include "target/cuda/handwritten/scatter_add_rows.h"
#include "target/target.h"

using namespace weft;
using namespace weft::test;
namespace cuda = target::cuda;

namespace {

kernel::CallDesc desc_of(int64_t count, int64_t positions, int64_t width, Dtype ids, Dtype from, Dtype to = float32) {
  return {"scatter_rows",
          {{ids, {count}}, {from, {count, width}}},
          {{to, {positions, width}}},
          {},
          {.deterministic = false}};
}

}  // namespace

TEST_CASE("additions of rows in any order: what they take, and that their kernels compile") {
  const auto match = [](const kernel::CallDesc& desc) { return cuda::match_scatter_add_rows(desc, {}); };
  CHECK(match(desc_of(100, 10, 8, int32, float32)));
  CHECK(!match(desc_of(100, 10, 6, int32, float32)));
  CHECK(!match(desc_of(100, 10, 8, int32, float32, bfloat16)));
  CHECK(!match(desc_of(100, 10, 8, int32, float64)));
  kernel::CallDesc deterministic = desc_of(100, 10, 8, int32, float32);
  deterministic.numerics.deterministic = true;
  CHECK(!match(deterministic));
  std::string why;
  if (!cuda::nvrtc_available(&why)) {
    MESSAGE("skipped: " << why);
    return;
  }
  for (const Dtype from : {float32, bfloat16, float16})
    for (const char* arch : {"sm_80", "sm_90a"}) {
      std::string log;
      const auto found = match(desc_of(1000, 50, 768, from == float32 ? uint16 : int64, from));
      REQUIRE(found);
      const cuda::HandwrittenKernel& row = cuda::handwritten_kernel("scatter_add_rows");
      CHECK(!cuda::compile(cuda::source_of(row, found->parameters), arch, {}, &log).empty());
      const auto usage = cuda::parse_usage(log);
      REQUIRE(usage.size() == 1);
      CHECK(usage[0].stack_bytes == 0);
    }
}

TEST_CASE("additions of rows in any order on the device") {
  if (!on_device()) return;
  cuda::Context& context = test::context();
  const int64_t count = 5000, positions = 37;
  for (const auto& [width, from, shift] :
       {std::tuple{32, float32, 0}, {132, bfloat16, 0}, {64, float16, 0}, {64, float32, 4}}) {
    CAPTURE(width);
    std::vector<double> ids, rows, sums(static_cast<size_t>(positions * width));
    for (int64_t i = 0; i < count; ++i)
      ids.push_back(i % 3 == 0 ? 5 : static_cast<double>(i * 7 % 90 - 45));  // some are outside on either side
    for (int64_t i = 0; i < count * width; ++i) rows.push_back(static_cast<double>(i * 2654435761u % 7) - 3);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<double>(i % 5);
    std::vector<double> want = sums;
    for (int64_t i = 0; i < count; ++i) {
      auto position = static_cast<int64_t>(ids[static_cast<size_t>(i)]);
      if (position < 0) position += positions;
      if (position < 0 || position >= positions) continue;
      for (int64_t k = 0; k < width; ++k)
        want[static_cast<size_t>(position * width + k)] += rows[static_cast<size_t>(i * width + k)];
    }
    const DeviceArray on_ids(context, ids, int32), on_rows(context, rows, from, static_cast<size_t>(shift)),
        on_sums(context, sums, float32);
    const auto call = target::gpu(gpu_ordinal()).call(desc_of(count, positions, width, int32, from));
    REQUIRE(call);
    CHECK(call->name() == "weft scatter_add_rows");
    void* operands[] = {on_ids.address(), on_rows.address(), on_sums.address()};
    call->run(operands);
    CHECK((on_sums.values() == want));
  }
}
