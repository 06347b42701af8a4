// Times of small things: what a call costs before any work is done, and single operators against the machine's
// bandwidth and peak.
//
//   build/bench/bench_weft --benchmark_filter=softmax
#include <benchmark/benchmark.h>

#include <weft/weft.h>

namespace {

using weft::array;
using Arrays = std::vector<array>;

array input(int64_t rows, int64_t columns) {
  array a = weft::random::normal({rows, columns}, weft::float32, 0, 1, weft::random::key(1));
  a.eval();
  return a;
}

/// A compiled call that has nothing to do: look-up, arguments, one launch of one element.
void compiled_call(benchmark::State& state) {
  const auto f = weft::compile([](const Arrays& a) { return Arrays{a[0] + a[1]}; });
  const array x = 1.0f, y = 2.0f;
  for (auto _ : state) benchmark::DoNotOptimize(f({x, y})[0].item<float>());
}
BENCHMARK(compiled_call);

/// Building and hashing a graph of `range` operators on one element, and running it.
void eager_chain(benchmark::State& state) {
  const array x = 1.0f;
  for (auto _ : state) {
    array y = x;
    for (int64_t k = 0; k < state.range(0); ++k) y = y * 0.5f + x;
    benchmark::DoNotOptimize(y.item<float>());
  }
  state.SetItemsProcessed(state.iterations() * 2 * state.range(0));
}
BENCHMARK(eager_chain)->Arg(1)->Arg(16)->Arg(256);

/// One operator on [range(0), range(1)] float32. Bytes: what is read and written at least.
template <class F>
void on_matrix(benchmark::State& state, F operation, int64_t passes) {
  const auto f = weft::compile([&](const Arrays& a) { return Arrays{operation(a[0])}; });
  const array x = input(state.range(0), state.range(1));
  for (auto _ : state) {
    const array y = f({x})[0];
    y.eval();
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * passes * static_cast<int64_t>(x.nbytes()));
}

void gelu(benchmark::State& state) {
  on_matrix(
      state, [](const array& x) { return weft::nn::gelu_approx(x); }, 2);
}
BENCHMARK(gelu)->Args({64, 1024})->Args({4096, 1024});

void softmax(benchmark::State& state) {
  on_matrix(
      state, [](const array& x) { return weft::softmax(x, -1); }, 2);
}
BENCHMARK(softmax)->Args({64, 1024})->Args({4096, 1024});

void column_sum(benchmark::State& state) {
  on_matrix(
      state, [](const array& x) { return weft::sum(x, 0); }, 1);
}
BENCHMARK(column_sum)->Args({64, 1024})->Args({4096, 1024});

/// Square products; items are floating-point operations.
void matmul(benchmark::State& state) {
  const auto f = weft::compile([](const Arrays& a) { return Arrays{weft::matmul(a[0], a[1])}; });
  const int64_t n = state.range(0);
  const array a = input(n, n), b = input(n, n);
  for (auto _ : state) f({a, b})[0].eval();
  state.SetItemsProcessed(state.iterations() * 2 * n * n * n);
}
BENCHMARK(matmul)->Arg(128)->Arg(512)->Arg(1024);

}  // namespace

BENCHMARK_MAIN();
