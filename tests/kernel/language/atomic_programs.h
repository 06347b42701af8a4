#pragma once
// Kernels whose programs agree by atomics. Their arrays begin at 0.
#include "weft/kernel.h"

namespace test_kernels {

namespace k = weft::k;

/// A sum of all programs' parts by the last of them, and a lock around a counter.
inline k::Program agreed() {
  using weft::float32, weft::int32;
  const std::vector<k::Param> params = {{k::Use::in, float32, {24, 70}},
                                        {k::Use::in_out, float32, {24}},
                                        {k::Use::in_out, int32, {2}},
                                        {k::Use::in_out, int32, {40}},
                                        {k::Use::in_out, float32, {1}}};
  return k::trace("agreed", params, {24}, [](std::span<const k::AnyRef> r) {
    const k::In<float, 2> x(r[0]);
    const k::InOut<float, 1> parts(r[1]), sum(r[4]);
    const k::InOut<int32_t, 1> words(r[2]), shared(r[3]);
    const auto own = k::program_id(0);
    parts(own) = k::sum(x(own, k::all).load() + k::cast<float>(own), 0);
    const k::Mutex lock(words, 1);
    lock.locked([&] { shared(k::all) += 1; });
    k::when(k::last_program(words, 0), [&] { sum(0) = k::sum(parts(k::all).load(), 0); });
  });
}

}  // namespace test_kernels
