// One run of `weft train mnist`.
#include "tools/weft/train/mnist_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "compiler/tune/tune.h"
#include "tools/weft/explain/trace_file.h"
#include "tools/weft/train/corpus.h"
#include "tools/weft/train/train_options.h"
#include "weft/ops.h"
#include "weft/random.h"

namespace weft::tool {

namespace {

data::ImageSplit images_of(const MnistOptions& o) {
  return o.data.empty() ? data::synthetic_digits(o.train_images, o.test_images, static_cast<uint64_t>(o.seed))
                        : data::load_mnist(o.data);
}

/// Returns the batches in an epoch; throws where there is none.
int64_t checked_batches(const MnistOptions& o, const data::ImageSplit& images) {
  for (const data::ImageDataset* part : {&images.train, &images.test})
    if (part->rows() != 28 || part->columns() != 28)
      throw UsageError(fmt::format("the model takes images of 28 x 28, and those of {} are {} x {}", o.data,
                                   part->rows(), part->columns()));
  if (images.train.size() < o.batch)
    throw UsageError(
        fmt::format("--batch {} is more than the {} images there are to learn from", o.batch, images.train.size()));
  if (images.test.size() < 1) throw UsageError(fmt::format("{} holds no test images", o.data));
  return images.train.batches(static_cast<int>(o.batch));
}

/// The seed comes before the weights are drawn.
MnistOptions seeded(const MnistOptions& o) {
  random::seed(static_cast<uint64_t>(o.seed));
  return o;
}

std::string digest_of_images(const data::ImageSplit& images) {
  const data::ImageBatch first =
      images.train.in_order(0, static_cast<int>(std::min<int64_t>(images.train.size(), 256)));
  std::string bytes(static_cast<const char*>(first.images.raw_data()), first.images.nbytes());
  return digest_of(bytes + fmt::format(" {} {}", images.train.size(), images.test.size())).hex();
}

}  // namespace

OptionSet mnist_option_set(MnistOptions& o) {
  OptionSet set;
  set.add("data", "DIR", &o.data, "folder with the four idx files of MNIST, plain or .gz; without it, synthetic shapes")
      .config();
  set.add("epochs", "N", &o.epochs, "times that every image is seen; 0 writes a checkpoint of the initial weights")
      .range(0, 1e6)
      .config();
  set.add("batch", "N", &o.batch, "images in a step").range(1, 1 << 20).structural();
  set.add("lr", "X", &o.lr, "learning rate of plain SGD").above(0).range(0, 1e3).config();
  set.add("seed", "N", &o.seed, "of weights, order and synthetic images").range(0, 9e15).structural();
  set.add("train-images", "N", &o.train_images, "synthetic images to learn from").range(1, 1e6).structural();
  set.add("test-images", "N", &o.test_images, "synthetic images to test on").range(1, 1e6).structural();
  set.add("out", "DIR", &o.out, "folder for checkpoints, loss.svg, config.json")
      .defaults_to("out, or the resumed folder");
  set.add("overwrite", "", &o.overwrite, "start anew although the folder holds a run");
  set.add("resume", "DIR", &o.resume, "resume from the last checkpoint of this folder");
  set.add("json", "", &o.json,
          "one JSON object a step on stdout, with the accuracy after each epoch, and nothing else");
  add_trace_option(set, o.trace);
  add_machine_options(set, o.machine);
  return set;
}

MnistStep::MnistStep(models::Mnist& model, optim::Optimizer& optimizer) {
  std::vector<array*> state = model.state();
  for (array* a : optimizer.state()) state.push_back(a);
  const auto loss = [&model](const std::vector<array>& in) { return model.loss(in[0], in[1]); };
  const auto step = [&optimizer, loss_and_grads = nn::value_and_grad(model, loss)](const std::vector<array>& in) {
    const auto [value, gradients] = loss_and_grads(in);
    optimizer.update(gradients);
    return std::vector<array>{value};
  };
  step_ = compile(step, {.state = state, .dynamic = {}});
}

float MnistStep::operator()(const data::ImageBatch& batch) { return start(batch).item<float>(); }
array MnistStep::start(const data::ImageBatch& batch) { return step_({batch.images, batch.labels})[0]; }

ArrayFunction mnist_hits(models::Mnist& model) {
  const auto hits = [&model](const std::vector<array>& in) {
    return std::vector<array>{sum(astype(argmax(model.logits(in[0]), -1), int32) == in[1])};
  };
  return compile(hits, {.state = model.state(), .dynamic = {}});
}

MnistTrainer::MnistTrainer(const MnistOptions& options)
    : options_(seeded(options)), images_(images_of(options)), batches_(checked_batches(options, images_)),
      optimizer_(model_.trainable_parameters(), {.learning_rate = static_cast<float>(options.lr)}),
      train_step_(model_, optimizer_) {
  hits_ = mnist_hits(model_);
  state_.kind = "mnist";
  state_.dtype = "f32";
  state_.options = mnist_option_set(options_).json();
  state_.data_digest = digest_of_images(images_);
  state_.data_bytes = images_.train.size() * images_.train.rows() * images_.train.columns();
}

MnistTrainer::MnistTrainer(const MnistOptions& options, const Checkpoint& from) : MnistTrainer(options) {
  if (from.state.data_digest != state_.data_digest)
    throw std::runtime_error(
        fmt::format("the images are not those that {} was trained on; name that folder with --data, or start a new run",
                    from.folder));
  try {
    model_.update(from.model());
    optimizer_.load_state(from.optimizer());
    replay_tuning(from.state.tuning);
  } catch (const std::invalid_argument& e) {
    throw std::runtime_error(fmt::format("the checkpoint {} does not fit its own description: {}", from.folder,
                                         without_operation(e.what())));
  }
  optimizer_.set_learning_rate(static_cast<float>(options.lr));
  state_.step = from.state.step;
  state_.losses = from.state.losses;
  state_.accuracies = from.state.accuracies;
  saved_ = same_folder(from.run_folder(), options_.out) ? state_.step : -1;
}

double MnistTrainer::accuracy() {
  const nn::EvalMode mode(model_);
  int64_t right = 0;
  const int64_t all = images_.test.size();
  for (int64_t first = 0; first < all; first += mnist_test_batch) {
    const data::ImageBatch b =
        images_.test.in_order(first, static_cast<int>(std::min<int64_t>(mnist_test_batch, all - first)));
    right += hits_({b.images, b.labels})[0].item<int64_t>();
  }
  return static_cast<double>(right) / static_cast<double>(all);
}

StepReport MnistTrainer::advance() {
  const auto start = std::chrono::steady_clock::now();
  const float loss =
      train_step_(images_.train.shuffled_batch(static_cast<uint64_t>(options_.seed), state_.step / batches_,
                                               state_.step % batches_, static_cast<int>(options_.batch)));
  StepReport report;
  report.step = ++state_.step;
  report.loss = static_cast<double>(loss);
  report.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  report.tok_s = static_cast<double>(options_.batch) / report.ms * 1e3;
  report.unit = "img";
  if (!std::isfinite(report.loss))
    throw std::runtime_error(
        fmt::format("the loss of step {} is {}: the run has diverged; a smaller --lr may help{}", report.step,
                    report.loss, saved_ >= 0 ? fmt::format(" (the checkpoint of step {} is unharmed)", saved_) : ""));
  state_.losses.emplace_back(report.step, report.loss);
  return report;
}

bool MnistTrainer::run(const Hooks& hooks) {
  if (steps() == 0) save();
  while (state_.step < steps()) {
    StepReport report = advance();
    const bool epoch_ends = report.step % batches_ == 0, stop = report.step < steps() && hooks.stop();
    if (epoch_ends) {
      report.accuracy = accuracy();
      state_.accuracies.emplace_back(report.step, *report.accuracy);
    }
    hooks.report(report);
    if (epoch_ends || stop) save();
    if (stop) return false;
  }
  return true;
}

void MnistTrainer::save() {
  if (saved_ == state_.step) return;
  state_.key = random::default_key().to_vector<uint32_t>();
  state_.tuning = compiler::tuning_choices();
  save_checkpoint(options_.out, state_, model_.parameters(), optimizer_.named_state(), "");
  saved_ = state_.step;
}

}  // namespace weft::tool
