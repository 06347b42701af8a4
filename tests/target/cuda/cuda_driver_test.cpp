// What works without a GPU: finding libraries, saying what is missing, compiling CUDA C++. With a GPU, the driver
// itself.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "target/cuda/driver/context.h"
#include "target/cuda/driver/driver.h"
#include "target/cuda/driver/library.h"
#include "target/cuda/driver/nvrtc.h"

namespace cuda = weft::target::cuda;

TEST_CASE("a library that does not exist is missing, with a reason, and gives no functions") {
  const cuda::Library nowhere("nowhere", {"libweft-nowhere.so.2", "libweft-nowhere.so.1"}, "nothing");
  std::string why;
  CHECK(!nowhere.available(&why));
  CHECK(why.find("libweft-nowhere.so.2") != std::string::npos);
  CHECK(why.find("libweft-nowhere.so.1") != std::string::npos);
  CHECK(nowhere.path().empty());
  int (*function)() = nullptr;
  CHECK(!nowhere.bind(function, "anything"));
  CHECK((function == nullptr));
}

TEST_CASE("a library that exists is opened once, by the first name that is there") {
  const cuda::Library maths("maths", {"libweft-nowhere.so.1", "libm.so.6"}, "nothing");
  CHECK(maths.available());
  CHECK(maths.path().find("libm.so.6") != std::string::npos);
  double (*cosine)(double) = nullptr;
  REQUIRE(maths.bind(cosine, "cos"));
  CHECK(cosine(0.0) == 1.0);
  CHECK(!maths.bind(cosine, "weft_no_such_function"));
}

TEST_CASE("without a driver every use says what to do") {
  std::string why;
  if (cuda::available(&why)) {
    CHECK(why.empty());
    CHECK(cuda::device_count() >= 1);
    CHECK(cuda::driver_version() >= 12000);
    return;
  }
  MESSAGE("no GPU here: " << why);
  CHECK(!why.empty());
  CHECK(cuda::device_count() == 0);
  CHECK_THROWS_WITH_AS(cuda::driver(), doctest::Contains("[cuda]"), std::runtime_error);
  CHECK_THROWS_WITH_AS(cuda::context(), doctest::Contains("compute on the CPU"), std::runtime_error);
}

TEST_CASE("failures of the driver name the call, the error and what it was for") {
  CHECK_NOTHROW(cuda::check_result(cuda::success, "cuNothing"));
  CHECK_THROWS_WITH_AS(cuda::check_result(2, "cuMemAlloc_v2", "64 MiB"),
                       doctest::Contains("[cuda] cuMemAlloc_v2 failed"), std::runtime_error);
  CHECK_THROWS_WITH_AS(cuda::check_result(2, "cuMemAlloc_v2", "64 MiB"), doctest::Contains("(64 MiB)"),
                       std::runtime_error);
}

TEST_CASE("architectures: the letter from compute capability 9.0 on") {
  cuda::DeviceInfo info;
  info.major = 8, info.minor = 9;
  CHECK(info.arch() == "sm_89");
  info.major = 9, info.minor = 0;
  CHECK(info.arch() == "sm_90a");
  info.major = 10;
  CHECK(info.arch() == "sm_100a");
}

TEST_CASE("devices that are too old are refused by name") {
  cuda::DeviceInfo info;
  info.name = "NVIDIA Old";
  info.major = 7, info.minor = 5;
  CHECK_THROWS_WITH_AS(cuda::require_capability(info),
                       doctest::Contains("NVIDIA Old has compute capability 7.5, and Weft needs 8.0 or more"),
                       std::runtime_error);
  info.major = 8, info.minor = 0;
  CHECK_NOTHROW(cuda::require_capability(info));
}

