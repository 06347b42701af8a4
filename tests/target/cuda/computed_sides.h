#pragma once
// Products whose sides are computed as they are loaded (the prologues of kernel::Op::matmul), as cases with data and a
// reference in float64: a table of what makes a side, for layouts and edges at which the code differs.
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "kernel/random_kernel.h"
#include "target/cuda/cuda_support.h"

namespace weft::test {

/// An array that a side reads, and the number of its elements for a side of `lines` by `depth`.
struct SideArray {
  Dtype dtype;
  kernel::MatmulSource at;
  int64_t size = 0;
};

/// What makes the elements of a side: `plain` lies in memory.
enum class Made : uint8_t { plain, cast, widened, scaled, packed, packed_rows, gated, odd_groups };
inline constexpr Made all_made[] = {Made::cast,        Made::widened, Made::scaled,    Made::packed,
                                    Made::packed_rows, Made::gated,   Made::odd_groups};
inline const char* name_of(Made made) {
  constexpr const char* names[] = {"plain",       "cast of float32", "widened float8", "int8 scaled by line",
                                   "4 bits by k", "4 bits by line",  "product of two", "groups of 3"};
  return names[static_cast<size_t>(made)];
}

/// One side, [lines][depth] or, transposed, [depth][lines], with `pad` elements behind each line in memory.
struct ComputedSide {
  Made made = Made::plain;
  Dtype dtype = bfloat16;
  int64_t lines = 0, depth = 0;
  bool transposed = false;
  int64_t pad = 0;

  /// An array of one element for each `by_line` lines and `by_depth` steps of k.
  SideArray array(Dtype t, int64_t by_line, int64_t by_depth) const {
    const auto parts = [](int64_t n, int64_t by) { return (n + by - 1) / by; };
    const int64_t rows = parts(lines, by_line), columns = parts(depth, by_depth);
    const int64_t pitch = (transposed ? rows : columns) + pad;
    const int64_t by_row = transposed ? 1 : pitch, by_column = transposed ? pitch : 1;
    SideArray out{t, {}, (transposed ? columns : rows) * pitch};
    if (by_line == 1) out.at.stride = by_row;
    else if (by_line < lines) out.at.jump = {by_line, by_row};
    if (by_depth == 1) out.at.depth_stride = by_column;
    else if (by_depth < depth) out.at.depth_jump = {by_depth, by_column};
    return out;
  }

  std::vector<SideArray> arrays() const {
    switch (made) {
      case Made::plain: return {array(dtype, 1, 1)};
      case Made::cast: return {array(float32, 1, 1)};
      case Made::widened: return {array(float8_e4m3, 1, 1)};
      case Made::scaled: return {array(int8, 1, 1), array(float32, 1, depth)};
      case Made::packed:
        return {array(int8, 1, 2), {int8, {.depth_stride = 4, .depth_jump = {2, -8}}, 8}, array(float32, 1, 32)};
      case Made::packed_rows:
        return {array(int8, 2, 1), {int8, {.stride = 4, .jump = {2, -8}}, 8}, array(float32, lines, 32)};
      case Made::gated: return {array(float32, 1, 1), array(dtype, 1, 1)};
      case Made::odd_groups: return {array(int8, 1, 1), array(float32, 1, 3)};
    }
    return {};
  }

  kernel::Value make(kernel::Builder& b, const std::vector<kernel::Value>& v) const {
    using kernel::ScalarOp;
    const auto whole = [&](int64_t n) { return b.constant(int8, Number::of_int(n)); };
    const auto wide = [&](kernel::Value x) { return b.cast(x, float32); };
    switch (made) {
      case Made::plain: break;
      case Made::cast: return b.cast(v[0], dtype);
      case Made::widened: return b.cast(wide(v[0]), dtype);
      case Made::scaled:
      case Made::odd_groups: return b.cast(b.mul(wide(v[0]), v[1]), dtype);
      case Made::packed:
      case Made::packed_rows: {
        const kernel::Value bits = b.scalar(ScalarOp::bit_and, {b.scalar(ScalarOp::shr, {v[0], v[1]}), whole(15)});
        return b.cast(b.mul(wide(b.sub(bits, whole(8))), v[2]), dtype);
      }
      case Made::gated: return b.cast(b.mul(v[0], wide(v[1])), dtype);
    }
    return kernel::no_value;
  }

