#pragma once
// The training loop, without command line and terminal. In: options, a text, perhaps a checkpoint. Out: a report for
// each step, checkpoints.
//
// The course of a run is a function of its options and its step: batch k of a seed, the learning rate of a step, and
// the random key and the optimizer's state, which checkpoints hold. A resumed run therefore continues bit by bit.
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "models/text_config.h"
#include "tools/weft/train/checkpoint.h"
#include "tools/weft/train/progress.h"
#include "tools/weft/train/train_options.h"
#include "weft/compile.h"
#include "weft/data.h"
#include "weft/optim.h"
#include "weft/text.h"

namespace weft::tool {

/// Computes the mean loss over masked windows of a text, by one compiled program.
class Evaluator {
 public:
  explicit Evaluator(models::TextModel& model);
  /// Computes it over `most` batches of windows distributed evenly over the text; 0: over all of it. The model is in
  /// eval mode meanwhile.
  double loss(const data::TokenDataset& text, int batch, int64_t most = 0);

 private:
  models::TextModel& model_;
  ArrayFunction sum_;
};

/// loss → gradients → clipping → the optimizer as one compiled program, with parameters, optimizer state and random key
/// as its state, and the loss's scale where there is one.
class TrainStep {
 public:
  /// Compiles the step. grad_clip 0: no clipping.
  TrainStep(models::TextModel& model, optim::Optimizer& optimizer, double grad_clip, optim::LossScale* scale = nullptr);
  float operator()(const data::Batch& batch);

 private:
  ArrayFunction step_;
};

class Trainer {
 public:
  /// Starts a new run: `text` is the content of options.data. `options` must be complete. Throws UsageError where the
  /// text is too short for the context, std::runtime_error where it is no text.
  Trainer(const TrainOptions& options, const std::string& text);
  /// Resumes a run. Throws std::runtime_error where the text is another one, or the arrays do not fit.
  Trainer(const TrainOptions& options, const std::string& text, const Checkpoint& from);

  struct Hooks {
    std::function<void(const StepReport&)> report = [](const StepReport&) {};
    std::function<void(const std::string&)> note = [](const std::string&) {};
    std::function<bool()> stop = [] { return false; };  // asked after each step
  };
  /// Runs to options.steps, or until asked to stop, and writes checkpoints into options.out. Returns whether all steps
  /// are done. Throws std::runtime_error where the loss is no longer finite.
  bool run(const Hooks& hooks);

  /// Writes a checkpoint into options.out.
  void save_checkpoint();
  /// Returns the bytes of weights, gradients and the optimizer's state: a step needs at least those.
  double least_bytes();
  int64_t step() const { return state_.step; }
  const RunState& state() const { return state_; }
  models::TextModel& model() { return *model_; }
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  const data::Split& split() const { return *split_; }

 private:
  void build(const std::string& text);
  StepReport advance();
  void restore(const Checkpoint& from);
  std::string unharmed() const;  // for messages: which checkpoint there is

  TrainOptions options_;
  RunState state_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::optional<data::Split> split_;
  std::unique_ptr<models::TextModel> model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::optional<optim::LossScale> loss_scale_;  // of float16
  std::unique_ptr<TrainStep> train_step_;
  std::unique_ptr<Evaluator> evaluator_;
  optim::Schedule schedule_;
  int64_t saved_ = -1;  // the step of the last checkpoint
};

}  // namespace weft::tool
