// Twenty steps of every rule in its functional form, with the parameters and states of MLX 0.32.4
// (tests/python/golden/optimizers.npz), and MLX's schedules in their form of arrays.
#include <functional>
#include <map>
#include <sstream>

#include "optim/support.h"
#include "weft/io.h"

using namespace weft;
using namespace weft::optim;

namespace {

using Golden = std::map<std::string, std::vector<float>>;
using Made = std::shared_ptr<Optimizer>;

/// The shapes of a dict's shapes: "2,3" is (2, 3).
Shape parsed(const std::string& extents) {
  Shape shape;
  std::istringstream in(extents);
  for (std::string extent; std::getline(in, extent, ',');) shape.emplace_back(std::stoll(extent));
  return shape;
}

struct File {
  Golden values;
  std::map<std::string, Shape> shapes;
};

const File& file() {
  static const File read = [] {
    const auto arrays = load_npz(WEFT_SOURCE_DIR "/tests/python/golden/optimizers.npz");
    const auto letters = arrays.at("index").to_vector<uint8_t>();
    const auto numbers = arrays.at("numbers").to_vector<float>();
    File out;
    std::istringstream index(std::string(letters.begin(), letters.end()));
    auto at = numbers.begin();
    for (std::string line; std::getline(index, line);) {
      const size_t first = line.find('\t'), second = line.find('\t', first + 1);
      const Shape shape = parsed(line.substr(second + 1));
      const std::string title = line.substr(0, first);
      out.values[title] = {at, at + num_elements(shape)};
      out.shapes.emplace(title, shape);
      at += num_elements(shape);
    }
    return out;
  }();
  return read;
}

array input(const std::string& title) {
  return array::from_data(file().values.at(title).data(), file().shapes.at(title), float32);
}

const char* const names[] = {"vector", "wide", "tall", "cube", "scalar"};

/// Returns {"parameters": …, "state": …} after twenty steps.
Tree walked(Optimizer& optimizer) {
  Tree parameters;
  for (const char* name : names) parameters[name] = input(std::string("parameter/") + name);
  for (int step = 0; step < 20; ++step) {
    Tree gradients;
    for (const char* name : names) gradients[name] = take(input(std::string("gradient/") + name), array(step), 0);
    parameters = optimizer.apply_gradients(gradients, parameters);
    eval(tree_leaves(Tree::list({parameters, optimizer.state_tree()})));
  }
  return Tree::dict({{"parameters", parameters}, {"state", optimizer.state_tree()}});
}

/// Holds all numbers of MLX under a title against those of an optimizer, but for states that it does not keep.
void check_case(const std::string& title, const Made& optimizer, bool keeps_state = true) {
  INFO(title);
  const auto found = tree_to_map(walked(*optimizer));
  size_t compared = 0;
  for (auto it = file().values.lower_bound(title + "/"); it != file().values.end(); ++it) {
    if (it->first.rfind(title + "/", 0) != 0) break;
    const std::string path = it->first.substr(title.size() + 1);
    if (!keeps_state && path.size() > 2 && path.ends_with(".v")) continue;
    INFO(path);
    REQUIRE(found.contains(path));
    const double scale = path.starts_with("state") ? 1e-3 : 1;
    const auto got = found.at(path).to_vector<float>();
    REQUIRE(got.size() == it->second.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const double expected = static_cast<double>(it->second[i]);
      CHECK(std::abs(static_cast<double>(got[i]) - expected) <= 2e-5 * (std::abs(expected) + scale));
    }
    ++compared;
  }
  CHECK(compared >= 6);
}

template <class T, class Options>
void check_rule(const std::string& title, const Options& options, bool keeps_state = true) {
  Options constant = options, scheduled = options;
  constant.learning_rate = 0.01f;
  scheduled.learning_rate = linear_schedule(0.01f, 0.001f, 10);
  check_case(title + "/float32", std::make_shared<T>(constant), keeps_state);
  if (file().values.contains(title + "/schedule/parameters.vector"))
    check_case(title + "/schedule", std::make_shared<T>(scheduled), keeps_state);
}

const char* python(bool value) { return value ? "True" : "False"; }

}  // namespace

