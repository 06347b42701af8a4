#pragma once
// Runs a traced kernel in the interpreter, as it was written and as it is rewritten for processors with vector registers
// of several sizes, and compares their bits.
#include <doctest/doctest.h>

#include <cstring>
#include <vector>

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

inline std::vector<Bytes> interpreted(const weft::kernel::Kernel& kernel, std::vector<Bytes> arrays, int64_t programs) {
  std::vector<weft::kernel::HostBuffer> buffers;
  for (Bytes& a : arrays) buffers.push_back({a.data.data(), a.elements});
  weft::kernel::interpret(kernel, buffers, {}, programs);
  return arrays;
}

/// Returns whether all tiles of a kernel have two axes at most.
inline bool flat(const weft::kernel::Kernel& kernel) {
  for (const weft::kernel::Type& t : kernel.types)
    if (t.rank() > 2) return false;
  return true;
}

template <class... Vector>
void run(const weft::k::Program& program, Vector&... arrays) {
  const auto& data = program.data();
  std::vector<Bytes> before;
  const auto keep = [&](auto& v) {
    const char* bytes = reinterpret_cast<const char*>(v.data());
    before.push_back({{bytes, bytes + v.size() * sizeof(v[0])}, static_cast<int64_t>(v.size())});
  };
  (keep(arrays), ...);
  void* const pointers[] = {arrays.data()...};
  program.interpret(pointers);
  const weft::kernel::Kernel expanded = weft::kernel::expand(data.kernel);
  const std::vector<Bytes> wanted = interpreted(expanded, before, data.programs);
  for (const weft::kernel::VectorRegisters registers : {weft::kernel::VectorRegisters{16, 16}, {32, 16}, {64, 32}}) {
    const weft::kernel::Kernel legal = weft::kernel::legalize(expanded, registers);
    CHECK(flat(legal));
    const std::vector<Bytes> got = interpreted(legal, before, data.programs);
    for (size_t k = 0; k < got.size(); ++k) {
      CAPTURE(program.name());
      CAPTURE(k);
      CAPTURE(registers.bytes);
      CHECK(std::memcmp(got[k].data.data(), wanted[k].data.data(), got[k].data.size()) == 0);
    }
  }
}

}  // namespace test_kernels
