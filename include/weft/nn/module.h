#pragma once
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
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
#include "weft/tree.h"

namespace weft::nn {

class Module;

/// An array that is learned. It registers itself with its module when it is declared.
class WEFT_API Parameter {
 public:
  /// Whether the parameter is learned. A statistic is part of the state and of files, but not learned: freeze and
  /// unfreeze skip it.
  enum class Role {
    learned,
    statistic
  };  ///< a statistic is part of the state and of files, but not learned: freeze and unfreeze pass it by
  Parameter(Module& parent, std::string name, array value, Role role = Role::learned);
  ~Parameter();
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  /// Sets the value. Throws std::invalid_argument unless it has the shape and dtype of the old one, for which there may
  /// be state elsewhere.
  Parameter& operator=(array value);
  /// Converts the value to another floating dtype, rounded to nearest.
  void set_dtype(Dtype dtype);
  /// Sets a value of any shape and dtype, and the role, for a layer that holds something else from now on.
  void become(array value, Role role);
  /// Returns the value.
  operator const array&() const { return value_; }
  /// Returns the value.
  const array& value() const { return value_; }
  /// Returns the handle, which update and CompileOptions::state rebind.
  array* handle() { return &value_; }
  /// Returns the name within its module.
  const std::string& name() const { return name_; }
  /// Returns whether it is learned or a statistic.
  Role role() const { return role_; }
  bool trainable;  ///< false: frozen, or a statistic

 private:
  Module* parent_;
  std::string name_;
  array value_;
  Role role_;
};

/// The position of a module in a larger one, under a name, or by itself.
struct Scope {
  Module* parent = nullptr;  ///< null: by itself
  std::string name;          ///< within the parent
};

/// An entry of a module: a parameter or a module.
struct Item {
  Parameter* parameter = nullptr;  ///< null: a module
  Module* module = nullptr;        ///< null: a parameter
  /// Returns whether it is a module.
  bool is_module() const { return module != nullptr; }
};
/// Says something of an entry, given its module and its name in there.
using ItemFilter = std::function<bool(const Module& module, const std::string& name, const Item& item)>;

/// Which parameters Module::freeze and unfreeze change.
struct FreezeOptions {
  bool recurse = true;  ///< whether those of all modules below, too
  /// Names within each module, without dots; that of a module stands for all parameters in it. None: all parameters.
  std::optional<std::vector<std::string>> keys = std::nullopt;
  bool strict = false;  ///< whether a name that no module has throws std::out_of_range
};

/// Part of a model: parameters and smaller parts, which register themselves when they are declared. Modules are neither
/// copied nor moved. Layers are made by themselves, `Linear up(64, 256)`, or as a part, with the parent and a name
/// first:
///
///     struct Mlp : nn::Module {
///       using Module::Module;  // Mlp m;  or as a part: Mlp mlp{*this, "mlp"};
///       nn::Linear up{*this, "up", 64, 256};
///       nn::Linear down{*this, "down", 256, 64};
///       nn::Parameter scale{*this, "scale", ones({64})};
///       array operator()(const array& x) const { return down(nn::gelu(up(x))) * scale; }
///     };
class WEFT_API Module {
 public:
  Module() = default;
  Module(Module& parent, std::string name) : Module(Scope{&parent, std::move(name)}) {}
  explicit Module(Scope scope);
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Returns dotted names and handles, depth first in the order of declaration ("up.weight", "up.bias", …, "scale").
  std::vector<std::pair<std::string, array*>> parameters();
  /// Returns those that are neither frozen nor statistics.
  std::vector<std::pair<std::string, array*>> trainable_parameters();
  /// Returns the handles of all parameters, for CompileOptions::state. (Random layers draw from the default sequence,
  /// which compile captures itself.)
  std::vector<array*> state();
  /// Returns the number of elements of all parameters.
  int64_t num_parameters();

  /// Returns the parts of this module by name, in the order of declaration.
  std::vector<std::pair<std::string, Module*>> children() const;
  /// Returns this module under "" and all modules below it, depth first.
  std::vector<std::pair<std::string, Module*>> named_modules();

  /// Returns this module and all modules below it, in the order of named_modules.
  std::vector<Module*> modules();
  /// Returns the modules below this one that contain no other module.
  std::vector<std::pair<std::string, Module*>> leaf_modules();
  /// Calls fn with name and module for this module and all below it.
  void apply_to_modules(const std::function<void(const std::string& name, Module& module)>& fn);
  /// Returns all entries of this module, by name, in the order of declaration.
  std::vector<std::pair<std::string, Item>> items() const;

