// weft bench: medians of timed repetitions after warm-up, with the names and fields of the figures they are compared
// with.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "compiler/program.h"
#include "models/gpt.h"
#include "runtime/threads.h"
#include "runtime/trace.h"
#include "tools/weft/bench/support.h"
#include "tools/weft/command.h"
#include "tools/weft/explain/trace_file.h"
#include "tools/weft/train/mnist_trainer.h"
#include "tools/weft/train/train_options.h"
#include "tools/weft/train/trainer.h"
#include "weft/data.h"
#include "weft/fast.h"
#include "weft/ops.h"
#include "weft/random.h"

namespace weft::tool {

namespace {

struct TrainBench {
  const char* name;
  models::GptConfig config;
  int batch, time;
  int32_t tokens;  // distinct tokens
  int64_t reps;
};

/// A whole training step (loss, gradients, AdamW) on one batch of random tokens.
class GptStep {
 public:
  GptStep(const TrainBench& b, const BenchOptions& o)
      : numbers_(number_options(o.dtype, o.weights, o.residual)), model_(seeded(b.config), numbers_.precision),
        optimizer_(model_.trainable_parameters(),
                   {.learning_rate = 6e-4f, .weight_decay = 0.01, .decays = optim::is_matrix, .bias_correction = true}),
        batch_(batch(b)) {
    check_device(numbers_);
    optimizer_.set_rounding(numbers_.rounding);
    optimizer_.set_masters(model_.starting_values);
    step_.emplace(model_, optimizer_, 0, numbers_.scaled_loss ? &scale_ : nullptr);
  }
  float operator()() { return (*step_)(batch_); }
  /// The first step: seconds, and those of the tuner.
  double first(double& tuning) {
    const compiler::BuildRecord record;
    const double seconds = seconds_of([&] { (*this)(); });
    for (const auto& program : record.programs()) tuning += program->stats().tune_ms / 1e3;
    return seconds;
  }

