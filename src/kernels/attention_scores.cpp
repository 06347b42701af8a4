// Where a tile of scores lies, and what depends on it: functions of scores that models have, and dropout.
#include "kernel/describe/dropout.h"
#include "kernels/attention.h"
#include "kernels/attention_tiles.h"

namespace weft::kernels {

using k::Index;
using Scores = k::Tile<float, 2>;

namespace {

k::Tile<k::i32, 2> positions(const Index& first, int64_t count, bool along_rows) {
  const auto at = k::cast<k::i32>(first) + k::arange<k::i32>(count);
  return along_rows ? k::col(at) : k::row(at);
}

}  // namespace

ScoreIndex scores_at(const AttentionFrame& f, const ScoreBlock& b) {
  return {positions(b.query, b.size.queries, !b.keys_first), positions(b.key, b.size.keys, b.keys_first), f.batch};
}

ScoreFunction soft_cap(double cap) {
  return {[cap](const Scores& s, const ScoreIndex&) -> Scores { return k::tanh(s * (1 / cap)) * cap; },
          [cap](const Scores& s, const Scores& cotangent, const ScoreIndex&) -> Scores {
            return cotangent * (1.0 - k::square(k::tanh(s * (1 / cap))));
          }};
}

ScoreFunction alibi(size_t axis, int64_t heads) {
  return {[axis, heads](const Scores& s, const ScoreIndex& at) -> Scores {
            const auto head = k::cast<float>(at.batch[axis]);
            const auto slope = k::exp2((head + 1.0) * (-8.0 / static_cast<double>(heads)));
            return s - k::cast<float>(k::abs(at.query - at.key)) * slope;
          },
          {}};
}

k::Tile<k::u64, 0> AttentionFrame::dropout_key() const {
  const auto word = [&](int64_t which) {
    std::vector<k::Span> at = batch_spans();
    at.push_back({.start = Index(which).any(), .squeezed = true});
    return k::Tile<k::u64, 0>(k::cast(k::load(view(a.key, 2, 0), at), uint64));
  };
  return word(0) + word(1) * (int64_t{1} << 32);
}

namespace {

/// Returns the number of the call of Philox for each weight of a tile.
template <class T>
k::Tile<T, 2> dropout_calls(const AttentionFrame& f, const ScoreIndex& at) {
  const Attention& a = f.a;
  const auto calls_of = [](int64_t rows) { return k::cdiv(rows, kernel::dropout_block) * (kernel::dropout_block / 2); };
  const auto within = [](const k::Tile<k::i32, 2>& position) -> k::Tile<T, 2> {
    const auto p = k::cast<k::u32>(position);
    return k::cast<T>((p >> 4) * 8 + (p & 7));
  };
  Index matrix = 0;
  for (size_t axis = a.keyed; axis < a.batch.size(); ++axis) matrix = matrix * a.batch[axis] + f.batch[axis];
  const int64_t queries = calls_of(a.queries.bound()), keys = calls_of(a.keys.bound());
  return (within(at.query) + k::cast<T>(matrix * queries)) * keys + within(at.key);
}

/// Returns whether the numbers of all calls fit into a word.
bool has_few_calls(const Attention& a) {
  double calls = static_cast<double>(a.queries.bound() + kernel::dropout_block) *
                 static_cast<double>(a.keys.bound() + kernel::dropout_block) / 4;
  for (size_t axis = a.keyed; axis < a.batch.size(); ++axis) calls *= static_cast<double>(a.batch[axis]);
  return calls < 0x1p32;
}

}  // namespace

Scores dropped(const AttentionFrame& f, const Scores& tile, const ScoreBlock& b) {
  if (f.a.dropout == 0) return tile;
  const ScoreIndex at = scores_at(f, b);
  const auto words = has_few_calls(f.a) ? k::philox(f.dropout_key(), dropout_calls<k::u32>(f, at))
                                        : k::philox(f.dropout_key(), dropout_calls<k::u64>(f, at));
  const auto second = [](const k::Tile<k::i32, 2>& position) { return (position & 8) != 0; };
  const k::Tile<k::u32, 2> low = k::where(second(at.key), words[1], words[0]),
                           high = k::where(second(at.key), words[3], words[2]);
  const k::Tile<k::u32, 2> word = k::where(second(at.query), high, low);
  return k::where(word < k::scalar<k::u32>(kernel::dropout_limit(f.a.dropout)), tile, 0.0f);
}

}  // namespace weft::kernels
