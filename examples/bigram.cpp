// A bigram model of characters: the logits of the next character are a row of a table. Trained by gradient descent,
// it must reach the loss that counting gives, which is the best a bigram model can do.
//
// Shows: arrays, value_and_grad on a function of arrays, gather, reductions; no modules, no optimizer.
#include <cmath>
#include <iostream>
#include <map>
#include <string>
#include <utility>

#include <weft/weft.h>

using weft::array;

namespace {

const std::string text =
    "the quick brown fox jumps over the lazy dog while the other fox sleeps under the old oak tree and the dog dreams "
    "of the fox ";

/// By the text's own conditional frequencies: the mean of -log p(next | this).
double loss_of_counting(const std::vector<int>& from, const std::vector<int>& to) {
  std::map<int, double> singles;
  std::map<std::pair<int, int>, double> pairs;
  for (size_t i = 0; i < from.size(); ++i) {
    ++singles[from[i]];
    ++pairs[{from[i], to[i]}];
  }
  double total = 0;
  for (const auto& [pair, count] : pairs) total -= count * std::log(count / singles[pair.first]);
  return total / static_cast<double>(from.size());
}

}  // namespace

int main() {
  const weft::text::CharTokenizer tokenizer(text);
  const std::vector<int> ids = tokenizer.encode(text);
  const std::vector<int> from(ids.begin(), ids.end() - 1), to(ids.begin() + 1, ids.end());
  const auto count = static_cast<int64_t>(from.size());
  const int64_t vocabulary = tokenizer.vocab_size();

  const array inputs(from.begin(), {count}), targets(to.begin(), {count});
  const auto loss_and_grad = weft::value_and_grad([&](const array& table) {
    return weft::nn::losses::cross_entropy(weft::take(table, inputs, 0), targets, weft::nn::losses::Reduction::mean);
  });

  array table = weft::zeros({vocabulary, vocabulary});
  array loss = 0;
  for (int step = 0; step < 400; ++step) {
    auto [value, gradient] = loss_and_grad(table);
    loss = value;
    table = table - 20.0f * gradient;
    weft::eval(loss, table);
    if (step % 100 == 0) std::cout << "step " << step << "  loss " << loss.item<float>() << "\n";
  }
  const double best = loss_of_counting(from, to);
  std::cout << "loss " << loss.item<float>() << ", by counting " << best << "\n";
  return std::abs(loss.item<float>() - best) < 0.05 ? 0 : 1;
}
