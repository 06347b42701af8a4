#include "tools/weft/bench/workloads/model.h"

#include "weft/ops.h"
#include "weft/random.h"

namespace weft::tool {

namespace {

std::unique_ptr<optim::Optimizer> workload_optimizer(const std::string& name, optim::Parameters parameters) {
  if (name == "sgd")
    return std::make_unique<optim::SGD>(std::move(parameters),
                                        optim::SgdOptions{.learning_rate = 0.01f, .momentum = 0.9f});
  return std::make_unique<optim::AdamW>(
      std::move(parameters),
      optim::AdamWOptions{.learning_rate = 1e-3f, .weight_decay = 0.01, .bias_correction = true});
}

Workload made_workload(const WorkloadRow& row, const std::string& sizes) {
  const auto& makers = workload_makers();
  const auto maker = makers.find(row.kind);
  if (maker == makers.end())
    throw std::invalid_argument("[workloads] " + row.name + " wants the model '" + row.kind + "', which there is not");
  random::seed(0);
  return maker->second(row.sizes.at(sizes));
}

}  // namespace

const std::unordered_map<std::string, WorkloadMaker>& workload_makers() {
  static const WorkloadMakers makers = [] {
    WorkloadMakers all;
    add_language_models(all);
    add_sequence_models(all);
    add_vision_models(all);
    add_image_models(all);
    add_table_models(all);
    return all;
  }();
  return makers;
}

array random_ids(int bound, const Shape& shape) { return random::randint(array(0), array(bound), shape, int32); }

array mean_cross_entropy(const array& logits, const array& labels) {
  return nn::losses::cross_entropy(logits, labels, nn::losses::Reduction::mean);
}

WorkloadStep::WorkloadStep(const WorkloadRow& row, const std::string& sizes)
    : workload_(made_workload(row, sizes)),
      optimizer_(workload_optimizer(row.optimizer, workload_.model->trainable_parameters())) {
  eval(workload_.batch);
  optimizer_->set_masters(workload_.masters);
  std::vector<array*> state = workload_.model->state();
  for (array* a : optimizer_->state()) state.push_back(a);
  const auto loss_and_gradients = nn::value_and_grad(*workload_.model, workload_.loss);
  step_ = compile(
      [optimizer = optimizer_.get(), loss_and_gradients](const std::vector<array>& batch) {
        const auto [loss, gradients] = loss_and_gradients(batch);
        optimizer->update(gradients);
        return std::vector<array>{loss};
      },
      {.state = state, .dynamic = {}});
}

}  // namespace weft::tool
