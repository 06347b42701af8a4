#pragma once
// Generated code against the interpreter: the same kernel on the same data, bit for bit (any NaN for any NaN).
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device.h"
#include "kernel/expand/expand.h"
#include "kernel/interpret.h"
#include "kernel/random_kernel.h"
#include "target/cpu/cpu.h"
#include "thinning.h"

namespace weft::test {

/// Targets of this process without a disk cache, by instruction set; null where the processor lacks it.
inline target::CpuTarget* cpu_target(const std::string& isa) {
  static std::vector<std::pair<std::string, std::unique_ptr<target::CpuTarget>>> all;
  for (auto& [name, t] : all)
    if (name == isa) return t.get();
  std::unique_ptr<target::CpuTarget> made;
  try {
    made = std::make_unique<target::CpuTarget>(target::CpuOptions{isa, false});
  } catch (const std::invalid_argument&) {
  }
  all.emplace_back(isa, std::move(made));
  return all.back().second.get();
}

inline constexpr std::array<const char*, 3> instruction_sets{"native", "avx2", "generic"};

/// `shift`: bytes between where device memory begins and the buffers.
inline void run_compiled(target::Target& t, RandomCase& c, double work = 0, size_t shift = 0) {
  const auto code = t.compile(std::span<const kernel::Kernel>(&c.kernel, 1));
  std::vector<void*> buffers;
  runtime::Accelerator* device = t.device();
  for (auto& b : c.buffers) {
    buffers.push_back(device ? static_cast<char*>(device->allocate(b.size() + shift)) + shift
                             : reinterpret_cast<char*>(b.data()));
    if (device && !b.empty()) device->to_device(buffers.back(), b.data(), b.size());
  }
  const target::Segment segment{buffers, c.symbols, c.grid};
  code[0]->run(std::span<const target::Segment>(&segment, 1), work);
  for (size_t k = 0; device && k < buffers.size(); ++k) {
    if (!c.buffers[k].empty()) device->to_host(c.buffers[k].data(), buffers[k], c.buffers[k].size());
    device->release(static_cast<char*>(buffers[k]) - shift, c.buffers[k].size() + shift);
  }
}

/// What the interpreter makes of a case.
inline RandomCase interpreted(RandomCase c) {
  auto memory = host_buffers(c);
  kernel::interpret(kernel::expand(c.kernel), memory, c.symbols, c.grid);
  return c;
}

/// Empty where generated code leaves the same bits as `expected`, else where and how they differ.
inline std::string disagreement(RandomCase c, const RandomCase& expected, target::Target& t, size_t shift = 0) {
  run_compiled(t, c, 0, shift);
  const std::string d = difference(expected, c);
  return d.empty() ? "" : t.fingerprint() + ": " + d + "\n" + kernel::print(c.kernel);
}

/// Does a kernel have operators left that targets take from a library, or a GPU from its own instructions?
inline bool calls_library(const kernel::Kernel& k) {
  const std::function<bool(const kernel::Block&)> any = [&](const kernel::Block& block) {
    return std::any_of(block.insts.begin(), block.insts.end(), [&](const kernel::Inst& i) {
      return (i.op == kernel::Op::scalar && !kernel::info(i.scalar_op).basic) ||
             std::any_of(i.blocks.begin(), i.blocks.end(), any);
    });
  };
  return any(kernel::expand(k, {.special_functions = on_gpu()}).body);
}

/// Checks a case on the first `count` instruction sets that this processor has, or on the GPU where that is under test,
/// with buffers that begin on 16 bytes and with others.
inline void agree(const RandomCase& c, size_t count = instruction_sets.size()) {
  const RandomCase expected = interpreted(c);
  if (on_gpu()) {
    if (calls_library(c.kernel)) return;  // the device's own functions give other last bits
    for (const kernel::Local& local : c.kernel.locals)
      if (local.elements * local.dtype.size() > 100 << 10) return;  // more than a block of threads may share
    for (size_t shift : {0, 8}) {
      const std::string d = disagreement(c, expected, target_under_test(), shift);
      CHECK_MESSAGE(d.empty(), d);
    }
    return;
  }
  static size_t turn = 0;  // under a sanitizer a case has one instruction set, by turns
  ++turn;
  for (size_t k = 0; k < count; ++k)
    if (target::CpuTarget* t = cpu_target(instruction_sets[k]); t && (!sanitized || turn % count == k)) {
      const std::string d = disagreement(c, expected, *t);
      CHECK_MESSAGE(d.empty(), d);
    }
}

/// Values that go wrong first: zeros, infinities, NaN, subnormals, extremes, halves, neighbours of powers of two.
inline std::vector<Number> hard_values(Dtype t) {
  std::vector<Number> all;
  if (is_float(t)) {
    for (double v : {0.0,        -0.0,         1.0,           -1.0,         0.5,       -0.5,
                     1.5,        2.5,          -2.5,          3.0,          -7.25,     1e-45,
                     -1e-45,     1e-40,        5e-324,        6e-8,         -6e-5,     1.17549435e-38,
                     127.5,      128.0,        255.4,         -128.9,       255.5,     256.0,
                     32767.5,    65504.0,      65519.0,       65520.0,      1e5,       8388607.5,
                     16777217.0, 2147483647.0, -2147483648.0, 4294967296.0, 9.3e18,    -9.3e18,
                     1.9e19,     3e38,         -3e38,         1e300,        88.5,      -87.5,
                     104.0,      -103.9,       710.0,         0.1,          1.0000001, 0.99999994,
                     3.14159274, 1e-3})
      all.push_back(kernel::round_to(Number::of_real(v), t));
    for (float v : {INFINITY, -INFINITY, NAN}) all.push_back(Number::of_real(v));
  } else if (t == bool_) {
    for (int64_t v : {0, 1}) all.push_back(Number::of_int(v));
  } else {
    for (int64_t v : {0l,  1l,  2l,   3l,   4l,   7l,   8l,     15l,    16l,         31l,         32l,
                      63l, 64l, 100l, 127l, 128l, 255l, 32767l, 65535l, 2147483647l, 4294967295l, INT64_MAX})
      for (int64_t w : {v, -v, -v - 1}) all.push_back(kernel::round_to(Number::of_int(w), t));
  }
  return all;
}

/// A case around a kernel: `elements` of each parameter, hard and random values in all of them.
inline RandomCase make_case(kernel::Kernel k, std::vector<int64_t> elements, std::vector<int64_t> symbols, int64_t grid,
                            uint64_t seed = 1) {
  RandomCase c{std::move(k), {}, elements, std::move(symbols), grid};
  std::mt19937_64 random(seed);
  for (size_t p = 0; p < elements.size(); ++p) {
    const Dtype t = c.kernel.params[p].dtype;
    const std::vector<Number> hard = hard_values(t);
    c.buffers.emplace_back(static_cast<size_t>(elements[p]) * t.size());
    for (int64_t i = 0; i < elements[p]; ++i) {
      Number v = hard[random() % hard.size()];
      const uint64_t kind = random() % 4;
      if (kind == 0 && is_float(t))
        v = kernel::round_to(Number::of_real(std::normal_distribution<double>(0, 3)(random)), t);
      if (kind == 0 && is_integer(t)) v = kernel::round_to(Number::of_int(static_cast<int64_t>(random())), t);
      kernel::write_element(c.buffers[p].data(), t, i, v);
    }
  }
  return c;
}

inline constexpr std::array<Dtype, 15> all_dtypes{bool_,    uint8,   uint16,  uint32,      uint64,
                                                  int8,     int16,   int32,   int64,       float16,
                                                  bfloat16, float32, float64, float8_e4m3, float8_e5m2};

}  // namespace weft::test
