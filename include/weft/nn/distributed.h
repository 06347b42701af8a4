#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "weft/distributed.h"
#include "weft/nn/layers.h"

/// Linear layers whose parameters are divided among the processes of a group, with MLX's names. In a group of one they
/// have all of them and compute what Linear does. A group that is not given is distributed::init().
namespace weft::nn {

/// Computes x Wᵀ + b for this process' part of the rows of W and of b. All processes have the same x, and each a part
/// of the result; the gradient of x is the sum of all processes' ones. Throws std::invalid_argument where the number of
/// processes does not divide `out`.
class WEFT_API AllToShardedLinear : public Linear {
 public:
  AllToShardedLinear(int64_t in, int64_t out, bool with_bias = true,
                     const std::optional<distributed::Group>& group = std::nullopt)
      : AllToShardedLinear(Scope{}, in, out, with_bias, group) {}
  AllToShardedLinear(Module& parent, std::string name, int64_t in, int64_t out, bool with_bias = true,
                     const std::optional<distributed::Group>& group = std::nullopt)
      : AllToShardedLinear(Scope{&parent, std::move(name)}, in, out, with_bias, group) {}
  AllToShardedLinear(Scope scope, int64_t in, int64_t out, bool with_bias,
                     const std::optional<distributed::Group>& group);
  array operator()(const array& x) const override;
  std::string describe() const override;

 private:
  distributed::Group group_;
  std::function<array(const array&)> sum_gradients_;
};

/// Computes the sum over all processes of x Wᵀ, plus b: each has a part of x's last axis and of the columns of W, and
/// the whole result. Throws std::invalid_argument where the number of processes does not divide `in`.
class WEFT_API ShardedToAllLinear : public Linear {
 public:
  ShardedToAllLinear(int64_t in, int64_t out, bool with_bias = true,
                     const std::optional<distributed::Group>& group = std::nullopt)
      : ShardedToAllLinear(Scope{}, in, out, with_bias, group) {}
  ShardedToAllLinear(Module& parent, std::string name, int64_t in, int64_t out, bool with_bias = true,
                     const std::optional<distributed::Group>& group = std::nullopt)
      : ShardedToAllLinear(Scope{&parent, std::move(name)}, in, out, with_bias, group) {}
  ShardedToAllLinear(Scope scope, int64_t in, int64_t out, bool with_bias,
                     const std::optional<distributed::Group>& group);
  array operator()(const array& x) const override;
  std::string describe() const override;