  /// The same of numbers, rounded to the dtype.
  double reference(std::span<const double> v) const {
    double out = v[0];
    if (made == Made::packed || made == Made::packed_rows)
      out = (static_cast<double>((static_cast<int>(v[0]) >> static_cast<int>(v[1])) & 15) - 8) * v[2];
    else if (v.size() > 1) out *= v[1];
    out = kernel::round_to(Number::of_real(static_cast<double>(static_cast<float>(out))), dtype).f;
    return dtype == float32 ? float_to_tf32(static_cast<float>(out)) : out;
  }
};

struct ComputedProduct {
  int64_t m, n, k;
  Made a_made, b_made;
  Dtype dtype = bfloat16;
  bool a_transposed = false, b_transposed = false;
  int64_t pad = 0;
  int64_t rows = 64, columns = 64;
  kernel::MatmulSchedule schedule = {32, 3, 32, 32};

  ComputedSide side(bool right) const {
    return {right ? b_made : a_made, dtype, right ? n : m, k, right ? b_transposed : a_transposed, pad};
  }
  std::string text() const {
    return fmt::format("{}x{}x{} {} of {}{} and {}{} pad {} tile {}x{}", m, n, k, dtype_name(dtype), name_of(a_made),
                       a_transposed ? " T" : "", name_of(b_made), b_transposed ? " T" : "", pad, rows, columns);
  }
};

/// A tile of C a program.
inline kernel::Kernel kernel_of(const ComputedProduct& p) {
  using namespace kernel;
  Builder b("product");
  std::array<std::vector<Ref>, 2> refs;
  for (const bool right : {false, true})
    for (const SideArray& x : p.side(right).arrays()) refs[right].push_back(b.param("x", x.dtype, false));
  const Ref out = b.param("c", float32, true);
  const int64_t across = (p.n + p.columns - 1) / p.columns, pitch = p.columns + 8;
  const Ref sums = b.local(float32, p.rows * pitch);
  const Value pid = b.program_id();
  const Value m0 = b.mul(b.scalar(ScalarOp::floordiv, {pid, b.index(across)}), b.index(p.rows)),
              n0 = b.mul(b.scalar(ScalarOp::mod, {pid, b.index(across)}), b.index(p.columns));
  const Value m_limit = p.m % p.rows ? b.sub(b.index(p.m), m0) : no_value,
              n_limit = p.n % p.columns ? b.sub(b.index(p.n), n0) : no_value;
  const auto side = [&](bool right) {
    const ComputedSide s = p.side(right);
    const std::vector<SideArray> arrays = s.arrays();
    const Value first = right ? n0 : m0, limit = right ? n_limit : m_limit;
    if (s.made == Made::plain)
      return Builder::MatmulSide{refs[right][0], b.mul(first, b.index(arrays[0].at.stride)), arrays[0].at.stride,
                                 arrays[0].at.depth_stride, limit};
    Builder::MatmulSide made;
    made.offset = first, made.limit = limit;
    for (size_t x = 0; x < arrays.size(); ++x) {
      made.sources.emplace_back(arrays[x].at, b.index(0));
      made.sources.back().first.ref = refs[right][x];
    }
    made.prologue = [s, &b](const std::vector<Value>& v) { return s.make(b, v); };
    return made;
  };
  b.matmul(sums, p.rows, p.columns, pitch, side(false), side(true), b.index(p.k), p.schedule);
  b.loop(b.index(0), b.index(p.rows), b.index(16), {}, [&](Value at, const std::vector<Value>&) {
    const Value row = b.add(m0, at), position = b.add(b.mul(row, b.index(p.n)), n0);
    b.store(out, b.load(sums, b.mul(at, b.index(pitch)), {16, p.columns}, {pitch, 1}), position, {p.n, 1},
            {m_limit == no_value ? no_value : b.sub(m_limit, at), n_limit});
    return std::vector<Value>{};
  });
  return b.finish();
}

inline RandomCase case_of(const ComputedProduct& p) {
  RandomCase c;
  c.kernel = kernel_of(p);
  const auto put = [&](std::vector<double> v, Dtype t) {
    const std::vector<char> bytes = encode(v, t);
    const auto* at = reinterpret_cast<const std::byte*>(bytes.data());
    c.buffers.emplace_back(at, at + bytes.size());
    c.elements.push_back(static_cast<int64_t>(v.size()));
  };
  uint64_t seed = 1;
  for (const bool right : {false, true})
    for (const SideArray& x : p.side(right).arrays()) {
      std::vector<double> v = numbers(static_cast<size_t>(x.size), ++seed);
      const bool shifts = x.size == 8 && x.dtype == int8;
      for (size_t i = 0; i < v.size(); ++i)
        if (shifts) v[i] = i == 4 ? 4 : 0;
        else if (x.dtype == int8) v[i] = std::round(v[i] * 127);
      put(std::move(v), x.dtype);
    }
  put(std::vector<double>(static_cast<size_t>(p.m * p.n), -7), float32);
  c.grid = (p.m + p.rows - 1) / p.rows * ((p.n + p.columns - 1) / p.columns);
  return c;
}

/// The largest error beside Σ|a·b|, in float64.
inline double worst(const ComputedProduct& p, const RandomCase& c) {
  size_t buffer = 0;
  const auto next = [&](Dtype t) {
    const auto& bytes = c.buffers[buffer++];
    const auto* at = reinterpret_cast<const char*>(bytes.data());
    return decode(std::vector<char>(at, at + bytes.size()), t);
  };
  std::array<std::vector<double>, 2> sides;  // [lines][k]
  for (const bool right : {false, true}) {
    const ComputedSide s = p.side(right);
    const std::vector<SideArray> arrays = s.arrays();
    std::vector<std::vector<double>> values;
    for (const SideArray& x : arrays) values.push_back(next(x.dtype));
    for (int64_t i = 0; i < s.lines; ++i)
      for (int64_t k = 0; k < p.k; ++k) {
        std::vector<double> v;
        for (size_t x = 0; x < arrays.size(); ++x) {
          const kernel::MatmulSource& at = arrays[x].at;
          v.push_back(values[x][static_cast<size_t>(i * at.stride + at.jump.at(i) + k * at.depth_stride +
                                                    at.depth_jump.at(k))]);
        }
        sides[right].push_back(s.reference(v));
      }
  }
  const std::vector<double> out = next(float32);
  double most = 0;
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = 0, size = 1e-30;
      for (int64_t k = 0; k < p.k; ++k) {
        const double term = sides[0][static_cast<size_t>(i * p.k + k)] * sides[1][static_cast<size_t>(j * p.k + k)];
        sum += term, size += std::abs(term);
      }
      most = larger(most, std::abs(out[static_cast<size_t>(i * p.n + j)] - sum) / size);
    }
  return most;
}

