// Sums and squares about the mean as one reduction: which are joined, and when; how often an array is then read; what
// the results are wherever the reduction is placed.
#include <cmath>

#include "compiler/lower/planned.h"
#include "graph/instances.h"
#include "graph/regions/composites.h"
#include "target/cuda/cuda.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;
using kernel::Reducer;

namespace {

using Axes = std::vector<int64_t>;

Value param(Shape shape, Dtype t = float32) { return parameter({std::move(shape), t}); }
Value like(const Value& v, const Value& x) { return broadcast(v, x.shape()); }

/// Σ (x - mean x)², with the mean wherever it is multiplied by 1/n.
Value squares(const Value& x, const Axes& axes) { return sum(square(x - like(mean(x, axes, true), x)), axes); }

/// (x - mean) / std, both kept.
Value normalised(const Value& x, const Axes& axes) {
  const Value m = like(mean(x, axes, true), x), v = mean(square(x - m), axes, true);
  return (x - m) * like(rsqrt(v + 1e-5), x);
}

Graph spread(const Shape& shape, const Axes& axes, Dtype t = float32) {
  const Value x = param(shape, t), wide = cast(x, t == float64 ? float64 : float32);
  return {{x}, {mean(wide, axes, false), squares(wide, axes)}};
}

bool joined(target::Target& target, const Graph& g) { return reduces_by(Reducer::welford, target, g); }

/// Numbers around `offset` with a standard deviation of about 1.
HostTensor around(const Type& type, double offset, uint64_t seed = 5) {
  graph::testing::Random r(seed);
  HostTensor t{type, {}};
  for (int64_t k = num_elements(type.shape); k > 0; --k)
    t.data.push_back(kernel::round_to(Number::of_real(offset + r.real(-1.7, 1.7)), type.dtype));
  return t;
}

/// The means and the squares about them of an array, in float64; of no elements 0.
struct Exact {
  std::vector<double> mean, squares;
};
Exact exact(const HostTensor& x, const Axes& axes) {
  const std::vector<int64_t> shape = compiler::bounds(x.type.shape);
  std::vector<size_t> of;  // by element: its result
  size_t results = 1;
  for (size_t k = 0; k < shape.size(); ++k)
    if (!std::count(axes.begin(), axes.end(), static_cast<int64_t>(k))) results *= static_cast<size_t>(shape[k]);
  std::vector<double> sums(results), counts(results);
  for (int64_t at = 0; at < num_elements(x.type.shape); ++at) {
    int64_t left = at, result = 0, step = 1;
    for (size_t k = shape.size(); k-- > 0; left /= shape[k])
      if (!std::count(axes.begin(), axes.end(), static_cast<int64_t>(k)))
        result += left % shape[k] * step, step *= shape[k];
    of.push_back(static_cast<size_t>(result));
    sums[of.back()] += x.data[static_cast<size_t>(at)].real(), ++counts[of.back()];
  }
  Exact out{std::vector<double>(results), std::vector<double>(results)};
  for (size_t k = 0; k < results; ++k) out.mean[k] = sums[k] / counts[k];
  for (size_t at = 0; at < of.size(); ++at) out.squares[of[at]] += std::pow(x.data[at].real() - out.mean[of[at]], 2);
  return out;
}

/// Returns the largest error relative to the exact value, of values that are numbers; both are NaN where one is.
double worst(const HostTensor& got, const std::vector<double>& expected) {
  REQUIRE(got.data.size() == expected.size());
  double most = 0;
  for (size_t k = 0; k < expected.size(); ++k) {
    const double v = got.data[k].real(), e = expected[k];
    if (std::isnan(v) || std::isnan(e)) CHECK(std::isnan(v) == std::isnan(e));
    else if (v != e) most = std::max(most, std::abs(v - e) / std::max(std::abs(e), 1e-30));
  }
  return most;
}

std::vector<HostTensor> run_on(target::Target& target, const Graph& g, const HostTensor& x) {
  const auto got = build({g, {}, {}}, target)->run(std::vector<graph::Storage>{roomy(x)});
  std::vector<HostTensor> out;
  for (size_t k = 0; k < got.size(); ++k) out.push_back(from_storage(got[k], g.outputs[k].type()));
  return out;
}

struct Placed {
  Shape shape;
  Axes axes;
};

/// Rows and columns, short and long, one and many, with what a tile or a part leaves over; on both sides of a kept
/// axis.
const Placed placements[] = {{{5, 300}, {1}},       {{3, 30001}, {1}},         {{1, 70000}, {1}},   {{70000}, {0}},
                             {{700, 40}, {0}},      {{2051, 136}, {0}},        {{20000, 3}, {0}},   {{3, 70, 40}, {1}},
                             {{33, 9, 40}, {0, 1}}, {{4, 500, 32, 8}, {1, 3}}, {{9, 4, 8}, {0, 2}}, {{64, 96}, {0, 1}}};

}  // namespace

