// weft bench gpu-…: the work of one GPU with the names of the figures that it is compared with. Times are of many runs
// that are issued in a row, so that the device never waits for the host, unless a run itself does.
#include <fmt/format.h>

#include <cmath>
#include <tuple>

#include "models/gpt.h"
#include "models/mnist.h"
#include "runtime/trace.h"
#include "tools/weft/bench/support.h"
#include "tools/weft/train/mnist_trainer.h"
#include "tools/weft/train/trainer.h"
#include "weft/compile.h"
#include "weft/device.h"
#include "weft/fast.h"
#include "weft/memory.h"
#include "weft/ops.h"
#include "weft/optim.h"
#include "weft/random.h"
#include "weft/stream.h"
#include "weft/transforms.h"

namespace weft::tool {

namespace {

using Function = std::function<array(const array&)>;

ArrayFunction compiled(const Function& f) {
  return compile([f](const std::vector<array>& in) { return std::vector<array>{f(in[0])}; }, CompileOptions{});
}

struct MemoryBench {
  const char* name;
  double passes;
  array (*apply)(const array&);
};

constexpr MemoryBench memory_benches[] = {
    {"softmax", 2, [](const array& x) { return softmax(x, -1); }},
    {"layernorm", 2, [](const array& x) { return fast::layer_norm(x, std::nullopt, std::nullopt, 1e-5f); }},
    {"sum_rows", 1, [](const array& x) { return sum(x, -1); }},
    {"sum_columns", 1, [](const array& x) { return sum(x, 0); }},
    {"gelu_chain", 2,
     [](const array& x) {
       const auto number = [&](double v) { return array(v, x.dtype()); };
       return fast::gelu_tanh(x * number(1.5) + number(2)) * number(0.5);
     }},
    {"transpose", 2, [](const array& x) { return contiguous(transpose(x)); }},
};

}  // namespace

void bench_gpu_memory(const BenchOptions& o) {
  need_gpu("gpu-memory");
  {
    const int n = 1 << 28;
    const array x = random::normal({n}, float32, 0, 1, random::key(0));
    eval(x);
    const auto f = compiled([](const array& v) { return negative(v); });
    const double ms = device_ms(reps_of(o, 5), 5, [&] { f({x}); });
    Row("copy", o, "float32").number("ms", ms).number("GBps", 8.0 * n / ms / 1e6).print();
  }
  const Dtype dtype = compute_dtype(o.dtype);
  for (const auto& [rows, columns] : {std::pair{65536, 1024}, {16384, 8192}, {4096, 50304}}) {
    const array x = random::normal({rows, columns}, dtype, 0, 1, random::key(0));
    eval(x);
    for (const MemoryBench& b : memory_benches) {
      const auto f = compiled(b.apply);
      const double first = seconds_of([&] {
        f({x});
        synchronize();
      }),
                   ms = device_ms(reps_of(o, 9), long_burst, [&] { f({x}); });
      Row(b.name, o)
          .whole("rows", rows)
          .whole("cols", columns)
          .number("ms", ms)
          .number("GBps", b.passes * static_cast<double>(x.nbytes()) / ms / 1e6)
          .number("first_step_s", first)
          .print();
    }
  }
}

/// Times one captured program of twenty matrix products, each of the one before with one of four matrices, whose
/// deviation keeps the numbers near one: the host has no part in the time.
void bench_gpu_matmul(const BenchOptions& o) {
  need_gpu("gpu-matmul");
  constexpr int products = 20;
  for (const auto& [name, dtype] : {std::pair{"bf16", bfloat16}, {"fp16", float16}, {"fp32", float32}})
    for (const int n : {512, 1024, 2048, 4096, 8192}) {
      if (o.machine.no_libraries && n > 4096 && dtype == float32 && !o.machine.tf32)
        continue;  // full float32 uses scalar units, and is slow
      std::vector<array> matrices;
      for (uint64_t k = 0; k < 5; ++k)
        matrices.push_back(random::normal({n, n}, dtype, 0, 1 / std::sqrt(static_cast<float>(n)), random::key(k)));
      eval(matrices);
      const auto f = compile(
          [](const std::vector<array>& in) {
            array x = in[0];
            for (size_t k = 0; k < products; ++k) x = matmul(x, in[1 + k % 4]);
            return std::vector<array>{x};
          },
          CompileOptions{});
      const double ms = device_ms(reps_of(o, 5), n < 2048 ? 10 : 1, [&] { f(matrices); }) / products;
      Row("matmul", o, dtype == float32 && o.machine.tf32 ? "tf32" : name)
          .whole("n", n)
          .number("ms", ms)
          .number("tflops", 2.0 * n * n * n / ms / 1e9)
          .print();
    }
}

namespace {

struct GptSize {
  int layers, heads, width, batch;
};

/// Times a training step without reading the loss, on tokens that are on the device.
void gpt_step(const GptSize& size, const BenchOptions& o) {
  const int time = 1024;
  random::seed(0);
  reset_peak_memory();
  const NumberOptions numbers = number_options(o.dtype, o.weights, o.residual);
  check_device(numbers);
  models::Gpt model({.vocab = 50304, .context = time, .layers = size.layers, .heads = size.heads, .width = size.width},
                    numbers.precision);
  optim::AdamW optimizer(
      model.trainable_parameters(),
      {.learning_rate = 6e-4f, .weight_decay = 0.1, .decays = optim::is_matrix, .bias_correction = true});
  optimizer.set_rounding(numbers.rounding);
  optimizer.set_masters(model.starting_values);
  optim::LossScale scale;
  TrainStep step(model, optimizer, 1.0, numbers.scaled_loss ? &scale : nullptr);
  const array ids = random::randint(array(0), array(50257), {size.batch, time + 1});
  const data::Batch batch{contiguous(slice(ids, {0, 0}, {size.batch, time})),
                          contiguous(slice(ids, {0, 1}, {size.batch, time + 1}))};
  eval(batch.inputs, batch.targets);
  int64_t parameters = 0;
  for (const auto& p : model.trainable_parameters()) parameters += static_cast<int64_t>(p.second->size());
  float loss = 0;
  if (o.profile) runtime::start_recording();
  const double first = seconds_of([&] { loss = step(batch); });
  if (o.profile) print_stages(runtime::stop_recording());
  for (int k = 0; k < 3; ++k) step(batch);
  const int64_t launched = runtime::counters().graph_launches;
  const double ms = device_ms(reps_of(o, 8), 1, [&] { loss = step(batch); });
  const double tokens = static_cast<double>(size.batch) * time;
  const double flops = 6.0 * static_cast<double>(parameters) + 12.0 * size.layers * size.width * time;
  Row("gpt2_train", o)
      .text("weights", o.weights)
      .text("residual", o.residual)
      .whole("params", parameters)
      .whole("B", size.batch)
      .whole("T", time)
      .number("ms", ms)
      .number("tok_s", tokens / ms * 1e3)
      .number("mfu_of_990", flops * tokens / (ms * 1e-3) / 990e12)
      .number("peak_GiB", static_cast<double>(get_peak_memory()) / (1 << 30))
      .number("first_step_s", first)
      .number("loss", loss)
      .whole("graphs", runtime::counters().graph_launches - launched)
      .print();
  if (o.profile) print_profile(3, [&] { step(batch); });
}

/// Returns the largest difference of two lists of arrays, each beside the largest number of the second.
double furthest(const std::vector<array>& a, const std::vector<array>& b) {
  double most = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    const array x = astype(a[k], float32), y = astype(b[k], float32);
    most = std::max(most, static_cast<double>((max(abs(x - y)) / max(abs(y))).item<float>()));
  }
  return most;
}

}  // namespace

