#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/nn/functions.h"
#include "weft/nn/layers.h"
#include "weft/nn/norms.h"

/// Attention between sequences and the transformer of Vaswani et al. 2017, with MLX's names, parameters and defaults.
///
/// Sequences are [batch, time, width]. Masks are additive (0, or a very negative number that hides a key), or bool
/// (false hides); they broadcast to [batch, heads, queries, keys].
namespace weft::nn {

/// Options of MultiHeadAttention. Widths that are 0 are those of the model; that of values is that of keys.
struct MultiHeadOptions {
  int64_t query_input_dims = 0;   ///< width of the queries
  int64_t key_input_dims = 0;     ///< width of the keys
  int64_t value_input_dims = 0;   ///< width of the values
  int64_t value_dims = 0;         ///< of all heads together, after the projection
  int64_t value_output_dims = 0;  ///< width of the result
  bool bias = false;              ///< of the projections
};

/// Computes for each query the mean of the values, weighted by the softmax of its scaled products with the keys, in
/// `heads` heads; queries, keys, values and result are projected.
class WEFT_API MultiHeadAttention : public Module {
 public:
  MultiHeadAttention(int64_t dims, int64_t heads, MultiHeadOptions options = {})
      : MultiHeadAttention(Scope{}, dims, heads, options) {}
  MultiHeadAttention(Module& parent, std::string name, int64_t dims, int64_t heads, MultiHeadOptions options = {})
      : MultiHeadAttention(Scope{&parent, std::move(name)}, dims, heads, options) {}
  MultiHeadAttention(Scope scope, int64_t dims, int64_t heads, MultiHeadOptions options);
  /// Returns [batch, queries, value_output_dims] for sequences [batch, time, width].
  array operator()(const array& queries, const array& keys, const array& values,
                   const std::optional<array>& mask = std::nullopt) const;
  /// Returns [n, n]: 0 up to the diagonal, the smallest finite number of the dtype after it.
  static array create_additive_causal_mask(int64_t n, Dtype dtype = float32);
  std::string describe() const override;

 private:
  int64_t heads_;

 public:
  Linear query_proj, key_proj, value_proj, out_proj;  ///< of queries, keys, values, and of the result
};

/// A module that makes a sequence x [batch, time, width] of a sequence: TransformerEncoder, or a module of one's own.
class WEFT_API Encoder : public Module {
 public:
  using Module::Module;
  /// Returns the encoded sequence, of x's shape.
  virtual array operator()(const array& x, const std::optional<array>& mask = std::nullopt) const = 0;
};

/// An encoder that also sees `memory`, an encoder's result: TransformerDecoder, or a module of one's own.
class WEFT_API Decoder : public Module {
 public:
  using Module::Module;
  /// Returns the decoded sequence, of x's shape.
  virtual array operator()(const array& x, const array& memory, const std::optional<array>& x_mask = std::nullopt,
                           const std::optional<array>& memory_mask = std::nullopt) const = 0;
};

/// Options of the transformer and its parts.
struct TransformerOptions {
  int64_t mlp_dims = 0;                                  ///< 0: four times the width
  float dropout = 0;                                     ///< of the results of attention and of the hidden layer
  std::function<array(const array&)> activation = relu;  ///< of the hidden layer
  bool norm_first = true;   ///< norms before attention and matrix products (Xiong et al. 2020), else after the sums
  bool checkpoint = false;  ///< whether the encoder and the decoder compute layers again for their gradient
  /// Makes the encoder of a Transformer in place of TransformerEncoder, as the part `name` of `parent`; the other
  /// options then concern the decoder alone.
  std::function<std::unique_ptr<Encoder>(Module& parent, std::string name)> custom_encoder = nullptr;
  /// Makes the decoder in place of TransformerDecoder.
  std::function<std::unique_ptr<Decoder>(Module& parent, std::string name)> custom_decoder = nullptr;
};

/// One layer of the encoder: self-attention and two linear layers, each with a norm and a residual sum.
class WEFT_API TransformerEncoderLayer : public Module {
 public:
  TransformerEncoderLayer(int64_t dims, int64_t heads, TransformerOptions options = {})
      : TransformerEncoderLayer(Scope{}, dims, heads, std::move(options)) {}
  TransformerEncoderLayer(Module& parent, std::string name, int64_t dims, int64_t heads,
                          TransformerOptions options = {})
      : TransformerEncoderLayer(Scope{&parent, std::move(name)}, dims, heads, std::move(options)) {}
  TransformerEncoderLayer(Scope scope, int64_t dims, int64_t heads, TransformerOptions options);
  /// Returns the encoded sequence, of x's shape.
  array operator()(const array& x, const std::optional<array>& mask = std::nullopt) const;

  MultiHeadAttention attention;  ///< of the sequence with itself
  LayerNorm ln1, ln2;            ///< of attention, and of the linear layers
  Linear linear1, linear2;       ///< [mlp_dims, dims] and [dims, mlp_dims]
  Dropout dropout1, dropout2;    ///< of attention, and of the hidden layer

