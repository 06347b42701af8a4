#pragma once
// Short training runs: their texts and their options.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tools/weft/train/train_options.h"

namespace weft::tool::test {

inline std::string rhyme() {
  std::string out;
  for (int i = 0; i < 60; ++i) out += "the cat sat on the mat, and the dog sat on the log.\n";
  return out;
}

/// The beginning of Shakespeare's works, where it is there; else the rhyme.
inline std::string real_text() {
  const std::string path = std::string(WEFT_TEST_DATA) + "/text/tinyshakespeare.txt";
  std::ifstream file(path);
  if (!file) {
    MESSAGE("without " << path << " a rhyme does");
    return rhyme();
  }
  std::string text(60'000, ' ');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
}

inline TrainOptions tiny(const std::string& out, double dropout = 0) {
  TrainOptions o;
  o.data = "rhyme.txt";
  o.layers = 1, o.heads = 2, o.width = 16, o.context = 8, o.batch = 4, o.steps = 12;
  o.lr = 1e-2, o.min_lr = 1e-3, o.warmup = 2, o.dropout = dropout;
  o.eval_every = 4, o.eval_batches = 2, o.checkpoint_every = 5;
  o.out = out;
  return o;
}

}  // namespace weft::tool::test
