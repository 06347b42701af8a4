// weft bench gpu-…: operators other than matrix products and row reductions, and the host's cost of replaying a whole
// program.
#include <fmt/format.h>

#include "compiler/program.h"
#include "runtime/trace.h"
#include "tools/weft/bench/support.h"
#include "weft/compile.h"
#include "weft/device.h"
#include "weft/fast.h"
#include "weft/fft.h"
#include "weft/linalg.h"
#include "weft/ops.h"
#include "weft/random.h"
#include "weft/transforms.h"

namespace weft::tool {

namespace {

using ManyToOne = std::function<array(const std::vector<array>&)>;

ArrayFunction compiled_many(const ManyToOne& f) {
  return compile([f](const std::vector<array>& in) { return std::vector<array>{f(in)}; }, CompileOptions{});
}

struct Timed {
  double ms = 0, first_s = 0;
};

Timed timed(const BenchOptions& o, const std::vector<array>& in, const ManyToOne& function) {
  eval(in);
  const ArrayFunction f = compiled_many(function);
  Timed t;
  t.first_s = seconds_of([&] {
    f(in);
    synchronize();
  });
  t.ms = device_ms(reps_of(o, 5), 10, [&] { f(in); });
  return t;
}

}  // namespace

void bench_gpu_sort(const BenchOptions& o) {
  need_gpu("gpu-sort");
  const Dtype dtype = compute_dtype(o.dtype);
  for (const auto& [rows, columns] : {std::pair{1, 50304}, {64, 50304}, {4096, 1024}, {1 << 20, 16}, {1, 1 << 22}}) {
    const array x = random::normal({rows, columns}, dtype, 0, 1, random::key(0));
    const auto row = [&, r = rows, c = columns](const char* name, const Timed& t) {
      Row(name, o)
          .whole("rows", r)
          .whole("cols", c)
          .number("ms", t.ms)
          .number("Gelem_s", static_cast<double>(r) * c / t.ms / 1e6)
          .number("first_step_s", t.first_s)
          .print();
    };
    row("sort", timed(o, {x}, [](const std::vector<array>& in) { return sort(in[0], -1); }));
    row("argsort", timed(o, {x}, [](const std::vector<array>& in) { return argsort(in[0], -1); }));
    if (columns == 50304)
      row("topk50", timed(o, {x}, [](const std::vector<array>& in) { return topk(in[0], 50, -1); }));
  }
  const array sorted = sort(random::normal({1 << 20}, dtype, 0, 1, random::key(1))),
              values = random::normal({1 << 22}, dtype, 0, 1, random::key(2));
  const Timed t = timed(o, {sorted, values}, [](const std::vector<array>& in) { return searchsorted(in[0], in[1]); });
  Row("searchsorted", o)
      .whole("n", 1 << 20)
      .whole("values", 1 << 22)
      .number("ms", t.ms)
      .number("Gelem_s", (1 << 22) / t.ms / 1e6)
      .print();
}

/// Times the row operations of a training step other than matrix products: norms' derivatives with the sums for their
/// weights, gradients of biases, the classifier's loss and gradient. The bytes counted are those that have to be moved.
void bench_gpu_rows(const BenchOptions& o) {
  need_gpu("gpu-rows");
  const Dtype dtype = compute_dtype(o.dtype);
  const auto normal = [&](int rows, int columns, uint64_t seed) {
    return random::normal({rows, columns}, dtype, 0, 1, random::key(seed));
  };
  const auto vector = [&](int n, uint64_t seed) { return random::normal({n}, dtype, 0, 1, random::key(seed)); };
  const auto row = [&](const char* name, int rows, int columns, double arrays, const ArrayFunction& f,
                       const std::vector<array>& in) {
    eval(in);
    const auto program = compile(f, CompileOptions{});
    const double first = seconds_of([&] {
      program(in);
      synchronize();
    }),
                 ms = device_ms(reps_of(o, 9), long_burst, [&] { program(in); });
    const double bytes = arrays * static_cast<double>(dtype.size()) * rows * columns;
    Row(name, o)
        .whole("rows", rows)
        .whole("cols", columns)
        .number("ms", ms)
        .number("GBps", bytes / ms / 1e6)
        .number("first_step_s", first)
        .print();
  };
  for (const int width : {768, 1024, 1280, 1600}) {
    const auto norm = [](const std::vector<array>& in) {
      return std::vector<array>{in[0], fast::layer_norm(in[0], in[1], in[2], 1e-5f)};
    };
    const auto gradients = [norm](const std::vector<array>& in) {
      return vjp(norm, {in[0], in[1], in[2]}, {in[3], in[4]}).second;
    };
    const int rows = 32768;
    row("norm_vjp", rows, width, 4, gradients,
        {normal(rows, width, 0), vector(width, 1), vector(width, 2), normal(rows, width, 3), normal(rows, width, 4)});
    row("sum_columns", rows, 3 * width, 1,
        [](const std::vector<array>& in) { return std::vector<array>{sum(in[0], 0)}; }, {normal(rows, 3 * width, 0)});
  }
  const auto loss = [](const std::vector<array>& in) {
    return std::vector<array>{mean(fast::cross_entropy(in[0], in[1]))};
  };
  const auto classifier = [loss](const std::vector<array>& in) {
    return vjp([&](const std::vector<array>& x) { return loss({x[0], in[1]}); }, {in[0]}, {array(1.0f)}).second;
  };
  row("classifier", 16384, 50304, 2, classifier,
      {normal(16384, 50304, 0), random::randint(array(0), array(50304), {16384}, int32, random::key(1))});
}

/// Times rows that are too much for one thread block: few of them, or longer ones than fit on chip.
void bench_gpu_long(const BenchOptions& o) {
  need_gpu("gpu-long");
  for (const auto& [rows, columns] : {std::pair{8, 1 << 20}, {64, 1 << 18}, {1024, 1 << 17}, {4096, 50304}}) {
    const std::vector<array> in = {random::normal({rows, columns}, compute_dtype(o.dtype), 0, 1, random::key(0))};
    const auto row = [&, r = rows, c = columns](const char* name, double arrays, const ManyToOne& f) {
      const Timed t = timed(o, in, f);
      Row(name, o)
          .whole("rows", r)
          .whole("cols", c)
          .number("ms", t.ms)
          .number("GBps", arrays * static_cast<double>(in[0].nbytes()) / t.ms / 1e6)
          .number("first_step_s", t.first_s)
          .print();
    };
    row("softmax", 2, [](const std::vector<array>& v) { return softmax(v[0], -1); });
    row("layernorm", 2,
        [](const std::vector<array>& v) { return fast::layer_norm(v[0], std::nullopt, std::nullopt, 1e-5f); });
    row("sum_rows", 1, [](const std::vector<array>& v) { return sum(v[0], -1); });
  }
}

void bench_gpu_scan(const BenchOptions& o) {
  need_gpu("gpu-scan");
  for (const auto& [rows, columns] : {std::pair{1, 1 << 24}, {16, 1 << 20}, {4096, 4096}, {65536, 128}}) {
    const array x = random::normal({rows, columns}, float32, 0, 1, random::key(0));
    const auto row = [&, r = rows, c = columns](const char* name, const Timed& t) {
      Row(name, o, "float32")
          .whole("rows", r)
          .whole("cols", c)
          .number("ms", t.ms)
          .number("GBps", 8.0 * r * c / t.ms / 1e6)
          .print();
    };
    row("cumsum", timed(o, {x}, [](const std::vector<array>& in) { return cumsum(in[0], 1); }));
    row("cummax", timed(o, {x}, [](const std::vector<array>& in) { return cummax(in[0], 1); }));
    row("logcumsumexp", timed(o, {x}, [](const std::vector<array>& in) { return logcumsumexp(in[0], 1); }));
    row("cumsum_columns", timed(o, {x}, [](const std::vector<array>& in) { return cumsum(in[0], 0); }));
  }
}

void bench_gpu_fft(const BenchOptions& o) {
  need_gpu("gpu-fft");
  for (const auto& [rows, columns] :
       {std::pair{16384, 1024}, {256, 65536}, {16384, 1000}, {4096, 4099}, {1, 1 << 24}}) {
    const array x = random::normal({rows, columns}, float32, 0, 1, random::key(0)), z = astype(x, complex64);
    const auto row = [&, r = rows, c = columns](const char* name, const Timed& t, double bytes) {
      Row(name, o, "float32")
          .whole("rows", r)
          .whole("cols", c)
          .number("ms", t.ms)
          .number("GBps", bytes * r * c / t.ms / 1e6)
          .number("first_step_s", t.first_s)
          .print();
    };
    row("fft", timed(o, {z}, [](const std::vector<array>& in) { return fft::fft(in[0]); }), 16);
    row("rfft", timed(o, {x}, [](const std::vector<array>& in) { return fft::rfft(in[0]); }), 8);
  }
}

/// Times decompositions on either device: one large matrix, and many small ones.
void bench_linalg(const BenchOptions& o) {
  const int burst = default_device().type == Device::gpu ? 5 : 1;
  for (const auto& [count, n] : {std::pair{1, 1024}, {1, 256}, {64, 64}, {512, 32}, {4096, 8}}) {
    const array a = random::normal({count, n, n}, float32, 0, 1, random::key(0)),
                spd = matmul(a, swapaxes(a, -1, -2)) + eye(n) * array(static_cast<float>(n));
    const auto row = [&, b = count, m = n](const char* name, const array& x, const ManyToOne& f) {
      const ArrayFunction program = compiled_many(f);
      eval(x);
      Row(name, o, "float32")
          .whole("batch", b)
          .whole("n", m)
          .number("ms", device_ms(reps_of(o, 3), burst, [&] { program({x}); }))
          .print();
    };
    row("cholesky", spd, [](const std::vector<array>& in) { return linalg::cholesky(in[0]); });
    row("solve_triangular", spd, [](const std::vector<array>& in) { return linalg::solve_triangular(in[0], in[0]); });
    row("inv", spd, [](const std::vector<array>& in) { return linalg::inv(in[0]); });
    row("slogdet", spd, [](const std::vector<array>& in) { return linalg::slogdet(in[0]).second; });
    row("qr", a, [](const std::vector<array>& in) { return linalg::qr(in[0]).second; });
    if (n > 512) continue;  // takes seconds on a CPU
    row("eigh", spd, [](const std::vector<array>& in) { return linalg::eigh(in[0]).second; });
    row("eigvalsh", spd, [](const std::vector<array>& in) { return linalg::eigvalsh(in[0]); });
    row("svd", a, [](const std::vector<array>& in) { return linalg::svd(in[0])[0]; });
    row("singular_values", a, [](const std::vector<array>& in) { return linalg::svd(in[0], false)[0]; });
  }
}

/// Times the sum of gradient rows by token (the gradient of an embedding): for many different tokens, for few, for one.
void bench_gpu_scatter(const BenchOptions& o) {
  need_gpu("gpu-scatter");
  const int tokens = 65536, width = 768, vocabulary = 50304;
  const array rows = random::normal({tokens, 1, width}, compute_dtype(o.dtype), 0, 1, random::key(0));
  for (const int kinds : {vocabulary, 256, 1}) {
    const array ids = random::randint(array(0), array(kinds), {tokens}, int32, random::key(1));
    const Timed t = timed(o, {ids, rows}, [](const std::vector<array>& in) {
      return scatter_add(zeros({vocabulary, width}, float32), in[0], astype(in[1], float32), 0);
    });
    Row("embedding_gradient", o)
        .text("sums", o.machine.nondeterministic ? "any order" : "in order")
        .whole("tokens", tokens)
        .whole("cols", width)
        .whole("kinds", kinds)
        .number("ms", t.ms)
        .number("GBps", (static_cast<double>(rows.nbytes()) + 4.0 * vocabulary * width) / t.ms / 1e6)
        .print();
  }
  const int n = 1 << 26;
  const Timed bits =
      timed(o, {random::key(3)}, [](const std::vector<array>& in) { return random::bits({n}, 4, in[0]); });
  Row("random_bits", o, "uint32").whole("n", n).number("ms", bits.ms).number("GBps", 4.0 * n / bits.ms / 1e6).print();
}

/// Times the host for issuing a step of many small kernels as a whole.
void bench_gpu_replay(const BenchOptions& o) {
  need_gpu("gpu-replay");
  for (const int kernels : {20, 200, 1000}) {
    const ArrayFunction f = compile(
        [kernels](const std::vector<array>& in) {
          array x = in[0];
          for (int k = 0; k < kernels; ++k) x = cumsum(x, k % 2) * array(0.5f, float32);
          return std::vector<array>{x};
        },
        CompileOptions{});
    const array x = random::normal({32, 64}, float32, 0, 1, random::key(0));
    eval(x);
    int64_t launches = 0;
    {
      const compiler::BuildRecord record;
      f({x});
      if (!record.programs().empty()) launches = record.programs().back()->stats().launches;
    }
    const double device = device_ms(reps_of(o, 20), 10, [&] { f({x}); });
    const int64_t replayed = runtime::counters().graph_launches;
    std::vector<double> host;
    for (int k = 0; k < 50; ++k) {
      host.push_back(1e6 * seconds_of([&] { f({x}); }));
      synchronize();
    }
    std::sort(host.begin(), host.end());
    Row("gpu_replay", o, "float32")
        .whole("kernels", launches)
        .number("host_us", host[host.size() / 2])
        .number("host_us_least", host[0])
        .number("us", 1e3 * device)
        .whole("graphs", runtime::counters().graph_launches - replayed)
        .print();
  }
}

}  // namespace weft::tool
