// LlamaConfig: checks, Hugging Face's config.json, and models in folders of that kind.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/json.h"
#include "models/llama.h"
#include "weft/io.h"

namespace weft::models {

namespace {

using nlohmann::json;

struct LlamaNumber {
  const char* key;
  int64_t LlamaConfig::*member;
  bool needed;
};
constexpr LlamaNumber llama_numbers[] = {{"vocab_size", &LlamaConfig::vocab, true},
                                         {"max_position_embeddings", &LlamaConfig::context, true},
                                         {"num_hidden_layers", &LlamaConfig::layers, true},
                                         {"num_attention_heads", &LlamaConfig::heads, true},
                                         {"num_key_value_heads", &LlamaConfig::kv_heads, false},
                                         {"hidden_size", &LlamaConfig::width, true},
                                         {"head_dim", &LlamaConfig::head_width, false},
                                         {"intermediate_size", &LlamaConfig::hidden, true}};

[[noreturn]] void refuse(const std::string& what) { throw_invalid("LlamaConfig", what); }

double number(const json& from, const char* key, double otherwise) {
  const auto at = from.find(key);
  if (at == from.end() || at->is_null()) return otherwise;
  if (!at->is_number()) refuse(std::string(key) + " must be a number; it is " + at->dump());
  return at->get<double>();
}

/// Throws where a key has another value than the one that this architecture implies.
void expect(const json& root, const char* key, const json& plain) {
  const auto at = root.find(key);
  if (at != root.end() && !at->is_null() && *at != plain)
    refuse(std::string(key) + " " + at->dump() + " is not supported; only " + plain.dump() + " is");
}

std::optional<RopeScaling> scaling(const json& root) {
  const auto at = root.find("rope_scaling");
  if (at == root.end() || at->is_null()) return {};
  if (!at->is_object()) refuse("rope_scaling must be an object; it is " + at->dump());
  const std::string kind = at->value("rope_type", at->value("type", ""));
  if (kind == "default") return {};
  if (kind != "llama3") refuse("rope_scaling of type \"" + kind + "\" is not supported; only \"llama3\" is");
  const RopeScaling usual;
  return RopeScaling{number(*at, "factor", usual.factor), number(*at, "low_freq_factor", usual.low),
                     number(*at, "high_freq_factor", usual.high),
                     static_cast<int64_t>(
                         number(*at, "original_max_position_embeddings", static_cast<double>(usual.original_context)))};
}

}  // namespace

void validate(const LlamaConfig& c) {
  for (const auto& n : llama_numbers)
    if (c.*n.member <= 0 || c.*n.member > INT32_MAX)
      refuse(std::string(n.key) + " must be positive and fit 32 bits; it is " + std::to_string(c.*n.member));
  if (c.heads % c.kv_heads != 0)
    refuse(std::to_string(c.heads) + " heads do not share " + std::to_string(c.kv_heads) +
           " key and value heads evenly");
  if (c.head_width % 2 != 0)
    refuse("head_dim must be even for rotary positions; it is " + std::to_string(c.head_width));
  if (!(c.rope_theta > 0) || !(c.norm_eps > 0)) refuse("rope_theta and rms_norm_eps must be positive");
  if (const auto& s = c.rope_scaling;
      s && !(s->factor > 0 && s->high > s->low && s->low > 0 && s->original_context > 0))
    refuse("rope_scaling needs positive numbers, and a high_freq_factor above the low one");
}

std::string to_json(const LlamaConfig& c) {
  nlohmann::ordered_json out{{"model_type", "llama"}, {"hidden_act", "silu"}};
  for (const auto& n : llama_numbers) out[n.key] = c.*n.member;
  out["rope_theta"] = c.rope_theta;
  if (const auto& s = c.rope_scaling)
    out["rope_scaling"] = {{"rope_type", "llama3"},
                           {"factor", s->factor},
                           {"low_freq_factor", s->low},
                           {"high_freq_factor", s->high},
                           {"original_max_position_embeddings", s->original_context}};
  out["rms_norm_eps"] = c.norm_eps;
  out["tie_word_embeddings"] = c.tied_head;
  return out.dump(2);
}

LlamaConfig llama_config_from_json(std::string_view text) {
  if (io::nested_deeper(text, 16)) refuse("this is nested too deeply for a configuration");
  const json root = json::parse(text.begin(), text.end(), nullptr, false);
  if (!root.is_object()) refuse("this is not a JSON object");
  expect(root, "model_type", "llama");
  expect(root, "hidden_act", "silu");
  expect(root, "attention_bias", false);
  expect(root, "mlp_bias", false);
  LlamaConfig c;
  c.kv_heads = c.head_width = 0;
  for (const auto& n : llama_numbers) {
    const auto at = root.find(n.key);
    if (at == root.end() || at->is_null()) {
      if (n.needed) refuse(std::string(n.key) + " is missing");
      continue;
    }
    if (!at->is_number_integer()) refuse(std::string(n.key) + " must be a whole number; it is " + at->dump());
    c.*n.member = at->get<int64_t>();
  }
  if (c.kv_heads == 0) c.kv_heads = c.heads;
  if (c.head_width == 0 && c.heads > 0) c.head_width = c.width / c.heads;
  c.rope_theta = number(root, "rope_theta", 10000);
  c.norm_eps = number(root, "rms_norm_eps", 1e-6);
  c.rope_scaling = scaling(root);
  if (const auto at = root.find("tie_word_embeddings"); at != root.end() && !at->is_null()) {
    if (!at->is_boolean()) refuse("tie_word_embeddings must be true or false; it is " + at->dump());
    c.tied_head = at->get<bool>();
  }
  validate(c);
  return c;
}

std::unique_ptr<Llama> load_llama(const std::string& folder, const nn::Precision& precision) {
  const LlamaConfig config = llama_config_from_json(io::read_file(folder + "/config.json"));
  const std::string index = folder + "/model.safetensors.index.json";
  auto weights = load_safetensors(std::filesystem::exists(index) ? index : folder + "/model.safetensors").first;
  if (config.tied_head) weights.erase("lm_head.weight");
  std::erase_if(weights, [](const auto& entry) {
    return entry.first.ends_with("rotary_emb.inv_freq");
  });  // older files hold it; it follows from the configuration
  auto model = std::make_unique<Llama>(config, precision);
  model->update(weights);
  model->eval();
  return model;
}

}  // namespace weft::models
