// Continuing a text: two compiled programs, and a window of tokens that starts over when it is full.
#include <numeric>

#include "base/error.h"
#include "models/gpt.h"
#include "weft/compile.h"

namespace weft::models {

namespace {

array ints(const std::vector<int32_t>& values, Shape shape) { return array::from_data(values.data(), std::move(shape), int32); }

array counting(int32_t first, int64_t count) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return ints(values, {count});
}

}  // namespace

GptDecoder::GptDecoder(Gpt& model) : model_(model), cache_(model.config, model.dtype) {
  std::vector<array*> state = model_.state();
  for (array* a : cache_.state()) state.push_back(a);
  const int64_t bound = model_.config.context;
  const auto read = [this](const std::vector<array>& in) {  // ids [1, n], positions [n]
    return std::vector<array>{model_.append(in[0], in[1], in[1].shape(0), cache_)};
  };
  prefill_ = compile(read, {.state = state, .dynamic = {{0, 1, "n", bound}, {1, 0, "n", bound}}});
  const auto one_more = [this](const std::vector<array>& in) {  // ids [1, 1], positions [1], and [n] for the length of the text
    return std::vector<array>{model_.append(in[0], in[1], in[2].shape(0), cache_)};
  };
  append_ = compile(one_more, {.state = state, .dynamic = {{2, 0, "n", bound}}});
}

std::vector<float> GptDecoder::read_window() {
  const nn::EvalMode mode(model_);
  const int64_t n = length();
  return prefill_({ints(window_, {1, n}), counting(0, n)})[0].to_vector<float>();
}

std::vector<float> GptDecoder::prefill(std::span<const int32_t> ids) {
  if (ids.empty()) throw_invalid("GptDecoder.prefill", "there must be at least one token to continue from");
  const auto context = static_cast<size_t>(model_.config.context);
  if (ids.size() > context) ids = ids.last(context);
  window_.assign(ids.begin(), ids.end());
  return read_window();
}

std::vector<float> GptDecoder::append(int32_t id) {
  if (window_.empty()) throw_invalid("GptDecoder.append", "prefill comes first");
  const int64_t context = model_.config.context;
  window_.push_back(id);
  if (length() > context) {
    const int64_t keep = context / 2 + 1;  // half of the window, and the new token; a context of 1 keeps just that
    window_.erase(window_.begin(), window_.end() - std::min(keep, context));
    return read_window();
  }
  const nn::EvalMode mode(model_);
  const auto place = static_cast<int32_t>(length() - 1);
  return append_({ints({id}, {1, 1}), ints({place}, {1}), counting(0, length())})[0].to_vector<float>();
}

}  // namespace weft::models