  /// Returns the values of all parameters as a tree: a dict for each module, or a list where its entries are named "0",
  /// "1", …. The leaves have the order of parameters().
  Tree parameter_tree();
  /// Returns those that are neither frozen nor statistics, in the order of trainable_parameters().
  Tree trainable_tree();
  /// Returns a tree of the entries that `filter` takes, `map` of those that are leaves. Others are left out, or an
  /// empty dict in a list. Leaves are parameters, and the modules that is_leaf says are. Without `map` they are the
  /// values of parameters; std::invalid_argument is thrown then for a module.
  ///
  ///     Tree sizes = model.filter_and_map(nn::Module::valid_parameter_filter, [](const nn::Item& item) {
  ///       return Tree(array(item.parameter->value().size()));
  ///     });
  Tree filter_and_map(const ItemFilter& filter, const std::function<Tree(const Item&)>& map = {},
                      const ItemFilter& is_leaf = {});
  /// Returns whether an entry is a module.
  static bool valid_child_filter(const Module& module, const std::string& name, const Item& item);
  /// Returns whether an entry is a parameter, or may contain some: true.
  static bool valid_parameter_filter(const Module& module, const std::string& name, const Item& item);
  /// Returns whether an entry is a module, or a parameter that takes part in training.
  static bool trainable_parameter_filter(const Module& module, const std::string& name, const Item& item);
  /// Replaces each parameter, or those that `filter` takes, by map(value), of any shape and dtype.
  void apply(const std::function<array(const array&)>& map, const ItemFilter& filter = {});
  /// Sets the parameters that a tree has values for, as they are, of any shape and dtype; the others stay. `strict`
  /// throws std::invalid_argument for a value that is no array, or for which there is no parameter; nothing is changed
  /// then.
  ///
  ///     model.update(optimizer.apply_gradients(gradients, model.parameter_tree()));
  void update(const Tree& values, bool strict = true);
  /// Replaces parts by modules that were made by themselves, by the names of named_modules. What List, Sequential and
  /// Transformer hold can be replaced by a module of the same base class; members of other modules cannot. Throws
  /// std::invalid_argument for those, for a module that is part of another, and, where `strict`, for a name that is not
  /// there; nothing is changed then.
  void update_modules(std::map<std::string, std::unique_ptr<Module>> parts, bool strict = true);

  /// Takes all parameters of this module and below out of training, or those that the options name.
  void freeze(const FreezeOptions& options = {});
  /// Lets the learned parameters of this module and below take part in training, or those that the options name.
  void unfreeze(const FreezeOptions& options = {});
  /// Sets the mode of this module and all below it: training, or eval.
  void train(bool on = true);
  /// Sets eval mode, in which random layers do nothing.
  void eval() { train(false); }
  /// Returns whether the module is in training mode, as it is at first.
  bool training() const { return training_; }

  /// Converts all learned parameters to another floating dtype; statistics keep theirs. Layers compute in the dtype of
  /// their input, embeddings return that of their weight. Call it before an optimizer is made, which keeps state for
  /// the dtypes it finds. Returns the values of converted parameters before, by name, for optimizers whose masters are
  /// to begin with them (optim::Optimizer::set_masters).
  std::unordered_map<std::string, array> set_dtype(Dtype dtype);

  /// Sets parameters by name; values are cast to the parameters' dtypes. `strict` refuses missing and unknown names;
  /// wrong shapes are always refused. The std::invalid_argument names all that does not fit, and nothing is changed
  /// then.
  void update(const std::unordered_map<std::string, array>& values, bool strict = true);
  /// Sets parameters from a file, as `update`: NumPy's archive where its name ends in ".npz", else safetensors.
  void load_weights(const std::string& file, bool strict = true);
  /// Writes all parameters to a safetensors file, or to NumPy's archive where its name ends in ".npz". Throws
  /// std::invalid_argument for metadata of an archive, which has no place for it.
  void save_weights(const std::string& file, const std::unordered_map<std::string, std::string>& metadata = {});

  /// Returns one line for the printed tree, such as "Linear(64, 256)".
  virtual std::string describe() const;
  /// Returns the name within the parent; empty where there is none.
  const std::string& name() const { return name_; }

