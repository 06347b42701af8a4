// weft sample: loads the last checkpoint of a run and generates text from a prompt, token by token.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "models/decoder.h"
#include "runtime/trace.h"
#include "tools/weft/command.h"
#include "tools/weft/explain/trace_file.h"
#include "tools/weft/train/checkpoint.h"
#include "tools/weft/train/corpus.h"
#include "tools/weft/train/saved_model.h"
#include "tools/weft/train/train_options.h"

namespace weft::tool {

namespace {

struct SampleOptions {
  std::string folder, prompt = "\n", trace;
  int64_t tokens = 500, top_k = 0, seed = 1337;
  double temperature = 0.8, top_p = 1;
  bool stats = false;
  MachineOptions machine;
};

OptionSet sample_option_set(SampleOptions& o) {
  OptionSet set;
  set.add("DIR", "", &o.folder, "the folder of a run, or one of its step-N folders").as_positional().needed();
  set.add("prompt", "TEXT", &o.prompt, "what the text begins with").defaults_to("a new line");
  set.add("tokens", "N", &o.tokens, "tokens to write").range(0, 1e9);
  set.add("temperature", "X", &o.temperature, "0: always the most likely token; higher is more random").range(0, 1e6);
  set.add("top-k", "N", &o.top_k, "only the k most likely tokens; 0: all").range(0, 1e9);
  set.add("top-p", "X", &o.top_p, "only the most likely tokens whose probabilities sum to p").above(0).range(0, 1);
  set.add("seed", "N", &o.seed, "of the draws").range(0, 9e15);
  set.add("stats", "", &o.stats, "afterwards, on stderr: programs built and tokens a second");
  add_trace_option(set, o.trace);
  add_machine_options(set, o.machine);
  return set;
}

/// Prints text at once.
void show(const std::string& text) {
  if (text.empty()) return;
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

std::vector<int32_t> encode_prompt(const text::Tokenizer& tokenizer, const SampleOptions& o, bool given) {
  if (!given) {
    try {
      return tokenizer.encode(o.prompt);
    } catch (const std::invalid_argument&) {  // a text of one line: any token is a prompt
      return {0};
    }
  }
  if (o.prompt.empty()) throw UsageError("--prompt is empty; leave it out to begin with a new line");
  try {
    return tokenizer.encode(o.prompt);
  } catch (const std::invalid_argument& e) {
    throw UsageError("--prompt: " + without_operation(e.what()));
  }
}

/// Rounds the weights of matrix products to the dtype they compute in, as the products would at every token: the
/// weights are read in fewer bytes, and nothing else changes.
void keep_matmuls_narrow(models::TextModel& model) {
  for (auto& [name, module] : model.named_modules())
    if (auto* linear = dynamic_cast<nn::Linear*>(module);
        linear && model.precision.compute.size() < linear->weight.value().dtype().size()) {
      linear->weight.set_dtype(model.precision.compute);
      if (linear->bias) linear->bias->set_dtype(model.precision.compute);
    }
}

int sample(const SampleOptions& o, const OptionSet& set) {
  apply(o.machine);
  SavedModel saved(load_checkpoint(o.folder));
  const auto prompt = encode_prompt(saved.tokenizer(), o, set.given("prompt"));
  keep_matmuls_narrow(saved.model());
  models::Decoder decoder(saved.model());
  models::Sampler draw({.temperature = static_cast<float>(o.temperature),
                        .top_k = o.top_k,
                        .top_p = static_cast<float>(o.top_p),
                        .seed = static_cast<uint64_t>(o.seed)});
  text::StreamDecoder stream(saved.tokenizer());
  for (const int32_t id : prompt) show(stream.push(id));

  // Greedy tokens are chosen on the device, several of them before the host waits.
  constexpr int64_t at_once = 16;
  const bool greedy = o.temperature == 0 && decoder.fixed_shapes();
  double seconds = 0;  // from the second token on: the first one waits for its program
  int64_t timed = 0;
  std::vector<float> logits;
  if (o.tokens > 0) logits = decoder.prefill(prompt);
  int32_t id = 0;
  for (int64_t i = 0; i < o.tokens;) {
    const auto start = std::chrono::steady_clock::now();
    const int64_t count = greedy && i > 0 ? std::min(at_once, o.tokens - i) : 1;
    if (greedy && i > 0) {
      for (const int32_t next : decoder.generate_greedy(id, count)) show(stream.push(id = next));
    } else {
      if (i > 0) logits = decoder.append(id);
      id = draw(logits);
      show(stream.push(id));
    }
    if (i > 1)
      seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), timed += count;
    i += count;
  }
  show(stream.finish() + "\n");
  if (o.stats)
    fmt::print(stderr, "programs built {}  tokens {}  tok/s {:.0f}\n", runtime::counters().programs_built.load(),
               o.tokens, timed ? static_cast<double>(timed) / seconds : 0.0);
  return 0;
}

}  // namespace

Command sample_command() {
  auto options = std::make_shared<SampleOptions>();
  return {"sample", "Writes text with a trained model", "weft sample shakespeare --prompt ROMEO: --tokens 300",
          sample_option_set(*options),
          [options](OptionSet& set) { return traced(options->trace, [&] { return sample(*options, set); }); }};
}

}  // namespace weft::tool
