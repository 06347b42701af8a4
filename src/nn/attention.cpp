// Multi-head self-attention with one matrix product for queries, keys and values.
#include <cmath>

#include "base/error.h"
#include "weft/fast.h"
#include "weft/nn.h"

namespace weft::nn {

namespace {

int64_t checked_heads(int64_t width, int64_t heads) {
  if (heads <= 0 || width % heads != 0)
    throw_invalid("SelfAttention", "the width " + std::to_string(width) +
                                       " must be a multiple of the number of heads " + std::to_string(heads));
  return heads;
}

}  // namespace

SelfAttention::SelfAttention(int64_t width, int64_t heads, AttentionOptions options)
    : width_(width), heads_(checked_heads(width, heads)), options_(options),
      c_attn(*this, "c_attn", width, 3 * width, options.bias), c_proj(*this, "c_proj", width, width, options.bias),
      attn_dropout(*this, "attn_dropout", options.dropout), resid_dropout(*this, "resid_dropout", options.dropout) {}

SelfAttention::SelfAttention(Module& parent, std::string name, int64_t width, int64_t heads, AttentionOptions options)
    : Module(parent, std::move(name)), width_(width), heads_(checked_heads(width, heads)), options_(options),
      c_attn(*this, "c_attn", width, 3 * width, options.bias), c_proj(*this, "c_proj", width, width, options.bias),
      attn_dropout(*this, "attn_dropout", options.dropout), resid_dropout(*this, "resid_dropout", options.dropout) {}

float SelfAttention::scale() const {
  const int64_t head_width = width_ / heads_;
  return 1 / std::sqrt(static_cast<float>(head_width));
}

std::tuple<array, array, array> SelfAttention::project(const array& x) const {
  if (x.ndim() != 3)
    throw_invalid("SelfAttention", "the input must be [batch, time, width]; its shape is " + to_string(x.shape()));
  const auto parts = split(c_attn(x), 3, -1);
  const Shape by_head{x.shape(0), x.shape(1), heads_, width_ / heads_};
  auto heads_first = [&](const array& part) { return transpose(reshape(part, by_head), {0, 2, 1, 3}); };
  return {heads_first(parts[0]), heads_first(parts[1]), heads_first(parts[2])};
}

array SelfAttention::merge(const array& heads) const {
  const Shape flat{heads.shape(0), heads.shape(2), width_};
  return resid_dropout(c_proj(reshape(transpose(heads, {0, 2, 1, 3}), flat)));
}

array SelfAttention::operator()(const array& x) const {
  const auto [q, k, v] = project(x);
  const float rate = training() ? attn_dropout.p : 0;
  return merge(fast::dropout_attention(q, k, v, scale(), rate, options_.causal ? "causal" : ""));
}

std::string SelfAttention::describe() const {
  return std::string(options_.causal ? "CausalSelfAttention(" : "SelfAttention(") + std::to_string(width_) +
         ", heads=" + std::to_string(heads_) + ")";
}

}  // namespace weft::nn
