#pragma once
// Kernels of all functions of lanes: each row of the table, for a dtype, on tiles of several shapes and groups of all
// widths.
#include <functional>
#include <string>
#include <vector>

#include "kernel/lanes.h"
#include "weft/kernel_group.h"

namespace test_kernels {

namespace k = weft::k;
using weft::Dtype;

inline constexpr Dtype lane_dtypes[] = {weft::bool_,   weft::uint8,    weft::uint32,  weft::uint64,
                                        weft::int8,    weft::int16,    weft::int32,   weft::int64,
                                        weft::float16, weft::bfloat16, weft::float32, weft::float64};

/// Writes results one after the other, each to the array of its dtype.
class LaneProgram {
 public:
  explicit LaneProgram(Dtype t) : dtype_(t) {}

  k::Program make() {
    constexpr int64_t many = 60000;
    const std::vector<k::Param> parameters = {{k::Use::in, dtype_, {many}},
                                              {k::Use::in, weft::int32, {many}},
                                              {k::Use::out, dtype_, {many}},
                                              {k::Use::out, weft::bool_, {many}},
                                              {k::Use::out, weft::uint32, {many}}};
    return k::trace("lanes_of_" + std::string(weft::dtype_name(dtype_)), parameters, {2},
                    [&](std::span<const k::AnyRef> r) {
                      refs_.assign(r.begin(), r.end());
                      for (const weft::kernel::LaneInfo& row : weft::kernel::lane_ops) all_of(row);
                    });
  }

 private:
  struct Shape {
    std::vector<int64_t> dims;
    int64_t width;
  };

  const Shape& next_shape() {
    static const std::vector<Shape> shapes = {{{64}, 32},      {{2, 32}, 32},     {{3, 32}, 8}, {{48}, 16},
                                              {{2, 4, 16}, 4}, {{2, 3, 2, 8}, 2}, {{1}, 1},     {{96}, 32},
                                              {{60, 4}, 4},    {{16}, 16}};
    return shapes[turn_++ % shapes.size()];
  }
  static int64_t size_of(const std::vector<int64_t>& dims) {
    int64_t n = 1;
    for (const int64_t d : dims) n *= d;
    return n;
  }
  /// Other elements each time, and in each program.
  k::Any loaded(size_t ref, const std::vector<int64_t>& dims) {
    const int64_t n = size_of(dims);
    read_ += 11;
    const k::Any start = k::apply("add", std::array{k::program(0), k::constant(weft::int64, read_)});
    const k::Span span{.start = start, .size = n};
    return k::reshape(k::load(refs_[ref], std::array{span}), dims);
  }
  void put(const k::Any& v) {
    const size_t ref = v.dtype() == dtype_ ? 2 : v.dtype() == weft::bool_ ? 3 : 4;
    const int64_t n = size_of(v.dims());
    const k::Any start =
        k::apply("add", std::array{k::apply("mul", std::array{k::program(0), k::constant(weft::int64, n)}),
                                   k::constant(weft::int64, written_[ref])});
    k::store(refs_[ref], std::array{k::Span{.start = start, .size = n}}, k::reshape(v, {n}));
    written_[ref] += 2 * n;
  }
  k::Any small(const std::vector<int64_t>& dims, int64_t below) {
    return k::apply("mod", std::array{loaded(1, dims), k::constant(weft::int32, below)});
  }
  k::Any condition(const std::vector<int64_t>& dims) {
    return k::apply("lt", std::array{small(dims, 3), k::constant(weft::int32, 2)});
  }

  void all_of(const weft::kernel::LaneInfo& row) {
    if (row.from == weft::kernel::LaneType::condition) {
      if (!(dtype_ == weft::bool_)) return;
      for (int64_t width = 1; width <= 32; width *= 2) {
        for (const k::Any& c : {condition({96}), k::constant(weft::bool_, width % 3 == 1, {96})})
          put(k::lanes(row.name, c, width));
      }
      return;
    }
    if (row.second == weft::kernel::LaneArgument::lane) return shuffles(row);
    if (row.combines) return combinations(row);
    for (int k = 0; k < 6; ++k) {  // matches: of few different elements, and of equal ones
      const Shape& s = next_shape();
      put(k::lanes(row.name, k::cast(small(s.dims, 3), dtype_), s.width));
      put(k::lanes(row.name, k::constant(dtype_, 1, s.dims), s.width));
      put(k::lanes(row.name, loaded(0, s.dims), s.width));
    }
  }
  void shuffles(const weft::kernel::LaneInfo& row) {
    for (int k = 0; k < 10; ++k) {
      const Shape& s = next_shape();
      const k::Any v = loaded(0, s.dims);
      put(k::lanes(row.name, v, s.width, k::constant(weft::int32, k - 1)));
      if (k < 5) {
        const k::Any lanes = k::apply("sub", std::array{small(s.dims, 40), k::constant(weft::int32, 3)});
        put(k::lanes(row.name, v, s.width, lanes));
      }
    }
  }
  void combinations(const weft::kernel::LaneInfo& row) {
    for (const char* op : {"add", "mul", "min", "max", "bit_and", "bit_or", "bit_xor"}) {
      if (dtype_ == weft::bool_ || (!weft::is_integer(dtype_) && std::string_view(op).starts_with("bit"))) continue;
      const Shape& s = next_shape();
      put(k::lanes(row.name, loaded(0, s.dims), s.width, {}, op));
      put(k::lanes(row.name, loaded(0, {64}), 32, {}, op));
      const Shape& labeled = next_shape();
      put(k::lanes(row.name, loaded(0, labeled.dims), labeled.width,
                   k::lanes("match_any", small(labeled.dims, 4), labeled.width), op));
      const k::Any chosen = condition(labeled.dims);
      const k::Any members = k::apply(
          "select", std::array{chosen, k::lanes("ballot", chosen, labeled.width), k::constant(weft::uint32, 0)});
      put(k::lanes(row.name, loaded(0, labeled.dims), labeled.width, members, op));
    }
  }

  Dtype dtype_;
  std::vector<k::AnyRef> refs_;
  size_t turn_ = 0;
  int64_t read_ = 0;
  int64_t written_[5] = {};
};

}  // namespace test_kernels
