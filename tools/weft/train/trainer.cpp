// One training run.
#include "tools/weft/train/trainer.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <string_view>

#include "compiler/tune/tune.h"
#include "tools/weft/train/corpus.h"
#include "tools/weft/train/optimizers.h"
#include "weft/ops.h"
#include "weft/random.h"

namespace weft::tool {

namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

constexpr std::string_view master_prefix = "master.";
bool is_master(const std::string& name) { return name.starts_with(master_prefix); }

/// Returns the split; throws where one of its parts is too short.
data::Split split_text(const std::vector<int32_t>& tokens, int32_t vocab, const TrainOptions& o) {
  const auto n = static_cast<int64_t>(tokens.size());
  const auto training = static_cast<int64_t>(0.9 * static_cast<double>(n));
  if (training < o.context + 1 || n - training < 2)
    throw UsageError(
        fmt::format("{} has {} tokens, of which {} are for training: that is too short for --context {}; take a longer "
                    "text or a shorter context",
                    o.data, n, training, o.context));
  return data::split_tokens(tokens, vocab, 0.9);
}

}  // namespace

Evaluator::Evaluator(models::TextModel& model) : model_(model) {
  const auto sum_of_losses = [this](const std::vector<array>& in) {  // inputs, targets, mask
    return std::vector<array>{sum(model_.token_losses(in[0], in[1]) * in[2])};
  };
  sum_ = compile(sum_of_losses, {.state = model_.state(), .dynamic = {}});
}

double Evaluator::loss(const data::TokenDataset& text, int batch, int64_t most) {
  const nn::EvalMode mode(model_);
  const int context = static_cast<int>(model_.context());
  const int64_t all = text.eval_batches(batch, context), count = most > 0 ? std::min(most, all) : all;
  double total = 0;
  int64_t tokens = 0;
  for (int64_t i = 0; i < count; ++i) {
    const data::EvalBatch b = text.eval_batch(i * all / count, batch, context);
    total += static_cast<double>(sum_({b.inputs, b.targets, b.mask})[0].item<float>());
    tokens += b.tokens;
  }
  return total / static_cast<double>(tokens);
}

TrainStep::TrainStep(models::TextModel& model, optim::Optimizer& optimizer, double grad_clip, optim::LossScale* scale) {
  std::vector<array*> state = model.state();
  for (array* a : optimizer.state()) state.push_back(a);
  if (scale)
    for (array* a : scale->state()) state.push_back(a);
  state.push_back(&random::default_key());
  const auto loss = [&model, scale](const std::vector<array>& in) {
    const array plain = model.loss(in[0], in[1]);
    return scale ? (*scale)(plain) : plain;
  };
  const auto step = [&optimizer, scale, grad_clip,
                     loss_and_grads = nn::value_and_grad(model, loss)](const std::vector<array>& in) {
    auto [value, gradients] = loss_and_grads(in);
    if (scale) {
      value = scale->unscaled(value);
      scale->step(optimizer, gradients, grad_clip > 0 ? std::optional(static_cast<float>(grad_clip)) : std::nullopt);
      return std::vector<array>{value};
    }
    if (grad_clip > 0) gradients = optim::clip_grad_norm(gradients, static_cast<float>(grad_clip)).first;
    optimizer.update(gradients);
    return std::vector<array>{value};
  };
  step_ = compile(step, {.state = state, .dynamic = {}});
}

float TrainStep::operator()(const data::Batch& batch) { return step_({batch.inputs, batch.targets})[0].item<float>(); }

Trainer::Trainer(const TrainOptions& options, const std::string& text) : options_(options) {
  tokenizer_ = make_tokenizer(options_.tokenizer, text, options_.data);
  random::seed(static_cast<uint64_t>(options_.seed));
  build(text);
}

Trainer::Trainer(const TrainOptions& options, const std::string& text, const Checkpoint& from) : options_(options) {
  if (digest_of(text).hex() != from.state.data_digest)
    throw std::runtime_error(
        fmt::format("{} is not the text that {} was trained on ({} bytes then, {} now); name that text with --data, or "
                    "start a new run",
                    options_.data, from.folder, from.state.data_bytes, text.size()));
  tokenizer_ = text::tokenizer_from_json(from.tokenizer);
  build(text);
  restore(from);
}

void Trainer::build(const std::string& text) {
  split_.emplace(split_text(encode_file(*tokenizer_, text, options_.data), tokenizer_->vocab_size(), options_));
  const NumberOptions numbers = number_options(options_.dtype, options_.weights, options_.residual);
  check_device(numbers);
  model_ = models::make_text_model(model_config(options_, tokenizer_->vocab_size()), numbers.precision);
  optimizer_ = make_optimizer(model_->trainable_parameters(), options_);
  optimizer_->set_rounding(numbers.rounding, static_cast<uint64_t>(options_.seed));
  optimizer_->set_masters(model_->starting_values);
  if (numbers.scaled_loss) loss_scale_.emplace();
  train_step_ =
      std::make_unique<TrainStep>(*model_, *optimizer_, options_.grad_clip, loss_scale_ ? &*loss_scale_ : nullptr);
  evaluator_ = std::make_unique<Evaluator>(*model_);
  schedule_ = optim::cosine_schedule(static_cast<float>(options_.lr), static_cast<float>(options_.min_lr),
                                     options_.warmup, options_.steps);
  state_.model = model_config(options_, tokenizer_->vocab_size());
  state_.dtype = options_.dtype;
  state_.options = train_option_set(options_).json();
  state_.data_digest = digest_of(text).hex();
  state_.data_bytes = static_cast<int64_t>(text.size());
}

