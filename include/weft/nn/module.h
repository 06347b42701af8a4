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
  enum class Role {
    learned,
    statistic
  };  ///< a statistic is part of the state and of files, but not learned: freeze and unfreeze pass it by
  Parameter(Module& parent, std::string name, array value, Role role = Role::learned);
  ~Parameter();
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  /// A new value; must have the shape and dtype of the old one, for which there may be state elsewhere.
  Parameter& operator=(array value);
  /// The value in another floating dtype, rounded to nearest.
  void set_dtype(Dtype dtype);
  operator const array&() const { return value_; }
  const array& value() const { return value_; }
  array* handle() { return &value_; }
  const std::string& name() const { return name_; }
  Role role() const { return role_; }
  bool trainable;  ///< false: frozen, or a statistic

 private:
  Module* parent_;
  std::string name_;
  array value_;
  Role role_;
};

/// Where a module stands: in a larger one under a name, or by itself.
struct Place {
  Module* parent = nullptr;
  std::string name;
};

/// Part of a model: parameters and smaller parts, which enter themselves when they are declared. Modules are neither
/// copied nor moved.
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
  Module(Module& parent, std::string name) : Module(Place{&parent, std::move(name)}) {}
  explicit Module(Place place);
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Dotted names and handles, depth first in the order of declaration ("up.weight", "up.bias", …, "scale").
  std::vector<std::pair<std::string, array*>> parameters();
  std::vector<std::pair<std::string, array*>> trainable_parameters();
  /// The handles of all parameters, for CompileOptions::state. (Random layers draw from the default sequence, which
  /// compile captures itself.)
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

  /// Keeps all learned parameters in another floating dtype; statistics stay what they are. Layers compute in the dtype
  /// of what comes in, embeddings give that of their weight. To be called before an optimizer is made, which keeps
  /// state for the dtypes it finds. Returns what the parameters of other dtypes were, by name, for optimizers whose
  /// masters are to begin with it (optim::Optimizer::set_masters).
  std::unordered_map<std::string, array> set_dtype(Dtype dtype);

  /// New values by name, cast to the parameters' dtypes. `strict` refuses missing and unknown names; wrong shapes are
  /// always refused. The std::invalid_argument names all that does not fit; nothing is changed then.
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
template <class T>
class List : public Module {
 public:
  using Module::Module;
  template <class... A>
  T& add(A&&... arguments) {
    items_.push_back(
        std::make_unique<T>(static_cast<Module&>(*this), std::to_string(items_.size()), std::forward<A>(arguments)...));
    return *items_.back();
  }
  size_t size() const { return items_.size(); }
  T& operator[](size_t i) { return *items_.at(i); }
  const T& operator[](size_t i) const { return *items_.at(i); }
  std::string describe() const override { return "List(" + std::to_string(size()) + ")"; }

 private:
  std::vector<std::unique_ptr<T>> items_;
};

/// A module that takes one array and gives one: what Sequential is made of.
class WEFT_API Layer : public Module {
 public:
  using Module::Module;
  virtual array operator()(const array& x) const = 0;
};

/// Layers one after the other, under the names "0", "1", …
///
///     nn::Sequential net;
///     net.add<nn::Linear>(784, 128);
///     net.add<nn::ReLU>();
///     net.add<nn::Linear>(128, 10);
///     array scores = net(x);
class WEFT_API Sequential : public Layer {
 public:
  using Layer::Layer;
  template <class T, class... A>
  T& add(A&&... arguments) {
    auto made =
        std::make_unique<T>(static_cast<Module&>(*this), std::to_string(layers_.size()), std::forward<A>(arguments)...);
    T& layer = *made;
    layers_.push_back(std::move(made));
    return layer;
  }
  array operator()(const array& x) const override;
  size_t size() const { return layers_.size(); }
  Layer& operator[](size_t i) { return *layers_.at(i); }
  std::string describe() const override { return "Sequential(" + std::to_string(size()) + ")"; }

 private:
  std::vector<std::unique_ptr<Layer>> layers_;
};

/// The loss, and its gradients with respect to the trainable parameters in their order. `fun` computes a float scalar
/// through `model`.
///
///     auto loss_and_grads = nn::value_and_grad(model, [&](const std::vector<array>& b) { return model.loss(b[0],
///       b[1]); });
///     auto [loss, grads] = loss_and_grads({x, y});
WEFT_API std::function<std::pair<array, std::vector<array>>(const std::vector<array>&)> value_and_grad(
    Module& model, ScalarFunction fun);

}  // namespace weft::nn
