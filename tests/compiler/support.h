#pragma once
// Runs a graph through the compiler and holds it against the reference evaluation.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "base/half.h"
#include "compiler/program.h"
#include "device.h"
#include "graph/build.h"
#include "graph/table.h"

namespace weft::compiler::testing {

using graph::HostTensor;

inline void put_number(void* base, int64_t k, Dtype t, Number n) {
  auto write = [&](auto v) { std::memcpy(static_cast<char*>(base) + k * t.size(), &v, sizeof v); };
  switch (t.val()) {
    case Dtype::Val::float32: return write(static_cast<float>(n.real()));
    case Dtype::Val::float64: return write(n.real());
    case Dtype::Val::float16: return write(float_to_f16(static_cast<float>(n.real())));
    case Dtype::Val::bfloat16: return write(float_to_bf16(static_cast<float>(n.real())));
    case Dtype::Val::float8_e4m3:
    case Dtype::Val::float8_e5m2: return write(static_cast<uint8_t>(float_to_low(static_cast<float>(n.real()), t)));
    default: std::memcpy(static_cast<char*>(base) + k * t.size(), &n.i, t.size());
  }
}

inline Number get_number(const void* base, int64_t k, Dtype t) {
  auto read = [&]<class T>(T) {
    T v;
    std::memcpy(&v, static_cast<const char*>(base) + k * t.size(), sizeof v);
    return v;
  };
  switch (t.val()) {
    case Dtype::Val::float32: return Number::of_real(read(float()));
    case Dtype::Val::float64: return Number::of_real(read(double()));
    case Dtype::Val::float16: return Number::of_real(f16_to_float(read(uint16_t())));
    case Dtype::Val::bfloat16: return Number::of_real(bf16_to_float(read(uint16_t())));
    case Dtype::Val::float8_e4m3:
    case Dtype::Val::float8_e5m2: return Number::of_real(low_to_float(read(uint8_t()), t));
    case Dtype::Val::bool_:
    case Dtype::Val::uint8: return Number::of_int(read(uint8_t()));
    case Dtype::Val::uint16: return Number::of_int(read(uint16_t()));
    case Dtype::Val::uint32: return Number::of_int(read(uint32_t()));
    case Dtype::Val::int8: return Number::of_int(read(int8_t()));
    case Dtype::Val::int16: return Number::of_int(read(int16_t()));
    case Dtype::Val::int32: return Number::of_int(read(int32_t()));
    default: return Number::of_int(read(int64_t()));
  }
}

/// Returns by how much a dot of 8-bit floats may be off on a GPU: tensor cores keep some 13 bits of the largest product
/// of a sum. 0 for all else.
inline double error_of_tensor_cores(graph::Op op, std::span<const HostTensor> in) {
  if (op != graph::Op::dot || !test::on_gpu() || !is_float(in[0].type.dtype) || in[0].type.dtype.size() > 1) return 0;
  const auto largest = [](const HostTensor& t) {
    double most = 0;
    for (const Number& n : t.data) most = std::isfinite(n.real()) ? std::max(most, std::abs(n.real())) : most;
    return most;
  };
  return static_cast<double>(in[0].data.size()) * largest(in[0]) * largest(in[1]) * 0x1p-13;
}

/// A tensor in memory, with the strides given (row-major by default); holes are poisoned.
inline graph::Storage to_storage(const HostTensor& t, Strides strides = {}) {
  if (strides.empty()) strides = row_major_strides(t.type.shape);
  int64_t lowest = 0, highest = 0, n = num_elements(t.type.shape);
  for (size_t k = 0; n > 0 && k < strides.size(); ++k) {
    int64_t reach = (t.type.shape[k].bound() - 1) * strides[k];
    (reach < 0 ? lowest : highest) += reach;
  }
  graph::Storage s{runtime::allocate(static_cast<size_t>((highest - lowest + 1) * t.type.dtype.size())), -lowest,
                   strides};
  std::memset(s.buffer->data(), 0x7f, static_cast<size_t>((highest - lowest + 1) * t.type.dtype.size()));
  for (int64_t k = 0; k < n; ++k) {
    int64_t rest = k, at = s.offset;
    for (size_t axis = strides.size(); axis-- > 0;) {
      at += rest % t.type.shape[axis].bound() * strides[axis];
      rest /= t.type.shape[axis].bound();
    }
    put_number(s.buffer->data(), at, t.type.dtype, t.data[static_cast<size_t>(k)]);
  }
  return s;
}

inline HostTensor from_storage(const graph::Storage& s, const graph::Type& type) {
  HostTensor t{type, {}};
  for (int64_t k = 0, n = num_elements(type.shape); k < n; ++k) {
    int64_t rest = k, at = s.offset;
    for (size_t axis = s.strides.size(); axis-- > 0;) {
      at += rest % type.shape[axis].bound() * s.strides[axis];
      rest /= type.shape[axis].bound();
    }
    t.data.push_back(get_number(s.buffer->data(), at, type.dtype));
  }
  return t;
}

struct Result {
  std::vector<HostTensor> outputs;
  std::shared_ptr<const Program> program;
};

inline Result compile_and_run(const graph::Graph& g, const std::vector<HostTensor>& inputs,
                              const std::vector<Strides>& strides = {}, const Policy& policy = {}) {
  Source source{g, {}, {}};
  std::vector<graph::Storage> storages;
  for (size_t k = 0; k < inputs.size(); ++k) {
    storages.push_back(to_storage(inputs[k], k < strides.size() ? strides[k] : Strides{}));
    source.layouts.push_back({storages.back().strides});
  }
  Result result;
  result.program = build(source, weft::test::target_under_test(), policy);
  auto outputs = result.program->run(storages);
  for (size_t k = 0; k < outputs.size(); ++k) result.outputs.push_back(from_storage(outputs[k], g.outputs[k].type()));
  return result;
}

/// Units in the last place of dtype t at magnitude |v| (integers and bools: 1).
inline double ulp_of(double v, Dtype t) {
  if (!is_float(t)) return 1;
  int digits = t == float32       ? 24
               : t == float64     ? 53
               : t == float16     ? 11
               : t == float8_e4m3 ? 4
               : t == float8_e5m2 ? 3
                                  : 8;
  int smallest = t == float32       ? -149
                 : t == float64     ? -1074
                 : t == float16     ? -24
                 : t == float8_e4m3 ? -9
                 : t == float8_e5m2 ? -16
                                    : -133;
  if (v == 0) return std::ldexp(1.0, smallest);
  return std::ldexp(1.0, std::max(std::ilogb(std::abs(v)) - digits + 1, smallest));
}

/// An empty string, or the first element that differs by more than `ulp` units of its dtype plus `absolute`.
inline std::string difference(const HostTensor& got, const HostTensor& expected, double ulp, double absolute = 0) {
  if (!(got.type == expected.type)) return "types differ";
  for (size_t k = 0; k < got.data.size(); ++k) {
    if (got.data[k].integral) {
      if (got.data[k].i != expected.data[k].i)
        return fmt::format("element {}: {} instead of {}", k, got.data[k].i, expected.data[k].i);
      continue;
    }
    double a = got.data[k].f, b = expected.data[k].f;
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::abs(a - b) <= ulp * ulp_of(b, got.type.dtype) + absolute))
      return fmt::format("element {}: {} instead of {}", k, a, b);
  }
  return {};
}

}  // namespace weft::compiler::testing
