#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/array.h"
#include "weft/optim/schedules.h"
#include "weft/tree.h"

namespace weft::optim {

/// Dotted names and the handles of parameters, as nn::Module::trainable_parameters() returns them.
using Parameters = std::vector<std::pair<std::string, array*>>;

/// The parameters that an optimizer rebinds in each step.
struct Handles {
  /// Takes names and handles, from a module or in braces: {{"weight", &w}, {"bias", &b}}.
  Handles(Parameters all) : parameters(std::move(all)) {}
  Handles(std::initializer_list<Parameters::value_type> all) : parameters(all) {}
  Parameters parameters;  ///< names and handles
};

/// Whether a parameter decays, for optimizers with a weight_decay.
using DecayPredicate = std::function<bool(const std::string& name, const array& parameter)>;
/// Returns whether the parameter has at least two axes: `.decays = optim::is_matrix` leaves out biases and norms.
WEFT_API bool is_matrix(const std::string& name, const array& parameter);
/// Returns true: every parameter decays, which is MLX's rule and the default.
WEFT_API bool every(const std::string& name, const array& parameter);

/// How an optimizer updates parameters of 16 bits. Its arithmetic and its own state are float32 in any case.
enum class Rounding : uint8_t {
  master,      ///< it keeps float32 copies, which the parameters are rounded from: small steps are not lost
  stochastic,  ///< no copies: each new value is rounded up or down by chance, so that small steps count on average
               ///< (Gupta et al. 2015); bfloat16 only
  nearest,     ///< no copies: steps of less than half the distance to the next number are lost
};

/// Updates parameters by their gradients. An optimizer that is made with handles of parameters keeps them, so they must
/// outlive it (modules do not move); `update` then rebinds them.
///
/// Everything that changes from step to step is an array: under `compile`, list `state()` with the model's. A learning
/// rate that is no schedule is set from the host between steps:
///
///     optim::AdamW optimizer(model.trainable_parameters(), {.weight_decay = 0.1});
///     optimizer.set_learning_rate(schedule(k));  // writes one number; nothing is traced again
///     optimizer.update(gradients);               // in the order of the parameters
///
/// The functional form is MLX's: parameters, gradients and state are trees, and the new parameters are returned. It
/// needs no handles, and computes the same numbers:
///
///     optim::Adam adam({.learning_rate = optim::exponential_decay(0.1f, 0.9f)});
///     parameters = adam.apply_gradients(slopes, parameters);
class WEFT_API Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Makes one step: rebinds the parameters and the state. Throws std::invalid_argument where number or shapes do not
  /// fit, or there are no handles.
  void update(const std::vector<array>& gradients);
  /// Makes the step where `when` (bool []) is true; else nothing changes.
  void update(const std::vector<array>& gradients, const array& when);
  /// Sets the learning rate of the next steps; where it has a schedule, until the next step.
  virtual void set_learning_rate(float value);
  /// Sets how parameters of 16 bits are updated; Rounding::master until it is called, which must be before the first
  /// update. Random bits depend on the seed, the parameter, the step and the element alone. Throws
  /// std::invalid_argument for Rounding::stochastic where a parameter is float16.
  virtual void set_rounding(Rounding rounding, uint64_t seed = 0) = 0;
  /// Sets the first values of the masters to those that the parameters were rounded from, by the parameters' names:
  /// what Module::set_dtype returned, or the tensors of a file. A master takes the elements of which its parameter is
  /// the rounding and keeps the others, so a parameter is its master rounded in any case. Without it masters start at
  /// 16-bit numbers, all as far as can be from where rounding changes, and the first small updates have no effect. Call
  /// it after set_rounding; names that have no master are ignored.
  ///
  ///     const auto precise = model.set_dtype(bfloat16);
  ///     optim::AdamW optimizer(model.trainable_parameters());
  ///     optimizer.set_masters(precise);
  ///
  /// Throws std::invalid_argument where a value has another shape than its parameter.
  virtual void set_masters(const std::unordered_map<std::string, array>& values) = 0;
  /// Returns the parameters' values by name in the optimizer's precision: float32 masters where there are any.
  virtual std::unordered_map<std::string, array> precise_parameters() const;

