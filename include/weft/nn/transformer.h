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
/// Sequences are [batch, time, width]. Masks are additive (0, or a very negative number where nothing is to be seen),
/// or bool (false hides); they broadcast to [batch, heads, queries, keys].
namespace weft::nn {

/// Widths that are 0 are those of the model; that of values is that of keys.
struct MultiHeadOptions {
  int64_t query_input_dims = 0;
  int64_t key_input_dims = 0;
  int64_t value_input_dims = 0;
  int64_t value_dims = 0;  ///< of all heads together, after the projection
  int64_t value_output_dims = 0;
  bool bias = false;
};

/// Each query's mean of the values, weighted by the softmax of its products with the keys, in `heads` heads; everything
/// is projected before and after.
class WEFT_API MultiHeadAttention : public Module {
 public:
  MultiHeadAttention(int64_t dims, int64_t heads, MultiHeadOptions options = {})
      : MultiHeadAttention(Place{}, dims, heads, options) {}
  MultiHeadAttention(Module& parent, std::string name, int64_t dims, int64_t heads, MultiHeadOptions options = {})
      : MultiHeadAttention(Place{&parent, std::move(name)}, dims, heads, options) {}
  MultiHeadAttention(Place place, int64_t dims, int64_t heads, MultiHeadOptions options);
  array operator()(const array& queries, const array& keys, const array& values,
                   const std::optional<array>& mask = std::nullopt) const;
  /// [n, n]: 0 up to the diagonal, the smallest finite number of the dtype behind it.
  static array create_additive_causal_mask(int64_t n, Dtype dtype = float32);
  std::string describe() const override;

 private:
  int64_t heads_;

 public:
  Linear query_proj, key_proj, value_proj, out_proj;
};

/// What makes a sequence x [batch, time, width] of a sequence: TransformerEncoder, or a module of one's own.
class WEFT_API Encoder : public Module {
 public:
  using Module::Module;
  virtual array operator()(const array& x, const std::optional<array>& mask = std::nullopt) const = 0;
};

/// What also looks at `memory`, an encoder's result: TransformerDecoder, or a module of one's own.
class WEFT_API Decoder : public Module {
 public:
  using Module::Module;
  virtual array operator()(const array& x, const array& memory, const std::optional<array>& x_mask = std::nullopt,
                           const std::optional<array>& memory_mask = std::nullopt) const = 0;
};

struct TransformerOptions {
  int64_t mlp_dims = 0;  ///< 0: four times the width
  float dropout = 0;
  std::function<array(const array&)> activation = relu;
  bool norm_first = true;   ///< norms before attention and products (Xiong et al. 2020), else behind the sums
  bool checkpoint = false;  ///< layers are computed again for their gradient (of the encoder and the decoder)
  /// Make the encoder and the decoder of a Transformer in place of TransformerEncoder and TransformerDecoder, as parts
  /// of `parent` under `name`; the other options are then theirs alone.
  std::function<std::unique_ptr<Encoder>(Module& parent, std::string name)> custom_encoder = nullptr;
  std::function<std::unique_ptr<Decoder>(Module& parent, std::string name)> custom_decoder = nullptr;
};

class WEFT_API TransformerEncoderLayer : public Module {
 public:
  TransformerEncoderLayer(int64_t dims, int64_t heads, TransformerOptions options = {})
      : TransformerEncoderLayer(Place{}, dims, heads, std::move(options)) {}
  TransformerEncoderLayer(Module& parent, std::string name, int64_t dims, int64_t heads,
                          TransformerOptions options = {})
      : TransformerEncoderLayer(Place{&parent, std::move(name)}, dims, heads, std::move(options)) {}
  TransformerEncoderLayer(Place place, int64_t dims, int64_t heads, TransformerOptions options);
  array operator()(const array& x, const std::optional<array>& mask = std::nullopt) const;

  MultiHeadAttention attention;
  LayerNorm ln1, ln2;
  Linear linear1, linear2;
  Dropout dropout1, dropout2;

