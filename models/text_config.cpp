#include "models/text_config.h"

#include <nlohmann/json.hpp>

#include "io/json.h"

namespace weft::models {

std::string to_json(const TextConfig& config) {
  return std::visit([](const auto& c) { return to_json(c); }, config);
}

TextConfig text_config_from_json(std::string_view text) {
  const auto root =
      io::nested_deeper(text, 16) ? nlohmann::json() : nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (root.is_object() && root.contains("model_type")) return llama_config_from_json(text);
  return gpt_config_from_json(text);
}

std::unique_ptr<TextModel> make_text_model(const TextConfig& config, const nn::Precision& precision) {
  if (const auto* llama = std::get_if<LlamaConfig>(&config)) return std::make_unique<Llama>(*llama, precision);
  return std::make_unique<Gpt>(std::get<GptConfig>(config), precision);
}

}  // namespace weft::models
