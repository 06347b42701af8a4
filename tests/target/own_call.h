#pragma once
// Calls that a kernel of our own answers on Hopper GPUs, beside a library's: what all of their tests ask.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "kernel/describe/desc.h"
#include "target/cuda/cuda_support.h"
#include "target/target.h"

namespace weft::test {

/// Whether there is one to test on; says why not.
inline bool on_hopper() {
  if (!on_device()) return false;
  const bool there = context().info().arch() == "sm_90a";
  if (!there) MESSAGE("skipped: no Hopper GPU");
  return there;
}

/// `own` is near `want`, has the same bits twice, and whichever wins where the target measures it beside the library's
/// is near as well. Both operands are float32.
inline void check_own_call(const kernel::CallDesc& desc, const target::LibraryCall& own,
                           const std::vector<double>& left, const std::vector<double>& right,
                           const std::vector<double>& want, double bound) {
  const DeviceArray on_left(context(), left, float32), on_right(context(), right, float32),
      result(context(), std::vector<double>(want.size(), NAN), float32);
  void* operands[] = {on_left.address(), on_right.address(), result.address()};
  own.run(operands);
  const std::vector<double> got = result.values();
  CHECK(largest_difference(got, want) < bound);
  own.run(operands);
  CHECK(result.values() == got);
  const auto call = target::gpu(gpu_ordinal()).call(desc);
  if (!call) return;
  call->run(operands);
  CHECK(largest_difference(result.values(), want) < 2 * bound);
  MESSAGE(desc.to_string() << ": " << call->name());
}

}  // namespace weft::test
