// The table of optimizers by name.
#include "tools/weft/train/optimizers.h"

#include <utility>

namespace weft::tool {

namespace {

using Made = std::unique_ptr<optim::Optimizer>;
using O = const TrainOptions&;

template <class Rule, class Options>
Made made(optim::Parameters parameters, Options options) {
  return std::make_unique<Rule>(std::move(parameters), std::move(options));
}

/// The options that adaptive rules share, as Adam's.
template <class Options>
Options adaptive(O o) {
  Options out;
  out.learning_rate = static_cast<float>(o.lr);
  out.beta1 = o.beta1;
  out.beta2 = o.beta2;
  out.weight_decay = o.weight_decay;
  out.decays = optim::is_matrix;
  return out;
}

template <class Options>
Options corrected(O o) {
  Options out = adaptive<Options>(o);
  out.bias_correction = true;
  return out;
}

/// The options that all rules share.
template <class Options>
Options plain(O o) {
  Options out;
  out.learning_rate = static_cast<float>(o.lr);
  out.weight_decay = o.weight_decay;
  out.decays = optim::is_matrix;
  return out;
}

struct OptimizerRow {
  const char* name;
  Made (*make)(optim::Parameters parameters, O options);
};

const OptimizerRow rows[] = {
    {"adamw", [](auto p, O o) { return made<optim::AdamW>(std::move(p), corrected<optim::AdamWOptions>(o)); }},
    {"adam", [](auto p, O o) { return made<optim::Adam>(std::move(p), corrected<optim::AdamOptions>(o)); }},
    {"adamax", [](auto p, O o) { return made<optim::Adamax>(std::move(p), corrected<optim::AdamaxOptions>(o)); }},
    {"lamb", [](auto p, O o) { return made<optim::Lamb>(std::move(p), adaptive<optim::LambOptions>(o)); }},
    {"lion", [](auto p, O o) { return made<optim::Lion>(std::move(p), adaptive<optim::LionOptions>(o)); }},
    {"adagrad", [](auto p, O o) { return made<optim::Adagrad>(std::move(p), plain<optim::AdagradOptions>(o)); }},
    {"rmsprop",
     [](auto p, O o) {
       auto options = plain<optim::RmspropOptions>(o);
       options.alpha = o.beta2;
       return made<optim::RMSprop>(std::move(p), std::move(options));
     }},
    {"adadelta",
     [](auto p, O o) {
       auto options = plain<optim::AdadeltaOptions>(o);
       options.rho = o.beta2;
       return made<optim::AdaDelta>(std::move(p), std::move(options));
     }},
    {"adafactor",  // the rate is the schedule's
     [](auto p, O o) {
       auto options = plain<optim::AdafactorOptions>(o);
       options.relative_step = false;
       return made<optim::Adafactor>(std::move(p), std::move(options));
     }},
    {"sgd",
     [](auto p, O o) {
       auto options = plain<optim::SgdOptions>(o);
       options.momentum = o.beta1;
       return made<optim::SGD>(std::move(p), std::move(options));
     }},
    {"muon",
     [](auto p, O o) {
       auto options = plain<optim::MuonOptions>(o);
       options.momentum = o.beta1;
       return made<optim::Muon>(std::move(p), std::move(options));
     }},
};

}  // namespace

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const OptimizerRow& row : rows) names.emplace_back(row.name);
  return names;
}

std::unique_ptr<optim::Optimizer> make_optimizer(optim::Parameters parameters, const TrainOptions& options) {
  for (const OptimizerRow& row : rows)
    if (options.optimizer == row.name) return row.make(std::move(parameters), options);
  throw UsageError("there is no optimizer " + options.optimizer);
}

}  // namespace weft::tool
