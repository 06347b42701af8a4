#include <iostream>
#include <weft/weft.h>

using namespace weft;

struct Mlp : nn::Module {
  nn::Linear up{*this, "up", 1, 64}, down{*this, "down", 64, 1};
  array operator()(const array& x) const { return down(nn::gelu(up(x))); }
};

int main() {
  Mlp model;
  optim::Adam optimizer(model.trainable_parameters(), {.learning_rate = 0.01f, .bias_correction = true});
  auto loss_and_grads = nn::value_and_grad(
      model, [&](const std::vector<array>& batch) { return mean(square(model(batch[0]) - batch[1])); });
  std::vector<array*> state = model.state();
  for (array* a : optimizer.state()) state.push_back(a);
  auto step = compile(
      [&](const std::vector<array>& batch) {  // forward, backward and update: one program
        auto [loss, grads] = loss_and_grads(batch);
        optimizer.update(grads);
        return std::vector<array>{loss};
      },
      {.state = state});

  array x = random::normal({256, 1}), y = sin(2 * x), loss = 1;
  for (int k = 0; k < 1000; ++k) loss = step({x, y})[0];  // traced and compiled in the first turn only
  std::cout << "loss " << loss.item<float>() << ", sin(2) is about " << model(array({1.0f}, {1, 1})).item<float>()
            << "\n";
  return loss.item<float>() < 0.02f ? 0 : 1;
}
