// weft eval: how well a trained model predicts a text.
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "tools/weft/command.h"
#include "tools/weft/explain/trace_file.h"
#include "tools/weft/train/checkpoint.h"
#include "tools/weft/train/corpus.h"
#include "tools/weft/train/saved_model.h"
#include "tools/weft/train/train_options.h"
#include "tools/weft/train/trainer.h"

namespace weft::tool {

namespace {

struct EvalOptions {
  std::string folder, data, split = "all", trace;
  int64_t batch = 12;
  bool json = false;
  MachineOptions machine;
};

OptionSet eval_option_set(EvalOptions& o) {
  OptionSet set;
  set.add("DIR", "", &o.folder, "the folder of a run, or one of its step-N folders").as_positional().needed();
  set.add("data", "FILE", &o.data, "the text to predict").needed();
  set.add("split", "PART", &o.split, "all of it, or val: the last tenth, which training leaves out")
      .one_of({"all", "val"});
  set.add("batch", "N", &o.batch, "sequences at a time").range(1, 1 << 20);
  set.add("json", "", &o.json, "one JSON object on stdout");
  add_trace_option(set, o.trace);
  add_machine_options(set, o.machine);
  return set;
}

/// Counts the characters that begin in the predicted part: UTF-8's continuation bytes begin none.
int64_t characters(const text::Tokenizer& tokenizer, const data::TokenDataset& tokens) {
  int64_t count = 0;
  for (int64_t i = 1; i < tokens.size(); ++i)
    for (const char c : tokenizer.token(tokens[i])) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

int evaluate(const EvalOptions& o) {
  apply(o.machine);
  SavedModel saved(load_checkpoint(o.folder));
  const std::string text = read_text(o.data);
  const auto ids = encode_file(saved.tokenizer(), text, o.data);
  const int32_t vocab = saved.tokenizer().vocab_size();
  const data::TokenDataset part =
      o.split == "val" ? data::split_tokens(ids, vocab, 0.9).validation : data::TokenDataset(ids, vocab);
  if (part.size() < 2)
    throw std::runtime_error(
        fmt::format("{} is too short: there must be at least two tokens, to predict one from another", o.data));
  const double loss = Evaluator(saved.model()).loss(part, static_cast<int>(o.batch));
  const int64_t predicted = part.size() - 1;
  const double perplexity = std::exp(loss);
  const double bits = loss / std::log(2.0) * static_cast<double>(predicted) /
                      static_cast<double>(std::max<int64_t>(characters(saved.tokenizer(), part), 1));
  if (o.json)
    fmt::print("{{\"loss\":{},\"perplexity\":{},\"bits_per_char\":{},\"tokens\":{}}}\n", loss, perplexity, bits,
               predicted);
  else
    fmt::print("loss {:.4f} nats per token   perplexity {:.3f}   {:.4f} bits per character   ({} tokens predicted)\n",
               loss, perplexity, bits, predicted);
  return 0;
}

}  // namespace

Command eval_command() {
  auto options = std::make_shared<EvalOptions>();
  return {"eval", "Measures how well a trained model predicts a text",
          "weft eval shakespeare --data shakespeare.txt --split val", eval_option_set(*options),
          [options](OptionSet&) { return traced(options->trace, [&] { return evaluate(*options); }); }};
}

}  // namespace weft::tool