/// Times causal attention, alone and with the three gradients, which have the same bits on every run or (any_order)
/// not; and the same by Weft's own kernels, with how far their results are from the others beside the largest.
void bench_gpu_attention(const BenchOptions& o) {
  need_gpu("gpu-attention");
  const Dtype dtype = compute_dtype(o.dtype);
  for (const auto& [batch, heads, length, width] :
       {std::tuple{64, 12, 1024, 64}, {8, 16, 4096, 128}, {2, 16, 16384, 128}}) {
    std::vector<array> in;
    for (uint64_t k = 0; k < 4; ++k)
      in.push_back(random::normal({batch, heads, length, width}, dtype, 0, 1, random::key(k)));
    eval(in);
    const ArrayFunction attention = [scale = 1 / std::sqrt(static_cast<float>(width))](const std::vector<array>& x) {
      return std::vector<array>{fast::scaled_dot_product_attention(x[0], x[1], x[2], scale, "causal")};
    };
    const ArrayFunction with_gradients = [attention](const std::vector<array>& x) {
      auto [out, gradients] = vjp(attention, {x[0], x[1], x[2]}, {x[3]});
      gradients.push_back(out[0]);
      return gradients;
    };
    // Long ones run in one burst of ten, as many as PyTorch's side makes: after a tenth of a second at full power the
    // device lowers its clock.
    const int64_t bursts = reps_of(o, length > 2048 ? 1 : 5);
    const auto ms = [&](const ArrayFunction& f, bool libraries = true) {
      return device_ms(bursts, 10, [&in, program = compiled_as(f, in, libraries)] { program(in); });
    };
    const double forward_ms = ms(attention), backward_ms = ms(with_gradients) - forward_ms;
    const double own_forward_ms = ms(attention, false), own_backward_ms = ms(with_gradients, false) - own_forward_ms;
    const Numerics asked = numerics();
    set_numerics({.tf32 = asked.tf32, .deterministic = false});
    const double any_order_ms = ms(with_gradients) - forward_ms;
    set_numerics(asked);
    const double flops = 2.0 * batch * heads * length * length * width;
    Row("attention", o)
        .whole("B", batch)
        .whole("H", heads)
        .whole("T", length)
        .whole("D", width)
        .number("fwd_ms", forward_ms)
        .number("fwd_tflops", flops / forward_ms / 1e9)
        .number("bwd_ms", backward_ms)
        .number("bwd_tflops", 2.5 * flops / backward_ms / 1e9)
        .number("bwd_any_order_ms", any_order_ms)
        .number("bwd_any_order_tflops", 2.5 * flops / any_order_ms / 1e9)
        .number("own_fwd_ms", own_forward_ms)
        .number("own_fwd_tflops", flops / own_forward_ms / 1e9)
        .number("own_bwd_ms", own_backward_ms)
        .number("own_bwd_tflops", 2.5 * flops / own_backward_ms / 1e9)
        .number("own_off",
                furthest(compiled_as(with_gradients, in, false)(in), compiled_as(with_gradients, in, true)(in)))
        .print();
  }
}