double Trainer::least_bytes() {
  double bytes = 0;
  for (const auto& [name, handle] : optimizer_->parameters()) bytes += 2 * static_cast<double>(handle->nbytes());
  for (const array* state : optimizer_->state()) bytes += static_cast<double>(state->nbytes());
  return bytes;
}

void Trainer::restore(const Checkpoint& from) {
  try {
    const auto weights = from.model();
    auto state = from.optimizer();
    model_->update(weights);
    // The masters are in the model's file.
    for (const auto& [name, handle] : optimizer_->named_state())
      if (is_master(name)) state.insert_or_assign(name, weights.at(name.substr(master_prefix.size())));
    if (loss_scale_) {
      loss_scale_->load_state(state);
      for (const auto& [name, handle] : loss_scale_->named_state()) state.erase(name);
    }
    optimizer_->load_state(state);
    replay_tuning(from.state.tuning);
  } catch (const std::invalid_argument& e) {
    throw std::runtime_error(fmt::format("the checkpoint {} does not fit its own description: {}", from.folder,
                                         without_operation(e.what())));
  }
  random::default_key() = array::from_data(from.state.key.data(), {2}, uint32);
  state_.step = from.state.step;
  state_.losses = from.state.losses;
  state_.val_losses = from.state.val_losses;
  saved_ = same_folder(from.run_folder(), options_.out) ? state_.step : -1;
}

StepReport Trainer::advance() {
  const auto start = std::chrono::steady_clock::now();
  const int batch = static_cast<int>(options_.batch), context = static_cast<int>(options_.context);
  optimizer_->set_learning_rate(schedule_(state_.step));
  const float loss =
      (*train_step_)(split_->train.random_batch(static_cast<uint64_t>(options_.seed), state_.step, batch, context));
  StepReport report;
  report.step = ++state_.step;
  report.loss = static_cast<double>(loss);
  report.ms = milliseconds_since(start);
  report.tok_s = static_cast<double>(batch) * context / report.ms * 1e3;
  if (!std::isfinite(report.loss))
    throw std::runtime_error(
        fmt::format("the loss of step {} is {}: the run has diverged; a smaller --lr, a longer --warmup or a smaller "
                    "--grad-clip may help{}",
                    report.step, report.loss, unharmed()));
  state_.losses.emplace_back(report.step, report.loss);
  return report;
}

std::string Trainer::unharmed() const {
  return saved_ >= 0 ? fmt::format(" (the checkpoint of step {} is unharmed)", saved_) : "";
}

bool Trainer::run(const Hooks& hooks) {
  if (options_.steps == 0) save_checkpoint();
  while (state_.step < options_.steps) {
    StepReport report = advance();
    const bool last = report.step == options_.steps, stop = !last && hooks.stop();
    if (last || report.step % options_.eval_every == 0) {
      report.val_loss =
          evaluator_->loss(split_->validation, static_cast<int>(options_.batch), last ? 0 : options_.eval_batches);
      state_.val_losses.emplace_back(report.step, *report.val_loss);
    }
    hooks.report(report);
    if (last || stop || report.step % options_.checkpoint_every == 0) save_checkpoint();
    if (stop) return false;
  }
  return true;
}

void Trainer::save_checkpoint() {
  if (saved_ == state_.step) return;
  state_.key = random::default_key().to_vector<uint32_t>();
  state_.tuning = compiler::tuning_choices();
  // The model's file has the parameters in full precision; the optimizer's copies need not be written again.
  auto precise = optimizer_->precise_parameters();
  NamedArrays weights = model_->parameters(), state = optimizer_->named_state();
  for (auto& [name, handle] : weights)
    if (const auto it = precise.find(name); it != precise.end()) handle = &it->second;
  std::erase_if(state, [](const auto& entry) { return is_master(entry.first); });
  if (loss_scale_)
    for (const auto& entry : loss_scale_->named_state()) state.push_back(entry);
  try {
    tool::save_checkpoint(options_.out, state_, weights, state, tokenizer_->to_json());
  } catch (const std::runtime_error& e) {
    throw std::runtime_error(fmt::format("the checkpoint of step {} cannot be written: {}{}", state_.step,
                                         without_operation(e.what()), unharmed()));
  }
  saved_ = state_.step;
}

}  // namespace weft::tool