TEST_CASE("a sum and the squares about its mean are joined, in whatever form simplify leaves them") {
  const Value x = param({6, 4, 10}), y = param({4, 10}), half = param({6, 40}, bfloat16), wide = cast(half, float32);
  const auto one = [&](const Value& v, const Value& m, const Axes& axes) {
    return joined_reductions({{x, y}, {sum(square(v - m), axes)}});
  };
  for (const Axes& axes : {Axes{0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}}) {
    CAPTURE(axes.size());
    CHECK(joined_reductions({{x}, {squares(x, axes)}}) == 1);
    CHECK(joined_reductions({{x}, {normalised(x, axes), mean(x, axes, false)}}) == 1);
  }
  const Value m = mean(x, {2}, true);
  CHECK(joined_reductions({{x}, {sum((x - like(m, x)) * (x - like(m, x)), {2})}}) == 1);
  CHECK(joined_reductions({{x}, {sum(square(like(m, x) - x), {2})}}) == 1);
  const Value total = sum(x, {2}, true);
  CHECK(one(x, like(total, x) * 0.1, {2}) == 1);
  CHECK(one(x, like(total / full_like(total, 10), x), {2}) == 1);
  CHECK(one(x, like(expand_dims(sum(x, {0}) * (1.0 / 6), {0}), x), {0}) == 1);
  CHECK(one(x, like(sum(x, {0}) * (1.0 / 6), x), {0}) == 1);  // broadcast to more axes
  const Value rows = reshape(x, {24, 10});
  CHECK(joined_reductions({{x}, {sum(square(reshape(rows - like(mean(rows, {1}, true), rows), {6, 4, 10})), {2})}}) >=
        1);
  CHECK(joined_reductions({{x, y}, {squares(exp(x) * 0.3 + like(y, x), {2})}}) == 1);
  CHECK(joined_reductions({{half}, {squares(wide, {1}), mean(wide, {1}, false)}}) == 1);
  CHECK(joined_reductions({{x}, {layer_norm(x, {}, {}, 1e-5)}}) == 1);
  CHECK(joined_reductions({{x}, {squares(squares(x, {2}), {1})}}) == 2);  // each with its own mean
}

TEST_CASE("other sums of squares stay") {
  const Value x = param({6, 4, 10}), y = param({6, 4, 10}), half = param({6, 40}, bfloat16);
  const auto about = [&](const Value& v, const Value& m, const Axes& axes) {
    return joined_reductions({{x, y}, {sum(square(v - like(m, v)), axes)}});
  };
  CHECK(about(x, mean(y, {2}, true), {2}) == 2);
  CHECK(about(x, mean(x, {1, 2}, true), {2}) == 2);
  CHECK(about(x, mean(x, {2}, true), {1, 2}) == 2);
  CHECK(about(x, sum(x, {2}, true) * 0.2, {2}) == 2);
  CHECK(about(x, max(x, {2}, true) * 0.1, {2}) == 2);
  CHECK(joined_reductions({{x}, {sum(unary(Op::abs, x - like(mean(x, {2}, true), x)), {2})}}) == 2);
  CHECK(joined_reductions({{x}, {max(square(x - like(mean(x, {2}, true), x)), {2})}}) == 2);
  CHECK(joined_reductions({{half}, {squares(half, {1})}}) == 2);  // rounded to 16 bits between
  // Each column's mean at the row of its number.
  const Value square_array = param({6, 6}), columns = sum(square_array, {0}) * (1.0 / 6);
  const Value across = like(reshape(columns, {6, 1}), square_array);
  CHECK(joined_reductions({{square_array}, {sum(square(square_array - across), {0})}}) == 2);
}

TEST_CASE("columns are joined on GPUs, rows where they would be read again from beyond what is on chip") {
  Planned h200("NVIDIA H200"), a100("NVIDIA A100"), cpu("CPU with AVX-512");
  for (Planned* gpu : {&h200, &a100})
    for (const Dtype t : {float32, bfloat16}) {
      CHECK(joined(*gpu, spread({16384, 4096}, {0}, t)));
      CHECK(joined(*gpu, spread({64, 56, 56, 256}, {0, 1, 2}, t)));
      CHECK(joined(*gpu, spread({16384, 8192}, {0, 1}, t)));
      CHECK(joined(*gpu, spread({4096, 131072}, {1}, t)));
      CHECK(joined(*gpu, spread({64, 4096, 32, 8}, {1, 3}, t)));  // cut into columns
      CHECK(!joined(*gpu, spread({16384, 4096}, {1}, t)));        // in the registers of a block
      CHECK(!joined(*gpu, spread({4096, 4, 256}, {1}, t)));       // in the L1
    }
  CHECK(!joined(a100, spread({4096, 12345}, {1})));  // in the shared memory of a block
  CHECK(!joined(cpu, spread({16384, 4096}, {0})));
}

