#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "weft/nn/module.h"

/// Recurrent layers over x [batch, time, in] or [time, in], with MLX's parameters and formulas. Each is one `scan`: a
/// loop of any length is one small program, and the matrix products with the input are one for all times. `with_bias`
/// chooses whether there is a bias.
namespace weft::nn {

/// Computes hₜ = f(Wxh xₜ + Whh hₜ₋₁ + b), f tanh unless another is given.
class WEFT_API RNN : public Layer {
 public:
  /// The function f.
  using Nonlinearity = std::function<array(const array&)>;
  RNN(int64_t in, int64_t hidden, bool with_bias = true, Nonlinearity f = {})
      : RNN(Scope{}, in, hidden, with_bias, std::move(f)) {}
  RNN(Module& parent, std::string name, int64_t in, int64_t hidden, bool with_bias = true, Nonlinearity f = {})
      : RNN(Scope{&parent, std::move(name)}, in, hidden, with_bias, std::move(f)) {}
  RNN(Scope scope, int64_t in, int64_t hidden, bool with_bias, Nonlinearity f);
  /// Returns all h [.., time, hidden]; the first step sees `hidden` [.., hidden], or zeros.
  array operator()(const array& x, const std::optional<array>& hidden) const;
  array operator()(const array& x) const override { return (*this)(x, std::nullopt); }
  std::string describe() const override;

  Parameter Wxh, Whh;             ///< [hidden, in] and [hidden, hidden]
  std::optional<Parameter> bias;  ///< [hidden]

 private:
  Nonlinearity f_;
};

/// Computes r, z = σ(Wx x + b + Wh h), n = tanh(Wx x + b + r (Wh h + bhn)), h = (1 - z) n + z h. Rows of Wx, Wh and b
/// are in the order r, z, n.
class WEFT_API GRU : public Layer {
 public:
  GRU(int64_t in, int64_t hidden, bool with_bias = true) : GRU(Scope{}, in, hidden, with_bias) {}
  GRU(Module& parent, std::string name, int64_t in, int64_t hidden, bool with_bias = true)
      : GRU(Scope{&parent, std::move(name)}, in, hidden, with_bias) {}
  GRU(Scope scope, int64_t in, int64_t hidden, bool with_bias);
  /// Returns all h [.., time, hidden]; the first step sees `hidden` [.., hidden], or zeros.
  array operator()(const array& x, const std::optional<array>& hidden) const;
  array operator()(const array& x) const override { return (*this)(x, std::nullopt); }
  std::string describe() const override;

  Parameter Wx, Wh;                 ///< [3 · hidden, in] and [3 · hidden, hidden]
  std::optional<Parameter> b, bhn;  ///< [3 · hidden] and [hidden]
};

/// Computes i, f, g, o = σ, σ, tanh, σ of Wx x + Wh h + bias, c = f c + i g, h = o tanh(c).
class WEFT_API LSTM : public Layer {
 public:
  LSTM(int64_t in, int64_t hidden, bool with_bias = true) : LSTM(Scope{}, in, hidden, with_bias) {}
  LSTM(Module& parent, std::string name, int64_t in, int64_t hidden, bool with_bias = true)
      : LSTM(Scope{&parent, std::move(name)}, in, hidden, with_bias) {}
  LSTM(Scope scope, int64_t in, int64_t hidden, bool with_bias);
  /// Returns all h and all c [.., time, hidden]; the first step sees `hidden` and `cell` [.., hidden], or zeros.
  std::pair<array, array> run(const array& x, const std::optional<array>& hidden = std::nullopt,
                              const std::optional<array>& cell = std::nullopt) const;
  array operator()(const array& x) const override { return run(x).first; }
  std::string describe() const override;

  Parameter Wx, Wh;               ///< [4 · hidden, in] and [4 · hidden, hidden]
  std::optional<Parameter> bias;  ///< [4 · hidden]
};

}  // namespace weft::nn
