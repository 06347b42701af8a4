// Causal attention of several heads in float32. Unfused, the scores [T, T] of a head go through memory three times; the
// online softmax never stores them.
#include <cmath>

#include "examples/kernels/ladders/ladder.h"

namespace ladders {

namespace {

using Heads = k::In<float, 3>;  // [heads, T, d]
using Scores = k::In<float, 3>;
using Result = k::Out<float, 3>;

constexpr double log2_of_e = 1.4426950408889634;
double scale_of(int64_t d) { return 1 / std::sqrt(static_cast<double>(d)); }

/// The first of three kernels: scores, -inf where a key comes after the query.
void scores(Heads q, Heads keys, Result s) {
  constexpr int64_t side = 64;
  const auto head = k::program_id(0), first = k::program_id(1) * side, from = k::program_id(2) * side;
  const auto rows = k::ds(first, side), columns = k::ds(from, side);
  const auto products = k::dot(q(head, rows, k::all), k::trans(keys(head, columns, k::all)));
  const auto seen = k::row(from + k::arange(side)) <= k::col(first + k::arange(side));
  s(head, rows, columns) = k::where(seen, products * scale_of(q.dim(2)), -INFINITY);
}
/// The second one: weights of a row.
void weights(Scores s, Result p) {
  const auto head = k::program_id(0), row = k::program_id(1);
  const auto v = s(head, row, k::all).load();
  const auto e = k::exp(v - k::max(v, 0));
  p(head, row, k::all) = e * k::recip(k::sum(e, 0));
}
/// The third one: sums of values.
void weighted(Scores p, Heads values, Result out) {
  const auto head = k::program_id(0);
  const auto rows = k::ds(k::program_id(1) * 64, 64);
  const auto left = [&](const k::Ds& at) { return p(head, rows, at).load(); };
  const auto right = [&](const k::Ds& at) { return values(head, at, k::all).load(); };
  out(head, rows, k::all) = k::gemm_loop(p.dim(2), {64, values.dim(2), 64}, left, right);
}

/// How many queries and keys a program takes at once, and whether it leaves out the blocks of keys that it does not
/// see.
struct Blocks {
  int64_t queries = 64, keys = 64;
  bool skip = true;
  friend bool operator==(const Blocks&, const Blocks&) = default;
};

/// All of it in one kernel, by the online softmax.
void online(Heads q, Heads keys, Heads values, Result out, Blocks blocks) {
  const int64_t length = keys.dim(1), d = q.dim(2);
  const auto head = k::program_id(0), first = k::program_id(1) * blocks.queries;
  const auto rows = k::ds(first, blocks.queries);
  const auto query = k::col(first + k::arange(blocks.queries));
  const k::Index end = blocks.skip ? k::minimum(first + blocks.queries, length) : k::Index(length);
  const auto result = k::attention_loop(
      q(head, rows, k::all), 0, end, blocks.keys, d, [&](const k::Ds& at) { return keys(head, at, k::all).load(); },
      [&](const k::Ds& at) { return values(head, at, k::all).load(); },
      [&](const auto& s, const auto& key) { return k::where(key <= query, s * (scale_of(d) * log2_of_e), -INFINITY); });
  out(head, rows, k::all) = result.out;
}

void plain_loop(const float* q, const float* keys, const float* values, float* out, int64_t length, int64_t d) {
  std::vector<float> p(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; ++i) {
    float most = -INFINITY, sum = 0;
    for (int64_t j = 0; j <= i; ++j) {
      float s = 0;
      for (int64_t c = 0; c < d; ++c) s += q[i * d + c] * keys[j * d + c];
      p[static_cast<size_t>(j)] = s * static_cast<float>(scale_of(d));
      most = std::max(most, p[static_cast<size_t>(j)]);
    }
    for (int64_t j = 0; j <= i; ++j) sum += p[static_cast<size_t>(j)] = std::exp(p[static_cast<size_t>(j)] - most);
    for (int64_t c = 0; c < d; ++c) out[i * d + c] = 0;
    for (int64_t j = 0; j <= i; ++j)
      for (int64_t c = 0; c < d; ++c) out[i * d + c] += p[static_cast<size_t>(j)] / sum * values[j * d + c];
  }
}

array of_arrays(const Arrays& in) {
  const int64_t length = in[0].shape(1);
  const array i = weft::arange(static_cast<int>(length));
  const array scale(static_cast<float>(scale_of(in[0].shape(2))));
  const array s = weft::matmul(in[0], weft::swapaxes(in[1], -1, -2)) * scale;
  const array seen = weft::expand_dims(i, 1) >= weft::expand_dims(i, 0);
  return weft::matmul(weft::softmax(weft::where(seen, s, array(-INFINITY)), -1), in[2]);
}

}  // namespace

Ladder attention(Scale scale) {
  const int64_t heads = at(scale, 2, 8, 64), length = at(scale, 77, 1024, 1024), d = at(scale, 16, 64, 64);
  const Shape shape{heads, length, d};
  Ladder out{.name = "attention", .inputs = {normal(shape, 1), normal(shape, 2), normal(shape, 3)}};
  out.library = one(of_arrays);
  out.operations = 2.0 * static_cast<double>(heads * length * length * d);  // of the pairs that are seen
  out.tolerance = 1e-5;
  const auto tiles = [](int64_t n) { return k::cdiv(n, 64); };
  const auto first = k::kernel("attention_scores", scores)
                         .grid([=](auto q, auto keys, auto) {
                           return k::Grid{q.dim(0), tiles(q.dim(1)), tiles(keys.dim(1))};
                         })
                         .outputs([](const array& q, const array& keys) {
                           return Shape{q.shape(0), q.shape(1), keys.shape(1)};
                         });
  const auto second = k::kernel("attention_weights", weights).grid([](auto s, auto) {
    return k::Grid{s.dim(0), s.dim(1)};
  });
  const auto third = k::kernel("attention_values", weighted)
                         .grid([=](auto p, auto, auto) {
                           return k::Grid{p.dim(0), tiles(p.dim(1))};
                         })
                         .outputs([](const array& p, const array& values) {
                           return Shape{p.shape(0), p.shape(1), values.shape(2)};
                         });
  const auto fused = [](const char* name, Blocks blocks) {
    return k::kernel(name, online).config(blocks).grid([](auto q, auto, auto, auto, Blocks b) {
      return k::Grid{q.dim(0), k::cdiv(q.dim(1), b.queries)};
    });
  };
  out.rungs = {
      loop({shape},
           [=](auto in, auto to) {
             for (int64_t head = 0; head < heads; ++head) {
               const int64_t at = head * length * d;
               plain_loop(in[0] + at, in[1] + at, in[2] + at, to[0] + at, length, d);
             }
           }),
      rung("unfused: three kernels", one([=](const Arrays& in) { return third(second(first(in[0], in[1])), in[2]); })),
      rung("online, a query a program", fused("attention_query", {1, 64, true}),
           "keys and values are read again for each query, and a product of one row fills no registers"),
      rung("online, tiles of 64 queries", fused("attention_tiles", {64, 64, false})),
      rung("only the keys that are seen", fused("attention_seen", {64, 64, true})),
      rung("tiles of 128 queries", fused("attention_large", {128, 64, true}),
           "more pairs at the diagonal that are masked"),
  };
  out.rungs[1].program = [first](const Arrays& in) { return first.program(in[0], in[1]); };
  return out;
}

}  // namespace ladders