  /// Makes the state of the parameters in a tree, a dict. Those that have one keep it. The first step does so for the
  /// parameters that it has gradients of; it is called where the state has to exist earlier, as when it is compiled.
  /// Throws std::invalid_argument for another tree and for parameters that are not floating.
  virtual void init(const Tree& parameters) = 0;
  /// Does so for the values of handles, under their dotted names.
  void init(const Parameters& parameters);
  /// Makes one step: returns the new parameters in a tree of the gradients' structure, and moves the state on.
  /// `parameters` has at least a parameter for each gradient and does not change. A 16-bit parameter continues from its
  /// float32 master where it is the master's rounding, else from its own value. Throws std::out_of_range for a gradient
  /// without a parameter, or that the state lacks; std::invalid_argument for another shape.
  virtual Tree apply_gradients(const Tree& gradients, const Tree& parameters) = 0;
  /// Returns the state that one parameter begins with, a dict of arrays. Weight decay asks for the name. Throws
  /// std::invalid_argument where an optimizer has no rule of its own.
  virtual Tree init_single(const array& parameter, const std::string& name = "");
  /// Returns a parameter's next value at the learning rate and the numbers of the last step, and writes its next state.
  /// Throws as init_single, std::out_of_range where an array is missing in the state.
  virtual array apply_single(const array& gradient, const array& parameter, Tree& state, const std::string& name = "");
  /// Returns the state as MLX's: a dict of "step", "learning_rate" and the rule's own numbers, and the structure of the
  /// parameters with a dict of arrays, under MLX's names, at each. `step` is int32 (MLX: uint64).
  virtual Tree state_tree() = 0;
  /// Sets the state from such a tree, also one of MLX's, cast to the dtypes of the state. Parameters whose state is not
  /// there yet take theirs when it is made. Throws std::out_of_range where something is missing, std::invalid_argument
  /// where it has another shape.
  virtual void set_state(const Tree& state) = 0;

  array learning_rate;  ///< float32 []: of the last step
  array step;           ///< int32 []: updates so far

  /// Returns the handles of all state, in a stable order: learning_rate, step, the rule's own numbers, then each
  /// parameter's arrays.
  virtual std::vector<array*> state();
  /// Returns the same with names for checkpoints: "step", "exp_avg.blocks.0.attn.c_attn.weight", "master.…".
  virtual Parameters named_state();
  /// Sets the state from a checkpoint; throws std::invalid_argument naming what is missing, unknown or of another
  /// shape.
  void load_state(const std::unordered_map<std::string, array>& arrays);
  /// Returns the handles that the optimizer was made with.
  const Parameters& parameters() const { return parameters_; }

 protected:
  explicit Optimizer(const LearningRate& rate);
  /// Sets the handles. Throws std::invalid_argument where there are none, or one is not floating.
  void set_parameters(Parameters parameters);
  /// Computes the scheduled learning rate and raises `step`.
  void begin_step();
  /// Makes one step of the handles, which the gradients fit.
  virtual void apply(const std::vector<array>& gradients) = 0;

 private:
  Parameters parameters_;
  std::optional<Schedule> schedule_;
};

/// An optimizer that is a rule for one parameter, the same for all of them. All arithmetic is float32 (float64 for
/// float64 parameters); for a parameter of 16 bits the optimizer keeps a float32 master copy, unless set_rounding says
/// otherwise.
class WEFT_API RuleOptimizer : public Optimizer {
 public:
  std::vector<array*> state() override;
  Parameters named_state() override;
  void set_rounding(Rounding rounding, uint64_t seed = 0) override;
  void set_masters(const std::unordered_map<std::string, array>& values) override;
  std::unordered_map<std::string, array> precise_parameters() const override;
  using Optimizer::init;
  void init(const Tree& parameters) override;
  Tree apply_gradients(const Tree& gradients, const Tree& parameters) override;
  Tree init_single(const array& parameter, const std::string& name = "") override;
  array apply_single(const array& gradient, const array& parameter, Tree& state, const std::string& name = "") override;
  Tree state_tree() override;
  void set_state(const Tree& state) override;

 protected:
  /// The name of an array in checkpoints, "exp_avg" and the like, and in trees, where it is MLX's.
  struct SlotName {
    std::string name, key;
  };
  /// An array kept for a parameter.
  struct Slot {
    SlotName name;
    Shape shape;
    double start = 0;
  };
  using Slots = std::function<std::vector<Slot>(const Shape& parameter)>;
  /// Slots of the parameter's own shape.
  static Slots alike(std::vector<SlotName> names, double start = 0);

  RuleOptimizer(const LearningRate& rate, Slots slots, const std::vector<std::pair<std::string, double>>& numbers,
                double weight_decay, DecayPredicate decays);
  /// Takes handles, for which it makes the state.
  void take(Handles handles);
  /// Called once a step, before the parameters: to move the rule's own numbers on.
  virtual void advance() {}
  /// Called where a state without the rule's own numbers was set: to compute them from `step`.
  virtual void restore() {}
  /// The new value of parameter `index`; `value`, `gradient` and `slots` have one dtype, float32 at least. Rebinds
  /// `slots`. The same graph for every parameter, so that all updates can be one kernel: what differs between
  /// parameters is a number() or decay().
  virtual array rule(size_t index, const array& value, const array& gradient, std::vector<array>& slots) = 0;
  array& number(size_t i) { return numbers_[i].second; }
  /// The weight decay of the parameter, as a buffer: 0 for those that do not decay.
  const array& decay(size_t index) const { return entries_[index].decays ? decay_ : no_decay_; }
  /// The learning rate in the dtype of the parameter, so that nothing is promoted.
  array rate(const array& value) const;
  /// The gradient with `amount` of weight decay added, where there is any.
  array decayed(size_t index, const array& value, const array& gradient, double amount) const;

