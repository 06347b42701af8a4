// weft bench gpu-decode: generates one token after the other with models of random weights. The lower bound of a
// token's time is that of reading the weights and the cache once at the speed of a copy in the same run.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "models/decoder.h"
#include "models/gpt.h"
#include "models/llama.h"
#include "runtime/trace.h"
#include "tools/weft/bench/support.h"
#include "weft/compile.h"
#include "weft/device.h"
#include "weft/memory.h"
#include "weft/ops.h"
#include "weft/random.h"
#include "weft/stream.h"

namespace weft::tool {

namespace {

/// Returns the bytes per second that a copy reads and writes.
double copy_speed() {
  const int n = 1 << 28;
  const array x = random::normal({n}, float32, 0, 1, random::key(0));
  eval(x);
  const auto f =
      compile([](const std::vector<array>& in) { return std::vector<array>{negative(in[0])}; }, CompileOptions{});
  const auto burst = [&] {
    for (int k = 0; k < 10; ++k) f({x});
    synchronize();
  };
  burst();
  return 10 * 8.0 * n / (median_of(3, burst) * 1e-3);
}

struct Subject {
  const char* bench;
  const char* name;
  const char* alone;  // the benchmark of this one
  std::unique_ptr<models::TextModel> (*make)(Dtype dtype);
};

/// Returns a precision with everything but the residual stream in `dtype`.
nn::Precision kept_in(Dtype dtype) { return {.parameters = dtype, .compute = dtype, .residual = float32}; }

std::unique_ptr<models::TextModel> gpt2_124m(Dtype dtype) {
  return std::make_unique<models::Gpt>(
      models::GptConfig{.vocab = 50304, .context = 1024, .layers = 12, .heads = 12, .width = 768}, kept_in(dtype));
}

std::unique_ptr<models::TextModel> llama(int64_t layers, int64_t heads, int64_t kv_heads, int64_t width, int64_t hidden,
                                         Dtype dtype) {
  return std::make_unique<models::Llama>(models::LlamaConfig{.vocab = 32000,
                                                             .context = 1024,
                                                             .layers = layers,
                                                             .heads = heads,
                                                             .kv_heads = kv_heads,
                                                             .width = width,
                                                             .head_width = width / heads,
                                                             .hidden = hidden},
                                         kept_in(dtype));
}

constexpr Subject subjects[] = {
    {"gpt2_decode", "124M", "gpu-decode-124m", gpt2_124m},
    {"llama_decode", "1.1B", "gpu-decode-1b", [](Dtype t) { return llama(22, 32, 4, 2048, 5632, t); }},
    {"llama_decode", "7B", "gpu-decode-7b", [](Dtype t) { return llama(32, 32, 32, 4096, 11008, t); }},
};

void decode(const Subject& subject, double bytes_per_second, const BenchOptions& o) {
  random::seed(0);
  reset_peak_memory();
  const auto model = subject.make(compute_dtype(o.dtype));
  model->eval();
  for (array* a : model->state()) eval(*a);
  models::Decoder decoder(*model);
  const std::vector<int32_t> prompt{1, 5, 7, 11, 13, 17, 19, 23};
  const double first = seconds_of([&] { decoder.prefill(prompt); });
  std::vector<int32_t> written;
  const double first_token = seconds_of([&] { written = decoder.generate_greedy(29, 1); });
  const auto go_on = [&](int64_t count) {
    const auto more = decoder.generate_greedy(written.back(), count);
    written.insert(written.end(), more.begin(), more.end());
  };
  go_on(15);
  constexpr int64_t tokens = 40;  // the first two hundred positions, as PyTorch is measured
  const int64_t launched = runtime::counters().graph_launches;
  std::vector<double> times;
  for (int64_t k = 0; k < reps_of(o, 5); ++k) times.push_back(seconds_of([&] { go_on(tokens); }) / tokens);
  std::sort(times.begin(), times.end());
  const double seconds = times[times.size() / 2];
  // One row of the embedding is read, unless it is the head as well; of the cache the rows that are written half way
  // through the run.
  double read = 0;
  int64_t parameters = 0;
  for (auto& [name, a] : model->parameters()) {
    parameters += static_cast<int64_t>(a->size());
    const bool rows_only = name == "wpe.weight" || name == "model.embed_tokens.weight";
    if (!rows_only) read += static_cast<double>(a->nbytes());
  }
  double cache = 0;
  for (array* a : decoder.cache().state()) cache += static_cast<double>(a->nbytes());
  read += cache * static_cast<double>(decoder.length()) / 2 / static_cast<double>(model->context());
  Row(subject.bench, o)
      .text("model", subject.name)
      .whole("params", parameters)
      .number("ms", seconds * 1e3)
      .number("tok_s", 1 / seconds)
      .number("floor_tok_s", bytes_per_second / read)
      .number("GBps", read / seconds / 1e9)
      .number("copy_GBps", bytes_per_second / 1e9)
      .whole("length", decoder.length())
      .whole("graphs", runtime::counters().graph_launches - launched)
      .number("prefill_s", first)
      .number("first_step_s", first_token)
      .number("peak_GiB", static_cast<double>(get_peak_memory()) / (1 << 30))
      .print();
  if (o.profile) print_profile(8, [&] { go_on(1); });
}

}  // namespace

void bench_gpu_decode(const BenchOptions& o) {
  if (default_device().type != Device::gpu)
    throw UsageError(fmt::format("weft bench {} measures a GPU: give --device gpu", o.name));
  const double speed = copy_speed();
  for (const Subject& subject : subjects)
    if (o.name == "gpu-decode" || o.name == subject.alone) decode(subject, speed, o);
}

}  // namespace weft::tool
