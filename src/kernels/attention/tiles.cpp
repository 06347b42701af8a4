#include "kernels/attention/tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "kernel/language/trace.h"

namespace weft::kernels {

using k::Index;
using Scores = k::Tile<float, 2>;

void check_attention(const Attention& a, const char* what) {
  if (a.dtype != bfloat16 && a.dtype != float16 && a.dtype != float32)
    throw_invalid(
        what, fmt::format("it computes float16, bfloat16 and float32, not {}: cast the operands", dtype_name(a.dtype)));
  if (a.queries.bound() < 1 || a.keys.bound() < 1 || a.width < 1 || a.value_width < 1)
    throw_invalid(what, fmt::format("needs queries, keys and columns, got q [{}, {}] and v [{}, {}]", a.queries.bound(),
                                    a.width, a.keys.bound(), a.value_width));
  if (a.dropout > 0 && !a.key) throw_invalid(what, "dropout needs a key: two words");
  for (const AttentionArray* x : {&a.q, &a.k, &a.v, &a.mask, &a.key, &a.o, &a.lse, &a.g, &a.delta, &a.dq, &a.dk, &a.dv})
    if (*x && x->batch.size() != a.batch.size())
      throw_invalid(what, fmt::format("an array has strides for {} batch axes of {}: give one for each",
                                      x->batch.size(), a.batch.size()));
}

int axis_of_blocks(const Attention& a, const AttentionBlocks& blocks) {
  constexpr int64_t several = 8;
  auto axis = a.batch.size();
  if (!blocks.longest_first) return static_cast<int>(axis);
  for (int64_t heads = 1; axis > 0 && heads < several;) heads *= a.batch[--axis];
  return static_cast<int>(axis);
}

std::vector<Index> batch_ids(const Attention& a, int axis_of_blocks) {
  std::vector<Index> out;
  for (int axis = 0; axis < static_cast<int>(a.batch.size()); ++axis)
    out.push_back(k::program_id(axis < axis_of_blocks ? axis : axis + 1));
  return out;
}

Index number_of_block(int axis, bool reversed, bool persistent) {
  Index number = k::program_id(axis);
  const Index last = k::program_count(axis) - 1;
  // Blocks of a GPU that take programs in turns have long ones of one batch index and short ones of the next, however
  // many there are between two of their programs.
  if (persistent && axis > 0) {
    number = number + k::mod(k::program_id(axis - 1), 2) * (last - number * 2);
    number = k::minimum(k::maximum(number, 0), last);  // as the language knows it of the program's number
  }
  return reversed ? last - number : number;
}

k::Grid grid_of_queries(const Attention& a, const AttentionBlocks& blocks) {
  k::Grid grid(a.batch.begin(), a.batch.end());
  grid.insert(grid.begin() + axis_of_blocks(a, blocks), k::cdiv(k::extent(a.queries), blocks.queries));
  return grid;
}

Index first_query(const Attention& a, const AttentionBlocks& blocks) {
  const bool causal = a.after != Attention::all;
  return number_of_block(axis_of_blocks(a, blocks), causal, blocks.persistent) * blocks.queries;
}

AttentionKernel launched(const k::Program& program, const AttentionParams& params, const AttentionBlocks& blocks) {
  constexpr int where_possible = 3;
  auto data = std::make_shared<k::Program::Data>(program.data());
  if (blocks.persistent) data->kernel.launch.persistent = where_possible;
  return {k::Program(std::move(data)), params.buffers()};
}

AttentionParams::AttentionParams(const Attention& a, const std::vector<Use>& uses) {
  for (const Use& use : uses) {
    const AttentionArray& x = *use.array;
    if (!x) continue;
    int64_t reach = x.offset + 1;
    const auto extend = [&](int64_t extent, int64_t stride) { reach += std::max<int64_t>(0, (extent - 1) * stride); };
    for (size_t axis = 0; axis < a.batch.size(); ++axis) extend(a.batch[axis], x.batch[axis]);
    extend(use.rows.bound(), x.row);
    if (use.columns > 0) extend(use.columns, x.column);
    const auto found = std::find(buffers_.begin(), buffers_.end(), x.buffer);
    if (found == buffers_.end()) {
      buffers_.push_back(x.buffer);
      // What is written may be parts of a larger array: the rest stays.
      params_.push_back({use.written ? k::Use::in_out : k::Use::in, x.dtype, {reach}});
      continue;
    }
    k::Param& p = params_[static_cast<size_t>(found - buffers_.begin())];
    p.dims[0] = std::max(p.dims[0], reach);
  }
}

size_t AttentionParams::of(const AttentionArray& array) const {
  return static_cast<size_t>(std::find(buffers_.begin(), buffers_.end(), array.buffer) - buffers_.begin());
}

k::AnyRef AttentionFrame::view(const AttentionArray& x, const Dim& rows, int64_t columns) const {
  k::AnyRef out = refs_[params_.of(x)];
  out.offset = x.offset;
  out.dims = a.batch, out.strides = x.batch;
  out.dims.push_back(rows.bound()), out.strides.push_back(x.row);
  if (columns > 0) out.dims.push_back(columns), out.strides.push_back(x.column);
  return rows.is_static() ? out : out.limit(static_cast<int>(a.batch.size()), k::extent(rows).any());
}

std::vector<k::Span> AttentionFrame::batch_spans() const {
  std::vector<k::Span> out;
  for (const Index& i : batch) out.push_back({.start = i.any(), .squeezed = true});
  return out;
}

std::vector<k::Span> AttentionFrame::spans(const Index& first, int64_t count, int64_t columns) const {
  std::vector<k::Span> out = batch_spans();
  out.push_back({.start = first.any(), .size = count});
  if (columns > 0) out.push_back({.size = padded_width(columns)});
  return out;
}

k::Tile<float, 1> AttentionFrame::entries(const AttentionArray& x, const Index& first, int64_t count, const Dim& total,
                                          double other) const {
  return k::Tile<float, 1>(k::load(view(x, total, 0), spans(first, count, 0), {.other = other}));
}

void AttentionFrame::store_entries(const AttentionArray& x, const Index& first, const Dim& total,
                                   const k::Tile<float, 1>& values) const {
  k::store(view(x, total, 0), spans(first, values.dim(0), 0), values.any());
}

bool may_hide_rows(const Attention& a) { return a.mask || a.score.value || a.before != Attention::all || a.after < 0; }

bool ends_within(const Dim& rows, int64_t block) { return !rows.is_static() || rows.bound() % block != 0; }

namespace {

bool adds_mask(const Attention& a) { return a.mask && is_float(a.mask.dtype); }

/// Returns whether logits are the products as they are.
bool keeps_products(const Attention& a) { return !a.score.value && !adds_mask(a) && a.scale > 0; }

/// Returns a tile of the mask.
k::Any masks(const AttentionFrame& f, const ScoreBlock& b) {
  std::vector<k::Span> spans = f.batch_spans();
  k::AnyRef mask = f.view(f.a.mask, f.a.queries, f.a.keys.bound());
  const int rows = static_cast<int>(mask.dims.size()) - 2;
  if (!f.a.keys.is_static()) mask = mask.limit(rows + 1, k::extent(f.a.keys).any());
  const k::Span queries{.start = b.query.any(), .size = b.size.queries},
      keys{.start = b.key.any(), .size = b.size.keys};
  spans.push_back(b.keys_first ? keys : queries), spans.push_back(b.keys_first ? queries : keys);
  if (!b.keys_first) return k::load(mask, spans);
  std::vector<int> axes(mask.dims.size());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[static_cast<size_t>(rows)], axes.back());
  return k::load(mask.permute(axes), spans);
}

/// Returns whether the last query that exists sees no position behind the last key, and so none does.
bool sees_keys_alone(const Attention& a) {
  if (a.after == Attention::all) return false;
  if (a.queries == a.keys) return a.after <= 0;
  return a.queries.is_static() && a.keys.is_static() && a.queries.bound() + a.after <= a.keys.bound();
}

/// Hides what is outside of what a query sees.
Scores hidden(const AttentionFrame& f, const Scores& t, const ScoreBlock& b) {
  const Attention& a = f.a;
  const ScoreIndex at = scores_at(f, b);
  Scores out = t;
  const auto hide = [&](const k::Tile<bool, 2>& seen) { out = k::where(seen, out, -INFINITY); };
  if (b.bounded && ends_within(a.keys, b.size.keys) && !sees_keys_alone(a))
    hide(at.key < k::cast<k::i32>(k::extent(a.keys)));
  if (b.bounded && a.after != Attention::all) hide(at.key <= at.query + static_cast<int32_t>(a.after));
  if (b.bounded && a.before != Attention::all) hide(at.query - static_cast<int32_t>(a.before) <= at.key);
  if (!a.mask || adds_mask(a)) return out;
  if (a.mask.dtype == bool_) {
    hide(k::Tile<bool, 2>(masks(f, b)));
  } else {
    std::vector<k::Span> one = f.batch_spans();
    one.push_back({.squeezed = true}), one.push_back({.squeezed = true});
    const k::Any count = k::cast(k::load(f.view(a.mask, 1, 1), one), int32);
    hide(at.key < k::Tile<k::i32, 2>(k::broadcast_to(count, at.key.any().dims())));
  }
  return out;
}

}  // namespace