 private:
  struct Entry {
    std::string path;  // of the parameter
    std::vector<SlotName> names;
    std::vector<array> slots;
    std::optional<array> master;
    std::optional<array> rounding_key;  // of stochastic rounding
    bool decays;
  };
  void apply(const std::vector<array>& gradients) override;
  Entry entry_of(const std::string& path, const array& parameter) const;
  void add(Entry entry);
  size_t index_of(const std::string& path) const;
  array stepped(size_t index, const array& value, const array& gradient, Dtype dtype);
  array stepped_from(size_t index, const array& parameter, const array& gradient);
  void load(Entry& entry, bool required);

  Slots slots_;
  DecayPredicate decays_;
  Rounding rounding_ = Rounding::master;
  uint64_t seed_ = 0;
  std::deque<Entry> entries_;  // state() returns handles of what is in them
  std::unordered_map<std::string, size_t> indices_;
  bool initialized_ = false;
  std::unordered_map<std::string, array> restored_;  // a state that was set, of parameters that are not there yet
  std::vector<std::pair<std::string, array>> numbers_;
  array decay_, no_decay_;
};

/// Several optimizers, each for its share of the parameters: a parameter goes to the first share whose predicate takes
/// it. State and checkpoints name the shares "0.", "1.", …; state_tree is {"states": […]}. Throws std::invalid_argument
/// where a parameter is left over, or a share takes none.
///
///     const auto muon = [](optim::Parameters p) { return std::make_unique<optim::Muon>(std::move(p)); };
///     const auto adamw = [](optim::Parameters p) { return std::make_unique<optim::AdamW>(std::move(p)); };
///     optim::MultiOptimizer optimizer(model.trainable_parameters(), {{optim::is_matrix, muon}, {optim::every,
///     adamw}});
class WEFT_API MultiOptimizer : public Optimizer {
 public:
  /// One optimizer and the parameters it takes.
  struct Share {
    std::function<bool(const std::string& name, const array& parameter)> takes;  ///< whether a parameter belongs to it
    std::function<std::unique_ptr<Optimizer>(Parameters)> make;  ///< makes the optimizer of these parameters
  };
  MultiOptimizer(Parameters parameters, const std::vector<Share>& shares);
  /// Makes the functional form of optimizers without handles. `filters` has a predicate of path and gradient for each
  /// but the last, which takes the rest; std::invalid_argument is thrown for another number.
  ///
  ///     optim::MultiOptimizer both({std::make_shared<optim::Muon>(), std::make_shared<optim::AdamW>()},
  ///                                {optim::is_matrix});
  MultiOptimizer(std::vector<std::shared_ptr<Optimizer>> optimizers, std::vector<DecayPredicate> filters);

  void set_learning_rate(float value) override;  ///< of all shares; `share(i).set_learning_rate` sets one
  std::vector<array*> state() override;
  Parameters named_state() override;
  void set_rounding(Rounding rounding, uint64_t seed = 0) override;                 ///< of all shares
  void set_masters(const std::unordered_map<std::string, array>& values) override;  ///< of all shares
  std::unordered_map<std::string, array> precise_parameters() const override;
  using Optimizer::init;
  void init(const Tree& parameters) override;
  Tree apply_gradients(const Tree& gradients, const Tree& parameters) override;
  Tree state_tree() override;
  void set_state(const Tree& state) override;
  /// Returns the optimizer of share i, to set its learning rate; throws std::out_of_range.
  Optimizer& share(size_t i) { return *shares_.at(i).optimizer; }

 private:
  struct Part {
    DecayPredicate takes;
    std::shared_ptr<Optimizer> optimizer;
    std::vector<size_t> indices;  // of its parameters among all
  };
  void apply(const std::vector<array>& gradients) override;
  size_t owner_of(const std::string& path, const array& parameter) const;
  Tree part_of(const Tree& tree, size_t share) const;

  std::vector<Part> shares_;
};

/// Returns the gradients scaled by min(1, max_norm / (norm + 1e-6)), and the norm of all of them before, float32 [].
/// Throws std::invalid_argument where max_norm is negative or there are no gradients.
WEFT_API std::pair<std::vector<array>, array> clip_grad_norm(const std::vector<array>& gradients, float max_norm);

}  // namespace weft::optim
