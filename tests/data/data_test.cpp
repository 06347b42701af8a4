#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <numeric>

#include "weft/data.h"
#include "weft/io.h"

using namespace weft;
using namespace weft::data;

namespace {

std::vector<int32_t> counting(int n) {
  std::vector<int32_t> out(static_cast<size_t>(n));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

}  // namespace

TEST_CASE("CounterRandom: a pure function, evenly spread") {
  const CounterRandom a(7), b(7), other(8);
  CHECK(a.bits(123) == b.bits(123));
  CHECK(a.bits(123) != other.bits(123));
  CHECK(a.bits(0) != a.bits(1));
  // Fixed for ever: batches of old runs must come back.
  CHECK(CounterRandom(0).bits(0) == 0xa706dd2f4d197e6fu);
  CHECK(CounterRandom(1337).bits(42) == 0xe12ea77365734697u);
  CHECK(CounterRandom(1337).below(7, 1003790) == 675917);
  std::vector<int> counts(10, 0);
  double mean = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) {
    ++counts[a.below(static_cast<uint64_t>(i), 10)];
    const double u = a.uniform(static_cast<uint64_t>(i));
    CHECK_UNARY(u >= 0 && u < 1);
    mean += u / n;
  }
  double chi = 0;
  for (const int c : counts) chi += (c - n / 10.0) * (c - n / 10.0) / (n / 10.0);
  CHECK(chi < 27.9);  // 9 degrees of freedom, p = 0.001
  CHECK(std::abs(mean - 0.5) < 0.005);
  CHECK(a.below(5, 1) == 0);
}

TEST_CASE("random batches: windows with their successors, a function of seed and number") {
  const TokenDataset set(counting(1000), 1000);
  CHECK(set.size() == 1000);
  CHECK(set[999] == 999);
  const Batch b = set.random_batch(1, 5, 4, 8);
  CHECK(b.inputs.shape() == Shape{4, 8});
  CHECK(b.inputs.dtype() == int32);
  const auto x = b.inputs.to_vector<int32_t>(), y = b.targets.to_vector<int32_t>();
  for (size_t i = 0; i < x.size(); ++i) {
    CHECK(y[i] == x[i] + 1);
    if (i % 8) CHECK(x[i] == x[i - 1] + 1);
  }
  CHECK(set.random_batch(1, 5, 4, 8).inputs.to_vector<int32_t>() == x);
  CHECK(TokenDataset(counting(1000), 1000).random_batch(1, 5, 4, 8).inputs.to_vector<int32_t>() == x);
  CHECK(set.random_batch(1, 6, 4, 8).inputs.to_vector<int32_t>() != x);
  CHECK(set.random_batch(2, 5, 4, 8).inputs.to_vector<int32_t>() != x);
}

TEST_CASE("random batches reach every place, the first and the last included") {
  const TokenDataset set(counting(12), 12);
  std::vector<int> starts(12, 0);
  for (int k = 0; k < 200; ++k) {
    const auto x = set.random_batch(3, k, 2, 4).inputs.to_vector<int32_t>();
    ++starts[static_cast<size_t>(x[0])];
    ++starts[static_cast<size_t>(x[4])];
  }
  for (size_t s = 0; s < 12; ++s) CHECK((starts[s] > 0) == (s < 8));  // 8 windows of 4 + 1 tokens
  CHECK_NOTHROW(TokenDataset(counting(5), 5).random_batch(0, 0, 1, 4));
  CHECK_THROWS_WITH_AS(
      TokenDataset(counting(4), 4).random_batch(0, 0, 1, 4),
      "[random_batch] the text has 4 tokens; windows of 4 need at least 5: take a longer text or a shorter context",
      std::invalid_argument);
  CHECK_THROWS_AS(set.random_batch(0, 0, 0, 4), std::invalid_argument);
}

TEST_CASE("evaluation windows hold every target once") {
  for (const int size : {2, 3, 9, 10, 24, 25, 26, 100}) {
    CAPTURE(size);
    const TokenDataset set(counting(size), size);
    std::vector<int> seen(static_cast<size_t>(size), 0);
    int64_t tokens = 0;
    for (int64_t k = 0; k < set.eval_batches(3, 4); ++k) {
      const EvalBatch b = set.eval_batch(k, 3, 4);
      CHECK(b.inputs.shape() == Shape{3, 4});
      const auto x = b.inputs.to_vector<int32_t>(), y = b.targets.to_vector<int32_t>();
      const auto mask = b.mask.to_vector<float>();
      tokens += b.tokens;
      int64_t here = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        if (mask[i] == 0) continue;
        CHECK(mask[i] == 1);
        CHECK(y[i] == x[i] + 1);
        ++seen[static_cast<size_t>(y[i])];
        ++here;
      }
      CHECK(here == b.tokens);
      CHECK(here > 0);
    }
    CHECK(tokens == size - 1);
    CHECK(seen[0] == 0);
    for (size_t i = 1; i < seen.size(); ++i) CHECK(seen[i] == 1);
  }
  CHECK_THROWS_AS(TokenDataset(counting(1), 1).eval_batches(1, 4), std::invalid_argument);
  CHECK_THROWS_AS(TokenDataset(counting(9), 9).eval_batch(1, 2, 4), std::out_of_range);
}

TEST_CASE("split, wide vocabularies, tokens out of range") {
  const auto ids = counting(101);
  const Split split = split_tokens(ids, 101);
  CHECK(split.train.size() == 90);
  CHECK(split.validation.size() == 11);
  CHECK(split.validation[0] == 90);
  CHECK_THROWS_AS(split_tokens(ids, 101, 1.0), std::invalid_argument);
  const std::vector<int32_t> wide{70000, 1, 65536}, high{65535};
  CHECK(TokenDataset(wide, 70001)[0] == 70000);
  CHECK(TokenDataset(wide, 70001).size() == 3);
  CHECK(TokenDataset(high, 65536)[0] == 65535);
  CHECK_THROWS_WITH_AS(TokenDataset(wide, 70000),
                       "[TokenDataset] token 70000 at position 0 is outside the vocabulary of 70000",
                       std::invalid_argument);
  const std::vector<int32_t> negative{-1};
  CHECK_THROWS_AS(TokenDataset(negative, 10), std::invalid_argument);
}

TEST_CASE("tinyshakespeare: nanoGPT's 1,003,854 and 111,540 tokens") {
  const std::string file = std::string(WEFT_TEST_DATA) + "/text/tinyshakespeare.txt";
  if (!std::filesystem::exists(file)) {
    MESSAGE("skipped: no " << file);
    return;
  }
  const std::string content = io::read_file(file);
  const text::CharTokenizer tokenizer(content);
  const Split split = split_tokens(tokenizer.encode(content), tokenizer.vocab_size());
  CHECK(split.train.size() == 1003854);
  CHECK(split.validation.size() == 111540);
}