 private:
  distributed::Group group_;
};

/// A divided layer that is quantised from the start.
template <class T>
class QuantizedSharded : public T {
 public:
  QuantizedSharded(int64_t in, int64_t out, bool with_bias = true, const Quantization& how = {},
                   const std::optional<distributed::Group>& group = std::nullopt)
      : QuantizedSharded(Scope{}, in, out, with_bias, how, group) {}
  QuantizedSharded(Module& parent, std::string name, int64_t in, int64_t out, bool with_bias = true,
                   const Quantization& how = {}, const std::optional<distributed::Group>& group = std::nullopt)
      : QuantizedSharded(Scope{&parent, std::move(name)}, in, out, with_bias, how, group) {}
  QuantizedSharded(Scope scope, int64_t in, int64_t out, bool with_bias, const Quantization& how,
                   const std::optional<distributed::Group>& group)
      : T(std::move(scope), in, out, with_bias, group) {
    this->quantize(how);
  }
};
/// The divided layers, quantised.
using QuantizedAllToShardedLinear = QuantizedSharded<AllToShardedLinear>;
using QuantizedShardedToAllLinear = QuantizedSharded<ShardedToAllLinear>;

/// Of matrices that are stacked in one: how many there are, of one size, or the positions or the fractions of the axis
/// at which they meet. Each is divided by itself.
using Segments = std::variant<int, std::vector<int>, std::vector<double>>;
/// The axis that is divided, and its segments.
struct Division {
  int axis;               ///< -1 is the last
  Segments segments = 1;  ///< matrices along the axis
};
/// Says how a parameter is divided; nothing: not at all.
using Sharding = std::function<std::optional<Division>(const std::string& name, const array& parameter)>;
/// Returns the division of AllToShardedLinear: rows of matrices, and the elements of biases.
WEFT_API Sharding all_to_sharded(Segments segments = 1);
/// Returns the division of ShardedToAllLinear: columns of matrices; biases stay whole.
WEFT_API Sharding sharded_to_all(Segments segments = 1);

/// Replaces the parameters of a module by this process' parts. The module itself does not communicate. Throws
/// std::invalid_argument for sizes that the number of processes does not divide.
WEFT_API void shard_inplace(Module& module, const Sharding& sharding,
                            const std::optional<distributed::Group>& group = std::nullopt);
/// Returns a layer with this process' part of the parameters of a linear layer, quantised where that is. Throws as
/// shard_inplace.
WEFT_API std::unique_ptr<AllToShardedLinear> shard_all_to_sharded(
    Linear& linear, const Segments& segments = 1, const std::optional<distributed::Group>& group = std::nullopt);
/// Returns the same for the other division.
WEFT_API std::unique_ptr<ShardedToAllLinear> shard_sharded_to_all(
    Linear& linear, const Segments& segments = 1, const std::optional<distributed::Group>& group = std::nullopt);

/// Calls a layer with all of its parameters, of which this process keeps a part between calls (Zhao et al. 2023, FSDP).
/// A call gathers the parameters from all processes, those of one dtype together; the gradient of a part is the mean of
/// the processes' gradients. Parameters are divided along their first axis. What is inside a FullyShardedModule already
/// stays with it. What a call writes to a parameter, such as a running mean, is not kept.
///
///     nn::FullyShardedModule layer(std::make_unique<nn::Linear>(8, 8));
///     array y = layer(ones({2, 8}));  // parameters "module.weight" and "module.bias"
class WEFT_API FullyShardedModule : public Layer {
 public:
  /// Replaces the parameters of the layer by this process' part; `compute_dtype` is the dtype that gathered parameters
  /// are converted to, their own by default. Throws std::invalid_argument for a parameter without axes, and where the
  /// number of processes does not divide a first axis.
  explicit FullyShardedModule(std::unique_ptr<Layer> module,
                              const std::optional<distributed::Group>& group = std::nullopt,
                              std::optional<Dtype> compute_dtype = std::nullopt)
      : FullyShardedModule(Scope{}, std::move(module), group, compute_dtype) {}
  FullyShardedModule(Module& parent, std::string name, std::unique_ptr<Layer> module,
                     const std::optional<distributed::Group>& group = std::nullopt,
                     std::optional<Dtype> compute_dtype = std::nullopt)
      : FullyShardedModule(Scope{&parent, std::move(name)}, std::move(module), group, compute_dtype) {}
  FullyShardedModule(Scope scope, std::unique_ptr<Layer> module, const std::optional<distributed::Group>& group,
                     std::optional<Dtype> compute_dtype);
  array operator()(const array& x) const override;
  /// Calls `fn` while the layer has all of its parameters, and returns its result.
  array gathered(const std::function<array()>& fn) const;
  /// Returns the layer.
  Layer& module() const { return *module_; }
  std::string describe() const override;

 protected:
  bool can_hold(const std::string& name, const Module& part) const override;
  void hold(const std::string& name, std::unique_ptr<Module> part) override;

 private:
  std::unique_ptr<Layer> module_;
  ArrayFunction gather_;
};

/// Returns a FullyShardedModule of the layer; the layer itself where there is one process, where it has no parameters
/// of its own, and where it is a FullyShardedModule. Throws as that.
WEFT_API std::unique_ptr<Layer> fully_shard(std::unique_ptr<Layer> layer,
                                            const std::optional<distributed::Group>& group = std::nullopt,
                                            std::optional<Dtype> compute_dtype = std::nullopt);

/// Returns the mean of the gradients of all processes, a tree of one structure in all of them.
WEFT_API Tree average_gradients(const Tree& gradients, const std::optional<distributed::Group>& group = std::nullopt);
/// Returns gradients, of which each process has a part, times min(1, max_norm / (norm + 1e-6)), and the norm of all
/// processes' parts together, float32 [].
WEFT_API std::pair<Tree, array> clip_grad_norm_sharded(const Tree& gradients, float max_norm,
                                                       const std::optional<distributed::Group>& group = std::nullopt);

}  // namespace weft::nn
