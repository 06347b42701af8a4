// Where the time of a function goes: the kernels of a layer, their times as predicted, then as measured.
#include <iostream>
#include <vector>

#include <weft/weft.h>

using weft::array;

int main() {
  const array x = weft::random::normal({512, 256}), w = weft::random::normal({256, 1024}), b = weft::zeros({1024});
  const auto layer = weft::compile([&](const std::vector<array>& in) {
    return std::vector<array>{weft::softmax(weft::nn::gelu(weft::addmm(b, in[0], w)), -1)};
  });
  std::cout << weft::explain(layer, {x});  // compiles it, and runs nothing
  const weft::KernelTable table = weft::profile(layer, {x}, 20);
  std::cout << table.by_work();

  double share = 0;
  for (const weft::KernelRow& row : table.rows) share += row.ms / table.ms();
  return table.rows.empty() || share < 0.999 ? 1 : 0;
}
