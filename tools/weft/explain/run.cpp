// The steps of a run as explained programs: training and sampling of a language model, training and test of an image
// model.
#include <fmt/format.h>

#include "tools/weft/explain/explain.h"
#include "tools/weft/train/checkpoint.h"
#include "tools/weft/train/mnist_trainer.h"
#include "tools/weft/train/optimizers.h"
#include "tools/weft/train/saved_model.h"
#include "tools/weft/train/train_options.h"
#include "tools/weft/train/trainer.h"
#include "weft/data.h"
#include "weft/optim.h"

namespace weft::tool {

namespace {

/// Returns any tokens: the cost of a step does not depend on them.
data::Batch some_batch(const TrainOptions& o, int32_t vocab) {
  const data::CounterRandom draw(0);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < 4 * (o.context + 1); ++i)
    ids.push_back(static_cast<int32_t>(draw.below(static_cast<uint64_t>(i), static_cast<uint64_t>(vocab))));
  return data::TokenDataset(ids, vocab).random_batch(0, 0, static_cast<int>(o.batch), static_cast<int>(o.context));
}

Explained training_step(const Checkpoint& checkpoint, int runs) {
  TrainOptions o;
  OptionSet set = train_option_set(o);
  set.set_json(checkpoint.state.options, checkpoint.folder + "/state.json");
  complete(o, set);
  SavedModel saved(checkpoint);
  saved.model().train();
  const auto optimizer = make_optimizer(saved.model().trainable_parameters(), o);
  const NumberOptions numbers = number_options(o.dtype, o.weights, o.residual);
  check_device(numbers);
  optimizer->set_rounding(numbers.rounding);
  optim::LossScale scale;
  TrainStep step(saved.model(), *optimizer, o.grad_clip, numbers.scaled_loss ? &scale : nullptr);
  const data::Batch batch = some_batch(o, saved.tokenizer().vocab_size());
  const auto run = [&] { step(batch); };
  return explain_program(fmt::format("Training step: {} sequences of {} tokens", o.batch, o.context), runs, run, run);
}

Explained sampling_step(const Checkpoint& checkpoint, int runs) {
  SavedModel saved(checkpoint);
  models::Decoder decoder(saved.model());
  const std::vector<int32_t> prompt{0};
  decoder.prefill(prompt);
  const auto run = [&] {
    if (decoder.length() >= saved.model().context()) decoder.prefill(prompt);
    decoder.append(0);
  };
  return explain_program(fmt::format("Sampling step: one more token after up to {}", saved.model().context() - 1), runs,
                         run, run);
}

std::vector<Explained> explain_images(const Checkpoint& checkpoint, const std::string& step, int runs) {
  MnistOptions o;
  mnist_option_set(o).set_json(checkpoint.state.options, checkpoint.folder + "/state.json");
  models::Mnist model;
  model.update(checkpoint.model());
  std::vector<Explained> out;
  if (step != "sample") {
    optim::SGD optimizer(model.trainable_parameters(), {.learning_rate = static_cast<float>(o.lr)});
    MnistStep train(model, optimizer);
    const data::ImageBatch images = data::synthetic_digits(o.batch, 1, 0).train.in_order(0, static_cast<int>(o.batch));
    const auto run = [&] { train(images); };
    out.push_back(explain_program(fmt::format("Training step: {} images", o.batch), runs, run, run));
  }
  if (step != "train") {
    const nn::EvalMode mode(model);
    const ArrayFunction hits = mnist_hits(model);
    const data::ImageBatch images = data::synthetic_digits(mnist_test_batch, 1, 0).train.in_order(0, mnist_test_batch);
    const auto run = [&] { hits({images.images, images.labels})[0].eval(); };
    out.push_back(explain_program(fmt::format("Test step: {} images", mnist_test_batch), runs, run, run));
  }
  return out;
}

}  // namespace

std::vector<Explained> explain_run(const Checkpoint& checkpoint, const std::string& step, int runs) {
  if (checkpoint.state.kind == "mnist") return explain_images(checkpoint, step, runs);
  std::vector<Explained> out;
  if (step != "sample") out.push_back(training_step(checkpoint, runs));
  if (step != "train") {
    if (std::visit([](const auto& c) { return c.context; }, checkpoint.state.model) < 2)
      throw std::runtime_error(
          "a model with a context of one token has no sampling step of its own: every token is read as a prompt");
    out.push_back(sampling_step(checkpoint, runs));
  }
  return out;
}

}  // namespace weft::tool