TEST_CASE("an array is read once for its variance, in as few launches as a sum takes") {
  Planned h200("NVIDIA H200"), a100("NVIDIA A100");
  const auto launches = [](Planned& target, const Graph& g) { return build({g, {}, {}}, target)->stats().count(); };
  const auto std_of = [](Shape shape, const Axes& axes, Dtype t = float32) {
    const Value x = param(std::move(shape), t), wide = cast(x, float32);
    return Graph{{x}, {unary(Op::sqrt, squares(wide, axes) * 1e-3)}};
  };
  const Graph columns = std_of({16384, 4096}, {0});
  const auto program = build({columns, {}, {}}, h200);
  REQUIRE(program->steps().size() == 1);
  CHECK(program->steps()[0].bytes == 4.0 * (16384.0 * 4096 + 4096));
  for (const Dtype t : {float32, bfloat16})
    CHECK(loads_of_programs(h200, std_of({16384, 4096}, {0}, t)) == 16384 * 128);  // a program has 128 columns
  CHECK(reads_of_row(h200, std_of({4096, 131072}, {1}), 131072) == 1);
  CHECK(reads_of_row(a100, std_of({4096, 131072}, {1}), 131072) == 1);
  for (Planned* gpu : {&h200, &a100})
    for (const auto& [shape, axes] :
         {Placed{{16384, 4096}, {0}}, {{16384, 8192}, {0, 1}}, {{64, 56, 56, 256}, {0, 1, 2}}, {{64, 3000, 64}, {1}}}) {
      const Value x = param(shape);
      CHECK(launches(*gpu, std_of(shape, axes)) <= launches(*gpu, {{x}, {sum(x, axes)}}));
    }
  // A mean that is used as well comes out of the same launches.
  const Value x = param({16384, 4096});
  for (const bool kept : {false, true}) {
    CHECK(launches(h200, {{x}, {mean(x, {0}, kept), squares(x, {0})}}) == 1);
    CHECK(launches(h200, {{x}, {mean(x, {0}, kept) * 2.0, unary(Op::sqrt, squares(x, {0}) * 0.1)}}) == 1);
  }
  CHECK(launches(h200, {{x}, {normalised(x, {0})}}) == launches(h200, {{x}, {x - like(mean(x, {0}, true), x)}}));
}

TEST_CASE("squares about a mean are near those of float64, also far from 0, wherever they are summed") {
  Interpreted blocks(1), cluster(4, 8);
  for (const auto& [shape, axes] : placements)
    for (const double offset : {0.0, 1e4}) {
      const Graph g = spread(shape, axes);
      const HostTensor x = around(g.inputs[0].type(), offset);
      const Exact expected = exact(x, axes);
      for (target::Target* target : {static_cast<target::Target*>(&blocks), static_cast<target::Target*>(&cluster)}) {
        CAPTURE(to_string(g.inputs[0].type()));
        CAPTURE(offset);
        CAPTURE(target->fingerprint());
        CAPTURE(joined(*target, g));
        const std::vector<HostTensor> got = run_on(*target, g, x);
        if (offset > 0) CHECK(worst(got[0], expected.mean) <= 1e-6);
        CHECK(worst(got[1], expected.squares) <= (joined(*target, g) ? 4e-6 : 1e-3));
      }
    }
}

TEST_CASE("states of sums about a mean: every axis, every split, every dtype, and nothing to reduce") {
  Interpreted blocks(1), cluster(4, 8);
  std::vector<Placed> all(std::begin(placements), std::end(placements));
  all.insert(all.end(), {{{4, 0}, {1}}, {{0, 4}, {1}}, {{0, 4}, {0}}});
  for (const auto& [shape, axes] : all)
    for (const Dtype t : {float32, float64}) {
      if (t == float64 && num_elements(shape) > 50000) continue;
      const Value x = param(shape, t);
      const auto full = [&](double v) { return full_like(x, v); };
      const Graph g{{x}, reduce_state(Reducer::welford, {x, full(1), full(0), full(0)}, axes)};
      const HostTensor input = around(x.type(), 300);
      const Exact expected = exact(input, axes);
      for (target::Target* target : {&weft::test::target_under_test(), static_cast<target::Target*>(&blocks),
                                     static_cast<target::Target*>(&cluster)}) {
        const std::vector<HostTensor> got = run_on(*target, g, input);
        CAPTURE(to_string(x.type()));
        CAPTURE(target->fingerprint());
        for (size_t k = 0; k < expected.mean.size(); ++k) {
          const double n = got[1].data[k].real(), r = got[2].data[k].real(), q = got[3].data[k].real();
          CHECK(n == static_cast<double>(num_elements(shape)) / static_cast<double>(expected.mean.size()));
          if (n == 0) {
            CHECK(got[0].data[k].real() == 0);
            CHECK(q == 0);
            continue;
          }
          const double last = t == float64 ? 1e-12 : 1e-5;
          CHECK(std::abs(got[0].data[k].real() / n - expected.mean[k]) <= last * 300);
          CHECK(std::abs((got[0].data[k].real() + r) / n - expected.mean[k]) <= last * 300);
          CHECK(std::abs(q - r * r / n - expected.squares[k]) <= last * expected.squares[k]);
        }
      }
    }
}