TEST_CASE("statistics of kernels are read from ptxas's messages") {
  const auto usage = cuda::parse_usage(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'second' for 'sm_90a'\n"
      "ptxas info    : Function properties for second\n"
      "ptxas         .     832 bytes stack frame, 32 bytes spill stores, 48 bytes spill loads\n"
      "ptxas info    : Function properties for helper\n"
      "    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 0 barriers, 832 bytes cumulative stack size\n"
      "ptxas info    : Compiling entry function 'first' for 'sm_80'\n"
      "ptxas info    : Function properties for first\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 10 registers, used 1 barriers, 4096 bytes smem, 380 bytes cmem[0]\n");
  REQUIRE(usage.size() == 2);
  CHECK(usage[0].name == "second");
  CHECK(usage[0].arch == "sm_90a");
  CHECK(usage[0].registers == 32);
  CHECK(usage[0].stack_bytes == 832);
  CHECK(usage[0].spill_store_bytes == 36);
  CHECK(usage[0].spill_load_bytes == 56);
  CHECK(usage[0].shared_bytes == 0);
  CHECK(usage[1].name == "first");
  CHECK(usage[1].registers == 10);
  CHECK(usage[1].barriers == 1);
  CHECK(usage[1].shared_bytes == 4096);
  CHECK(cuda::parse_usage("").empty());
}

TEST_CASE("CUDA C++ is compiled to machine code, without a GPU") {
  std::string why;
  if (!cuda::nvrtc_available(&why)) {
    MESSAGE("skipped: " << why);
    CHECK_THROWS_AS(cuda::compile("", "sm_90a"), std::runtime_error);
    return;
  }
  CHECK(cuda::nvrtc_version() >= 12000);
  const std::string source =
      "extern \"C\" __global__ void turn(float* x) {\n"
      "  __shared__ float kept[256];\n"
      "  kept[threadIdx.x] = x[threadIdx.x];\n"
      "  __syncthreads();\n"
      "  x[threadIdx.x] = kept[255 - threadIdx.x] * 2.0f + 1.0f;\n"
      "}\n";
  for (const char* arch : {"sm_80", "sm_90a"}) {
    std::string log;
    const std::vector<char> cubin = cuda::compile(source, arch, {}, &log);
    REQUIRE(cubin.size() > 64);
    CHECK(std::memcmp(cubin.data(), "\177ELF", 4) == 0);
    const auto usage = cuda::parse_usage(log);
    REQUIRE(usage.size() == 1);
    CHECK(usage[0].name == "turn");
    CHECK(usage[0].arch == arch);
    CHECK(usage[0].registers > 0);
    CHECK(usage[0].registers < 64);
    CHECK(usage[0].shared_bytes == 1024);
    CHECK(usage[0].spill_store_bytes == 0);
  }
  CHECK_THROWS_WITH_AS(cuda::compile(source, "sm_999"),
                       doctest::Contains("does not know sm_999: install a newer CUDA toolkit"), std::runtime_error);
  // The same source gives the same bytes: a cache by source may stand for the compiler.
  CHECK(cuda::compile(source, "sm_90a") == cuda::compile(source, "sm_90a"));
}

TEST_CASE("spills show in the statistics") {
  if (!cuda::nvrtc_available()) return;
  const std::string source =
      "extern \"C\" __global__ void __launch_bounds__(1024, 2) many(float* x) {\n"
      "  float v[96];\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < 96; ++i) v[i] = x[i * 1024 + threadIdx.x];\n"
      "  __syncthreads();\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < 96; ++i) x[i * 1024 + threadIdx.x] = v[95 - i] * v[(i * 7) % 96];\n"
      "}\n";
  std::string log;
  cuda::compile(source, "sm_90a", {}, &log);
  const auto usage = cuda::parse_usage(log);
  REQUIRE(usage.size() == 1);
  CHECK(usage[0].spill_store_bytes > 0);
  CHECK(usage[0].spill_load_bytes > 0);
}

TEST_CASE("mistakes in CUDA C++ are thrown with the compiler's messages and the lines") {
  if (!cuda::nvrtc_available()) return;
  std::string log, message;
  try {
    cuda::compile("extern \"C\" __global__ void f(float* x) {\n  x[0] = nonsense;\n}\n", "sm_90a", {}, &log);
  } catch (const std::runtime_error& e) {
    message = e.what();
  }
  CHECK(message.find("[cuda]") == 0);
  CHECK(message.find("nonsense") != std::string::npos);
  CHECK(message.find("    2 |   x[0] = nonsense;") != std::string::npos);
  CHECK(log.find("nonsense") != std::string::npos);
  CHECK_THROWS_AS(cuda::compile("", "sm_12345"), std::runtime_error);
}
