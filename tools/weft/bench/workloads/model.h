#pragma once
// Training steps of the table's models: a model, its loss and a batch, made of weft::nn as a user would, and one
// compiled step of loss, gradients and optimizer.
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/weft/bench/workloads/table.h"
#include "weft/compile.h"
#include "weft/nn.h"
#include "weft/optim.h"

namespace weft::tool {

/// A model with its loss and a random batch. Floating inputs are in the model's dtype, parameters too.
struct Workload {
  std::unique_ptr<nn::Module> model;
  ScalarFunction loss;                                  ///< of the batch's arrays
  std::vector<array> batch;                             ///< on the default device
  std::unordered_map<std::string, array> masters = {};  ///< what parameters of 16 bits were rounded from, by name
};

/// Makes a model of the sizes; several rows of the table share a maker.
using WorkloadMaker = std::function<Workload(const Sizes&)>;
/// Returns the makers by the table's names of models.
const std::unordered_map<std::string, WorkloadMaker>& workload_makers();

/// Adds the makers of one file.
using WorkloadMakers = std::unordered_map<std::string, WorkloadMaker>;
void add_language_models(WorkloadMakers& makers);
void add_sequence_models(WorkloadMakers& makers);
void add_vision_models(WorkloadMakers& makers);
void add_image_models(WorkloadMakers& makers);
void add_table_models(WorkloadMakers& makers);

/// Returns a workload of a Model with the constructor Model(Sizes), `array loss(batch)` and `batch(Sizes)`, in the
/// dtype of the sizes.
template <class Model>
Workload workload_of(const Sizes& sizes) {
  auto model = std::make_unique<Model>(sizes);
  Model* m = model.get();
  auto masters = sizes.dtype() == float32 ? std::unordered_map<std::string, array>{} : m->set_dtype(sizes.dtype());
  return {std::move(model), [m](const std::vector<array>& in) { return m->loss(in); }, m->batch(sizes),
          std::move(masters)};
}

/// Returns uniform integers below `bound`, int32, of the shape: tokens, labels, rows of tables.
array random_ids(int bound, const Shape& shape);
/// Returns the mean cross-entropy of logits [..., classes] and labels [...].
array mean_cross_entropy(const array& logits, const array& labels);

/// A training step: loss, gradients and optimizer as one compiled function.
class WorkloadStep {
 public:
  /// Makes the model of the row with the sizes of "gpu", "cpu" or "tiny", from random seed 0, and its optimizer. Throws
  /// std::invalid_argument where no model has the row's kind.
  WorkloadStep(const WorkloadRow& row, const std::string& sizes);
  /// Makes a step and returns its loss, float32 [], which need not be computed yet.
  array operator()() { return step_(workload_.batch)[0]; }
  Workload& workload() { return workload_; }

 private:
  Workload workload_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  ArrayFunction step_;
};

}  // namespace weft::tool
