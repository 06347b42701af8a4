// Loads a model in eval mode from a checkpoint.
#include "tools/weft/train/saved_model.h"

#include <fmt/format.h>

#include <stdexcept>

#include "tools/weft/train/corpus.h"
#include "tools/weft/train/train_options.h"

namespace weft::tool {

SavedModel::SavedModel(const Checkpoint& c) {
  if (c.state.kind != "gpt")
    throw std::runtime_error(
        fmt::format("{} holds a model of `weft train {}`, which reads no text", c.folder, c.state.kind));
  tokenizer_ = text::tokenizer_from_json(c.tokenizer);
  const int64_t vocab = std::visit([](const auto& m) { return m.vocab; }, c.state.model);
  if (tokenizer_->vocab_size() != vocab)
    throw std::runtime_error(
        fmt::format("the checkpoint {} does not fit together: its tokenizer has {} tokens, its model {}", c.folder,
                    tokenizer_->vocab_size(), vocab));
  TrainOptions trained;
  train_option_set(trained).set_json(c.state.options, c.folder + "/state.json");
  model_ = models::make_text_model(c.state.model,
                                   number_options(c.state.dtype, trained.weights, trained.residual).precision);
  try {
    model_->update(c.model());
  } catch (const std::invalid_argument& e) {
    throw std::runtime_error(
        fmt::format("the checkpoint {} does not fit its own description: {}", c.folder, without_operation(e.what())));
  }
  model_->eval();
}

}  // namespace weft::tool
