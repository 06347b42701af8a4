#pragma once
// Runs a traced kernel in the interpreter, as it was written and as it is rewritten for processors with vector
// registers of several sizes, and compares their bits.
#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "kernel/checked_memory.h"
#include "kernel/expand/expand.h"
#include "kernel/interpret.h"
#include "kernel/language/trace.h"
#include "kernel/legalize/legalize.h"
#include "kernel/rules.h"
#include "weft/kernel.h"

namespace test_kernels {

struct Bytes {
  std::vector<char> data;
  int64_t elements;
};

inline std::vector<Bytes> interpreted(const weft::kernel::Kernel& kernel, std::vector<Bytes> arrays, int64_t programs,
                                      std::span<const int64_t> extents = {}) {
  std::vector<weft::kernel::HostBuffer> buffers;
  for (Bytes& a : arrays) buffers.push_back({a.data.data(), a.elements});
  weft::kernel::interpret(kernel, buffers, extents, programs);
  return arrays;
}

/// Returns whether all tiles of a kernel have two axes at most.
inline bool flat(const weft::kernel::Kernel& kernel) {
  for (const weft::kernel::Type& t : kernel.types)
    if (t.rank() > 2) return false;
  return true;
}

/// Runs a kernel on copies of the arrays as it is and rewritten, and compares bits.
inline void compare_rewritten(const weft::k::Program& program, const std::vector<Bytes>& arrays,
                              std::span<const int64_t> extents = {}) {
  const auto& data = program.data();
  const weft::kernel::Kernel expanded = weft::kernel::expand(data.kernel);
  const int64_t programs = program.programs(extents);
  const std::vector<Bytes> wanted = interpreted(expanded, arrays, programs, extents);
  for (const weft::kernel::VectorRegisters registers : {weft::kernel::VectorRegisters{16, 16}, {32, 16}, {64, 32}}) {
    const weft::kernel::Kernel legal = weft::kernel::legalize(expanded, registers);
    CHECK(flat(legal));
    const std::vector<Bytes> got = interpreted(legal, arrays, programs, extents);
    for (size_t k = 0; k < got.size(); ++k) {
      CAPTURE(program.name());
      CAPTURE(k);
      CAPTURE(registers.bytes);
      CHECK(std::memcmp(got[k].data.data(), wanted[k].data.data(), got[k].data.size()) == 0);
    }
  }
}

/// Returns arrays of random numbers for a kernel's parameters.
inline std::vector<Bytes> random_arrays(const weft::k::Program& program, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> reals;
  std::uniform_int_distribution<int64_t> integers(0, 20);
  std::vector<Bytes> out;
  for (const weft::k::Param& p : program.params()) {
    int64_t elements = 1;
    for (const int64_t d : p.dims) elements *= d;
    Bytes array{std::vector<char>(static_cast<size_t>(elements) * p.dtype.size()), elements};
    for (int64_t i = 0; i < elements; ++i) {
      const weft::Number n =
          weft::is_float(p.dtype) ? weft::Number::of_real(reals(engine)) : weft::Number::of_int(integers(engine));
      weft::kernel::write_element(array.data.data(), p.dtype, i, weft::kernel::round_to(n, p.dtype));
    }
    out.push_back(std::move(array));
  }
  return out;
}

/// Runs a kernel on arrays in the interpreter, and checks that it keeps its bits when it is rewritten.
template <class... Vector>
void run_with(const weft::k::Program& program, std::span<const int64_t> extents, Vector&... arrays) {
  std::vector<Bytes> before;
  const auto keep = [&](auto& v) {
    const char* bytes = reinterpret_cast<const char*>(v.data());
    before.push_back({{bytes, bytes + v.size() * sizeof(v[0])}, static_cast<int64_t>(v.size())});
  };
  (keep(arrays), ...);
  void* const pointers[] = {arrays.data()...};
  program.interpret(pointers, extents);
  compare_rewritten(program, before, extents);
}
template <class... Vector>
void run(const weft::k::Program& program, Vector&... arrays) {
  run_with(program, {}, arrays...);
}

}  // namespace test_kernels