void bench_gpu_gpt2(const BenchOptions& o) {
  need_gpu("gpu-gpt2");
  gpt_step({12, 12, 768, 64}, o);
}
void bench_gpu_gpt2_medium(const BenchOptions& o) {
  need_gpu("gpu-gpt2-350m");
  gpt_step({24, 16, 1024, 32}, o);
}
void bench_gpu_gpt2_large(const BenchOptions& o) {
  need_gpu("gpu-gpt2-774m");
  gpt_step({36, 20, 1280, 32}, o);
}
void bench_gpu_gpt2_xl(const BenchOptions& o) {
  need_gpu("gpu-gpt2-1558m");
  gpt_step({48, 25, 1600, 32}, o);
}
void bench_gpu_gpt2_small_batch(const BenchOptions& o) {
  need_gpu("gpu-gpt2-b8");
  gpt_step({12, 12, 768, 8}, o);
}

void bench_gpu_mnist(const BenchOptions& o) {
  need_gpu("gpu-mnist");
  for (const int batch : {64, 1024, 8192}) {
    random::seed(0);
    models::Mnist model;
    optim::SGD optimizer(model.trainable_parameters(), {.learning_rate = 0.01f});
    std::vector<float> pixels(static_cast<size_t>(batch) * 784);
    std::vector<int32_t> digits(static_cast<size_t>(batch));
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = std::sin(static_cast<float>(i * i % 9973));
    for (size_t i = 0; i < digits.size(); ++i) digits[i] = static_cast<int32_t>(i * 7 % 10);
    MnistStep step(model, optimizer);
    const auto run = [&] {
      step.start({array::from_data(pixels.data(), {batch, 28, 28, 1}, float32),
                  array::from_data(digits.data(), {batch}, int32)});
    };
    const double first = seconds_of([&] {
      run();
      synchronize();
    }),
                 ms = device_ms(reps_of(o, 9), 20, run);
    Row("mnist_cnn_step", o).whole("B", batch).number("ms", ms).number("first_step_s", first).print();
    if (o.profile) print_profile(10, run);
  }
}

}  // namespace weft::tool