 private:
  static const models::GptConfig& seeded(const models::GptConfig& config) {
    random::seed(0);
    return config;
  }
  static data::Batch batch(const TrainBench& b) {
    const data::CounterRandom draw(0);
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < 100'000; ++i)
      ids.push_back(static_cast<int32_t>(draw.below(static_cast<uint64_t>(i), static_cast<uint64_t>(b.tokens))));
    return data::TokenDataset(ids, b.tokens).random_batch(0, 0, b.batch, b.time);
  }
  NumberOptions numbers_;
  models::Gpt model_;
  optim::AdamW optimizer_;
  optim::LossScale scale_;
  std::optional<TrainStep> step_;
  data::Batch batch_;
};

const TrainBench gpt2{"cpu_gpt2_124M_llmc_default",
                      {.vocab = 50304, .context = 1024, .layers = 12, .heads = 12, .width = 768},
                      4,
                      64,
                      50257,
                      7};
const TrainBench nanogpt{
    "cpu_shakespeare_char_cpu", {.vocab = 64, .context = 64, .layers = 4, .heads = 4, .width = 128}, 12, 64, 64, 50};

void bench_training(const TrainBench& b, const BenchOptions& o) {
  GptStep step(b, o);
  double tuning = 0;
  const double first = step.first(tuning);
  const double ms = median_of(reps_of(o, b.reps), [&] { step(); });
  Row row(b.name, o);
  row.number("ms", ms).number("tok_s", b.batch * b.time / ms * 1e3).number("first_step_s", first);
  if (o.machine.tune != "off") row.text("tune", o.machine.tune).number("tune_s", tuning);
  row.print();
  if (o.profile) print_profile(10, [&] { step(); });
}

void gpt2_124m(const BenchOptions& o) { bench_training(gpt2, o); }
void nanogpt_cpu(const BenchOptions& o) { bench_training(nanogpt, o); }

/// Times the same training step with the choices of the heuristics and of the tuner, alternately; and the time of
/// tuning.
void tuning_gain(const BenchOptions& o) {
  const compiler::Policy before = compiler::default_policy();
  compiler::Policy policy = before;
  policy.tuning = compiler::Tuning::off;
  compiler::set_default_policy(policy);
  GptStep plain(nanogpt, o);
  double seconds = 0, none = 0;
  plain.first(none);
  policy.tuning = before.tuning == compiler::Tuning::off ? compiler::Tuning::force : before.tuning;
  compiler::set_default_policy(policy);
  GptStep tuned(nanogpt, o);
  tuned.first(seconds);
  std::vector<double> times[2];
  for (int64_t k = -2; k < reps_of(o, nanogpt.reps); ++k) {
    const double off = seconds_of([&] { plain(); }, o.cpu_time), on = seconds_of([&] { tuned(); }, o.cpu_time);
    if (k >= 0) times[0].push_back(off), times[1].push_back(on);
  }
  compiler::set_default_policy(before);
  for (auto& t : times) std::nth_element(t.begin(), t.begin() + static_cast<std::ptrdiff_t>(t.size() / 2), t.end());
  const double off = 1e3 * times[0][times[0].size() / 2], on = 1e3 * times[1][times[1].size() / 2];
  Row("cpu_tuned_gpt_step", o)
      .number("ms_off", off)
      .number("ms", on)
      .number("ratio", on / off)
      .number("tune_s", seconds)
      .print();
}

/// A whole training step (loss, gradients, SGD) of the MNIST network on one batch of random images.
void mnist(const BenchOptions& o) {
  for (const int batch : {64, 256}) {
    random::seed(0);
    models::Mnist model;
    optim::SGD optimizer(model.trainable_parameters(), {.learning_rate = 0.01f});
    const data::ImageBatch images{random::normal({batch, 28, 28, 1}), random::randint(array(0), array(10), {batch})};
    eval(images.images, images.labels);
    MnistStep step(model, optimizer);
    const double first = seconds_of([&] { step(images); }), ms = median_of(reps_of(o, 30), [&] { step(images); });
    Row("cpu_mnist_step", o)
        .whole("B", batch)
        .number("ms", ms)
        .number("img_s", batch / ms * 1e3)
        .number("first_step_s", first)
        .print();
    if (o.profile) print_profile(10, [&] { step(images); });
  }
}

/// Times tracing and compiling a training step before any code is generated, by layers: on the null target, which
/// computes nothing. Widths do not matter to the compiler, so a narrow model stands for GPT-2. Each figure is the
/// minimum over the first steps of several models; processor time also counts while other processes run.
void compile_times(const BenchOptions& o) {
  target::Target& before = compiler::default_target();
  compiler::set_default_target(target::null());
  for (const int layers : {4, 12, 24, 48, 96}) {
    if (!o.only.empty() && o.only != std::to_string(layers)) continue;
    double total = 1e9, processor = 1e9;
    compiler::Stats least, first;  // of the quickest model; of the first, which is the same in every run
    for (int64_t rep = 0; rep < reps_of(o, 5); ++rep) {
      models::Gpt model(
          {.vocab = 256, .context = 64, .layers = layers, .heads = 4, .width = 64 + 16 * static_cast<int>(rep)});
      optim::AdamW optimizer(
          model.trainable_parameters(),
          {.learning_rate = 6e-4f, .weight_decay = 0.01, .decays = optim::is_matrix, .bias_correction = true});
      TrainStep step(model, optimizer, 0);
      const array tokens = zeros({4, 64}, int32);
      eval(tokens);
      for (const auto& p : model.trainable_parameters()) eval(*p.second);
      const compiler::BuildRecord record;
      double ms = 0;
      processor =
          std::min(processor, 1e3 * seconds_of([&] { ms = 1e3 * seconds_of([&] {
                                                            step({tokens, tokens});
                                                          }); }, true));
      const compiler::Stats& stats = record.programs().back()->stats();
      if (rep == 0) first = stats;
      if (ms - stats.compile_ms >= total) continue;
      total = ms - stats.compile_ms;
      least = stats;
    }
    Row("compile_gpt_step", o)
        .whole("layers", layers)
        .number("trace_ms", total - least.simplify_ms - least.group_ms - least.lower_ms)
        .number("simplify_ms", least.simplify_ms)
        .number("group_ms", least.group_ms)
        .number("lower_ms", least.lower_ms)
        .number("ms", total)
        .number("cpu_ms", processor)
        .whole("steps", first.count())
        .number("arena_mb", static_cast<double>(first.arena_bytes) / 1e6)
        .number("live_mb", static_cast<double>(first.live_bytes) / 1e6)
        .print();
  }
  compiler::set_default_target(before);
}

/// One expression over a 4096 × 4096 array, read once and written once.
void bench_map(const char* name, const BenchOptions& o, const std::function<array(const array&)>& f) {
  const int n = 4096;
  const array x = random::normal({n, n}, compute_dtype(o.dtype), 0, 1, random::key(0));
  eval(x);
  const auto program = compile([&f](const std::vector<array>& in) { return std::vector<array>{f(in[0])}; }, {});
  const auto run = [&] { eval(program({x})); };
  const double first = seconds_of(run), ms = median_of(reps_of(o, 15), run);
  Row(name, o)
      .number("ms", ms)
      .number("GBps", 2.0 * static_cast<double>(x.nbytes()) / ms / 1e6)
      .number("first_step_s", first)
      .print();
}

void softmax_rows(const BenchOptions& o) {
  bench_map("cpu_softmax", o, [](const array& x) { return softmax(x, -1); });
}

void layer_norm_rows(const BenchOptions& o) {
  bench_map("cpu_layernorm", o, [](const array& x) { return fast::layer_norm(x, std::nullopt, std::nullopt, 1e-5f); });
}

void gelu_chain(const BenchOptions& o) {
  bench_map("cpu_gelu_chain", o, [](const array& x) {
    const auto number = [&](double v) { return array(v, x.dtype()); };
    return fast::gelu_tanh(x * number(1.5) + number(2)) * number(0.5);
  });
}

void matmuls(const BenchOptions& o) {
  for (const int n : {512, 1024, 2048}) {
    const Dtype dtype = compute_dtype(o.dtype);
    const array a = random::normal({n, n}, dtype, 0, 1, random::key(0)),
                b = random::normal({n, n}, dtype, 0, 1, random::key(1));
    eval(a, b);
    const auto program =
        compile([](const std::vector<array>& in) { return std::vector<array>{matmul(in[0], in[1])}; }, {});
    const auto run = [&] { eval(program({a, b})); };
    const double first = seconds_of(run), ms = median_of(reps_of(o, 15), run);
    Row("cpu_matmul", o)
        .whole("n", n)
        .number("ms", ms)
        .number("gflops", 2.0 * n * n * n / ms / 1e6)
        .number("first_step_s", first)
        .print();
  }
}

constexpr Bench benches[] = {
    {"gpt2-124m", "training steps of GPT-2 124M, 4 sequences of 64 tokens", gpt2_124m},
    {"nanogpt-cpu", "training steps of a character GPT: 4 layers, width 128, 12 sequences of 64 tokens", nanogpt_cpu},
    {"tune", "training steps of the same, as chosen by rule and as measured, in turns", tuning_gain},
    {"mnist", "training steps of the MNIST network, 64 and 256 images", mnist},
    {"softmax", "softmax over the rows of a 4096 x 4096 array", softmax_rows},
    {"layer_norm", "layer norm over the same", layer_norm_rows},
    {"gelu", "gelu(1.5 x + 2) / 2 over the same", gelu_chain},
    {"compile", "tracing and compiling a GPT's training step, without code generation", compile_times},
    {"eager", "the host's time for small operations that are not compiled", bench_eager},
    {"tensors", "an AdamW step over 20 to 2000 small tensors: the host's time, and with the CPU's", bench_tensors},
    {"memory", "operators over a 4096 x 4096 array against the copy bandwidth of the same run", bench_memory},
    {"trig", "sin, cos and tan of float32 arguments within 1e4, and of every magnitude, on either device", bench_trig},
    {"dot", "products by generated code and by the library in turn", bench_dot},
    {"user-kernels", "kernels as users write them beside the compiler's own, on either device", bench_user_kernels},
    {"tutorials", "the kernels of Triton's tutorials on a GPU (bench/triton_tutorials.py is Triton's side)",
     bench_tutorials},
    {"ladder",
     "the rungs of a ladder of kernels (docs/kernels), or of all, beside the compiler's own and the libraries'",
     bench_ladder},
    {"kernels", "where the time of a training step of --model goes, by what its kernels compute", bench_kernels},
    {"cost", "predicted times of all kernels that the other benchmarks run, against measured ones", bench_cost},
    {"schedules", "the schedules of twenty kernels that the rules choose, against all that are near them",
     bench_schedules},
    {"models", "training steps of models that users bring (docs/workloads.md), on either device", bench_models},
    {"operations", "single operations that users bring, on either device", bench_operations},
    {"random", "random graphs of maps, reductions, matmuls, gathers and transposes", bench_random},
    {"gpu-memory", "operators over arrays that fill a GPU, against a copy of the same run", bench_gpu_memory},
    {"gpu-rows", "norms' derivatives, sums of columns, and the classifier on a GPU", bench_gpu_rows},
    {"gpu-long", "softmax, norms and sums of rows that blocks of threads share, on a GPU", bench_gpu_long},
    {"gpu-matmul", "products of square matrices of 512 to 8192 on a GPU", bench_gpu_matmul},
    {"gpu-products", "products of squares and of models' layers on a GPU, by generated code and with libraries in turn",
     bench_gpu_products},
    {"gpu-attention", "causal attention and its gradients, 1024 to 16384 positions", bench_gpu_attention},
    {"gpu-gpt2", "training steps of GPT-2 124M, 64 sequences of 1024 tokens", bench_gpu_gpt2},
    {"gpu-gpt2-b8", "the same, 8 sequences", bench_gpu_gpt2_small_batch},
    {"gpu-gpt2-350m", "training steps of GPT-2 350M, 32 sequences of 1024 tokens", bench_gpu_gpt2_medium},
    {"gpu-gpt2-774m", "the same of 774M", bench_gpu_gpt2_large},
    {"gpu-gpt2-1558m", "the same of 1558M", bench_gpu_gpt2_xl},
    {"gpu-decode", "tokens after each other: GPT-2 124M, Llama 1.1B and 7B with random weights", bench_gpu_decode},
    {"gpu-decode-124m", "the first of them", bench_gpu_decode},
    {"gpu-decode-1b", "the second", bench_gpu_decode},
    {"gpu-decode-7b", "the third", bench_gpu_decode},
    {"gpu-mnist", "training steps of the MNIST network, 64 to 8192 images", bench_gpu_mnist},
    {"gpu-fft", "Fourier transforms on a GPU: many rows, long rows, lengths of every kind", bench_gpu_fft},
    {"linalg", "decompositions of one large matrix and of many small ones, on either device", bench_linalg},
    {"gpu-sort", "sorts of rows of 16 to 2^22 elements on a GPU, the 50 largest of 50304, searches", bench_gpu_sort},
    {"gpu-scan", "cumulative sums along rows and columns on a GPU", bench_gpu_scan},
    {"gpu-scatter", "the gradient of an embedding on a GPU: tokens of many kinds, of few, of one; random bits",
     bench_gpu_scatter},
    {"gpu-replay", "what the host takes to give a program of many small kernels to a GPU as a whole", bench_gpu_replay},
    {"matmul", "products of square matrices of 512, 1024 and 2048", matmuls},
};

}  // namespace

std::span<const Bench> all_benches() { return benches; }

namespace {

int bench(const BenchOptions& o) {
  std::vector<std::string> known{"list"};
  for (const auto& b : benches) known.push_back(b.name);
  if (o.name == "list") {
    for (const auto& b : benches) fmt::print("{:12} {}\n", b.name, b.what);
    return 0;
  }
  const auto* found =
      std::find_if(std::begin(benches), std::end(benches), [&](const Bench& b) { return o.name == b.name; });
  if (found == std::end(benches)) {
    const std::string near = nearest(o.name, known);
    throw UsageError(fmt::format(
        "there is no benchmark '{}'{}", o.name,
        near.empty() ? fmt::format("; known are {}", fmt::join(known, ", ")) : "; did you mean " + near + "?"));
  }
  if (!o.ladder.empty() && o.name != "ladder")
    throw UsageError(
        fmt::format("'{}' is not understood here: weft bench {} takes no further words", o.ladder, o.name));
  apply(o.machine);
  if (o.cpu_time && runtime::num_threads() != 1)
    throw UsageError("--cpu-time counts one thread: give --threads 1 with it");
  if (!o.record.empty()) record_command(o.record);
  return traced(o.trace, [&] {
    found->run(o);
    return 0;
  });
}

}  // namespace

Command bench_command() {
  auto options = std::make_shared<BenchOptions>();
  OptionSet set;
  set.add("NAME", "", &options->name, "what to measure; list shows the names").as_positional().needed();
  set.add("LADDER", "", &options->ladder, "of bench ladder: which one, or all").as_positional();
  set.add("json", "", &options->json, "one JSON object a line");
  set.add("record", "FILE", &options->record, "append the lines to a file as well, after a line with the command");
  set.add("profile", "", &options->profile, "after a training step, the time of its kernels and library calls");
  set.add("reps", "N", &options->reps, "timed repetitions; the figure is their median")
      .range(0, 1e6)
      .defaults_to("depends on the benchmark");
  add_number_options(set, options->dtype, options->weights, options->residual);
  set.add("model", "NAME", &options->model,
          "of bench kernels: " + fmt::format("{}", fmt::join(kernel_bench_models(), ", ")))
      .one_of(kernel_bench_models());
  set.add("only", "NAME", &options->only,
          "of bench models and operations: the workload of that name alone; of bench compile: that many layers alone; "
          "of bench schedules: that kernel alone");
  set.add("sizes", "DEVICE", &options->sizes, "of the same and of bench ladder: the sizes of gpu, cpu or tiny")
      .one_of({"gpu", "cpu", "tiny"})
      .defaults_to("those of the device");
  set.add("write", "PATH", &options->write,
          "of bench models: writes weights and first losses into this folder and measures nothing; of bench random: "
          "writes the graphs and their results into this file");
  set.add("seed", "S", &options->seed, "of bench random: which graphs").range(0, 1e9);
  set.add("count", "N", &options->count, "of bench random: how many graphs").range(1, 1e5);
  set.add("cpu-time", "", &options->cpu_time,
          "processor time instead of the clock's, with --threads 1: for machines that are busy");
  add_trace_option(set, options->trace);
  add_machine_options(set, options->machine);
  return {"bench", "Measures speed", "weft bench nanogpt-cpu --json --threads 2", set,
          [options](OptionSet&) { return bench(*options); }};
}

}  // namespace weft::tool
