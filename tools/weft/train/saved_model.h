#pragma once
// A trained model and its tokenizer, loaded from a checkpoint.
#include <memory>

#include "models/text_config.h"
#include "tools/weft/train/checkpoint.h"
#include "weft/text.h"

namespace weft::tool {

class SavedModel {
 public:
  /// Throws std::runtime_error where the files do not fit each other.
  explicit SavedModel(const Checkpoint& checkpoint);
  models::TextModel& model() { return *model_; }
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  std::unique_ptr<models::TextModel> model_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
};

}  // namespace weft::tool
