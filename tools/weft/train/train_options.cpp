// The options of `weft train gpt`, and the checks of their combinations.
#include "tools/weft/train/train_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "target/cuda/driver/context.h"
#include "tools/weft/explain/trace_file.h"
#include "tools/weft/train/optimizers.h"
#include "weft/device.h"

namespace weft::tool {

namespace {

constexpr double most = 1 << 30;  // for counts that become 32-bit sizes

void add_model_options(OptionSet& set, TrainOptions& o) {
  set.add("arch", "NAME", &o.arch,
          "gpt2 (learned positions, layer norms, gelu) or llama (rotary positions, RMS norms, a gated layer, no "
          "biases, an untied head)")
      .one_of({"gpt2", "llama"})
      .structural();
  set.add("layers", "N", &o.layers, "transformer blocks").range(1, 1000).structural();
  set.add("heads", "N", &o.heads, "attention heads; must divide the width").range(1, 4096).structural();
  set.add("kv-heads", "N", &o.kv_heads, "heads of keys and values, which groups of heads share; llama")
      .range(1, 4096)
      .structural()
      .defaults_to("heads");
  set.add("width", "N", &o.width, "width of the residual stream").range(1, 1 << 20).structural();
  set.add("context", "N", &o.context, "tokens that the model sees at once").range(1, 1 << 20).structural();
  set.add("dropout", "X", &o.dropout, "share of activations dropped while training").range(0, 1).below(1).config();
  set.add("bias", "", &o.bias, "biases in linear layers and norms").with_negation().structural();
  add_number_options(set, o.dtype, o.weights, o.residual);
  set.add("tokenizer", "KIND", &o.tokenizer, "char (Unicode characters of the text) or byte")
      .one_of({"char", "byte"})
      .structural();
}

void add_optimizer_options(OptionSet& set, TrainOptions& o) {
  set.add("batch", "N", &o.batch, "sequences in a step").range(1, 1 << 20).structural();
  set.add("steps", "N", &o.steps, "steps in all; 0 writes a checkpoint of the initial weights").range(0, most).config();
  set.add("lr", "X", &o.lr, "highest learning rate").above(0).range(0, 1e3).config();
  set.add("min-lr", "X", &o.min_lr, "learning rate at the end").range(0, 1e3).config().defaults_to("lr / 10");
  set.add("warmup", "N", &o.warmup, "steps in which the learning rate rises")
      .range(0, most)
      .config()
      .defaults_to("steps / 20");
  set.add("optimizer", "NAME", &o.optimizer, "the rule that parameters are updated by")
      .one_of(optimizer_names())
      .structural();
  set.add("weight-decay", "X", &o.weight_decay, "decay of matrices").range(0, 1e3).config();
  set.add("beta1", "X", &o.beta1, "decay of the first moment, or the momentum").range(0, 1).below(1).config();
  set.add("beta2", "X", &o.beta2, "decay of the second moment").range(0, 1).below(1).config();
  set.add("grad-clip", "X", &o.grad_clip, "largest norm of all gradients together; 0: no limit").range(0, 1e9).config();
}

void add_run_options(OptionSet& set, TrainOptions& o) {
  set.add("eval-every", "N", &o.eval_every, "steps between validation losses").range(1, most).config();
  set.add("eval-batches", "N", &o.eval_batches, "batches in one of them; at the end it is always all")
      .range(1, most)
      .config();
  set.add("checkpoint-every", "N", &o.checkpoint_every, "steps between checkpoints").range(1, most).config();
  set.add("seed", "N", &o.seed, "of weights, batches and dropout").range(0, 9e15).structural();
  set.add("out", "DIR", &o.out, "folder for checkpoints, loss.svg, config.json")
      .defaults_to("out, or the resumed folder");
  set.add("overwrite", "", &o.overwrite, "start anew although the folder holds a run");
  set.add("resume", "DIR", &o.resume, "resume from the last checkpoint of this folder");
  set.add("config", "FILE", &o.config, "JSON with option names as keys; the command line wins");
  set.add("json", "", &o.json, "one JSON object a step on stdout, and nothing else");
}

std::string closest_heads(int64_t width, int64_t heads) {
  int64_t best = 1;
  for (int64_t h = 1; h <= width; ++h)
    if (width % h == 0 && std::abs(h - heads) < std::abs(best - heads)) best = h;
  return fmt::format("{}", best);
}

}  // namespace

OptionSet train_option_set(TrainOptions& o) {
  OptionSet set;
  set.add("data", "FILE", &o.data, "the text to learn from; the last tenth of it validates").config();
  add_model_options(set, o);
  add_optimizer_options(set, o);
  add_run_options(set, o);
  add_trace_option(set, o.trace);
  add_machine_options(set, o.machine);
  return set;
}

void complete(TrainOptions& o, const OptionSet& given) {
  if (!given.given("min-lr")) o.min_lr = o.lr / 10;
  if (!given.given("warmup")) o.warmup = o.steps / 20;
  if (o.width % o.heads != 0)
    throw UsageError(
        fmt::format("--heads {} does not divide --width {}: every head takes an equal part; --heads {} would do",
                    o.heads, o.width, closest_heads(o.width, o.heads)));
  if (!given.given("kv-heads")) o.kv_heads = o.heads;
  if (o.arch == "llama") {
    if (o.heads % o.kv_heads != 0)
      throw UsageError(fmt::format("--kv-heads {} do not divide --heads {}: each of them serves equally many heads",
                                   o.kv_heads, o.heads));
    if (o.width / o.heads % 2 != 0)
      throw UsageError(
          fmt::format("--arch llama rotates pairs: a head of width {} / {} must be even", o.width, o.heads));
    if (o.dropout > 0) throw UsageError("--arch llama has no dropout");
  } else if (o.kv_heads != o.heads) {
    throw UsageError("--kv-heads is for --arch llama");
  }
  number_options(o.dtype, o.weights, o.residual);
  if (o.min_lr > o.lr)
    throw UsageError(fmt::format("--min-lr {} is more than --lr {}: the learning rate falls from the one to the other",
                                 o.min_lr, o.lr));
  if (o.warmup > o.steps)
    throw UsageError(fmt::format("--warmup {} is longer than the run of {} steps", o.warmup, o.steps));
}

models::TextConfig model_config(const TrainOptions& o, int32_t vocab) {
  if (o.arch == "llama")
    return models::LlamaConfig{.vocab = vocab,
                               .context = o.context,
                               .layers = o.layers,
                               .heads = o.heads,
                               .kv_heads = o.kv_heads,
                               .width = o.width,
                               .head_width = o.width / o.heads,
                               .hidden = (8 * o.width / 3 + 31) / 32 *
                                         32};  // as many weights as a layer of four times the width without a gate
  return models::GptConfig{.vocab = vocab,
                           .context = o.context,
                           .layers = o.layers,
                           .heads = o.heads,
                           .width = o.width,
                           .dropout = static_cast<float>(o.dropout),
                           .bias = o.bias};
}

Dtype compute_dtype(const std::string& name) {
  return name == "bf16" || name == "f8" ? bfloat16 : name == "f16" ? float16 : float32;
}

void add_number_options(OptionSet& set, std::string& dtype, std::string& weights, std::string& residual) {
  set.add("dtype", "TYPE", &dtype,
          "what products are computed in: f32, bf16, f16 with a scaled loss, or f8: as bf16, the blocks' linear layers "
          "in 8-bit floats")
      .one_of({"f32", "bf16", "f16", "f8"})
      .structural();
  set.add("weights", "HOW", &weights,
          "how parameters are kept: f32; master (as --dtype, with f8 bf16, and float32 copies in the optimizer); "
          "stochastic (bf16 alone, rounded by chance)")
      .one_of({"f32", "master", "stochastic"})
      .structural();
  set.add("residual", "HOW", &residual, "what the residual stream is kept in: f32, or dtype (as --dtype)")
      .one_of({"f32", "dtype"})
      .structural();
}

NumberOptions number_options(const std::string& dtype, const std::string& weights, const std::string& residual) {
  if (weights != "f32" && dtype == "f32")
    throw UsageError(fmt::format(
        "--weights {} keeps parameters in 16 bits, and --dtype f32 has 32: give --dtype bf16 as well", weights));
  if (weights == "stochastic" && compute_dtype(dtype) != bfloat16)
    throw UsageError(fmt::format("--weights stochastic is for --dtype bf16, not for {}: take --weights master", dtype));
  NumberOptions out;
  out.precision.compute = compute_dtype(dtype);
  if (weights != "f32") out.precision.parameters = out.precision.compute;
  if (residual != "f32") out.precision.residual = out.precision.compute;
  if (weights == "stochastic") out.rounding = optim::Rounding::stochastic;
  out.scaled_loss = dtype == "f16";
  out.precision.float8 = dtype == "f8";
  return out;
}

void check_device(const NumberOptions& numbers) {
  if (!numbers.precision.float8 || default_device().type != Device::gpu) return;
  const target::cuda::DeviceInfo& info = target::cuda::context(default_device().index).info();
  check_capability(info.name, info.major, info.minor);
}

void check_capability(const std::string& name, int major, int minor) {
  if (10 * major + minor < 89)
    throw UsageError(
        fmt::format("--dtype f8 needs a GPU of compute capability 8.9 or more, and {} has {}.{}: take --dtype bf16",
                    name, major, minor));
}

}  // namespace weft::tool
