#pragma once
// Softmax attention by online softmax (Dao, 2022; 2023), and its derivative, as kernels of the kernel language: memory
// for rows, none for scores.
//
//   t = score(scale · q kᵀ) (+ mask), -inf where hidden; l = log Σ exp t, p = exp(t - l), o = p v
//   with dropout d = p m / (1 - rate) in place of p in o and dv, and g vᵀ m / (1 - rate) in place of g vᵀ, m in {0, 1}
//   delta = Σ g o, ds = p (g vᵀ - delta) · score', dq = scale · ds k, dk = scale · dsᵀ q, dv = pᵀ g
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "target/machine.h"
#include "weft/kernel.h"
#include "weft/shape.h"

namespace weft::kernels {

/// Where an array lies: element (batch…, row, column) at offset + Σ index · stride of a buffer, in elements. What has
/// an entry a row has no columns. Buffers are numbered by the caller; -1: the array is absent.
struct AttentionArray {
  int buffer = -1;
  Dtype dtype = float32;
  int64_t offset = 0;
  std::vector<int64_t> batch;
  int64_t row = 0, column = 0;
  explicit operator bool() const { return buffer >= 0; }
};

/// Which scores a tile has: the queries and the keys, which broadcast to its shape (either may run along rows), and the
/// index along each batch axis.
struct ScoreIndex {
  k::Tile<k::i32, 2> query, key;
  std::vector<k::Index> batch;
};

/// A function of the scaled scores, by tiles of them; hidden ones become -inf. `cotangent` gives that of the scores
/// from the scores and the cotangent of the result; null where it is the same.
struct ScoreFunction {
  using Scores = k::Tile<float, 2>;
  std::function<Scores(const Scores& s, const ScoreIndex& at)> value;
  std::function<Scores(const Scores& s, const Scores& cotangent, const ScoreIndex& at)> cotangent;
};
/// Returns cap · tanh(s / cap).
ScoreFunction soft_cap(double cap);
/// Returns s - 2^(-8 (head + 1) / heads) · |query - key|, the head being the index along batch axis `axis` (ALiBi).
ScoreFunction alibi(size_t axis, int64_t heads);

/// Attention: q [batch…, queries, width], k [batch…, keys, width], v [batch…, keys, value_width]. Heads that share keys
/// have stride 0 in k and v.
struct Attention {
  static constexpr int64_t all = std::numeric_limits<int64_t>::max();
  Dtype dtype = bfloat16;  // float16, bfloat16 or float32
  bool tf32 = false;       // products of float32 round their operands
  bool widened = false;    // 16-bit operands are widened, and scores are not rounded to their dtype: of CPUs
  std::vector<int64_t> batch;
  Dim queries = 0, keys = 0;  // dynamic ones are run-time scalars of the kernels
  int64_t width = 0, value_width = 0;
  double scale = 1;
  // Query i sees the keys from i - before to i + after; causal: after = keys - queries.
  int64_t before = all, after = all;
  ScoreFunction score;
  /// The share of weights that become 0. `key` holds two words, a pair for each index along the first `keyed` batch
  /// axes; kernel/describe/dropout.h says which weights they keep.
  double dropout = 0;
  AttentionArray key;
  size_t keyed = 0;
  AttentionArray q, k, v;
  AttentionArray mask;  // [queries, keys], bool or floats; or an integer, the number of keys that are seen
  AttentionArray o, lse;
  AttentionArray g, delta;  // of the derivative: the cotangent of o, and sums of rows, in float32
  AttentionArray dq, dk, dv;
};

/// What blocks are chosen by. `warpgroups`: products are multiplied by groups of 128 threads (wgmma). `cores` > 0: a
/// CPU, whose cores run a program each.
struct AttentionLimits {
  int64_t shared_bytes = 0;  // of a program
  bool warpgroups = false;
  int64_t cores = 0;
};
/// Returns those of programs on a machine.
AttentionLimits attention_limits(const target::Machine& machine);

/// Rows that a program, and an iteration of its loop, take. `keys_first`: tiles of scores are [keys, queries]. CPUs
/// have what a loop keeps in columns: it is packed once, and the forward kernel's softmax works across rows.
/// Of a GPU: `overlapped` multiplies exponentials of one block by values while those of the next one are computed;
/// `longest_first` has the long programs of several heads before short ones; `persistent` has blocks of the GPU take
/// programs in turns, where they copy by TMA.
struct AttentionBlocks {
  int64_t queries = 0, keys = 0;
  bool keys_first = false, overlapped = false, longest_first = false, persistent = false;
  friend bool operator==(const AttentionBlocks&, const AttentionBlocks&) = default;
};
AttentionBlocks forward_blocks(const Attention& a, const AttentionLimits& limits);
/// Returns such blocks with what follows from them for a GPU's forward kernel.
AttentionBlocks scheduled(const Attention& a, AttentionBlocks blocks, const AttentionLimits& limits);
/// Returns whether a program of the forward kernel has registers and shared memory for such blocks.
bool forward_fits(const Attention& a, const AttentionBlocks& blocks, const AttentionLimits& limits);
AttentionBlocks queries_blocks(const Attention& a, const AttentionLimits& limits);
/// Returns the blocks of dK and dV; of queries 0 where the sums of both do not fit into registers together.
AttentionBlocks keys_blocks(const Attention& a, const AttentionLimits& limits, bool dk, bool dv);
/// Returns whether programs of the derivative have registers and shared memory for their blocks, dK and dV together.
bool backward_fits(const Attention& a, const AttentionLimits& limits);

/// A kernel, and the buffer of each of its parameters.
struct AttentionKernel {
  k::Program program;  // its symbols are those of the lengths
  std::vector<int> buffers;
};
/// Writes o, and lse where it is present.
AttentionKernel attention_forward(const Attention& a, const AttentionBlocks& blocks);
/// Writes delta from o and g.
AttentionKernel attention_delta(const Attention& a);
/// Writes dq from q, k, v, mask, lse, g and delta.
AttentionKernel attention_queries(const Attention& a, const AttentionBlocks& blocks);
/// Writes those of dk and dv that are present. What has stride 0 along a batch axis is summed over it.
AttentionKernel attention_keys(const Attention& a, const AttentionBlocks& blocks);

/// Writes dq, dk and dv, all of them: a program has all queries and keys of a batch index, and the sums of dq in
/// scratch. Five products where the two kernels above take seven, in fewer programs.
AttentionKernel attention_together(const Attention& a, const AttentionBlocks& blocks);

/// Returns all kernels of the derivative in their order: delta, then those of the cotangents that are present.
std::vector<AttentionKernel> attention_backward(const Attention& a, const AttentionLimits& limits);

}  // namespace weft::kernels
