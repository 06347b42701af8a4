#pragma once
// The training loop of `weft train mnist`, without command line and terminal. As for texts, the course of a run is a
// function of its options and its step, and its state is in its checkpoints, so a resumed run continues bit by bit.
#include <functional>
#include <memory>
#include <string>

#include "models/mnist.h"
#include "tools/weft/machine_options.h"
#include "tools/weft/options.h"
#include "tools/weft/train/checkpoint.h"
#include "tools/weft/train/progress.h"
#include "weft/compile.h"
#include "weft/data.h"
#include "weft/optim.h"

namespace weft::tool {

struct MnistOptions {
  std::string data, out, resume;
  int64_t epochs = 5, batch = 64, seed = 1337;
  std::string trace;
  int64_t train_images = 6000, test_images = 1000;  // of the synthetic set
  double lr = 0.1;
  bool overwrite = false, json = false;
  MachineOptions machine;
};
OptionSet mnist_option_set(MnistOptions& options);

/// loss → gradients → plain SGD as one compiled program.
class MnistStep {
 public:
  MnistStep(models::Mnist& model, optim::Optimizer& optimizer);
  float operator()(const data::ImageBatch& batch);
  /// Starts a step and returns its loss without waiting for it.
  array start(const data::ImageBatch& batch);

 private:
  ArrayFunction step_;
};

/// Counts the images that are classified correctly, as one compiled program of (images, labels).
ArrayFunction mnist_hits(models::Mnist& model);
inline constexpr int mnist_test_batch = 1000;

class MnistTrainer {
 public:
  /// Starts a new run. Throws UsageError where a batch is larger than the set, std::runtime_error where the data cannot
  /// be read.
  explicit MnistTrainer(const MnistOptions& options);
  /// Resumes a run.
  MnistTrainer(const MnistOptions& options, const Checkpoint& from);

  struct Hooks {
    std::function<void(const StepReport&)> report = [](const StepReport&) {};
    std::function<bool()> stop = [] { return false; };  // asked after each step
  };
  /// Runs to the end of the last epoch, or until asked to stop, with a checkpoint after each epoch and at the end.
  /// Returns whether all steps are done.
  bool run(const Hooks& hooks);

  /// Returns the share of test images that are classified correctly. Norms use the statistics of the test batch, 1000
  /// images or the rest.
  double accuracy();
  int64_t step() const { return state_.step; }
  int64_t steps() const { return options_.epochs * batches_; }
  const RunState& state() const { return state_; }
  models::Mnist& model() { return model_; }
  const data::ImageSplit& images() const { return images_; }

 private:
  StepReport advance();
  void save();

  MnistOptions options_;
  data::ImageSplit images_;
  int64_t batches_;  // in an epoch
  models::Mnist model_;
  optim::SGD optimizer_;
  MnistStep train_step_;
  ArrayFunction hits_;
  RunState state_;
  int64_t saved_ = -1;
};

}  // namespace weft::tool
