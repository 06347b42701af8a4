#pragma once
// The options of `weft train gpt`, their table, their checks.
#include <cstdint>
#include <string>

#include "models/text_config.h"
#include "tools/weft/machine_options.h"
#include "tools/weft/options.h"
#include "weft/optim.h"

namespace weft::tool {

/// Defaults: nanoGPT's character model for a CPU.
struct TrainOptions {
  std::string data;
  std::string arch = "gpt2";
  int64_t layers = 4, heads = 4, kv_heads = 4, width = 128, context = 64;
  int64_t batch = 12, steps = 2000;
  double lr = 1e-3, min_lr = 0;  // min_lr not given: lr / 10
  int64_t warmup = 0;            // not given: a twentieth of the steps
  std::string optimizer = "adamw";
  double weight_decay = 0.1, beta1 = 0.9, beta2 = 0.99;
  double grad_clip = 1;  // 0: off
  double dropout = 0;
  bool bias = false;
  std::string dtype = "f32", weights = "f32", residual = "f32", tokenizer = "char";
  int64_t eval_every = 250, eval_batches = 20, checkpoint_every = 500;
  int64_t seed = 1337;
  MachineOptions machine;

  // Not stored with the run.
  std::string out, resume, config, trace;
  bool json = false, overwrite = false;
};

/// Returns the table over `options`, which must outlive it.
OptionSet train_option_set(TrainOptions& options);

/// Sets the options that depend on others (min_lr, warmup). Throws UsageError for combinations that are not possible.
void complete(TrainOptions& options, const OptionSet& given);

models::TextConfig model_config(const TrainOptions& options, int32_t vocab);
Dtype compute_dtype(const std::string& name);  // "f32", "bf16", "f16", "f8" (bfloat16)

/// Returns the precision that --dtype, --weights and --residual choose. Throws UsageError where they do not go
/// together.
struct NumberOptions {
  nn::Precision precision;
  optim::Rounding rounding = optim::Rounding::master;
  bool scaled_loss = false;  // float16
};
NumberOptions number_options(const std::string& dtype, const std::string& weights, const std::string& residual);
/// Throws UsageError where the default device lacks what they need: tensor cores for 8-bit floats.
void check_device(const NumberOptions& numbers);
/// Throws UsageError where a GPU of this compute capability has no tensor cores for 8-bit floats.
void check_capability(const std::string& name, int major, int minor);
/// Adds the options of the three.
void add_number_options(OptionSet& set, std::string& dtype, std::string& weights, std::string& residual);

}  // namespace weft::tool
