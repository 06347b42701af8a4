#pragma once
// What operators compute, said a second time and otherwise than in their reference rules: elementwise operators through
// the C++ library on doubles and 64-bit integers, movement through strides, contraction as sums over all pairs of
// elements.
#include <cmath>
#include <complex>
#include <map>

#include "instances.h"
#include "kernel/expand_run.h"

namespace weft::graph::testing {

inline std::vector<int64_t> extents(const Shape& shape) {
  std::vector<int64_t> out;
  for (const Dim& d : shape) out.push_back(d.bound());
  return out;
}

/// Coordinates of element `at` of a row-major array.
inline std::vector<int64_t> coordinates(const Shape& shape, int64_t at) {
  std::vector<int64_t> out(shape.size());
  for (size_t k = shape.size(); k-- > 0;) {
    out[k] = at % shape[k].bound();
    at /= shape[k].bound();
  }
  return out;
}

/// The coordinates of all elements, in order.
inline std::vector<std::vector<int64_t>> all_coordinates(const Shape& shape) {
  std::vector<std::vector<int64_t>> out(static_cast<size_t>(num_elements(shape)));
  for (size_t at = 0; at < out.size(); ++at) out[at] = coordinates(shape, static_cast<int64_t>(at));
  return out;
}

inline int64_t flat(const Shape& shape, const std::vector<int64_t>& at) {
  const Strides strides = row_major_strides(shape);
  return std::inner_product(at.begin(), at.end(), strides.begin(), int64_t{0});
}

using Reals = double (*)(double, double);
inline const std::map<Op, Reals>& naive_reals() {
  static const std::map<Op, Reals> table{
      {Op::neg, [](double a, double) { return 0.0 - a; }},
      {Op::abs, [](double a, double) { return a < 0 ? -a : a; }},
      {Op::sign, [](double a, double) { return double((a > 0) - (a < 0)); }},
      {Op::square, [](double a, double) { return std::pow(a, 2.0); }},
      {Op::recip, [](double a, double) { return std::pow(a, -1.0); }},
      {Op::sqrt, [](double a, double) { return std::pow(a, 0.5); }},
      {Op::rsqrt, [](double a, double) { return std::pow(a, -0.5); }},
      {Op::exp, [](double a, double) { return std::pow(2.718281828459045, a); }},
      {Op::exp2, [](double a, double) { return std::exp(a * std::log(2.0)); }},
      {Op::expm1, [](double a, double) { return 2 * std::exp(a / 2) * std::sinh(a / 2); }},
      {Op::log2, [](double a, double) { return std::log(a) / std::log(2.0); }},
      {Op::log10, [](double a, double) { return std::log(a) / std::log(10.0); }},
      {Op::log1p, [](double a, double) { return std::log(1 + a); }},
      {Op::tan, [](double a, double) { return std::sin(a) / std::cos(a); }},
      {Op::arcsin, [](double a, double) { return std::atan2(a, std::sqrt(1 - a * a)); }},
      {Op::arccos, [](double a, double) { return std::atan2(std::sqrt(1 - a * a), a); }},
      {Op::arctan, [](double a, double) { return std::asin(a / std::sqrt(1 + a * a)); }},
      {Op::sinh, [](double a, double) { return (std::exp(a) - std::exp(-a)) / 2; }},
      {Op::cosh, [](double a, double) { return (std::exp(a) + std::exp(-a)) / 2; }},
      {Op::arcsinh, [](double a, double) { return (a < 0 ? -1 : 1) * std::log(std::fabs(a) + std::sqrt(a * a + 1)); }},
      {Op::arccosh, [](double a, double) { return std::log(a + std::sqrt(a * a - 1)); }},
      {Op::arctanh, [](double a, double) { return std::log((1 + a) / (1 - a)) / 2; }},
      {Op::arctan2, [](double a, double b) { return std::arg(std::complex<double>(b, a)); }},
      {Op::logaddexp, [](double a, double b) { return std::log(std::exp(a) + std::exp(b)); }},
      {Op::trunc, [](double a, double) { return a < 0 ? std::ceil(a) : std::floor(a); }},
      {Op::log, [](double a, double) { return std::log2(a) * 0.6931471805599453; }},
      {Op::sin, [](double a, double) { return std::cos(a - 1.5707963267948966); }},
      {Op::cos, [](double a, double) { return std::sin(a + 1.5707963267948966); }},
      {Op::tanh, [](double a, double) { return 1 - 2 / (std::exp(2 * a) + 1); }},
      {Op::erf, [](double a, double) { return 1 - std::erfc(a); }},
      {Op::sigmoid, [](double a, double) { return 0.5 + 0.5 * std::tanh(a / 2); }},
      {Op::floor, [](double a, double) { return -std::ceil(-a); }},
      {Op::ceil, [](double a, double) { return -std::floor(-a); }},
      {Op::round, [](double a, double) { return std::rint(a); }},
      {Op::add, [](double a, double b) { return a + b; }},
      {Op::sub, [](double a, double b) { return a - b; }},
      {Op::mul, [](double a, double b) { return a * b; }},
      {Op::div, [](double a, double b) { return a / b; }},
      {Op::max, [](double a, double b) { return a > b ? a : b; }},
      {Op::min, [](double a, double b) { return a < b ? a : b; }},
      {Op::pow, [](double a, double b) { return std::exp(b * std::log(a)); }},
      {Op::floordiv, [](double a, double b) { return std::floor(a / b); }},
      {Op::mod, [](double a, double b) { return a - b * std::floor(a / b); }},
      {Op::eq, [](double a, double b) { return double(a == b); }},
      {Op::ne, [](double a, double b) { return double(a != b); }},
      {Op::lt, [](double a, double b) { return double(a < b); }},
      {Op::le, [](double a, double b) { return double(a <= b); }},
  };
  return table;
}

/// Bit operators, on int32 as its 64-bit extension.
using Ints = int64_t (*)(int64_t, int64_t);
inline const std::map<Op, Ints>& naive_ints() {
  static const std::map<Op, Ints> table{
      {Op::bit_not, [](int64_t a, int64_t) { return -1 - a; }},
      {Op::bit_and, [](int64_t a, int64_t b) { return a + b - (a | b); }},
      {Op::bit_or, [](int64_t a, int64_t b) { return a + b - (a & b); }},
      {Op::bit_xor, [](int64_t a, int64_t b) { return (a | b) - (a & b); }},
      {Op::shl,
       [](int64_t a, int64_t b) {
         return b >= 32 ? 0 : static_cast<int64_t>(static_cast<int32_t>(static_cast<uint32_t>(a) << b));
       }},
      {Op::shr, [](int64_t a, int64_t b) { return a >> std::min<int64_t>(b, 63); }},
  };
  return table;
}

inline std::vector<double> reals(const HostTensor& t) {
  std::vector<double> out;
  for (const Number& n : t.data) out.push_back(n.real());
  return out;
}

/// Functions that the C library lacks, on float64: what the row's expansion gives, another algorithm than its
/// reference.
inline bool naive_expansion(const Instance& in, std::vector<double>& out) {
  const auto op = static_cast<kernel::ScalarOp>(row(in.op).scalar);
  const kernel::ScalarInfo& info = kernel::info(op);
  if (in.inputs[0].type.dtype != float64 || info.basic || info.float64) return false;
  if (out.empty()) return true;
  std::vector<std::vector<double>> args;
  for (const HostTensor& t : in.inputs) args.push_back(reals(t));
  out = test::run_kernel<double>(kernel::expand(test::scalar_kernel(op, float64)), std::move(args));
  return true;
}

/// The first result of a call, on float64.
inline bool naive_call(const Instance& in, std::vector<double>& out) {
  const Attrs& a = in.attrs;
  if (in.inputs[0].type.dtype != float64) return false;
  if (a.call == "sort") {  // each element at the position that the elements before it leave
    const Shape& shape = in.inputs[0].type.shape;
    const SortWindow window = sort_window(a.integers, shape[static_cast<size_t>(a.integers[0])].bound());
    const size_t axis = window.axis;
    Shape written = shape;
    written[axis] = window.count;
    const std::vector<double> x = reals(in.inputs[0]);
    const auto before = [&](int64_t i, int64_t j) {
      const double p = x[static_cast<size_t>(i)], q = x[static_cast<size_t>(j)];
      if (std::isnan(p) || std::isnan(q)) return std::isnan(p) == std::isnan(q) ? i < j : std::isnan(q);
      return p == q ? i < j : p < q;
    };
    for (int64_t at = 0; at < num_elements(shape); ++at) {
      std::vector<int64_t> position = coordinates(shape, at), other = position;
      position[axis] = 0;
      for (int64_t k = 0; k < shape[axis].bound(); ++k) {
        other[axis] = k;
        if (before(flat(shape, other), at)) ++position[axis];
      }
      position[axis] -= window.first;
      if (position[axis] >= 0 && position[axis] < window.count)
        out[static_cast<size_t>(flat(written, position))] = x[static_cast<size_t>(at)];
    }
    return true;
  }
  if (a.call.ends_with("fft")) {  // by cosines and sines of each position
    const std::vector<double> x = reals(in.inputs[0]);
    const bool halves = a.call == "irfft", from_real = a.call == "rfft";
    const Shape& shape = in.inputs[0].type.shape;
    const int64_t n = halves ? a.integers[0] : shape[shape.size() - (from_real ? 1 : 2)].bound(), half = n / 2 + 1;
    const int64_t read = from_real ? n : 2 * (halves ? half : n), written = halves ? n : 2 * (from_real ? half : n);
    const double sign = halves || (!from_real && a.integers[0]) ? 1 : -1;
    for (size_t at = 0; at < out.size(); ++at) {
      const int64_t row = static_cast<int64_t>(at) / written, position = static_cast<int64_t>(at) % written,
                    k = halves ? position : position / 2;
      const bool imaginary = !halves && position % 2 == 1;
      double total = 0;
      for (int64_t j = 0; j < (halves ? half : n); ++j) {
        const double angle = sign * 2 * std::acos(-1.0) * static_cast<double>(j * k) / static_cast<double>(n);
        const double* z = x.data() + row * read + (from_real ? j : 2 * j);
        const double re = z[0], im = from_real ? 0 : z[1];
        const double times = halves && j > 0 && 2 * j != n ? 2 : 1;
        total += times * (imaginary ? re * std::sin(angle) + im * std::cos(angle)
                                    : re * std::cos(angle) - im * std::sin(angle));
      }
      out[at] = total;
    }
    return true;
  }
  if (a.call == "searchsorted") {  // the first position at which the value may stand, or the last one
    const std::vector<double> sorted = reals(in.inputs[0]), values = reals(in.inputs[1]);
    const size_t n = static_cast<size_t>(in.inputs[0].type.shape.back().bound());
    for (size_t k = 0; n > 0 && k < values.size(); ++k) {
      const double* row = sorted.data() + k / (values.size() / (sorted.size() / n)) * n;
      size_t position = a.integers[0] ? n : 0;
      if (a.integers[0])
        while (position > 0 && row[position - 1] > values[k]) --position;
      else
        while (position < n && row[position] < values[k]) ++position;
      out[k] = static_cast<double>(position);
    }
    return true;
  }
  return false;
}

/// The elements in double, for float64 inputs (int32 for the bit operators); empty where this file has no opinion.
inline bool naive(const Instance& in, const Type& type, std::vector<double>& out) {
  const Attrs& a = in.attrs;
  const int64_t count = num_elements(type.shape);
  out.assign(static_cast<size_t>(count), 0);
  const auto x = [&](size_t input, int64_t at) { return in.inputs[input].data[static_cast<size_t>(at)].real(); };
  const auto each = [&](auto f) {
    for (int64_t at = 0; at < count; ++at) out[static_cast<size_t>(at)] = f(at, coordinates(type.shape, at));
    return true;
  };
  using C = const std::vector<int64_t>&;
  if (const auto f = naive_reals().find(in.op); f != naive_reals().end())
    return in.inputs[0].type.dtype == float64 &&
           each([&](int64_t at, C) { return f->second(x(0, at), in.inputs.size() > 1 ? x(1, at) : 0); });
  if (const auto f = naive_ints().find(in.op); f != naive_ints().end())
    return in.inputs[0].type.dtype == int32 && each([&](int64_t at, C) {
             const auto i = [&](size_t k) {
               return k < in.inputs.size() ? in.inputs[k].data[static_cast<size_t>(at)].i : 0;
             };
             return static_cast<double>(f->second(i(0), i(1)));
           });
  if (row(in.op).scalar >= 0 && naive_expansion(in, out)) return true;
  const Shape from = in.inputs.empty() ? Shape{} : in.inputs[0].type.shape;
  switch (in.op) {
    case Op::constant: return each([&](int64_t, C) { return a.number.real(); });
    case Op::iota:
      return each([&](int64_t at, C) {
        return static_cast<double>(coordinates(type.shape, at)[static_cast<size_t>(a.axes[0])]);
      });
    case Op::reshape:
    case Op::stop_gradient:
    case Op::depends:
    case Op::scheduled: return each([&](int64_t at, C) { return x(0, at); });
    case Op::select: return each([&](int64_t at, C) { return x(x(0, at) != 0 ? 1 : 2, at); });
    case Op::cast:
      return a.dtype == float64 && in.inputs[0].type.dtype == float64 && each([&](int64_t at, C) { return x(0, at); });
    case Op::bitcast:
      return a.dtype == int32 && in.inputs[0].type.dtype == float32 && each([&](int64_t at, C) {
               return static_cast<double>(__builtin_bit_cast(int32_t, static_cast<float>(x(0, at))));
             });
    case Op::permute: {
      const Strides strides = row_major_strides(from);
      return each([&](int64_t, C c) {
        int64_t at = 0;
        for (size_t k = 0; k < c.size(); ++k) at += c[k] * strides[static_cast<size_t>(a.axes[k])];
        return x(0, at);
      });
    }
    case Op::broadcast: {
      Strides strides = row_major_strides(from);
      for (size_t k = 0; k < from.size(); ++k)
        if (from[k] == 1) strides[k] = 0;
      return each([&](int64_t, C c) {
        return x(0, std::inner_product(strides.begin(), strides.end(), c.end() - static_cast<int64_t>(from.size()),
                                       int64_t{0}));
      });
    }
    case Op::slice: {
      const Strides strides = row_major_strides(from);
      return each([&](int64_t, C c) {
        int64_t at = 0;
        for (size_t k = 0; k < c.size(); ++k) at += (a.start[k] + c[k] * a.step[k]) * strides[k];
        return x(0, at);
      });
    }
    case Op::assign: {
      out = reals(in.inputs[0]);
      Strides strides = row_major_strides(from);
      int64_t origin = 0;
      for (size_t k = 0; k < strides.size(); ++k) {
        origin += a.start[k] * strides[k];
        strides[k] *= a.step[k];
      }
      const Shape& sizes = in.inputs[1].type.shape;
      for (int64_t at = 0; at < num_elements(sizes); ++at) {
        const std::vector<int64_t> c = coordinates(sizes, at);
        out[static_cast<size_t>(std::inner_product(c.begin(), c.end(), strides.begin(), origin))] = x(1, at);
      }
      return true;
    }
    case Op::window: {
      const size_t axis = static_cast<size_t>(a.axes[0]);
      std::vector<int64_t> strides(row_major_strides(from));
      const int64_t along = strides[axis];
      strides[axis] = along * a.window[1];
      strides.insert(strides.begin() + a.axes[0] + 1, along * a.window[2]);
      return each(
          [&](int64_t, C c) { return x(0, std::inner_product(c.begin(), c.end(), strides.begin(), int64_t{0})); });
    }
    case Op::pad:
      return each([&](int64_t, C c) {
        std::vector<int64_t> inner = c;
        for (size_t k = 0; k < c.size(); ++k)
          if ((inner[k] -= a.low[k]) < 0 || inner[k] >= from[k].bound()) return a.number.real();
        return x(0, flat(from, inner));
      });
    case Op::concat:
      return each([&](int64_t, C c) {
        std::vector<int64_t> inner = c;
        size_t part = 0;
        int64_t& along = inner[static_cast<size_t>(a.axes[0])];
        while (along >= in.inputs[part].type.shape[static_cast<size_t>(a.axes[0])].bound())
          along -= in.inputs[part++].type.shape[static_cast<size_t>(a.axes[0])].bound();
        return x(part, flat(in.inputs[part].type.shape, inner));
      });
    case Op::reduce: {
      std::vector<std::vector<double>> parts(out.size());  // what is reduced into each result
      for (int64_t at = 0; at < num_elements(from); ++at) {
        std::vector<int64_t> kept = coordinates(from, at);
        for (size_t k = a.axes.size(); k-- > 0;) kept.erase(kept.begin() + a.axes[k]);
        parts[static_cast<size_t>(flat(type.shape, kept))].push_back(x(0, at));
      }
      return each([&](int64_t at, C) {
        const std::vector<double>& reduced = parts[static_cast<size_t>(at)];
        using kernel::Reducer;
        switch (a.reducer) {
          case Reducer::sum:
          case Reducer::welford: return std::accumulate(reduced.begin(), reduced.end(), 0.0);
          case Reducer::prod: return std::accumulate(reduced.begin(), reduced.end(), 1.0, std::multiplies<>());
          case Reducer::max:
          case Reducer::logsumexp:
          case Reducer::attention:
          case Reducer::argmax: return reduced.empty() ? -INFINITY : *std::max_element(reduced.begin(), reduced.end());
          case Reducer::min:
          case Reducer::argmin: return reduced.empty() ? INFINITY : *std::min_element(reduced.begin(), reduced.end());
          case Reducer::all: return double(std::count(reduced.begin(), reduced.end(), 0.0) == 0);
          case Reducer::any: return double(std::count(reduced.begin(), reduced.end(), 1.0) > 0);
          case Reducer::bitwise_xor:
            return double(std::accumulate(reduced.begin(), reduced.end(), int64_t{0},
                                          [](int64_t total, double v) { return total ^ static_cast<int64_t>(v); }));
          case Reducer::count_: break;
        }
        return 0.0;
      });
    }
    case Op::cumulative:
      return in.inputs[0].type.dtype == float64 &&
             each([&](int64_t, C c) {  // each result from all the elements before it
               const bool backwards = a.integers[0] != 0, own = a.integers[1] == 0, logs = a.integers[2] != 0;
               const auto axis = static_cast<size_t>(a.axes[0]);
               double total = a.reducer == kernel::Reducer::sum    ? 0
                              : a.reducer == kernel::Reducer::prod ? 1
                              : a.reducer == kernel::Reducer::max  ? -INFINITY
                                                                   : INFINITY;
               for (int64_t k = 0; k < from[axis].bound(); ++k) {
                 const int64_t ahead = backwards ? k - c[axis] : c[axis] - k;
                 if (ahead < 0 || (ahead == 0 && !own)) continue;
                 std::vector<int64_t> position = c;
                 position[axis] = k;
                 const double v = x(0, flat(from, position));
                 total = logs                                 ? total + std::exp(v)
                         : a.reducer == kernel::Reducer::sum  ? total + v
                         : a.reducer == kernel::Reducer::prod ? total * v
                         : a.reducer == kernel::Reducer::max  ? std::max(total, v)
                                                              : std::min(total, v);
               }
               return logs ? std::log(total) : total;
             });
    case Op::dot: {  // every pair of elements that agrees where it must adds to its position
      const Shape right = in.inputs[1].type.shape;
      const auto without = [](const std::vector<int64_t>& c, const std::vector<int64_t>& p,
                              const std::vector<int64_t>& q) {
        std::vector<int64_t> kept;
        for (size_t k = 0; k < c.size(); ++k)
          if (!std::count(p.begin(), p.end(), k) && !std::count(q.begin(), q.end(), k)) kept.push_back(c[k]);
        return kept;
      };
      const std::vector<std::vector<int64_t>> left_positions = all_coordinates(from),
                                              right_positions = all_coordinates(right);
      std::vector<int64_t> position;
      for (size_t i = 0; i < left_positions.size(); ++i)
        for (size_t j = 0; j < right_positions.size(); ++j) {
          const std::vector<int64_t>&ci = left_positions[i], &cj = right_positions[j];
          bool agree = true;
          position.clear();
          for (size_t k = 0; k < a.axes.size(); ++k)
            agree = agree && ci[static_cast<size_t>(a.axes[k])] == cj[static_cast<size_t>(a.axes2[k])];
          for (size_t k = 0; k < a.batch.size(); ++k) {
            agree = agree && ci[static_cast<size_t>(a.batch[k])] == cj[static_cast<size_t>(a.batch2[k])];
            position.push_back(ci[static_cast<size_t>(a.batch[k])]);
          }
          if (!agree) continue;
          for (int64_t v : without(ci, a.axes, a.batch)) position.push_back(v);
          for (int64_t v : without(cj, a.axes2, a.batch2)) position.push_back(v);
          out[static_cast<size_t>(flat(type.shape, position))] +=
              x(0, static_cast<int64_t>(i)) * x(1, static_cast<int64_t>(j));
        }
      return true;
    }
    case Op::gather:
    case Op::scatter: {
      const bool gathers = in.op == Op::gather;
      const size_t arrays = a.axes.size(), lead = arrays ? in.inputs[1].type.shape.size() : 0;
      const Shape walked = gathers ? type.shape : in.inputs.back().type.shape;
      if (!gathers) out = reals(in.inputs[0]);
      for (int64_t at = 0; at < num_elements(walked); ++at) {
        const std::vector<int64_t> c = coordinates(walked, at);
        std::vector<int64_t> position(c.begin() + static_cast<int64_t>(lead), c.end());
        bool inside = true;
        for (size_t k = 0; k < arrays; ++k) {
          const HostTensor& index = in.inputs[k + 1];
          const size_t axis = static_cast<size_t>(a.axes[k]);
          const int64_t n = from[axis].bound(), last = n - walked[lead + axis].bound();
          int64_t i = index
                          .data[static_cast<size_t>(
                              flat(index.type.shape, {c.begin(), c.begin() + static_cast<int64_t>(lead)}))]
                          .i;
          if (i < 0) i += n;
          inside = inside && 0 <= i && i <= last;
          position[axis] += std::min(std::max<int64_t>(i, 0), last);
        }
        if (gathers) out[static_cast<size_t>(at)] = x(0, flat(from, position));
        if (gathers || !inside) continue;
        double& to = out[static_cast<size_t>(flat(from, position))];
        const double u = x(in.inputs.size() - 1, at);
        switch (a.mode) {
          case ScatterMode::set: to = u; break;
          case ScatterMode::add: to += u; break;
          case ScatterMode::max: to = std::max(to, u); break;
          case ScatterMode::min: to = std::min(to, u); break;
          case ScatterMode::prod: to *= u; break;
        }
      }
      return true;
    }
    case Op::call: return naive_call(in, out);
    default: return false;
  }
}

}  // namespace weft::graph::testing
