#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "weft/nn/module.h"
#include "weft/nn/quantized.h"

/// Layers that compute in the dtype of their input: float32 parameters are cast where they are used, so that bfloat16
/// activations are mixed precision. Inputs that do not fit throw std::invalid_argument.
namespace weft::nn {

/// Computes x Wᵀ + b for x [..., in]. Weight and bias start as MLX's and PyTorch's: uniform in ±1/√in.
class WEFT_API Linear : public Layer {
 public:
  Linear(int64_t in, int64_t out, bool with_bias = true) : Linear(Scope{}, in, out, with_bias) {}
  Linear(Module& parent, std::string name, int64_t in, int64_t out, bool with_bias = true)
      : Linear(Scope{&parent, std::move(name)}, in, out, with_bias) {}
  Linear(Scope scope, int64_t in, int64_t out, bool with_bias);
  array operator()(const array& x) const override;
  std::string describe() const override;
  /// Replaces the weight by codes of a few bits, which are not learned. Throws what check_quantization does.
  void quantize(const Quantization& how = {});
  /// Throws std::invalid_argument where the weight cannot be quantised so, or has been.
  void check_quantization(const Quantization& how) const;

  Parameter weight;               ///< [out, in]; quantised: the codes
  std::optional<Parameter> bias;  ///< [out]
  /// Whether products are computed by fast::float8_linear, forward and backward, where `in`, `out` and the number of
  /// rows of x are multiples of 16; others are in x's dtype.
  bool float8 = false;
  std::optional<QuantizedWeight> quantized;  ///< set by quantize
};

/// Sets Linear::float8 of all linear layers in a module.
WEFT_API void use_float8(Module& module, bool on = true);

/// Selects rows of a table by integer ids. It starts as MLX's: normal, with standard deviation 1/√width.
class WEFT_API Embedding : public Module {
 public:
  Embedding(int64_t count, int64_t width) : Embedding(Scope{}, count, width) {}
  Embedding(Module& parent, std::string name, int64_t count, int64_t width)
      : Embedding(Scope{&parent, std::move(name)}, count, width) {}
  Embedding(Scope scope, int64_t count, int64_t width);
  /// Returns the rows [..., width] of the ids [...].
  array operator()(const array& ids) const;
  /// Returns x Wᵀ [..., count], the scores of all rows, for a head tied to the embedding.
  array as_linear(const array& x) const;
  std::string describe() const override;
  /// Replaces the weight by codes of a few bits, as Linear::quantize does.
  void quantize(const Quantization& how = {});
  /// Throws std::invalid_argument where the weight cannot be quantised so, or has been.
  void check_quantization(const Quantization& how) const;

  Parameter weight;                          ///< [count, width]; quantised: the codes
  std::optional<QuantizedWeight> quantized;  ///< set by quantize
};

/// A linear layer that is quantised from the start, for files with codes.
class WEFT_API QuantizedLinear : public Linear {
 public:
  QuantizedLinear(int64_t in, int64_t out, bool with_bias = true, const Quantization& how = {})
      : QuantizedLinear(Scope{}, in, out, with_bias, how) {}
  QuantizedLinear(Module& parent, std::string name, int64_t in, int64_t out, bool with_bias = true,
                  const Quantization& how = {})
      : QuantizedLinear(Scope{&parent, std::move(name)}, in, out, with_bias, how) {}
  QuantizedLinear(Scope scope, int64_t in, int64_t out, bool with_bias, const Quantization& how)
      : Linear(std::move(scope), in, out, with_bias) {
    quantize(how);
  }
};

/// An embedding that is quantised from the start.
class WEFT_API QuantizedEmbedding : public Embedding {
 public:
  QuantizedEmbedding(int64_t count, int64_t width, const Quantization& how = {})
      : QuantizedEmbedding(Scope{}, count, width, how) {}
  QuantizedEmbedding(Module& parent, std::string name, int64_t count, int64_t width, const Quantization& how = {})
      : QuantizedEmbedding(Scope{&parent, std::move(name)}, count, width, how) {}
  QuantizedEmbedding(Scope scope, int64_t count, int64_t width, const Quantization& how)
      : Embedding(std::move(scope), count, width) {
    quantize(how);
  }
};

/// Quantises the linear layers and embeddings in a module, in place: all, or those that `wanted` returns true for,
/// given their dotted names. Throws std::invalid_argument that names the layer where one does not fit; nothing is
/// changed then.
WEFT_API void quantize(Module& module, const Quantization& how = {},
                       const std::function<bool(const std::string&, const Module&)>& wanted = {});

/// Zeroes, in training, each element with probability p and scales the others by 1 / (1 - p); else returns x.
class WEFT_API Dropout : public Layer {
 public:
  explicit Dropout(float rate = 0.5f) : Dropout(Scope{}, rate) {}
  Dropout(Module& parent, std::string name, float rate = 0.5f) : Dropout(Scope{&parent, std::move(name)}, rate) {}
  Dropout(Scope scope, float rate);
  array operator()(const array& x) const override;
  std::string describe() const override;

  float p;  ///< probability of a zero
};

/// Zeroes whole channels, the last axis of images x [batch, height, width, channels] or [height, width, channels].
class WEFT_API Dropout2d : public Layer {
 public:
  explicit Dropout2d(float rate = 0.5f) : Dropout2d(Scope{}, rate) {}
  Dropout2d(Module& parent, std::string name, float rate = 0.5f) : Dropout2d(Scope{&parent, std::move(name)}, rate) {}
  Dropout2d(Scope scope, float rate, int space = 2);
  array operator()(const array& x) const override;
  std::string describe() const override;

  float p;  ///< probability of a zero

 private:
  int space_;
};

/// Zeroes whole channels of volumes [batch, depth, height, width, channels] or without the batch.
class WEFT_API Dropout3d : public Dropout2d {
 public:
  explicit Dropout3d(float rate = 0.5f) : Dropout2d(Scope{}, rate, 3) {}
  Dropout3d(Module& parent, std::string name, float rate = 0.5f)
      : Dropout2d(Scope{&parent, std::move(name)}, rate, 3) {}
};

/// Returns x.
class WEFT_API Identity : public Layer {
 public:
  using Layer::Layer;
  array operator()(const array& x) const override { return x; }
};

/// Computes y[..., o] = x2ᵀ weight[o] x1 + bias[o]. Layout and start as MLX's: uniform in ±1/√in1.
class WEFT_API Bilinear : public Module {
 public:
  Bilinear(int64_t in1, int64_t in2, int64_t out, bool with_bias = true)
      : Bilinear(Scope{}, in1, in2, out, with_bias) {}
  Bilinear(Module& parent, std::string name, int64_t in1, int64_t in2, int64_t out, bool with_bias = true)
      : Bilinear(Scope{&parent, std::move(name)}, in1, in2, out, with_bias) {}
  Bilinear(Scope scope, int64_t in1, int64_t in2, int64_t out, bool with_bias);
  /// Returns [..., out] for x1 [..., in1] and x2 [..., in2].
  array operator()(const array& x1, const array& x2) const;
  std::string describe() const override;

  Parameter weight;               ///< [out, in2, in1]
  std::optional<Parameter> bias;  ///< [out]
};

}  // namespace weft::nn
