// The null target takes everything, runs nothing and counts; libraries can be switched off.
#include <doctest/doctest.h>

#include "target/target.h"

using namespace weft;
using namespace weft::target;

namespace {
kernel::Kernel fill(double value) {
  kernel::Builder b("fill");
  const auto out = b.param("y", float32, true);
  const auto at = b.mul(b.program_id(), b.index(16));
  b.store(out, b.real(float32, value, {16}), at, {1});
  return b.finish();
}
}  // namespace

TEST_CASE("null target: kernels are counted by digest and leave memory alone") {
  Target& t = null();
  const CompileStats before = t.stats();
  const std::vector<kernel::Kernel> kernels{fill(1), fill(2), fill(1)};
  const auto executables = t.compile(kernels);
  REQUIRE(executables.size() == 3);
  const CompileStats first = t.stats();
  CHECK(first.compiled - before.compiled == 2);
  CHECK(first.from_memory - before.from_memory == 1);
  t.compile(kernels);
  CHECK(t.stats().compiled == first.compiled);
  CHECK(t.stats().from_memory - first.from_memory == 3);
  float data[16] = {7, 7, 7};
  void* buffers[] = {data};
  const Segment segment{buffers, {}, 1};
  executables[0]->run({&segment, 1}, 16);
  CHECK(data[0] == 7);
  CHECK(t.fingerprint() == "null");
  CHECK(t.machine().lanes(4) == 16);
  CHECK(t.machine().lanes(2) == 32);
}

TEST_CASE("null target: library calls for any product of f32 and bf16, unless libraries are off") {
  kernel::DotDesc d;
  d.m = d.n = d.k = 1;
  CHECK(null().library(d) != nullptr);
  d.a = d.b = bfloat16;
  const auto call = null().library(d);
  REQUIRE(call != nullptr);
  CHECK(call->name() == "null");
  call->run({});
  d.a = float64;
  CHECK(null().library(d) == nullptr);
  d.a = bfloat16;
  d.k = 0;
  CHECK(null().library(d) == nullptr);
  d.k = 1;
  CHECK(libraries_enabled());
  set_libraries_enabled(false);
  CHECK_FALSE(libraries_enabled());
  CHECK(null().library(d) == nullptr);
  set_libraries_enabled(true);
  CHECK(null().library(d) != nullptr);
}
