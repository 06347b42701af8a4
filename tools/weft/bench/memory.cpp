// weft bench memory: operators over a 4096 x 4096 array, each with the bytes it must read and write, as fractions of
// the bandwidth of a copy of that array in the same run. The copy is the faster of memcpy and a loop of non-temporal
// stores, on the same threads.
#include <cmath>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <fmt/format.h>

#include "runtime/buffer.h"
#include "runtime/threads.h"
#include "tools/weft/bench/support.h"
#include "weft/compile.h"
#include "weft/device.h"
#include "weft/fast.h"
#include "weft/ops.h"
#include "weft/random.h"

namespace weft::tool {

namespace {

constexpr int side = 4096;

void copy_plain(char* to, const char* from, size_t bytes) { std::memcpy(to, from, bytes); }

void copy_streaming(char* to, const char* from, size_t bytes) {
#if defined(__x86_64__)
  for (size_t i = 0; i < bytes; i += 64)
    for (size_t k = i; k < i + 64; k += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + k), _mm_load_si128(reinterpret_cast<const __m128i*>(from + k)));
  _mm_sfence();
#else
  std::memcpy(to, from, bytes);
#endif
}

/// GB/s, bytes read and bytes written together.
double copy_rate(const BenchOptions& o, size_t bytes, void (*copy)(char*, const char*, size_t)) {
  const runtime::BufferRef from = runtime::allocate(bytes), to = runtime::allocate(bytes);
  std::memset(from->data(), 1, bytes);
  constexpr size_t part = size_t{1} << 20;
  const double ms = median_of(
      reps_of(o, 15),
      [&] {
        runtime::parallel_for(static_cast<int64_t>(bytes / part), [&](int64_t begin, int64_t end) {
          const size_t at = static_cast<size_t>(begin) * part;
          copy(static_cast<char*>(to->data()) + at, static_cast<const char*>(from->data()) + at,
               static_cast<size_t>(end - begin) * part);
        });
      },
      o.cpu_time);
  return 2 * static_cast<double>(bytes) / ms / 1e6;
}

struct Operator {
  const char* name;
  array (*apply)(const array&);
};

constexpr Operator operators[] = {
    {"softmax", [](const array& x) { return softmax(x, -1); }},
    {"layer_norm", [](const array& x) { return fast::layer_norm(x, std::nullopt, std::nullopt, 1e-5f); }},
    {"gelu_chain",
     [](const array& x) {
       const auto number = [&](double v) { return array(v, x.dtype()); };
       return fast::gelu_tanh(x * number(1.5) + number(2)) * number(0.5);
     }},
    {"scale", [](const array& x) { return x * array(1.5, x.dtype()); }},
    {"transpose",
     [](const array& x) {
       return transpose(x) * array(1.5, x.dtype());
     }},  // in row-major order: a bare transpose is a view
    {"sum_rows", [](const array& x) { return sum(x, 1); }},
    {"sum_columns", [](const array& x) { return sum(x, 0); }},
    {"sum", [](const array& x) { return sum(x); }},
};

}  // namespace

void bench_memory(const BenchOptions& o) {
  const array x = random::normal({side, side}, compute_dtype(o.dtype), 0, 1, random::key(0));
  eval(x);
  const double plain = copy_rate(o, x.nbytes(), copy_plain), streaming = copy_rate(o, x.nbytes(), copy_streaming),
               copy = std::max(plain, streaming);
  Row("memory_copy", o).number("GBps", copy).number("memcpy_GBps", plain).number("streaming_GBps", streaming).print();
  for (const Operator& op : operators) {
    const auto program =
        compile([&op](const std::vector<array>& in) { return std::vector<array>{op.apply(in[0])}; }, {});
    size_t bytes = 0;
    const double ms = median_of(
        reps_of(o, 15),
        [&] {
          const array y = program({x})[0];
          eval(y);
          bytes = x.nbytes() + y.nbytes();
        },
        o.cpu_time);
    const double rate = static_cast<double>(bytes) / ms / 1e6;
    Row(fmt::format("memory_{}", op.name), o)
        .number("ms", ms)
        .number("GBps", rate)
        .number("of_copy", rate / copy)
        .print();
  }
}

/// Times them on either device, for as many arguments as fit into a CPU's caches: within 1e4, and of every magnitude.
void bench_trig(const BenchOptions& o) {
  const bool gpu = default_device().type == Device::gpu;
  const int n = gpu ? 1 << 24 : 1 << 18;
  std::mt19937 random(0);
  std::uniform_real_distribution<float> small(-1e4f, 1e4f), exponent(-126, 127);
  std::vector<float> near, everywhere;
  for (int i = 0; i < n; ++i) {
    near.push_back(small(random));
    everywhere.push_back(std::exp2(exponent(random)) * (i % 2 ? 1.0f : -1.0f));
  }
  constexpr std::pair<const char*, array (*)(const array&)> functions[] = {
      {"sin", [](const array& x) { return sin(x); }},
      {"cos", [](const array& x) { return cos(x); }},
      {"tan", [](const array& x) { return tan(x); }}};
  for (const auto& [range, values] : {std::pair{"1e4", &near}, std::pair{"all", &everywhere}}) {
    const array x(values->begin(), {n});
    eval(x);
    for (const auto& [name, function] : functions) {
      const auto program =
          compile([f = function](const std::vector<array>& in) { return std::vector<array>{f(in[0])}; }, {});
      const auto run = [&] { eval(program({x})); };
      const double first = seconds_of(run);
      const double ms = gpu ? device_ms(reps_of(o, 15), long_burst, [&] { program({x}); })
                            : median_of(reps_of(o, 200), run, o.cpu_time);
      Row(name, o, "f32")
          .whole("n", n)
          .text("below", range)
          .number("ms", ms)
          .number("Gelem_s", n / ms / 1e6)
          .number("first_step_s", first)
          .print();
    }
  }
}

}  // namespace weft::tool
