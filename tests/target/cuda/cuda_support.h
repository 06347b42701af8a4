#pragma once
// Arrays of numbers on the host in float64 and on the device in any dtype, for tests that run where
// WEFT_TEST_DEVICE=cuda and there is a GPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/half.h"
#include "base/number.h"
#include "device.h"
#include "target/cuda/driver/context.h"
#include "target/cuda/driver/driver.h"

namespace weft::test {

inline target::cuda::Context& context() { return target::cuda::context(gpu_ordinal()); }

/// Whether tests of the device run; says why not.
inline bool on_device() {
  if (!on_gpu()) {
    MESSAGE("skipped: WEFT_TEST_DEVICE is not cuda");
    return false;
  }
  std::string why;
  const bool there = target::cuda::available(&why);
  CHECK_MESSAGE(there, why);
  return there;
}

inline std::vector<char> encode(const std::vector<double>& values, Dtype t) {
  std::vector<char> out(values.size() * t.size());
  for (size_t i = 0; i < values.size(); ++i) {
    char* to = out.data() + i * t.size();
    const auto put = [to](auto v) { std::memcpy(to, &v, sizeof v); };
    if (t == float64) put(values[i]);
    else if (t == float32) put(static_cast<float>(values[i]));
    else if (t == int32) put(static_cast<int32_t>(values[i]));
    else if (t == int8) put(static_cast<int8_t>(values[i]));
    else if (is_float8(t)) put(static_cast<uint8_t>(float_to_low(static_cast<float>(values[i]), t)));
    else put(float_to_low(static_cast<float>(values[i]), t));
  }
  return out;
}

inline std::vector<double> decode(const std::vector<char>& bytes, Dtype t) {
  std::vector<double> out(bytes.size() / t.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const char* from = bytes.data() + i * t.size();
    const auto get = [from](auto v) {
      std::memcpy(&v, from, sizeof v);
      return v;
    };
    if (t == float64) out[i] = get(double{});
    else if (t == float32) out[i] = get(float{});
    else if (t == int32) out[i] = get(int32_t{});
    else if (t == int8) out[i] = get(int8_t{});
    else if (is_float8(t)) out[i] = low_to_float(get(uint8_t{}), t);
    else out[i] = low_to_float(get(uint16_t{}), t);
  }
  return out;
}

/// What `values` are once they have been stored in a dtype.
inline std::vector<double> rounded(const std::vector<double>& values, Dtype t) { return decode(encode(values, t), t); }

class DeviceArray {
 public:
  DeviceArray(target::cuda::Context& context, const std::vector<double>& values, Dtype t, size_t offset_bytes = 0)
      : context_(context), dtype_(t), bytes_(values.size() * t.size()), offset_(offset_bytes) {
    using namespace target::cuda;
    context.make_current();
    target::cuda::check_result(driver().mem_alloc(&pointer_, bytes_ + offset_ + 16), "cuMemAlloc");
    if (values.empty()) return;
    const std::vector<char> host = encode(values, t);
    target::cuda::check_result(driver().memcpy_htod_async(pointer_ + offset_, host.data(), bytes_, context.stream()),
                               "cuMemcpyHtoDAsync");
    context.synchronize();
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { target::cuda::driver().mem_free(pointer_); }

  void* address() const { return reinterpret_cast<void*>(pointer_ + offset_); }
  std::vector<double> values() const {
    std::vector<char> host(bytes_);
    if (host.empty()) return {};
    context_.make_current();
    target::cuda::check_result(
        target::cuda::driver().memcpy_dtoh_async(host.data(), pointer_ + offset_, bytes_, context_.stream()),
        "cuMemcpyDtoHAsync");
    context_.synchronize();
    return decode(host, dtype_);
  }

 private:
  target::cuda::Context& context_;
  Dtype dtype_;
  size_t bytes_, offset_;
  target::cuda::DevicePtr pointer_ = 0;
};

/// Numbers in [-1, 1] that differ from seed to seed, the same in every run.
inline std::vector<double> numbers(size_t count, uint64_t seed) {
  std::vector<double> out(count);
  uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
  for (double& v : out) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    v = static_cast<double>(static_cast<int64_t>(state >> 33) - (int64_t{1} << 30)) /
        static_cast<double>(int64_t{1} << 30);
  }
  return out;
}

inline size_t size_of(const std::vector<int64_t>& extents) {
  size_t n = 1;
  for (int64_t e : extents) n *= static_cast<size_t>(e);
  return n;
}

/// The larger of two errors; a NaN is larger than all, and stays.
inline double larger(double most, double error) { return std::isnan(most) || error <= most ? most : error; }

/// The largest |a - b|.
inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    const double d = std::abs(a[i] - b[i]);
    most = larger(most, d);
  }
  return most;
}

/// The largest |a - b| / (1 + |b|).
inline double worst_error(const std::vector<double>& a, const std::vector<double>& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    const double d = std::abs(a[i] - b[i]) / (1 + std::abs(b[i]));
    most = larger(most, d);
  }
  return most;
}

/// The largest |a - b| beside the largest |b|.
inline double beside_largest(const std::vector<double>& a, const std::vector<double>& b) {
  double most = a.size() == b.size() ? 0 : INFINITY, largest = 1e-30;
  for (double v : b) largest = std::max(largest, std::abs(v));
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    const double d = std::abs(a[i] - b[i]) / largest;
    most = d >= 0 && d <= most ? most : d;
  }
  return most;
}

}  // namespace weft::test
