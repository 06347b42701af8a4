#pragma once
#include <string>
#include <utility>

#include "weft/nn/functions.h"
#include "weft/nn/module.h"

/// The activations of functions.h as layers for Sequential, with MLX's names, arguments and defaults.
namespace weft::nn {

/// The activations without a number of their own.
enum class Activation {
  sigmoid,
  mish,
  relu,
  relu2,
  relu6,
  softmax,
  softplus,
  softsign,
  silu,
  log_softmax,
  log_sigmoid,
  tanh,
  hardswish,
  selu,
  hard_tanh,
  softmin
};
/// The activations with one number: a slope, a scale, a threshold.
enum class ScaledActivation { leaky_relu, elu, celu, softshrink, hard_shrink, step };

/// Computes an activation. Softmax, LogSoftmax and Softmin work along the last axis.
class WEFT_API ActivationLayer : public Layer {
 public:
  ActivationLayer(Scope scope, Activation kind) : Layer(std::move(scope)), kind_(kind) {}
  array operator()(const array& x) const override;
  std::string describe() const override;

 private:
  Activation kind_;
};

/// Computes an activation with a number.
class WEFT_API ScaledActivationLayer : public Layer {
 public:
  ScaledActivationLayer(Scope scope, ScaledActivation kind, float value)
      : Layer(std::move(scope)), kind_(kind), value_(value) {}
  array operator()(const array& x) const override;
  std::string describe() const override;
  /// Returns the number that MLX takes by default.
  static float default_value(ScaledActivation kind);

 private:
  ScaledActivation kind_;
  float value_;
};

/// The layer of one activation, with the constructors of all layers.
template <Activation kind>
class ActivationOf : public ActivationLayer {
 public:
  ActivationOf() : ActivationLayer(Scope{}, kind) {}
  ActivationOf(Module& parent, std::string name) : ActivationLayer(Scope{&parent, std::move(name)}, kind) {}
};
/// The layer of one activation with a number.
template <ScaledActivation kind>
class ScaledActivationOf : public ScaledActivationLayer {
 public:
  explicit ScaledActivationOf(float value = default_value(kind)) : ScaledActivationLayer(Scope{}, kind, value) {}
  ScaledActivationOf(Module& parent, std::string name, float value = default_value(kind))
      : ScaledActivationLayer(Scope{&parent, std::move(name)}, kind, value) {}
};

/// The layers of Activation, under MLX's names.
using Sigmoid = ActivationOf<Activation::sigmoid>;
using Mish = ActivationOf<Activation::mish>;
using ReLU = ActivationOf<Activation::relu>;
using ReLU2 = ActivationOf<Activation::relu2>;
using ReLU6 = ActivationOf<Activation::relu6>;
using Softmax = ActivationOf<Activation::softmax>;  ///< along the last axis, as LogSoftmax and Softmin
using Softplus = ActivationOf<Activation::softplus>;
using Softsign = ActivationOf<Activation::softsign>;
using SiLU = ActivationOf<Activation::silu>;
using LogSoftmax = ActivationOf<Activation::log_softmax>;
using LogSigmoid = ActivationOf<Activation::log_sigmoid>;
using Tanh = ActivationOf<Activation::tanh>;
using Hardswish = ActivationOf<Activation::hardswish>;
using SELU = ActivationOf<Activation::selu>;
using HardTanh = ActivationOf<Activation::hard_tanh>;
using Softmin = ActivationOf<Activation::softmin>;
/// LeakyReLU(negative_slope = 0.01), and below it the others with their default numbers.
using LeakyReLU = ScaledActivationOf<ScaledActivation::leaky_relu>;
using ELU = ScaledActivationOf<ScaledActivation::elu>;                 ///< (alpha = 1)
using CELU = ScaledActivationOf<ScaledActivation::celu>;               ///< (alpha = 1)
using Softshrink = ScaledActivationOf<ScaledActivation::softshrink>;   ///< (lambda = 0.5)
using HardShrink = ScaledActivationOf<ScaledActivation::hard_shrink>;  ///< (lambda = 0.5)
using Step = ScaledActivationOf<ScaledActivation::step>;               ///< (threshold = 0)

/// Computes the first half of the axis times the sigmoid of the second.
class WEFT_API GLU : public Layer {
 public:
  explicit GLU(int axis = -1) : axis_(axis) {}
  GLU(Module& parent, std::string name, int axis = -1) : Layer(parent, std::move(name)), axis_(axis) {}
  array operator()(const array& x) const override { return glu(x, axis_); }
  std::string describe() const override { return "GLU(" + std::to_string(axis_) + ")"; }

 private:
  int axis_;
};

/// Computes gelu: "none" exactly, "precise" or "tanh" by the tanh approximation of GPT-2, "fast" as x sigmoid(1.702 x).
/// Throws std::invalid_argument for another name.
class WEFT_API GELU : public Layer {
 public:
  explicit GELU(std::string approximation = "none") : GELU(Scope{}, std::move(approximation)) {}
  GELU(Module& parent, std::string name, std::string approximation = "none")
      : GELU(Scope{&parent, std::move(name)}, std::move(approximation)) {}
  GELU(Scope scope, std::string approximation);
  array operator()(const array& x) const override;
  std::string describe() const override;

 private:
  std::string approximation_;
};

/// Computes max(x, 0) + weight · min(x, 0), with one learned weight, or one for each element of the last axis.
class WEFT_API PReLU : public Layer {
 public:
  explicit PReLU(int64_t num_parameters = 1, float start = 0.25f) : PReLU(Scope{}, num_parameters, start) {}
  PReLU(Module& parent, std::string name, int64_t num_parameters = 1, float start = 0.25f)
      : PReLU(Scope{&parent, std::move(name)}, num_parameters, start) {}
  PReLU(Scope scope, int64_t num_parameters, float start);
  array operator()(const array& x) const override;
  std::string describe() const override;

  Parameter weight;  ///< [num_parameters]
};

}  // namespace weft::nn
