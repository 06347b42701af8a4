#pragma once
// Language models of any architecture, made from their configuration.
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "models/gpt.h"
#include "models/llama.h"

namespace weft::models {

/// A configuration of one of the architectures.
using TextConfig = std::variant<GptConfig, LlamaConfig>;

/// Returns the configuration as JSON.
WEFT_API std::string to_json(const TextConfig& config);
/// Returns a LlamaConfig where there is a "model_type", else a GptConfig. Throws std::invalid_argument as their own
/// readers.
WEFT_API TextConfig text_config_from_json(std::string_view json);
/// Returns a model with random weights.
WEFT_API std::unique_ptr<TextModel> make_text_model(const TextConfig& config, const nn::Precision& precision);

}  // namespace weft::models
