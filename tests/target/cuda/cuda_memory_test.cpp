// Copies to and from a device where there is one: what they carry, and what they wait for.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "runtime/buffer.h"
#include "runtime/device.h"
#include "runtime/trace.h"
#include "target/cuda/cuda_support.h"
#include "target/cuda/driver/memory.h"
#include "target/target.h"

using namespace weft;

TEST_CASE("copies to a device take what is there when they are asked for, and wait for nothing") {
  if (!test::on_device()) return;
  runtime::Accelerator& device = *target::gpu(test::gpu_ordinal()).device();
  std::vector<size_t> sizes{1, 3, 64, 1000, 65536, 65537, 1 << 20, (4 << 20) + 5, 50 << 20};
  for (int k = 0; k < 200; ++k) sizes.push_back(4096 + static_cast<size_t>(k) * 37);
  std::vector<runtime::BufferRef> there;
  for (size_t bytes : sizes) there.push_back(runtime::allocate_on(&device, bytes));
  std::vector<unsigned char> pattern(50 << 20);
  const auto value_at = [](size_t which, size_t at) {
    return static_cast<unsigned char>(which * 31 + at * 7 + (at >> 12));
  };
  const int64_t waits = runtime::counters().device_waits;
  for (size_t k = 0; k < sizes.size(); ++k) {
    for (size_t i = 0; i < sizes[k]; ++i) pattern[i] = value_at(k, i);
    device.to_device(there[k]->on(&device), pattern.data(), sizes[k]);
    std::fill_n(pattern.begin(), sizes[k], static_cast<unsigned char>(0xee));
  }
  CHECK(runtime::counters().device_waits.load() == waits);
  for (size_t k = 0; k < sizes.size(); ++k) {
    std::vector<unsigned char> back(sizes[k], 0);
    device.to_host(back.data(), there[k]->on(&device), sizes[k]);
    size_t wrong = 0;
    for (size_t i = 0; i < sizes[k]; ++i) wrong += back[i] != value_at(k, i);
    CHECK(wrong == 0);
  }
  CHECK(runtime::counters().device_waits.load() == waits + 2);  // for the two that are larger than what is staged
}

TEST_CASE("copies between devices that do not reach each other pass through pinned memory, in the order of both") {
  if (!test::on_device()) return;
  namespace cuda = target::cuda;
  if (cuda::device_count() < 2) {
    MESSAGE("skipped: this machine has one GPU");
    return;
  }
  std::lock_guard order(runtime::Accelerator::order());
  cuda::Context &from = cuda::context(0), &to = cuda::context(1);
  runtime::Accelerator &source = *target::gpu(0).device(), &device = *target::gpu(1).device();
  to.make_current();
  cuda::PinnedStaging staging(to);
  for (const size_t bytes : {size_t{3}, (size_t{4} << 20) + 5, size_t{70} << 20}) {
    std::vector<unsigned char> pattern(bytes), back(bytes);
    for (size_t i = 0; i < bytes; ++i) pattern[i] = static_cast<unsigned char>(i * 13 + (i >> 11));
    const runtime::BufferRef here = runtime::allocate_on(&source, bytes), there = runtime::allocate_on(&device, bytes);
    source.to_device(here->on(&source), pattern.data(), bytes);
    const auto address = [](void* p) { return reinterpret_cast<cuda::DevicePtr>(p); };
    staging.from_device(address(there->on(&device)), from, address(here->on(&source)), bytes);
    std::fill(pattern.begin(), pattern.end(), static_cast<unsigned char>(0));
    source.to_device(here->on(&source), pattern.data(), bytes);  // after it was read
    device.to_host(back.data(), there->on(&device), bytes);
    size_t wrong = 0;
    for (size_t i = 0; i < bytes; ++i) wrong += back[i] != static_cast<unsigned char>(i * 13 + (i >> 11));
    CHECK(wrong == 0);
  }
  to.synchronize();
}