double exponent_of(const Attention& a) { return keeps_products(a) ? a.scale * log2_e : log2_e; }

Scores logits_of(const AttentionFrame& f, const Scores& products, const ScoreBlock& b) {
  Scores t = products;
  if (!keeps_products(f.a)) t = t * f.a.scale;
  if (f.a.score.value) t = f.a.score.value(t, scores_at(f, b));
  if (adds_mask(f.a)) t = t + Scores(k::cast(masks(f, b), float32));
  return hidden(f, t, b);
}

Scores cotangent_of(const AttentionFrame& f, const Scores& products, const Scores& cotangent, const ScoreBlock& b) {
  if (!f.a.score.cotangent) return cotangent;
  return f.a.score.cotangent(products * f.a.scale, cotangent, scores_at(f, b));
}

namespace {

/// Returns the rows of blocks behind whole ones: one block (`block` where none are left), or where it is not known how
/// many rows are left several small ones.
int64_t rest_rows(const Dim& rows, int64_t block) {
  const int64_t small = padded_width(1);
  if (!rows.is_static()) return block % small == 0 ? small : block;
  const int64_t left = rows.bound() % block;
  return left == 0 ? block : std::min(block, padded_width(left));
}

/// Returns the rows of a block at an edge of a loop by `block`: a square one of `other` rows where some scores are
/// hidden or it is not known how many rows are left.
int64_t edge_rows(const Attention& a, const Dim& rows, int64_t block, int64_t other) {
  const bool hides = a.after != Attention::all || a.before != Attention::all;
  if (hides || !ends_within(rows, block)) return block % other == 0 ? other : block;
  return rest_rows(rows, block);
}

}  // namespace

