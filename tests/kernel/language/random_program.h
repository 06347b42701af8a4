#pragma once
// Random kernels over the values, movements, reductions, accesses and control flow of the language.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "weft/kernel/erased.h"

namespace test_kernels {

namespace k = weft::k;

class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed) : engine_(seed), name_("random_" + std::to_string(seed)) {}

  k::Program make() {
    const size_t inputs = 1 + pick(2);
    std::vector<k::Param> params;
    for (size_t i = 0; i < inputs; ++i) params.push_back({k::Use::in, dtype(), shape()});
    for (size_t i = 0; i < 3; ++i) params.push_back({k::Use::out, weft::float32, {4096}});
    params.push_back({k::Use::out, weft::int64, {4096}});
    return k::trace(name_, params, {1 + static_cast<int64_t>(pick(2))}, [&](std::span<const k::AnyRef> refs) {
      const std::vector<k::AnyRef> in(refs.begin(), refs.begin() + static_cast<std::ptrdiff_t>(inputs));
      for (const k::AnyRef& ref : in) tiles_.push_back(loaded(ref));
      for (int step = 0; step < 8; ++step) tiles_.push_back(next());
      if (pick(2)) carry();
      for (size_t i = 0; i < 3; ++i) put(refs[inputs + i], weft::float32);
      put(refs.back(), weft::int64);
    });
  }

 private:
  size_t pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(engine_); }
  weft::Dtype dtype() {
    constexpr weft::Dtype list[] = {weft::float32, weft::float32, weft::bfloat16, weft::float16,
                                    weft::float64, weft::int32,   weft::int64,    weft::uint8};
    return list[pick(std::size(list))];
  }
  std::vector<int64_t> shape() {
    std::vector<int64_t> dims(1 + pick(3));
    constexpr int64_t extents[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33};
    for (int64_t& d : dims) d = extents[pick(dims.size() == 1 ? std::size(extents) : 8)];
    return dims;
  }

  /// Loads all of an array, or a window of it that may begin before it or end behind it.
  k::Any loaded(const k::AnyRef& ref) {
    std::vector<k::Span> spans;
    for (const int64_t d : ref.dims) {
      k::Span s{.whole = true};
      if (pick(3) == 0)
        s = {.first = static_cast<int64_t>(pick(4)) - 1,
             .size = std::max<int64_t>(1, d - static_cast<int64_t>(pick(2))),
             .step = 1};
      if (pick(6) == 0) s = {.start = k::program(0), .size = d};
      spans.push_back(s);
    }
    return k::load(ref, spans, {.other = 1});
  }

  k::Any tile() { return tiles_[pick(tiles_.size())]; }
  k::Any tile_with_axes() {
    for (int tries = 0; tries < 50; ++tries)
      if (k::Any v = tile(); v.rank() > 0) return v;
    return k::constant(weft::float32, 1, {4});
  }
  k::Any real(const k::Any& v) { return k::cast(v, weft::float32); }
  int axis(const k::Any& v) { return static_cast<int>(pick(static_cast<size_t>(v.rank()))); }

  k::Any scalar_op(const k::Any& a) {
    const bool floats = weft::issubdtype(a.dtype(), weft::floating);
    const k::Any b = k::cast(a, a.dtype());
    switch (pick(6)) {
      case 0: return k::apply("add", std::array{a, b});
      case 1: return k::apply("mul", std::array{a, k::constant(a.dtype(), 3)});
      case 2: return k::apply("max", std::array{a, k::constant(a.dtype(), 1)});
      case 3:
        return floats ? k::apply("exp", std::array{k::apply("min", std::array{a, k::constant(a.dtype(), 4)})})
                      : k::apply("bit_and", std::array{a, k::constant(a.dtype(), 5)});
      case 4: return floats ? k::apply("tanh", std::array{a}) : k::apply("abs", std::array{a});
      default:
        return k::apply("select", std::array{k::apply("lt", std::array{a, k::constant(a.dtype(), 2)}), a,
                                             k::constant(a.dtype(), 0)});
    }
  }

  k::Any moved(const k::Any& v) {
    const std::vector<int64_t> dims = v.dims();
    const int rank = v.rank();
    std::vector<int64_t> starts(dims.size(), 0), steps(dims.size(), 1), kept = dims;
    const auto k_axis = static_cast<size_t>(axis(v));
    switch (pick(6)) {
      case 0: {
        std::vector<int> axes(static_cast<size_t>(rank));
        for (int i = 0; i < rank; ++i) axes[static_cast<size_t>(i)] = i;
        std::shuffle(axes.begin(), axes.end(), engine_);
        return k::permute(v, axes);
      }
      case 1: starts[k_axis] = dims[k_axis] - 1, steps[k_axis] = -1; return k::slice(v, starts, kept, steps);
      case 2: steps[k_axis] = 2, kept[k_axis] = (dims[k_axis] + 1) / 2; return k::slice(v, starts, kept, steps);
      case 3: return k::reshape(v, {v.rank() == 0 ? 1 : size(dims)});
      case 4: return size(dims) > 400 ? v : k::cat(std::array{v, v, v}, static_cast<int>(k_axis));
      default: {
        if (rank == 4 || size(dims) > 400) return v;
        kept.insert(kept.begin() + static_cast<std::ptrdiff_t>(k_axis), 1);
        const k::Any wide = k::reshape(v, kept);
        kept[k_axis] = 3;
        return k::broadcast_to(wide, kept);
      }
    }
  }

  k::Any reduced(const k::Any& v) {
    const int along = axis(v);
    switch (pick(7)) {
      case 0: return k::reduce("sum", v, along);
      case 1: return k::reduce("max", v, along);
      case 2: return k::reduce("argmin", v, along);
      case 3: return k::scan("sum", v, along, pick(2) == 1);
      case 4:
        return k::reduce(
            [](const std::vector<k::Any>& low, const std::vector<k::Any>& high) {
              return std::vector<k::Any>{k::apply("sub", std::array{low[0], high[0]})};
            },
            std::array{v}, along)[0];
      case 5: return k::sort(std::array{v}, along, pick(2) == 1)[0];
      default: {
        const k::Any index = k::apply("mod", std::array{k::cast(v, weft::int64), k::constant(weft::int64, 3)});
        return k::take(v, index, along);
      }
    }
  }

  k::Any product(const k::Any& v) {
    const k::Any flat = k::reshape(v, {1, size(v.dims())});
    const k::Any sums = k::dot(k::permute(flat, {1, 0}), flat);  // outer product
    return size(v.dims()) <= 24 ? k::dot(sums, sums) : k::dot(flat, k::permute(flat, {1, 0}));
  }

  static int64_t size(const std::vector<int64_t>& dims) {
    int64_t n = 1;
    for (const int64_t d : dims) n *= d;
    return n;
  }

  k::Any next() {
    const k::Any v = tile_with_axes();
    switch (pick(5)) {
      case 0:
      case 1: return scalar_op(v);
      case 2: return moved(v);
      case 3: return reduced(v);
      default:
        return size(v.dims()) <= 24 ? product(k::cast(v, pick(2) ? weft::float32 : weft::bfloat16)) : scalar_op(v);
    }
  }

  /// A loop that carries two tiles, and a condition within it.
  void carry() {
    const k::Any v = real(tile_with_axes());
    k::Cell a(v), b(k::apply("mul", std::array{v, k::constant(weft::float32, 0.5)}));
    k::loop(k::constant(weft::int64, 0), k::constant(weft::int64, 3), 1, [&](k::Any i) {
      const k::Any before = a.get();
      a.set(
          k::apply("add", std::array{b.get(), k::apply("mul", std::array{a.get(), k::constant(weft::float32, 0.25)})}));
      k::when(k::apply("eq", std::array{i, k::constant(weft::int64, 1)}),
              [&] { b.set(k::apply("neg", std::array{before})); });
    });
    tiles_.push_back(a.get());
    tiles_.push_back(b.get());
  }

  /// Stores a tile, flattened, as far as there is room; each program into its own half.
  void put(const k::AnyRef& ref, weft::Dtype t) {
    const k::Any v = tile();
    const int64_t n = size(v.dims());
    const k::Any flat = k::cast(v.rank() == 0 ? k::broadcast_to(v, {1}) : k::reshape(v, {n}), t);
    const k::Any first = k::apply("mul", std::array{k::program(0), k::constant(weft::int64, 2048)});
    if (n > 2048) return;
    k::store(ref, std::array{k::Span{.start = first, .size = n}}, flat);
  }

  std::mt19937 engine_;
  std::string name_;
  std::vector<k::Any> tiles_;
};

}  // namespace test_kernels
