#pragma once
// Language models of any architecture, by what describes them.
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "models/gpt.h"
#include "models/llama.h"

namespace weft::models {

using TextConfig = std::variant<GptConfig, LlamaConfig>;

WEFT_API std::string to_json(const TextConfig& config);
/// A Llama where "model_type" says so, else a GPT. Throws std::invalid_argument as the architecture's own reader does.
WEFT_API TextConfig text_config_from_json(std::string_view json);
WEFT_API std::unique_ptr<TextModel> make_text_model(const TextConfig& config, const nn::Precision& precision);

}  // namespace weft::models