 private:
  TransformerOptions options_;
};

/// Layers "layers.0" …, and a norm behind them.
class WEFT_API TransformerEncoder : public Encoder {
 public:
  TransformerEncoder(int num_layers, int64_t dims, int64_t heads, TransformerOptions options = {})
      : TransformerEncoder(Place{}, num_layers, dims, heads, std::move(options)) {}
  TransformerEncoder(Module& parent, std::string name, int num_layers, int64_t dims, int64_t heads,
                     TransformerOptions options = {})
      : TransformerEncoder(Place{&parent, std::move(name)}, num_layers, dims, heads, std::move(options)) {}
  TransformerEncoder(Place place, int num_layers, int64_t dims, int64_t heads, TransformerOptions options);
  array operator()(const array& x, const std::optional<array>& mask = std::nullopt) const override;

  List<TransformerEncoderLayer> layers;
  LayerNorm ln;

 private:
  bool checkpoint_;
};

/// An encoder layer that also attends to `memory`, between the two.
class WEFT_API TransformerDecoderLayer : public Module {
 public:
  TransformerDecoderLayer(int64_t dims, int64_t heads, TransformerOptions options = {})
      : TransformerDecoderLayer(Place{}, dims, heads, std::move(options)) {}
  TransformerDecoderLayer(Module& parent, std::string name, int64_t dims, int64_t heads,
                          TransformerOptions options = {})
      : TransformerDecoderLayer(Place{&parent, std::move(name)}, dims, heads, std::move(options)) {}
  TransformerDecoderLayer(Place place, int64_t dims, int64_t heads, TransformerOptions options);
  array operator()(const array& x, const array& memory, const std::optional<array>& x_mask = std::nullopt,
                   const std::optional<array>& memory_mask = std::nullopt) const;

  MultiHeadAttention self_attention, cross_attention;
  LayerNorm ln1, ln2, ln3;
  Linear linear1, linear2;
  Dropout dropout1, dropout2, dropout3;

 private:
  TransformerOptions options_;
};

class WEFT_API TransformerDecoder : public Decoder {
 public:
  TransformerDecoder(int num_layers, int64_t dims, int64_t heads, TransformerOptions options = {})
      : TransformerDecoder(Place{}, num_layers, dims, heads, std::move(options)) {}
  TransformerDecoder(Module& parent, std::string name, int num_layers, int64_t dims, int64_t heads,
                     TransformerOptions options = {})
      : TransformerDecoder(Place{&parent, std::move(name)}, num_layers, dims, heads, std::move(options)) {}
  TransformerDecoder(Place place, int num_layers, int64_t dims, int64_t heads, TransformerOptions options);
  array operator()(const array& x, const array& memory, const std::optional<array>& x_mask = std::nullopt,
                   const std::optional<array>& memory_mask = std::nullopt) const override;

  List<TransformerDecoderLayer> layers;
  LayerNorm ln;

 private:
  bool checkpoint_;
};

/// The encoder's result for `src` is the memory of the decoder of `tgt`. Throws std::invalid_argument where a custom
/// part is not made as a part of the module that it is given.
class WEFT_API Transformer : public Module {
 public:
  explicit Transformer(int64_t dims = 512, int64_t heads = 8, int num_encoder_layers = 6, int num_decoder_layers = 6,
                       TransformerOptions options = {})
      : Transformer(Place{}, dims, heads, num_encoder_layers, num_decoder_layers, std::move(options)) {}
  Transformer(Module& parent, std::string name, int64_t dims = 512, int64_t heads = 8, int num_encoder_layers = 6,
              int num_decoder_layers = 6, TransformerOptions options = {})
      : Transformer(Place{&parent, std::move(name)}, dims, heads, num_encoder_layers, num_decoder_layers,
                    std::move(options)) {}
  Transformer(Place place, int64_t dims, int64_t heads, int num_encoder_layers, int num_decoder_layers,
              TransformerOptions options);
  array operator()(const array& src, const array& tgt, const std::optional<array>& src_mask = std::nullopt,
                   const std::optional<array>& tgt_mask = std::nullopt,
                   const std::optional<array>& memory_mask = std::nullopt) const;

  std::unique_ptr<Encoder> encoder;
  std::unique_ptr<Decoder> decoder;
};

}  // namespace weft::nn
