// An MLP that reads three characters and guesses the fourth (Bengio et al. 2003), on a handful of place names; then it
// writes some.
//
// Shows: a module with an embedding, a compiled train step with the optimizer's state, sampling with random keys,
// weights in a file.
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include <weft/weft.h>

using weft::array;
namespace nn = weft::nn;

namespace {

const std::vector<std::string> names = {
    "amsterdam", "antwerp",   "barcelona", "berlin", "bologna", "bremen",   "cologne",  "copenhagen", "dresden",
    "florence",  "gdansk",    "geneva",    "genoa",  "granada", "hamburg",  "helsinki", "lisbon",     "london",
    "madrid",    "marseille", "milan",     "munich", "naples",  "oslo",     "palermo",  "paris",      "porto",
    "prague",    "rotterdam", "seville",   "sofia",  "turin",   "valencia", "venice",   "vienna",     "warsaw"};
constexpr int reach = 3;                                     // characters that are seen
const std::string alphabet = ".abcdefghijklmnopqrstuvwxyz";  // '.' before and after a name

struct NextCharacter : nn::Module {
  nn::Embedding letters{*this, "letters", 27, 12};
  nn::Linear hidden{*this, "hidden", reach * 12, 96};
  nn::Linear out{*this, "out", 96, 27};

  /// Contexts int32 [n, reach] → logits [n, 27].
  array operator()(const array& contexts) const {
    const array seen = weft::reshape(letters(contexts), {contexts.shape(0), reach * 12});
    return out(weft::tanh(hidden(seen)));
  }
};

std::vector<array> examples() {
  std::vector<int> contexts, next;
  for (const auto& name : names) {
    std::vector<int> window(reach, 0);
    for (const char c : name + ".") {
      contexts.insert(contexts.end(), window.begin(), window.end());
      next.push_back(static_cast<int>(alphabet.find(c)));
      window.erase(window.begin());
      window.push_back(next.back());
    }
  }
  const auto n = static_cast<int64_t>(next.size());
  return {array(contexts.begin(), {n, reach}), array(next.begin(), {n})};
}

std::string invent(const NextCharacter& model) {
  std::string name;
  std::vector<int> window(reach, 0);
  while (name.size() < 20) {
    const array logits = model(array(window.begin(), {1, reach}));
    const auto letter = weft::random::categorical(logits).item<uint32_t>();
    if (letter == 0) break;
    name += alphabet[letter];
    window.erase(window.begin());
    window.push_back(static_cast<int>(letter));
  }
  return name;
}

}  // namespace

int main() {
  weft::random::seed(1);
  NextCharacter model;
  std::cout << model;
  weft::optim::AdamW optimizer(model.trainable_parameters(),
                               {.learning_rate = 0.01f, .decays = weft::optim::is_matrix, .bias_correction = true});
  const auto loss_and_grads = nn::value_and_grad(model, [&](const std::vector<array>& batch) {
    return nn::losses::cross_entropy(model(batch[0]), batch[1], nn::losses::Reduction::mean);
  });
  std::vector<array*> state = model.state();
  for (array* a : optimizer.state()) state.push_back(a);
  const auto step = weft::compile(
      [&](const std::vector<array>& batch) {
        const auto [loss, grads] = loss_and_grads(batch);
        optimizer.update(grads);
        return std::vector<array>{loss};
      },
      {.state = state});

  const std::vector<array> batch = examples();
  float loss = 0;
  for (int k = 0; k <= 300; ++k) {
    loss = step(batch)[0].item<float>();
    if (k % 100 == 0) std::cout << "step " << k << "  loss " << loss << "\n";
  }
  const std::string file = "example_names.safetensors";
  model.save_weights(file);
  NextCharacter again;
  again.load_weights(file);
  std::remove(file.c_str());
  for (int i = 0; i < 5; ++i) std::cout << invent(again) << "\n";
  return loss < 0.7f ? 0 : 1;
}
