// Attention between sequences, and the layers of encoders and decoders.
#include "weft/nn/transformer.h"

#include <algorithm>
#include <cmath>

#include "nn/support.h"
#include "weft/fast.h"
#include "weft/transforms.h"
#include "weft/utils.h"

namespace weft::nn {

namespace {

int64_t or_else(int64_t width, int64_t otherwise) { return width == 0 ? otherwise : width; }

int64_t mlp_width(const TransformerOptions& options, int64_t dims) { return or_else(options.mlp_dims, 4 * dims); }

/// Returns the width; throws where the heads do not divide it.
int64_t shared(int64_t dims, int64_t heads) {
  if (heads <= 0 || dims % heads != 0)
    throw_invalid("MultiHeadAttention", "the width " + std::to_string(dims) +
                                            " must be a multiple of the number of heads " + std::to_string(heads));
  return dims;
}

/// Reshapes [batch, time, width] to [batch, heads, time, width / heads].
array by_heads(const array& x, int64_t heads) {
  return transpose(reshape(x, {x.shape(0), x.shape(1), heads, x.shape(2).bound() / heads}), {0, 2, 1, 3});
}

int layer_count(int n) {
  if (n < 0) throw_invalid("Transformer", "the number of layers must not be negative; got " + std::to_string(n));
  return n;
}

/// Makes one half of a transformer: by `custom`, else the standard one.
template <class Part, class Standard, class Make>
std::unique_ptr<Part> made(Module& parent, const std::string& name, const Make& custom, int num_layers, int64_t dims,
                           int64_t heads, const TransformerOptions& options) {
  if (!custom) return std::make_unique<Standard>(parent, name, num_layers, dims, heads, options);
  std::unique_ptr<Part> part = custom(parent, name);
  const auto parts = parent.children();
  if (!part || std::none_of(parts.begin(), parts.end(), [&](const auto& child) { return child.second == part.get(); }))
    throw_invalid("Transformer", "the custom " + name +
                                     " must be made as a part of the module that it is given, under the name \"" +
                                     name + "\"");
  return part;
}

/// Calls layer(x, memory…), through `checkpoint` if it must keep nothing for its gradient.
template <class F>
array through(bool again, const std::vector<array>& inputs, F layer) {
  const ArrayFunction f = [&](const std::vector<array>& in) { return std::vector<array>{layer(in)}; };
  return again ? checkpoint(f)(inputs)[0] : f(inputs)[0];
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(Scope scope, int64_t dims, int64_t heads, MultiHeadOptions o)
    : Module(std::move(scope)), heads_(heads),
      query_proj(*this, "query_proj", or_else(o.query_input_dims, dims), shared(dims, heads), o.bias),
      key_proj(*this, "key_proj", or_else(o.key_input_dims, dims), dims, o.bias),
      value_proj(*this, "value_proj", or_else(o.value_input_dims, or_else(o.key_input_dims, dims)),
                 shared(or_else(o.value_dims, dims), heads), o.bias),
      out_proj(*this, "out_proj", or_else(o.value_dims, dims), or_else(o.value_output_dims, dims), o.bias) {}

array MultiHeadAttention::operator()(const array& queries, const array& keys, const array& values,
                                     const std::optional<array>& mask) const {
  for (const array* a : {&queries, &keys, &values})
    if (a->ndim() != 3)
      throw_invalid("MultiHeadAttention",
                    "queries, keys and values must be [batch, time, width]; one's shape is " + to_string(a->shape()));
  const array q = by_heads(query_proj(queries), heads_), k = by_heads(key_proj(keys), heads_),
              v = by_heads(value_proj(values), heads_);
  const float scale = 1 / std::sqrt(static_cast<float>(q.shape(3).bound()));
  const std::optional<array> hidden = mask && mask->dtype() != bool_ ? astype(*mask, q.dtype()) : mask;
  const array heads = fast::scaled_dot_product_attention(q, k, v, scale, hidden ? "array" : "", hidden);
  return out_proj(reshape(transpose(heads, {0, 2, 1, 3}), {q.shape(0), q.shape(2), heads_ * v.shape(3).bound()}));
}

array MultiHeadAttention::create_additive_causal_mask(int64_t n, Dtype dtype) {
  const int size = static_cast<int>(n);
  return where(tri(size, size, 0, bool_), array(0, dtype), array(finfo(dtype).min, dtype));
}

std::string MultiHeadAttention::describe() const {
  return "MultiHeadAttention(" + number(out_proj.weight.value().shape()[0]) + ", heads=" + std::to_string(heads_) + ")";
}

TransformerEncoderLayer::TransformerEncoderLayer(Scope scope, int64_t dims, int64_t heads, TransformerOptions options)
    : Module(std::move(scope)), attention(*this, "attention", dims, heads), ln1(*this, "ln1", dims),
      ln2(*this, "ln2", dims), linear1(*this, "linear1", dims, mlp_width(options, dims)),
      linear2(*this, "linear2", mlp_width(options, dims), dims), dropout1(*this, "dropout1", options.dropout),
      dropout2(*this, "dropout2", options.dropout), options_(std::move(options)) {}

array TransformerEncoderLayer::operator()(const array& x, const std::optional<array>& mask) const {
  const auto attend = [&](const array& y) { return dropout1(attention(y, y, y, mask)); };
  const auto feed_forward = [&](const array& y) { return linear2(dropout2(options_.activation(linear1(y)))); };
  if (options_.norm_first) {
    const array y = x + attend(ln1(x));
    return y + feed_forward(ln2(y));
  }
  const array y = ln1(x + attend(x));
  return ln2(y + feed_forward(y));
}

TransformerEncoder::TransformerEncoder(Scope scope, int num_layers, int64_t dims, int64_t heads,
                                       TransformerOptions options)
    : Encoder(std::move(scope)), layers(*this, "layers"), ln(*this, "ln", dims), checkpoint_(options.checkpoint) {
  for (int k = 0; k < layer_count(num_layers); ++k) layers.add(dims, heads, options);
}

array TransformerEncoder::operator()(const array& x, const std::optional<array>& mask) const {
  array y = x;
  for (size_t k = 0; k < layers.size(); ++k)
    y = through(checkpoint_, {y}, [&](const std::vector<array>& in) { return layers[k](in[0], mask); });
  return ln(y);
}

TransformerDecoderLayer::TransformerDecoderLayer(Scope scope, int64_t dims, int64_t heads, TransformerOptions options)
    : Module(std::move(scope)), self_attention(*this, "self_attention", dims, heads),
      cross_attention(*this, "cross_attention", dims, heads), ln1(*this, "ln1", dims), ln2(*this, "ln2", dims),
      ln3(*this, "ln3", dims), linear1(*this, "linear1", dims, mlp_width(options, dims)),
      linear2(*this, "linear2", mlp_width(options, dims), dims), dropout1(*this, "dropout1", options.dropout),
      dropout2(*this, "dropout2", options.dropout), dropout3(*this, "dropout3", options.dropout),
      options_(std::move(options)) {}

array TransformerDecoderLayer::operator()(const array& x, const array& memory, const std::optional<array>& x_mask,
                                          const std::optional<array>& memory_mask) const {
  const auto attend = [&](const array& y) { return dropout1(self_attention(y, y, y, x_mask)); };
  const auto look_up = [&](const array& y) { return dropout2(cross_attention(y, memory, memory, memory_mask)); };
  const auto feed_forward = [&](const array& y) { return linear2(dropout3(options_.activation(linear1(y)))); };
  if (options_.norm_first) {
    const array y = x + attend(ln1(x)), z = y + look_up(ln2(y));
    return z + feed_forward(ln3(z));
  }
  const array y = ln1(x + attend(x)), z = ln2(y + look_up(y));
  return ln3(z + feed_forward(z));
}

TransformerDecoder::TransformerDecoder(Scope scope, int num_layers, int64_t dims, int64_t heads,
                                       TransformerOptions options)
    : Decoder(std::move(scope)), layers(*this, "layers"), ln(*this, "ln", dims), checkpoint_(options.checkpoint) {
  for (int k = 0; k < layer_count(num_layers); ++k) layers.add(dims, heads, options);
}

array TransformerDecoder::operator()(const array& x, const array& memory, const std::optional<array>& x_mask,
                                     const std::optional<array>& memory_mask) const {
  array y = x;
  for (size_t k = 0; k < layers.size(); ++k)
    y = through(checkpoint_, {y, memory},
                [&](const std::vector<array>& in) { return layers[k](in[0], in[1], x_mask, memory_mask); });
  return ln(y);
}

Transformer::Transformer(Scope scope, int64_t dims, int64_t heads, int num_encoder_layers, int num_decoder_layers,
                         TransformerOptions options)
    : Module(std::move(scope)), encoder(made<Encoder, TransformerEncoder>(*this, "encoder", options.custom_encoder,
                                                                          num_encoder_layers, dims, heads, options)),
      decoder(made<Decoder, TransformerDecoder>(*this, "decoder", options.custom_decoder, num_decoder_layers, dims,
                                                heads, options)) {}

array Transformer::operator()(const array& src, const array& tgt, const std::optional<array>& src_mask,
                              const std::optional<array>& tgt_mask, const std::optional<array>& memory_mask) const {
  return (*decoder)(tgt, (*encoder)(src, src_mask), tgt_mask, memory_mask);
}

bool Transformer::can_hold(const std::string& name, const Module& part) const {
  if (name == "encoder") return dynamic_cast<const Encoder*>(&part) != nullptr;
  return name == "decoder" && dynamic_cast<const Decoder*>(&part) != nullptr;
}

void Transformer::hold(const std::string& name, std::unique_ptr<Module> part) {
  if (name == "encoder") detail::put(encoder, std::move(part));
  else detail::put(decoder, std::move(part));
}

}  // namespace weft::nn