 private:
  TransformerOptions options_;
};

/// Layers "layers.0", …, and a norm after them.
class WEFT_API TransformerEncoder : public Encoder {
 public:
  TransformerEncoder(int num_layers, int64_t dims, int64_t heads, TransformerOptions options = {})
      : TransformerEncoder(Scope{}, num_layers, dims, heads, std::move(options)) {}
  TransformerEncoder(Module& parent, std::string name, int num_layers, int64_t dims, int64_t heads,
                     TransformerOptions options = {})
      : TransformerEncoder(Scope{&parent, std::move(name)}, num_layers, dims, heads, std::move(options)) {}
  TransformerEncoder(Scope scope, int num_layers, int64_t dims, int64_t heads, TransformerOptions options);
  array operator()(const array& x, const std::optional<array>& mask = std::nullopt) const override;

  List<TransformerEncoderLayer> layers;  ///< in the order of computation
  LayerNorm ln;                          ///< of the result

 private:
  bool checkpoint_;
};

/// One layer of the decoder: an encoder layer that also attends to `memory`, after its self-attention.
class WEFT_API TransformerDecoderLayer : public Module {
 public:
  TransformerDecoderLayer(int64_t dims, int64_t heads, TransformerOptions options = {})
      : TransformerDecoderLayer(Scope{}, dims, heads, std::move(options)) {}
  TransformerDecoderLayer(Module& parent, std::string name, int64_t dims, int64_t heads,
                          TransformerOptions options = {})
      : TransformerDecoderLayer(Scope{&parent, std::move(name)}, dims, heads, std::move(options)) {}
  TransformerDecoderLayer(Scope scope, int64_t dims, int64_t heads, TransformerOptions options);
  /// Returns the decoded sequence, of x's shape.
  array operator()(const array& x, const array& memory, const std::optional<array>& x_mask = std::nullopt,
                   const std::optional<array>& memory_mask = std::nullopt) const;

  MultiHeadAttention self_attention, cross_attention;  ///< of the sequence with itself, and with `memory`
  LayerNorm ln1, ln2, ln3;                             ///< of both attentions, and of the linear layers
  Linear linear1, linear2;                             ///< [mlp_dims, dims] and [dims, mlp_dims]
  Dropout dropout1, dropout2, dropout3;                ///< of both attentions, and of the hidden layer

 private:
  TransformerOptions options_;
};

/// Layers "layers.0", … that attend to an encoder's result, and a norm after them.
class WEFT_API TransformerDecoder : public Decoder {
 public:
  TransformerDecoder(int num_layers, int64_t dims, int64_t heads, TransformerOptions options = {})
      : TransformerDecoder(Scope{}, num_layers, dims, heads, std::move(options)) {}
  TransformerDecoder(Module& parent, std::string name, int num_layers, int64_t dims, int64_t heads,
                     TransformerOptions options = {})
      : TransformerDecoder(Scope{&parent, std::move(name)}, num_layers, dims, heads, std::move(options)) {}
  TransformerDecoder(Scope scope, int num_layers, int64_t dims, int64_t heads, TransformerOptions options);
  array operator()(const array& x, const array& memory, const std::optional<array>& x_mask = std::nullopt,
                   const std::optional<array>& memory_mask = std::nullopt) const override;

  List<TransformerDecoderLayer> layers;  ///< in the order of computation
  LayerNorm ln;                          ///< of the result

 private:
  bool checkpoint_;
};

/// An encoder and a decoder. The encoder's result for `src` is the memory of the decoder of `tgt`. Throws
/// std::invalid_argument where a custom part is not made as a part of the module that it is given.
class WEFT_API Transformer : public Module {
 public:
  explicit Transformer(int64_t dims = 512, int64_t heads = 8, int num_encoder_layers = 6, int num_decoder_layers = 6,
                       TransformerOptions options = {})
      : Transformer(Scope{}, dims, heads, num_encoder_layers, num_decoder_layers, std::move(options)) {}
  Transformer(Module& parent, std::string name, int64_t dims = 512, int64_t heads = 8, int num_encoder_layers = 6,
              int num_decoder_layers = 6, TransformerOptions options = {})
      : Transformer(Scope{&parent, std::move(name)}, dims, heads, num_encoder_layers, num_decoder_layers,
                    std::move(options)) {}
  Transformer(Scope scope, int64_t dims, int64_t heads, int num_encoder_layers, int num_decoder_layers,
              TransformerOptions options);
  /// Returns the decoder's result [batch, time of tgt, dims].
  array operator()(const array& src, const array& tgt, const std::optional<array>& src_mask = std::nullopt,
                   const std::optional<array>& tgt_mask = std::nullopt,
                   const std::optional<array>& memory_mask = std::nullopt) const;

  std::unique_ptr<Encoder> encoder;  ///< of src
  std::unique_ptr<Decoder> decoder;  ///< of tgt

 protected:
  bool can_hold(const std::string& name, const Module& part) const override;
  void hold(const std::string& name, std::unique_ptr<Module> part) override;
};

}  // namespace weft::nn
