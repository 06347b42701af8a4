// Where a tile of scores lies, and what depends on it: functions of scores that models have, and dropout.
#include "kernel/describe/dropout.h"
#include "kernel/language/trace.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/tiles.h"

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

/// What a tile's positions along one axis give to the numbers of calls: the same for all of them, and of each.
template <class T>
struct CallNumbers {
  k::Tile<T, 0> shared;
  k::Tile<T, 2> own;
};

/// Where a tile is known to begin with a block, what its positions have of their own does not depend on the iteration,
/// and compilers of GPUs see that positions 8 apart have the same call.
template <class T>
CallNumbers<T> call_numbers(const Index& first, int64_t count, bool along_rows) {
  const k::Trace& trace = k::Trace::current("dropout", k::Line::here());
  const bool begins_block = trace.known(trace.value(first.any(), {})).divisor % kernel::dropout_block == 0;
  const k::Tile<k::i64, 1> at = k::arange(count), position = begins_block ? at : at + first;
  const k::Tile<T, 1> own = k::cast<T>(position | (kernel::dropout_block / 2));
  return {begins_block ? k::cast<T>(first) : k::scalar<T>(0), along_rows ? k::col(own) : k::row(own)};
}

/// Returns the number of the call of Philox for each weight of a tile.
template <class T>
k::Tile<T, 2> dropout_calls(const AttentionFrame& f, const ScoreBlock& b) {
  const Attention& a = f.a;
  const auto padded = [](const Dim& n) { return k::cdiv(n.bound(), kernel::dropout_block) * kernel::dropout_block; };
  Index matrix = 0;
  for (size_t axis = a.keyed; axis < a.batch.size(); ++axis) matrix = matrix * a.batch[axis] + f.batch[axis];
  const CallNumbers<T> query = call_numbers<T>(b.query, b.size.queries, !b.keys_first),
                       key = call_numbers<T>(b.key, b.size.keys, b.keys_first);
  const k::Tile<T, 0> shared = (k::cast<T>(matrix * padded(a.queries)) + query.shared) * padded(a.keys) + key.shared;
  return (query.own * padded(a.keys) + shared) + key.own;
}

/// Returns whether the numbers of all calls fit into a word.
bool has_few_calls(const Attention& a) {
  double calls = static_cast<double>(a.queries.bound() + kernel::dropout_block) *
                 static_cast<double>(a.keys.bound() + kernel::dropout_block);
  for (size_t axis = a.keyed; axis < a.batch.size(); ++axis) calls *= static_cast<double>(a.batch[axis]);
  return calls < 0x1p32;
}

}  // namespace

Scores dropped(const AttentionFrame& f, const Scores& tile, const ScoreBlock& b) {
  if (f.a.dropout == 0) return tile;
  const ScoreIndex at = scores_at(f, b);
  const auto words = has_few_calls(f.a) ? k::philox(f.dropout_key(), dropout_calls<k::u32>(f, b))
                                        : k::philox(f.dropout_key(), dropout_calls<k::u64>(f, b));
  const auto second = [](const k::Tile<k::i32, 2>& position) { return (position & 8) != 0; };
  const k::Tile<k::u32, 2> low = k::where(second(at.key), words[1], words[0]),
                           high = k::where(second(at.key), words[3], words[2]);
  const k::Tile<k::u32, 2> word = k::where(second(at.query), high, low);
  return k::where(word < k::scalar<k::u32>(kernel::dropout_limit(f.a.dropout)), tile, 0.0f);
}

}  // namespace weft::kernels