AttentionBlocks edge_of_keys(const Attention& a, AttentionBlocks blocks) {
  if (blocks.keys_first) blocks.keys = edge_rows(a, a.keys, blocks.keys, blocks.queries);
  return blocks;
}

AttentionBlocks edge_of_queries(const Attention&, AttentionBlocks blocks) {
  if (!blocks.keys_first && blocks.queries % blocks.keys == 0) blocks.queries = blocks.keys;
  return blocks;
}

AttentionBlocks last_of_queries(const Attention& a, const AttentionBlocks& blocks) {
  AttentionBlocks out = blocks;
  out.queries = rest_rows(a.queries, blocks.queries);
  return out;
}

KeyRange keys_seen(const Attention& a, const Index& first, const AttentionBlocks& blocks) {
  const int64_t block = blocks.keys;
  const Index none = 0, keys = k::extent(a.keys), last = first + (blocks.queries - 1);
  KeyRange out{none, k::floordiv(keys, block) * block, keys, a.keys.bound() >= block, ends_within(a.keys, block)};
  if (a.after != Attention::all) {
    out.end = k::minimum(last + (a.after + 1), keys);
    out.whole = k::maximum(k::floordiv(k::minimum(first + (a.after + 1), keys), block), 0) * block;
    out.any_bounded = true;
  }
  if (a.before == Attention::all) return out;
  // A window is narrow: all of its blocks are bounded.
  out.begin = k::floordiv(k::maximum(first - a.before, 0), block) * block;
  out.whole = out.begin, out.any_whole = false, out.any_bounded = true;
  return out;
}

QueryRange queries_seeing(const Attention& a, const Index& first, const AttentionBlocks& blocks) {
  const int64_t block = blocks.queries, edge = edge_of_queries(a, blocks).queries;
  const Index none = 0, queries = k::extent(a.queries), last = first + (blocks.keys - 1);
  QueryRange out{none, none, queries, queries, true, false};
  if (!blocks.keys_first && ends_within(a.queries, block))
    out.last = k::floordiv(queries, block) * block, out.any_last = true, out.any_whole = a.queries.bound() >= block;
  if (a.after != Attention::all) {
    out.begin = k::floordiv(k::maximum(first - a.after, 0), edge) * edge;
    out.whole = k::floordiv(k::maximum(last - a.after, 0) + (block - 1), block) * block;
    out.any_bounded = true;
  }
  if (a.before == Attention::all) return out;
  out.end = k::minimum(last + (a.before + 1), queries);
  out.whole = queries, out.last = queries, out.any_whole = out.any_last = false, out.any_bounded = true;
  return out;
}

}  // namespace weft::kernels
