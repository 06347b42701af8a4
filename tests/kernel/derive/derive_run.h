#pragma once
// Derivatives of traced kernels in float64: forward mode against finite differences, reverse mode against forward mode,
// <g, J t> = <Jᵀ g, t>. The derivatives run in the interpreter, which reports programs that interfere.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "kernel/derive/derive.h"
#include "kernel/expand/expand.h"
#include "kernel/interpret.h"
#include "kernel/language/trace.h"
#include "kernel/legalize/legalize.h"
#include "weft/kernel.h"

namespace weft::testing {

using Doubles = std::vector<double>;

/// A kernel on float64 arrays, and on int64 arrays that are not differentiated.
struct Subject {
  k::Program program;
  std::vector<Doubles> arrays;                      // what each float64 parameter begins as; of results: anything
  std::vector<std::vector<int64_t>> integers = {};  // by parameter, where its dtype is int64

  const std::vector<k::Param>& params() const { return program.params(); }
  bool is_float(size_t k) const { return params()[k].dtype == float64; }
  bool reads(size_t k) const { return params()[k].use != k::Use::out; }
  bool writes(size_t k) const { return params()[k].use != k::Use::in; }
  kernel::Source source() const {
    kernel::Source out{program.data().kernel, {}, {}, program.programs()};
    for (const k::Param& p : params()) {
      out.dims.push_back(p.dims);
      out.begins.push_back(p.use != k::Use::out);
    }
    return out;
  }
};

inline size_t elements(const std::vector<int64_t>& dims) {
  size_t n = 1;
  for (const int64_t d : dims) n *= static_cast<size_t>(d);
  return n;
}

inline Doubles random_doubles(size_t n, uint32_t seed, double low = -1, double high = 1) {
  std::mt19937 bits(seed);
  std::uniform_real_distribution<double> draw(low, high);
  Doubles out(n);
  for (double& v : out) v = draw(bits);
  return out;
}

/// Fills the arrays of a program with random numbers.
inline Subject subject(k::Program program, double low = -1, double high = 1) {
  Subject s{std::move(program), {}, {}};
  for (size_t k = 0; k < s.params().size(); ++k) {
    const size_t n = elements(s.params()[k].dims);
    s.arrays.push_back(random_doubles(n, static_cast<uint32_t>(17 * k + 3), low, high));
    s.integers.emplace_back(n, 0);
    for (size_t i = 0; i < n; ++i) s.integers[k][i] = static_cast<int64_t>(i * 7 % 5);
  }
  return s;
}

/// Runs the kernel; returns what the arrays hold behind it.
inline std::vector<Doubles> values(const Subject& s, std::vector<Doubles> arrays) {
  std::vector<std::vector<int64_t>> integers = s.integers;
  std::vector<void*> pointers;
  for (size_t k = 0; k < arrays.size(); ++k)
    pointers.push_back(s.is_float(k) ? static_cast<void*>(arrays[k].data()) : integers[k].data());
  s.program.interpret(pointers);
  return arrays;
}

/// Checks that a kernel keeps its bits when it is rewritten for vector registers.
inline void check_rewritten(const kernel::Kernel& k, const std::vector<kernel::HostBuffer>& buffers, int64_t programs) {
  const kernel::Kernel expanded = kernel::expand(k);
  std::vector<std::vector<int64_t>> results[2];
  const kernel::Kernel kernels[] = {expanded, kernel::legalize(expanded, {32, 16})};
  for (int which = 0; which < 2; ++which) {
    std::vector<kernel::HostBuffer> copies;
    for (const kernel::HostBuffer& b : buffers) {
      const auto* from = static_cast<const int64_t*>(b.data);  // all elements have 8 bytes
      results[which].emplace_back(from, from + b.elements);
    }
    for (size_t p = 0; p < buffers.size(); ++p) copies.push_back({results[which][p].data(), buffers[p].elements});
    kernel::interpret(kernels[which], copies, {}, programs);
  }
  CHECK(results[0] == results[1]);
}

/// Runs a derivative. `beside[k]` belongs to the source's array k: tangents, or cotangents of what it writes. Returns
/// the tangents of what it writes, or the cotangents of what it reads, zeros where there are none.
inline std::vector<Doubles> derived(const Subject& s, const kernel::Derivative& d, const std::vector<Doubles>& beside) {
  using Role = kernel::DerivedArray::Role;
  std::vector<std::vector<int64_t>> integers = s.integers;
  std::vector<Doubles> memory;
  std::vector<kernel::HostBuffer> buffers;
  std::vector<kernel::Ref> results;
  memory.reserve(d.arrays.size());
  for (size_t k = 0; k < d.arrays.size(); ++k) {
    const kernel::DerivedArray& a = d.arrays[k];
    const size_t n = elements(s.params()[a.source].dims) * static_cast<size_t>(std::max<int64_t>(a.parts, 1));
    if (!s.is_float(a.source)) {
      memory.emplace_back();
      buffers.push_back({integers[a.source].data(), static_cast<int64_t>(n)});
      continue;
    }
    Doubles begin(n, std::nan(""));
    if (a.begins) begin.assign(n, 0);
    if (a.begins && a.role == Role::value) begin = s.arrays[a.source];
    if (a.begins && a.role == Role::tangent) begin = beside[a.source];
    if (a.begins && a.role == Role::cotangent && s.writes(a.source)) begin = beside[a.source];
    memory.push_back(std::move(begin));
    buffers.push_back({memory.back().data(), static_cast<int64_t>(n)});
    if (!a.begins && a.role != Role::value) results.push_back(static_cast<kernel::Ref>(k));
  }
  check_rewritten(d.kernel, buffers, d.programs);
  kernel::interpret(d.kernel, buffers, {}, d.programs, results);
  std::vector<Doubles> out;
  for (size_t p = 0; p < s.params().size(); ++p) {
    const size_t n = elements(s.params()[p].dims);
    Doubles sum(n, 0);
    bool found = false;
    for (size_t k = 0; k < d.arrays.size(); ++k) {
      const kernel::DerivedArray& a = d.arrays[k];
      if (a.source != p || a.role == Role::value || !a.written) continue;
      if (a.role == Role::cotangent && !s.reads(p)) continue;
      found = true;
      for (size_t i = 0; i < memory[k].size(); ++i) sum[i % n] += memory[k][i];
    }
    if (!found && s.reads(p) && s.writes(p)) sum = beside[p];
    out.push_back(std::move(sum));
  }
  return out;
}

inline double inner(const Doubles& a, const Doubles& b) {
  double out = 0;
  for (size_t k = 0; k < a.size(); ++k) out += a[k] * b[k];
  return out;
}

/// Checks both modes. `steep`: the tolerance of finite differences.
inline void check_derivatives(const Subject& s, double steep = 1e-6) {
  const size_t count = s.params().size();
  std::vector<char> read, written;
  std::vector<Doubles> t, g;
  for (size_t k = 0; k < count; ++k) {
    read.push_back(s.reads(k) && s.is_float(k));
    written.push_back(s.writes(k) && s.is_float(k));
    t.push_back(random_doubles(s.arrays[k].size(), static_cast<uint32_t>(100 + k)));
    g.push_back(random_doubles(s.arrays[k].size(), static_cast<uint32_t>(200 + k)));
  }
  const double h = 1e-6;
  std::vector<Doubles> up = s.arrays, down = s.arrays;
  for (size_t k = 0; k < count; ++k)
    for (size_t i = 0; read[k] && i < up[k].size(); ++i) up[k][i] += h * t[k][i], down[k][i] -= h * t[k][i];
  up = values(s, up), down = values(s, down);
  const std::vector<Doubles> forward = derived(s, kernel::forward_derivative(s.source(), read), t);
  double left = 0;
  for (size_t k = 0; k < count; ++k) {
    if (!written[k]) continue;
    for (size_t i = 0; i < up[k].size(); ++i)
      CHECK(forward[k][i] == doctest::Approx((up[k][i] - down[k][i]) / (2 * h)).epsilon(steep));
    left += inner(g[k], forward[k]);
  }
  const std::vector<Doubles> reverse = derived(s, kernel::reverse_derivative(s.source(), written), g);
  double right = 0;
  for (size_t k = 0; k < count; ++k)
    if (read[k]) right += inner(t[k], reverse[k]);
  CHECK(right == doctest::Approx(left).epsilon(1e-10));
}

/// Returns the derivative as a kernel of its own on float64 arrays, to be differentiated again; `s` gives the values.
inline kernel::Source source_of(const Subject& s, const kernel::Derivative& d) {
  kernel::Source out{d.kernel, {}, {}, d.programs};
  for (const kernel::DerivedArray& a : d.arrays) {
    std::vector<int64_t> dims = s.params()[a.source].dims;
    if (a.parts > 0) dims.insert(dims.begin(), a.parts);
    out.dims.push_back(dims);
    out.begins.push_back(a.begins);
  }
  return out;
}

}  // namespace weft::testing
