#pragma once
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/array.h"
#include "weft/ops.h"
#include "weft/transforms.h"

namespace weft::nn {

class Module;

/// An array that is learned. It enters itself into its module when it is declared.
class WEFT_API Parameter {
 public:
  Parameter(Module& parent, std::string name, array value);
  ~Parameter();
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  /// A new value; must have the shape and dtype of the old one, for which there may be state elsewhere.
  Parameter& operator=(array value);
  operator const array&() const { return value_; }
  const array& value() const { return value_; }
  array* handle() { return &value_; }
  const std::string& name() const { return name_; }
  bool trainable = true;  ///< false: frozen

 private:
  Module* parent_;
  std::string name_;
  array value_;
};

/// Part of a model: parameters and smaller parts, which enter themselves when they are declared. Modules are neither copied nor moved.
///
///     struct Mlp : nn::Module {
///       using Module::Module;                              // Mlp m;  or as a part: Mlp mlp{*this, "mlp"};
///       nn::Linear up{*this, "up", 64, 256};
///       nn::Linear down{*this, "down", 256, 64};
///       nn::Parameter scale{*this, "scale", ones({64})};
///       array operator()(const array& x) const { return down(nn::gelu(up(x))) * scale; }
///     };
class WEFT_API Module {
 public:
  Module() = default;
  Module(Module& parent, std::string name);
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Dotted names and handles, depth first in the order of declaration ("up.weight", "up.bias", …, "scale").
  std::vector<std::pair<std::string, array*>> parameters();
  std::vector<std::pair<std::string, array*>> trainable_parameters();
  /// The handles of all parameters, for CompileOptions::state. (Random layers draw from the default sequence, which compile captures itself.)
  std::vector<array*> state();
  int64_t num_parameters();

  std::vector<std::pair<std::string, Module*>> children() const;
  /// This module under "" and all below it, depth first.
  std::vector<std::pair<std::string, Module*>> named_modules();

  /// Frozen parameters take no part in training; both calls reach everything below.
  void freeze();
  void unfreeze();
  void train(bool on = true);  ///< sets the mode of this module and everything below
  void eval() { train(false); }
  bool training() const { return training_; }

  /// New values by name, cast to the parameters' dtypes. `strict` refuses missing and unknown names; wrong shapes are always refused.
  /// The std::invalid_argument names all that does not fit; nothing is changed then.
  void update(const std::unordered_map<std::string, array>& values, bool strict = true);
  /// safetensors.
  void load_weights(const std::string& file, bool strict = true);
  void save_weights(const std::string& file, const std::unordered_map<std::string, std::string>& metadata = {});

  /// One line for the printed tree, such as "Linear(64, 256)".
  virtual std::string describe() const;
  const std::string& name() const { return name_; }

 private:
  friend class Parameter;
  struct Slot {  // one of the two
    Parameter* parameter;
    Module* module;
  };
  void enter(const std::string& name, Slot slot);
  void leave(const void* slot);
  void collect(const std::string& prefix, bool trainable_only, std::vector<std::pair<std::string, array*>>& out);
  void collect_modules(const std::string& prefix, std::vector<std::pair<std::string, Module*>>& out);
  void print(std::ostream& os, const std::string& label, int depth) const;
  friend WEFT_API std::ostream& operator<<(std::ostream& os, const Module& module);

  Module* parent_ = nullptr;
  std::string name_;
  std::vector<std::pair<std::string, Slot>> slots_;
  bool training_ = true;
};

/// Eval mode while it lives; then the mode from before.
class EvalMode {
 public:
  explicit EvalMode(Module& module) : module_(module), was_training_(module.training()) { module_.eval(); }
  ~EvalMode() { module_.train(was_training_); }
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;

 private:
  Module& module_;
  bool was_training_;
};

/// The tree, one line a module.
WEFT_API std::ostream& operator<<(std::ostream& os, const Module& module);

/// Modules of one kind under the names "0", "1", …
///
///     nn::List<Block> blocks{*this, "blocks"};      // blocks.add(config);
template <class T> class List : public Module {
 public:
  using Module::Module;
  template <class... A> T& add(A&&... arguments) {
    items_.push_back(std::make_unique<T>(static_cast<Module&>(*this), std::to_string(items_.size()), std::forward<A>(arguments)...));
    return *items_.back();
  }
  size_t size() const { return items_.size(); }
  T& operator[](size_t i) { return *items_.at(i); }
  const T& operator[](size_t i) const { return *items_.at(i); }
  std::string describe() const override { return "List(" + std::to_string(size()) + ")"; }

 private:
  std::vector<std::unique_ptr<T>> items_;
};

/// The loss, and its gradients with respect to the trainable parameters in their order. `fun` computes a float scalar through `model`.
///
///     auto loss_and_grads = nn::value_and_grad(model, [&](const std::vector<array>& b) { return model.loss(b[0], b[1]); });
///     auto [loss, grads] = loss_and_grads({x, y});
WEFT_API std::function<std::pair<array, std::vector<array>>(const std::vector<array>&)> value_and_grad(Module& model, ScalarFunction fun);

// Layers. All compute in the dtype of their input: float32 parameters are cast where they are used, which makes bfloat16 activations mixed precision.

/// x Wᵀ + b, weight [out, in]. Starts as PyTorch's: uniform in ±1/√in.
class WEFT_API Linear : public Module {
 public:
  Linear(int64_t in, int64_t out, bool bias = true);
  Linear(Module& parent, std::string name, int64_t in, int64_t out, bool bias = true);
  array operator()(const array& x) const;
  std::string describe() const override;

