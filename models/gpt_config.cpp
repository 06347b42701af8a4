// GptConfig: checks and JSON.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/json.h"
#include "models/gpt.h"

namespace weft::models {

namespace {

using nlohmann::json;

struct GptNumber {
  const char* key;
  int64_t GptConfig::*member;
};
constexpr GptNumber gpt_numbers[] = {{"vocab", &GptConfig::vocab},
                                     {"context", &GptConfig::context},
                                     {"layers", &GptConfig::layers},
                                     {"heads", &GptConfig::heads},
                                     {"width", &GptConfig::width}};
struct Switch {
  const char* key;
  bool GptConfig::*member;
};
constexpr Switch switches[] = {{"bias", &GptConfig::bias}, {"tied_head", &GptConfig::tied_head}};

/// Sets the member of this name. Returns false where there is none.
bool take_entry(GptConfig& config, const std::string& key, const json& value) {
  for (const auto& n : gpt_numbers) {
    if (key != n.key) continue;
    if (!value.is_number_integer()) throw_invalid("GptConfig", key + " must be a whole number; it is " + value.dump());
    config.*n.member = value.get<int64_t>();
    return true;
  }
  for (const auto& s : switches) {
    if (key != s.key) continue;
    if (!value.is_boolean()) throw_invalid("GptConfig", key + " must be true or false; it is " + value.dump());
    config.*s.member = value.get<bool>();
    return true;
  }
  if (key != "dropout") return false;
  if (!value.is_number()) throw_invalid("GptConfig", "dropout must be a number; it is " + value.dump());
  config.dropout = value.get<float>();
  return true;
}

}  // namespace

void validate(const GptConfig& c) {
  for (const auto& n : gpt_numbers)
    if (c.*n.member <= 0)
      throw_invalid("GptConfig", std::string(n.key) + " must be positive; it is " + std::to_string(c.*n.member));
  if (c.width % c.heads != 0)
    throw_invalid("GptConfig",
                  "width " + std::to_string(c.width) + " must be a multiple of heads " + std::to_string(c.heads));
  if (!(c.dropout >= 0 && c.dropout < 1))
    throw_invalid("GptConfig", "dropout must be at least 0 and less than 1; it is " + std::to_string(c.dropout));
  if (c.vocab > INT32_MAX || c.context > INT32_MAX) throw_invalid("GptConfig", "vocab and context must fit 32 bits");
}

std::string to_json(const GptConfig& c) {
  nlohmann::ordered_json out;
  for (const auto& n : gpt_numbers) out[n.key] = c.*n.member;
  out["dropout"] = c.dropout;
  for (const auto& s : switches) out[s.key] = c.*s.member;
  return out.dump(2);
}

GptConfig gpt_config_from_json(std::string_view text) {
  if (io::nested_deeper(text, 16)) throw_invalid("GptConfig", "this is nested too deeply for a configuration");
  const json root = json::parse(text.begin(), text.end(), nullptr, false);
  if (!root.is_object()) throw_invalid("GptConfig", "this is not a JSON object");
  GptConfig config;
  for (const auto& [key, value] : root.items())
    if (!take_entry(config, key, value))
      throw_invalid("GptConfig", "unknown key '" + key +
                                     "'; known are vocab, context, layers, heads, width, dropout, bias, tied_head");
  validate(config);
  return config;
}

}  // namespace weft::models
