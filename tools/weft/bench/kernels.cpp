// weft bench kernels: the time of a training step by what its kernels and library calls compute.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/program.h"
#include "compiler/program/measured_rates.h"
#include "models/gpt.h"
#include "tools/weft/bench/support.h"
#include "tools/weft/train/mnist_trainer.h"
#include "tools/weft/train/trainer.h"
#include "weft/device.h"
#include "weft/memory.h"
#include "weft/ops.h"
#include "weft/optim.h"
#include "weft/profile.h"
#include "weft/random.h"

namespace weft::tool {

namespace {

struct GptShape {
  const char* name;
  models::GptConfig config;
  int gpu_batch, gpu_time;
  int batch, time;  // on a CPU
};

const GptShape gpts[] = {
    {"nanogpt", {.vocab = 64, .context = 256, .layers = 4, .heads = 4, .width = 128}, 64, 256, 12, 64},
    {"gpt2", {.vocab = 50304, .context = 1024, .layers = 12, .heads = 12, .width = 768}, 64, 1024, 4, 64},
    {"gpt2-350m", {.vocab = 50304, .context = 1024, .layers = 24, .heads = 16, .width = 1024}, 32, 1024, 1, 64},
    {"gpt2-774m", {.vocab = 50304, .context = 1024, .layers = 36, .heads = 20, .width = 1280}, 32, 1024, 1, 64},
    {"gpt2-1558m", {.vocab = 50304, .context = 1024, .layers = 48, .heads = 25, .width = 1600}, 16, 1024, 1, 64},
};

void print_rows(const BenchOptions& o, const std::string& model, const std::function<void()>& step) {
  reset_peak_memory();
  int64_t planned = 0;
  {
    const compiler::BuildRecord record;
    step();
    for (const auto& program : record.programs()) planned = std::max(planned, program->stats().peak_bytes);
  }
  step();
  synchronize();
  const double gib = 1 << 30, peak = static_cast<double>(get_peak_memory()) / gib;
  if (!o.json)
    fmt::print("{:9.3f} GiB in use at most, {:.3f} planned for the step\n", peak, static_cast<double>(planned) / gib);
  if (!o.json) return print_profile(reps_of(o, 5), step);
  const KernelTable table = profile(step, static_cast<int>(reps_of(o, 5))).by_work();
  const double ms = table.ms();
  for (size_t i = 0; i < std::min<size_t>(table.rows.size(), 40); ++i) {
    const KernelRow& row = table.rows[i];
    Row("kernels", o)
        .text("model", model)
        .text("name", row.kind == "kernel" ? row.what : row.name)
        .number("launches", row.launches)
        .number("ms", row.ms)
        .number("predicted_ms", row.predicted_ms)
        .number("share", row.ms / ms)
        .number("GBps", row.bytes / row.ms / 1e6)
        .number("tflops", row.flops / row.ms / 1e9)
        .number("fraction_of_peak", row.of_peak())
        .print();
  }
  const target::Rates rates = compiler::machine_rates(compiler::default_target());
  Row("kernels_step", o)
      .text("model", model)
      .number("ms", ms)
      .number("predicted_ms", table.predicted_ms())
      .number("floor_ms", table.floor_ms())
      .number("peak_GiB", peak)
      .number("planned_GiB", static_cast<double>(planned) / gib)
      .number("copy_GBps", rates.memory() / 1e9)
      .number("tflops_f32", rates.peak(Arithmetic::f32) / 1e12)
      .number("tflops_half", rates.peak(Arithmetic::f16) / 1e12)
      .print();
}

void gpt_kernels(const BenchOptions& o, const GptShape& shape) {
  const bool gpu = default_device().type == Device::gpu;
  const int batch = gpu ? shape.gpu_batch : shape.batch, time = gpu ? shape.gpu_time : shape.time;
  random::seed(0);
  const NumberOptions numbers = number_options(o.dtype, o.weights, o.residual);
  check_device(numbers);
  models::Gpt model(shape.config, numbers.precision);
  optim::AdamW optimizer(
      model.trainable_parameters(),
      {.learning_rate = 6e-4f, .weight_decay = 0.1, .decays = optim::is_matrix, .bias_correction = true});
  optimizer.set_rounding(numbers.rounding);
  optimizer.set_masters(model.starting_values);
  optim::LossScale scale;
  TrainStep step(model, optimizer, 1.0, numbers.scaled_loss ? &scale : nullptr);
  const array ids = random::randint(array(0), array(static_cast<int>(std::min<int64_t>(shape.config.vocab, 50257))),
                                    {batch, time + 1});
  const data::Batch tokens{contiguous(slice(ids, {0, 0}, {batch, time})),
                           contiguous(slice(ids, {0, 1}, {batch, time + 1}))};
  eval(tokens.inputs, tokens.targets);
  print_rows(o, shape.name, [&] { step(tokens); });
}

void mnist_kernels(const BenchOptions& o) {
  const int batch = default_device().type == Device::gpu ? 1024 : 64;
  random::seed(0);
  models::Mnist model;
  optim::SGD optimizer(model.trainable_parameters(), {.learning_rate = 0.01f});
  const data::ImageBatch images{random::normal({batch, 28, 28, 1}), random::randint(array(0), array(10), {batch})};
  eval(images.images, images.labels);
  MnistStep step(model, optimizer);
  print_rows(o, "mnist", [&] { step(images); });
}

}  // namespace

std::vector<std::string> kernel_bench_models() {
  std::vector<std::string> names;
  for (const GptShape& shape : gpts) names.emplace_back(shape.name);
  names.emplace_back("mnist");
  return names;
}

void bench_kernels(const BenchOptions& o) {
  if (o.model == "mnist") return mnist_kernels(o);
  for (const GptShape& shape : gpts)
    if (o.model == shape.name) return gpt_kernels(o, shape);
}

}  // namespace weft::tool