  Parameter weight;
  std::optional<Parameter> bias;
};

/// Rows of weight [count, width], chosen by integer ids of any shape. Starts as N(0, 1).
class WEFT_API Embedding : public Module {
 public:
  Embedding(int64_t count, int64_t width);
  Embedding(Module& parent, std::string name, int64_t count, int64_t width);
  array operator()(const array& ids) const;
  /// x Wᵀ: scores of all rows, for a head tied to the embedding.
  array as_linear(const array& x) const;
  std::string describe() const override;

  Parameter weight;
};

/// (x - mean) / √(var + eps) · weight + bias over the last axis; statistics in float32.
class WEFT_API LayerNorm : public Module {
 public:
  explicit LayerNorm(int64_t width, bool bias = true, float eps = 1e-5f);
  LayerNorm(Module& parent, std::string name, int64_t width, bool bias = true, float eps = 1e-5f);
  array operator()(const array& x) const;
  std::string describe() const override;

  Parameter weight;
  std::optional<Parameter> bias;
  float eps;
};

/// In training zeroes each element with probability p and scales the others by 1 / (1 - p); else passes x on.
class WEFT_API Dropout : public Module {
 public:
  explicit Dropout(float p);
  Dropout(Module& parent, std::string name, float p);
  array operator()(const array& x) const;
  std::string describe() const override;

  float p;
};

struct AttentionOptions {
  bool bias = true;
  float dropout = 0;  ///< of the attention weights and of the result
  bool causal = false;
};

/// Self-attention of x [batch, time, width] in `heads` heads; one product gives queries, keys and values (GPT-2's names: c_attn, c_proj).
class WEFT_API MultiHeadAttention : public Module {
 public:
  MultiHeadAttention(int64_t width, int64_t heads, AttentionOptions options = {});
  MultiHeadAttention(Module& parent, std::string name, int64_t width, int64_t heads, AttentionOptions options = {});
  array operator()(const array& x) const;
  /// The two halves, for callers that keep keys and values: queries, keys, values [batch, heads, time, width / heads] …
  std::tuple<array, array, array> project(const array& x) const;
  /// … and the result [batch, time, width] from attended heads.
  array merge(const array& heads) const;
  float scale() const;
  std::string describe() const override;

 private:
  int64_t width_, heads_;
  AttentionOptions options_;

 public:
  Linear c_attn, c_proj;
  Dropout attn_dropout, resid_dropout;
};

/// MultiHeadAttention in which a place sees itself and what came before.
class WEFT_API CausalSelfAttention : public MultiHeadAttention {
 public:
  CausalSelfAttention(int64_t width, int64_t heads, bool bias = true, float dropout = 0)
      : MultiHeadAttention(width, heads, {.bias = bias, .dropout = dropout, .causal = true}) {}
  CausalSelfAttention(Module& parent, std::string name, int64_t width, int64_t heads, bool bias = true, float dropout = 0)
      : MultiHeadAttention(parent, std::move(name), width, heads, {.bias = bias, .dropout = dropout, .causal = true}) {}
};

// Functions
WEFT_API array gelu(const array& x);         ///< exact
WEFT_API array gelu_approx(const array& x);  ///< the tanh form of GPT-2
WEFT_API array relu(const array& x);
WEFT_API array silu(const array& x);
WEFT_API array softmax(const array& x, int axis = -1);

}  // namespace weft::nn

namespace weft::nn::losses {

enum class Reduction { none, mean, sum };
/// -log softmax(logits)[target] for logits [..., classes] and integer targets [...], in float32.
WEFT_API array cross_entropy(const array& logits, const array& targets, Reduction reduction = Reduction::mean);

}  // namespace weft::nn::losses

/// Starting values, float32, from the default random sequence.
namespace weft::nn::init {

WEFT_API array normal(const Shape& shape, float mean = 0, float std = 1);
WEFT_API array uniform(const Shape& shape, float low = 0, float high = 1);
WEFT_API array constant(const Shape& shape, float value);

}  // namespace weft::nn::init
