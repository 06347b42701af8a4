#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "weft/nn/module.h"

/// Norms with MLX's arguments and defaults. Statistics are float32 at least, the result has the shape and dtype of x
/// (MLX promotes x and a weight of float32). Weights start as ones, biases as zeros. An eps that is not positive throws
/// std::invalid_argument.
namespace weft::nn {

/// Options of LayerNorm.
struct LayerNormOptions {
  float eps = 1e-5f;   ///< added to the variance
  bool affine = true;  ///< whether there is a weight
  bool bias = true;    ///< whether there is a bias too
};

/// Computes (x - mean) / √(var + eps) · weight + bias over the last axis, of `width` elements.
class WEFT_API LayerNorm : public Layer {
 public:
  explicit LayerNorm(int64_t width, LayerNormOptions options = {}) : LayerNorm(Scope{}, width, options) {}
  LayerNorm(Module& parent, std::string name, int64_t width, LayerNormOptions options = {})
      : LayerNorm(Scope{&parent, std::move(name)}, width, options) {}
  LayerNorm(Scope scope, int64_t width, LayerNormOptions options);
  array operator()(const array& x) const override;
  std::string describe() const override;

  std::optional<Parameter> weight, bias;  ///< [width]
  float eps;                              ///< added to the variance

 private:
  int64_t width_;
};

/// Computes x / √(mean(x²) + eps) · weight over the last axis, of `width` elements.
class WEFT_API RMSNorm : public Layer {
 public:
  explicit RMSNorm(int64_t width, float epsilon = 1e-5f) : RMSNorm(Scope{}, width, epsilon) {}
  RMSNorm(Module& parent, std::string name, int64_t width, float epsilon = 1e-5f)
      : RMSNorm(Scope{&parent, std::move(name)}, width, epsilon) {}
  RMSNorm(Scope scope, int64_t width, float epsilon);
  array operator()(const array& x) const override;
  std::string describe() const override;

  Parameter weight;  ///< [width]
  float eps;         ///< added to the mean square
};

/// Options of InstanceNorm.
struct InstanceNormOptions {
  float eps = 1e-5f;    ///< added to the variance
  bool affine = false;  ///< whether there are a weight and a bias
};

/// Normalizes each channel (the last axis of x [batch, …, channels]) of each example over the axes between.
class WEFT_API InstanceNorm : public Layer {
 public:
  explicit InstanceNorm(int64_t channels, InstanceNormOptions options = {})
      : InstanceNorm(Scope{}, channels, options) {}
  InstanceNorm(Module& parent, std::string name, int64_t channels, InstanceNormOptions options = {})
      : InstanceNorm(Scope{&parent, std::move(name)}, channels, options) {}
  InstanceNorm(Scope scope, int64_t channels, InstanceNormOptions options);
  array operator()(const array& x) const override;
  std::string describe() const override;

  std::optional<Parameter> weight, bias;  ///< [channels]

 private:
  int64_t channels_;
  float eps_;
};

/// Options of GroupNorm.
struct GroupNormOptions {
  float eps = 1e-5f;                ///< added to the variance
  bool affine = true;               ///< whether there are a weight and a bias
  bool pytorch_compatible = false;  ///< neighbouring channels form a group; else every `groups`-th channel, as in MLX
};

/// Normalizes groups of channels of each example x [batch, …, channels] over the axes between (Wu and He 2018).
class WEFT_API GroupNorm : public Layer {
 public:
  GroupNorm(int64_t groups, int64_t channels, GroupNormOptions options = {})
      : GroupNorm(Scope{}, groups, channels, options) {}
  GroupNorm(Module& parent, std::string name, int64_t groups, int64_t channels, GroupNormOptions options = {})
      : GroupNorm(Scope{&parent, std::move(name)}, groups, channels, options) {}
  GroupNorm(Scope scope, int64_t groups, int64_t channels, GroupNormOptions options);
  array operator()(const array& x) const override;
  std::string describe() const override;

  std::optional<Parameter> weight, bias;  ///< [channels]

 private:
  int64_t groups_, channels_;
  GroupNormOptions options_;
};

/// Options of BatchNorm.
struct BatchNormOptions {
  float eps = 1e-5f;                ///< added to the variance
  float momentum = 0.1f;            ///< share of a new batch in the running statistics
  bool affine = true;               ///< whether there are a weight and a bias
  bool track_running_stats = true;  ///< whether there are running statistics
};

/// Normalizes each channel of x [batch, …, channels] over the batch and all axes between (Ioffe and Szegedy 2015). In
/// training, and always without running statistics, mean and variance are the batch's; in eval mode the running ones.
/// These are parameters that are not learned (state, and part of files), updated by each call in training, the variance
/// unbiased, as PyTorch and MLX do. Throws std::invalid_argument in training for a single value of a channel, which has
/// no variance.
class WEFT_API BatchNorm : public Layer {
 public:
  explicit BatchNorm(int64_t channels, BatchNormOptions options = {}) : BatchNorm(Scope{}, channels, options) {}
  BatchNorm(Module& parent, std::string name, int64_t channels, BatchNormOptions options = {})
      : BatchNorm(Scope{&parent, std::move(name)}, channels, options) {}
  BatchNorm(Scope scope, int64_t channels, BatchNormOptions options);
  array operator()(const array& x) const override;
  std::string describe() const override;

  std::optional<Parameter> weight, bias;                       ///< [channels]
  mutable std::optional<Parameter> running_mean, running_var;  ///< float32 [channels]

 private:
  int64_t channels_;
  BatchNormOptions options_;
};

}  // namespace weft::nn
