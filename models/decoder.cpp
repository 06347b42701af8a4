// Text generation with compiled programs, and a window of tokens of which half is kept when it is full.
#include "models/decoder.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "models/cache_rows.h"
#include "weft/compile.h"
#include "weft/device.h"

namespace weft::models {

namespace {

array ints(const std::vector<int32_t>& values, Shape shape) {
  return array::from_data(values.data(), std::move(shape), int32);
}

/// Returns first, first + 1, …: int32 [count].
array positions_from(int32_t first, int64_t count) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return ints(values, {count});
}

/// Returns the index of the largest, the first of equal ones, as argmax_token.
int32_t argmax(const std::vector<float>& logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace

Decoder::Decoder(TextModel& model, DecoderOptions options)
    : model_(model), cache_(model.cache()),
      fixed_shapes_(options.fixed_shapes.value_or(default_device().type == Device::gpu)), token_(ints({0}, {1, 1})),
      size_(ints({1}, {1})), generated_(zeros({model.context()}, int32)) {
  std::vector<array*> state = model_.state();
  for (array* a : cache_.state()) state.push_back(a);
  const int64_t bound = model_.context();
  const auto read = [this](const std::vector<array>& in) {  // ids [1, n], positions [n]
    return std::vector<array>{model_.append(in[0], in[1], in[1].shape(0), cache_)};
  };
  prefill_ = compile(read, {.state = state, .dynamic = {{0, 1, "n", bound}, {1, 0, "n", bound}}});
  if (fixed_shapes_) {
    append_ =
        compile([this](const std::vector<array>& in) { return std::vector<array>{model_.next(in[0], in[1], cache_)}; },
                {.state = state});  // ids [1, 1], length [1]
    for (array* a : {&token_, &size_, &generated_}) state.push_back(a);
    const auto one_more = [this](const std::vector<array>&) {
      token_ = argmax_token(model_.next(token_, size_, cache_));
      generated_ = scatter(generated_, size_ - 1, token_, 0);
      size_ = size_ + 1;
      return std::vector<array>{};
    };
    greedy_step_ = compile(one_more, {.state = state});
  } else {
    const auto one_more =
        [this](const std::vector<array>& in) {  // ids [1, 1], positions [1], and an array [n], n tokens of text
          return std::vector<array>{model_.append(in[0], in[1], in[2].shape(0), cache_)};
        };
    append_ = compile(one_more, {.state = state, .dynamic = {{2, 0, "n", bound}}});
  }
}

std::vector<float> Decoder::read_window() {
  const nn::EvalMode mode(model_);
  const int64_t n = length();
  return prefill_({ints(window_, {1, n}), positions_from(0, n)})[0].to_vector<float>();
}

std::vector<float> Decoder::prefill(std::span<const int32_t> ids) {
  if (ids.empty()) throw_invalid("Decoder.prefill", "there must be at least one token to continue from");
  const auto context = static_cast<size_t>(model_.context());
  if (ids.size() > context) ids = ids.last(context);
  window_.assign(ids.begin(), ids.end());
  return read_window();
}

/// Appends `id` to the window. Returns false where the window was full: half of it is kept, and must be read again.
bool Decoder::make_room(int32_t id) {
  if (window_.empty()) throw_invalid("Decoder.append", "prefill comes first");
  const int64_t context = model_.context();
  window_.push_back(id);
  if (length() <= context) return true;
  const int64_t keep = context / 2 + 1;  // half of the window and the new token; with a context of 1 the token alone
  window_.erase(window_.begin(), window_.end() - std::min(keep, context));
  return false;
}

std::vector<float> Decoder::append(int32_t id) {
  if (!make_room(id)) return read_window();
  const nn::EvalMode mode(model_);
  const auto n = static_cast<int32_t>(length());
  if (fixed_shapes_) return append_({ints({id}, {1, 1}), ints({n}, {1})})[0].to_vector<float>();
  return append_({ints({id}, {1, 1}), ints({n - 1}, {1}), positions_from(0, n)})[0].to_vector<float>();
}

std::vector<int32_t> Decoder::generate_greedy(int32_t id, int64_t count) {
  std::vector<int32_t> out;
  while (static_cast<int64_t>(out.size()) < count) {
    const int64_t room = model_.context() - length(), wanted = std::min(room, count - static_cast<int64_t>(out.size()));
    if (!fixed_shapes_ || wanted < 1) {
      out.push_back(argmax(append(id)));
      id = out.back();
      continue;
    }
    if (window_.empty()) throw_invalid("Decoder.generate_greedy", "prefill comes first");
    const nn::EvalMode mode(model_);
    const auto first = static_cast<int32_t>(length());
    token_ = ints({id}, {1, 1});
    size_ = ints({first + 1}, {1});
    for (int64_t k = 0; k < wanted; ++k) greedy_step_({});
    const std::vector<int32_t> generated = generated_.to_vector<int32_t>();
    window_.push_back(id);
    out.insert(out.end(), generated.begin() + first, generated.begin() + first + wanted);
    window_.insert(window_.end(), out.end() - wanted, out.end() - 1);
    id = out.back();
  }
  return out;
}

}  // namespace weft::models