TEST_CASE("functional form, MLX's values: SGD, Lion, Muon") {
  for (const bool momentum : {false, true})
    for (const bool decay : {false, true})
      for (const bool dampening : {false, true})
        for (const bool nesterov : {false, true}) {
          if (nesterov && (!momentum || dampening)) continue;
          const std::string title = std::string("SGD(momentum=") + (momentum ? "0.9" : "0.0") +
                                    ",weight_decay=" + (decay ? "0.1" : "0.0") +
                                    ",dampening=" + (dampening ? "0.3" : "0.0") + ",nesterov=" + python(nesterov) + ")";
          check_rule<SGD>(title,
                          SgdOptions{.momentum = momentum ? 0.9 : 0,
                                     .weight_decay = decay ? 0.1 : 0,
                                     .nesterov = nesterov,
                                     .dampening = dampening ? 0.3 : 0},
                          momentum);
        }
  check_rule<Lion>("Lion()", LionOptions{});
  check_rule<Lion>("Lion(betas=(0.5, 0.6),weight_decay=0.1)",
                   LionOptions{.beta1 = 0.5, .beta2 = 0.6, .weight_decay = 0.1});
  check_rule<Muon>("Muon(nesterov=True)", MuonOptions{});
  check_rule<Muon>("Muon(nesterov=False)", MuonOptions{.nesterov = false});
  check_rule<Muon>("Muon(momentum=0.8,weight_decay=0.0,ns_steps=3)",
                   MuonOptions{.momentum = 0.8, .weight_decay = 0, .ns_steps = 3});
}

TEST_CASE("functional form, MLX's values: adaptive rules") {
  for (const bool correction : {false, true}) {
    const std::string end = std::string("bias_correction=") + python(correction) + ")";
    check_rule<Adam>("Adam(" + end, AdamOptions{.bias_correction = correction});
    check_rule<Adam>("Adam(betas=(0.7, 0.9),eps=0.001," + end,
                     AdamOptions{.beta1 = 0.7, .beta2 = 0.9, .eps = 1e-3, .bias_correction = correction});
    check_rule<AdamW>("AdamW(" + end, AdamWOptions{.bias_correction = correction});
    check_rule<AdamW>("AdamW(weight_decay=0.5," + end,
                      AdamWOptions{.weight_decay = 0.5, .bias_correction = correction});
  }
  check_rule<RMSprop>("RMSprop()", RmspropOptions{});
  check_rule<RMSprop>("RMSprop(alpha=0.9,eps=0.001)", RmspropOptions{.alpha = 0.9, .eps = 1e-3});
  check_rule<Adagrad>("Adagrad()", AdagradOptions{});
  check_rule<Adagrad>("Adagrad(eps=0.01)", AdagradOptions{.eps = 1e-2});
  check_rule<AdaDelta>("AdaDelta()", AdadeltaOptions{});
  check_rule<AdaDelta>("AdaDelta(rho=0.5,eps=0.0001)", AdadeltaOptions{.rho = 0.5, .eps = 1e-4});
  check_rule<Adamax>("Adamax()", AdamaxOptions{});
}

TEST_CASE("functional form, MLX's values: Adafactor") {
  for (const bool relative : {false, true})
    for (const bool scale : {false, true})
      for (const bool mean : {false, true}) {
        const std::string title = std::string("Adafactor(relative_step=") + python(relative) +
                                  ",scale_parameter=" + python(scale) + ",beta_1=" + (mean ? "0.9" : "None") + ")";
        AdafactorOptions options{.scale_parameter = scale, .relative_step = relative};
        if (mean) options.beta1 = 0.9;
        check_rule<Adafactor>(title, options);
      }
  check_rule<Adafactor>("Adafactor(warmup_init=True,weight_decay=0.1)",
                        AdafactorOptions{.weight_decay = 0.1, .warmup_init = true});
  check_rule<Adafactor>("Adafactor(decay_rate=-0.5,clip_threshold=0.5,eps=(1e-08, 0.01))",
                        AdafactorOptions{.eps1 = 1e-8, .eps2 = 1e-2, .clip_threshold = 0.5, .decay_rate = -0.5});
}

TEST_CASE("schedules of arrays, MLX's values") {
  const Schedule warm = linear_schedule(0.1f, 1.0f, 10), cool = cosine_decay(0.1f, 10),
                 steps = step_decay(0.1f, 0.5f, 3);
  const std::map<std::string, Schedule> schedules{{"exponential_decay", exponential_decay(0.1f, 0.9f)},
                                                  {"step_decay", steps},
                                                  {"cosine_decay", cool},
                                                  {"cosine_decay to end", cosine_decay(0.1f, 10, 0.01f)},
                                                  {"linear_schedule", warm},
                                                  {"linear_schedule down", linear_schedule(1, 0, 7)},
                                                  {"join_schedules", join_schedules({warm, cool, steps}, {4, 9})}};
  for (const auto& [title, schedule] : schedules) {
    INFO(title);
    CHECK(schedule.of_arrays());
    const std::vector<float>& expected = file().values.at("schedule/" + title);
    REQUIRE(expected.size() == 15);
    for (int k = 0; k < 15; ++k) {
      const double value = static_cast<double>(expected[static_cast<size_t>(k)]);
      const double bound = 1e-6 * std::abs(value) + 2e-8;
      CHECK(std::abs(static_cast<double>(schedule(array(k)).item<float>()) - value) <= bound);
      CHECK(std::abs(static_cast<double>(schedule(k)) - value) <= bound);
    }
  }
}