 protected:
  /// Returns whether `hold` takes the module in the place of the part `name`; false for parts that are members.
  virtual bool can_hold(const std::string& name, const Module& part) const;
  /// Takes a module in the place of the part `name`, which it destroys.
  virtual void hold(const std::string& name, std::unique_ptr<Module> part);

 private:
  friend class Parameter;
  struct Slot {  // one of the two
    Parameter* parameter;
    Module* module;
  };
  void set_trainable(bool on, const FreezeOptions& options);
  void register_slot(const std::string& name, Slot slot);
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

/// Sets eval mode while it lives, and then the mode from before.
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

/// Prints the tree of modules, one on each line.
WEFT_API std::ostream& operator<<(std::ostream& os, const Module& module);

namespace detail {
/// Puts a module that is a T where another one was.
template <class T>
void put(std::unique_ptr<T>& held, std::unique_ptr<Module> part) {
  held.reset(dynamic_cast<T*>(part.release()));
}
}  // namespace detail

/// Modules of one kind under the names "0", "1", ….
///
///     nn::List<Block> blocks{*this, "blocks"};  // a member of a model; blocks.add(config) in its constructor
template <class T>
class List : public Module {
 public:
  using Module::Module;
  /// Makes a module of the arguments, adds it and returns it.
  template <class... A>
  T& add(A&&... arguments) {
    items_.push_back(
        std::make_unique<T>(static_cast<Module&>(*this), std::to_string(items_.size()), std::forward<A>(arguments)...));
    return *items_.back();
  }
  /// Returns the number of modules.
  size_t size() const { return items_.size(); }
  /// Returns module i; throws std::out_of_range.
  T& operator[](size_t i) { return *items_.at(i); }
  const T& operator[](size_t i) const { return *items_.at(i); }
  std::string describe() const override { return "List(" + std::to_string(size()) + ")"; }

 protected:
  bool can_hold(const std::string&, const Module& part) const override { return dynamic_cast<const T*>(&part); }
  void hold(const std::string& name, std::unique_ptr<Module> part) override {
    detail::put(items_.at(std::stoul(name)), std::move(part));
  }

 private:
  std::vector<std::unique_ptr<T>> items_;
};

/// A module that takes one array and returns one: what Sequential is made of.
class WEFT_API Layer : public Module {
 public:
  using Module::Module;
  /// Returns the layer's output for x.
  virtual array operator()(const array& x) const = 0;
};

/// Layers one after the other, under the names "0", "1", ….
///
///     nn::Sequential net;
///     net.add<nn::Linear>(784, 128);
///     net.add<nn::ReLU>();
///     net.add<nn::Linear>(128, 10);
///     array scores = net(x);
class WEFT_API Sequential : public Layer {
 public:
  using Layer::Layer;
  /// Makes a layer of the arguments, adds it and returns it.
  template <class T, class... A>
  T& add(A&&... arguments) {
    auto made =
        std::make_unique<T>(static_cast<Module&>(*this), std::to_string(layers_.size()), std::forward<A>(arguments)...);
    T& layer = *made;
    layers_.push_back(std::move(made));
    return layer;
  }
  array operator()(const array& x) const override;
  /// Returns the number of layers.
  size_t size() const { return layers_.size(); }
  /// Returns layer i; throws std::out_of_range.
  Layer& operator[](size_t i) { return *layers_.at(i); }
  std::string describe() const override { return "Sequential(" + std::to_string(size()) + ")"; }

 protected:
  bool can_hold(const std::string& name, const Module& part) const override;
  void hold(const std::string& name, std::unique_ptr<Module> part) override;

 private:
  std::vector<std::unique_ptr<Layer>> layers_;
};

/// Returns a function that computes the loss and its gradients with respect to the trainable parameters, in their
/// order. `fun` computes a float scalar through `model`.
///
///     auto loss_and_grads =
///         nn::value_and_grad(model, [&](const std::vector<array>& b) { return model.loss(b[0], b[1]); });
///     auto [loss, grads] = loss_and_grads({x, y});
WEFT_API std::function<std::pair<array, std::vector<array>>(const std::vector<array>&)> value_and_grad(
    Module& model, ScalarFunction fun);
/// Returns the same with the gradients as a tree, of the structure of model.trainable_tree().
WEFT_API std::function<std::pair<array, Tree>(const std::vector<array>&)> tree_value_and_grad(Module& model,
                                                                                              ScalarFunction fun);

}  // namespace weft::nn