TEST_CASE("16-bit elements are summed in float32; equal elements have no variance, and no variance is negative") {
  Interpreted blocks(1), cluster(4, 8);
  for (target::Target* target : {static_cast<target::Target*>(&blocks), static_cast<target::Target*>(&cluster)})
    for (const auto& [shape, axes] : {Placed{{3, 60001}, {1}}, {{2051, 136}, {0}}, {{70000}, {0}}}) {
      for (const Dtype t : {bfloat16, float16}) {
        const Graph g = spread(shape, axes, t);
        const HostTensor x = around(g.inputs[0].type(), 3);
        CHECK(joined(*target, g));
        CHECK(worst(run_on(*target, g, x)[1], exact(x, axes).squares) <= 4e-6);
      }
      for (const double number : {0.0, 0.1, -1e4 / 3, 1e15}) {
        const Graph g = spread(shape, axes);
        HostTensor x{g.inputs[0].type(), {}};
        x.data.assign(static_cast<size_t>(num_elements(shape)), kernel::round_to(Number::of_real(number), float32));
        const double n = static_cast<double>(x.data.size()) / static_cast<double>(exact(x, axes).mean.size());
        const std::vector<HostTensor> got = run_on(*target, g, x);
        for (const Number& v : got[1].data) {
          CHECK(v.real() >= 0);
          CHECK(v.real() <= 1e-12 * number * number * n);
        }
      }
    }
}

TEST_CASE("what is not finite reaches the mean and the variance as two passes let it") {
  Interpreted blocks(1), cluster(4, 8);
  for (target::Target* target : {static_cast<target::Target*>(&blocks), static_cast<target::Target*>(&cluster)})
    for (const bool columns : {false, true}) {
      const Shape shape = columns ? Shape{1000, 40} : Shape{5, 30001};
      const Axes axes{columns ? 0 : 1};
      const Graph g = spread(shape, axes);
      HostTensor x = around(g.inputs[0].type(), 1);
      const auto at = [&](int64_t result, int64_t k) -> Number& {
        return x.data[static_cast<size_t>(columns ? k * 40 + result : result * 30001 + k)];
      };
      at(0, 7) = Number::of_real(NAN), at(1, 0) = Number::of_real(INFINITY), at(2, 999) = Number::of_real(-INFINITY);
      at(3, 3) = Number::of_real(INFINITY), at(3, 500) = Number::of_real(-INFINITY);
      CHECK(joined(*target, g));
      const std::vector<HostTensor> got = run_on(*target, g, x);
      CHECK(std::isnan(got[0].data[0].real()));
      CHECK(got[0].data[1].real() == INFINITY);
      CHECK(got[0].data[2].real() == -INFINITY);
      CHECK(std::isnan(got[0].data[3].real()));
      for (size_t k = 0; k < 4; ++k) CHECK(std::isnan(got[1].data[k].real()));
      CHECK(std::isfinite(got[1].data[4].real()));
    }
}

TEST_CASE("kernels of joined variances compile for a Hopper GPU and spill nothing") {
  for (const auto& [shape, axes] :
       {Placed{{16384, 4096}, {0}}, {{16384, 8192}, {0, 1}}, {{4096, 131072}, {1}}, {{64, 56, 56, 256}, {0, 1, 2}}})
    for (const Dtype t : {float32, bfloat16}) {
      target::cuda::CudaTarget gpu(target::stated_machine("NVIDIA H200"), false);
      try {
        build({spread(shape, axes, t), {}, {}}, gpu);
      } catch (const std::exception& error) {
        MESSAGE("skipped: " << error.what());
        return;
      }
      CHECK(!gpu.usage().empty());
      for (const target::cuda::KernelUsage& use : gpu.usage()) {
        CAPTURE(to_string(Type{shape, t}));
        CAPTURE(use.name);
        CAPTURE(use.registers);
        CHECK(use.spill_store_bytes == 0);
        CHECK(use.stack_bytes == 0);
        CHECK(use.registers <= 192);  // in blocks of 128 threads: two on an SM
      }
    }
}