/// What makes a side × the side × dtypes × layouts, with edges that cut tiles, chunks and slices and others that do
/// not.
inline std::vector<ComputedProduct> computed_products() {
  std::vector<ComputedProduct> out;
  int count = 0;
  for (const Made made : all_made)
    for (const bool right : {false, true})
      for (const bool transposed : {false, true})
        for (const auto& [m, n, k] : {std::array<int64_t, 3>{64, 64, 96}, {72, 80, 40}, {67, 45, 71}}) {
          constexpr Dtype dtypes[] = {bfloat16, float16, float32};
          ComputedProduct p{m, n, k, right ? Made::plain : made, right ? made : Made::plain, dtypes[count++ % 3]};
          (right ? p.b_transposed : p.a_transposed) = transposed;
          (right ? p.a_transposed : p.b_transposed) = count % 2 == 0;
          p.pad = count % 5 == 0 ? 16 : count % 7 == 0 ? 3 : 0;
          if (p.dtype == float32) p.schedule.depth = 16;
          out.push_back(p);
        }
  // Both sides, one slice and less, no slice, and tiles of warpgroups.
  out.push_back({130, 70, 200, Made::cast, Made::packed, bfloat16, false, true});
  out.push_back({64, 64, 16, Made::cast, Made::scaled});
  out.push_back({64, 64, 0, Made::cast, Made::cast});
  out.push_back({136, 264, 200, Made::plain, Made::scaled, bfloat16, false, false, 0, 128, 256, {64, 4, 64, 64}});
  out.push_back({136, 200, 136, Made::cast, Made::gated, float16, true, true, 0, 128, 128, {64, 4, 64, 32}});
  return out;
}

}  // namespace weft::test
