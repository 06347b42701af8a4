// Creation, shape and movement of arrays: tests/mlx/generate/shapes.py.
#include <doctest/doctest.h>

#include "mlx/assertions.h"
#include "weft/indexing.h"
#include "weft/ops.h"

namespace weft::test {
namespace {

Arrays joined(std::initializer_list<Arrays> lists) {
  Arrays all;
  for (const Arrays& l : lists) all.insert(all.end(), l.begin(), l.end());
  return all;
}

const std::vector<Assertion> creation = {
    {"arange",
     [](const Arrays&) {
       return Arrays{arange(7),         arange(2, 9),        arange(9, 1, -3),      arange(0.5, 3.0, 0.25),
                     arange(3.0),       arange(1, 6, uint8), arange(0.0, 1.0, 0.1), arange(5, 5),
                     arange(-3.5, 2.0), arange(6, float16)};
     }},
    {"linspace",
     [](const Arrays&) {
       return Arrays{linspace(0, 1, 7), linspace(-3, 5), linspace(2, -2, 5, float16), linspace(0, 10, 11, int32),
                     linspace(1, 2, 1)};
     }},
    {"full",
     [](const Arrays&) {
       return Arrays{full({2, 3}, array(7)),
                     full({2, 2}, array(1.5f), float16),
                     full({2, 3}, array({1, 2, 3})),
                     zeros({2, 2}),
                     zeros({3}, int8),
                     ones({2, 1}),
                     ones({2}, bool_),
                     full({0, 3}, array(1.0f))};
     }},
    {"likes",
     [](const Arrays& in) {
       return Arrays{zeros_like(in[0]), ones_like(in[0]), full_like(in[0], array(3)),
                     full_like(in[0], array(2.5f), float32), zeros_like(in[0], float16)};
     }},
    {"eye",
     [](const Arrays&) {
       return Arrays{eye(3),
                     eye(3, 4, 1),
                     eye(4, 3, -2, int32),
                     identity(3, float16),
                     tri(3, 4, 1, float32),
                     tri(4, 4, -1, int32)};
     }},
    {"triangles",
     [](const Arrays& in) {
       return Arrays{tril(in[0]), triu(in[0]), tril(in[0], -1), triu(in[0], 2), tril(in[1], 1)};
     }},
    {"diag",
     [](const Arrays& in) {
       return Arrays{diag(in[0]), diag(in[0], 2), diag(in[0], -1), diag(in[1]), diag(in[1], 1), diag(in[1], -2)};
     }},
    {"diagonal",
     [](const Arrays& in) {
       return Arrays{diagonal(in[0]), diagonal(in[0], 1), diagonal(in[1], 0, 0, 2), diagonal(in[1], -1, 1, 2),
                     diagonal(in[1], 1, 2, 1)};
     }},
    {"trace",
     [](const Arrays& in) {
       return Arrays{trace(in[0]), trace(in[0], 1, 0, 1), trace(in[1], 0, 1, 2), trace(in[1], 1, 0, 2, float16)};
     }},
    {"trace of bools", [](const Arrays& in) { return Arrays{trace(in[0])}; }},
    {"meshgrid",
     [](const Arrays& in) {
       return joined({meshgrid(in), meshgrid(in, false, "ij"), meshgrid(in, true)});
     }},
    {"windows",
     [](const Arrays&) {
       return Arrays{hanning(8), hamming(7), bartlett(9), blackman(6), hanning(1)};
     }},
    {"view",
     [](const Arrays& in) {
       return Arrays{view(in[0], int16), view(in[0], float32), view(in[1], uint8), view(in[1], complex64),
                     view(view(in[1], complex64), int64)};
     }},
    {"contiguous",
     [](const Arrays& in) {
       return Arrays{contiguous(transpose(in[0])), contiguous(index(in[0], Slice::step(2), Slice::step(-1))),
                     contiguous(transpose(in[0]), true)};
     }},
    {"as_strided",
     [](const Arrays& in) {
       return Arrays{as_strided(in[0], {3, 4}, {2, 1}, 1), as_strided(in[0], {4, 4}, {6, 0}, 2),
                     as_strided(in[0], {3, 2, 2}, {6, 1, 2}, 0)};
     }},
    {"stop_gradient and depends",
     [](const Arrays& in) {
       return Arrays{stop_gradient(in[0]), depends({in[0]}, {in[1]})[0]};
     }},
    {"empty",
     [](const Arrays&) {
       return Arrays{transpose(zeros({0, 3})),
                     concatenate({zeros({0, 3}), ones({2, 3})}),
                     sum(zeros({0, 3}), 0),
                     prod(zeros({0})),
                     mean(zeros({0})),
                     take(zeros({0}), zeros({0}, int32)),
                     matmul(zeros({2, 0}), zeros({0, 3}))};
     }},
};

const std::vector<Assertion> movement = {
    {"reshape",
     [](const Arrays& in) {
       const array& y = in[0];
       return Arrays{reshape(y, {6, 4}),
                     reshape(y, {-1}),
                     reshape(y, {4, -1, 2}),
                     reshape(transpose(y, {2, 0, 1}), {8, 3}),
                     reshape(index(y, Slice(), Slice::step(-1)), {2, 12}),
                     reshape(index(y, ellipsis, Slice::step(2)), {-1, 4})};
     }},
    {"flatten",
     [](const Arrays& in) {
       return Arrays{flatten(in[0]),         flatten(in[0], 1),           flatten(in[0], 0, 1),
                     flatten(in[0], -2, -1), unflatten(in[0], 2, {2, 2}), unflatten(in[0], -1, {-1, 2})};
     }},
    {"squeeze",
     [](const Arrays& in) {
       array front = index(in[0], Slice::to(1)), both = index(in[0], Slice::to(1), Slice(), Slice::to(1));
       return Arrays{squeeze(front), squeeze(both, 0), squeeze(both, std::vector<int>{0, 2}), squeeze(front, -3)};
     }},
    {"expand_dims",
     [](const Arrays& in) {
       return Arrays{expand_dims(in[0], 0), expand_dims(in[0], -1), expand_dims(in[0], std::vector<int>{0, 2}),
                     expand_dims(in[0], std::vector<int>{-1, 1})};
     }},
    {"transpose",
     [](const Arrays& in) {
       const array& y = in[0];
       return Arrays{transpose(y),       transpose(y, {1, 0, 2}), transpose(y, {-1, 0, 1}), swapaxes(y, 0, 2),
                     swapaxes(y, -1, 1), moveaxis(y, 0, 2),       moveaxis(y, -1, 0)};
     }},
    {"broadcast",
     [](const Arrays& in) {
       Arrays pair = broadcast_arrays({expand_dims(in[1], 1), take(in[0], 0, 0)});
       return Arrays{broadcast_to(in[1], {2, 5}), broadcast_to(expand_dims(in[0], 1), {4, 3, 6}), pair[0], pair[1]};
     }},
    {"flip",
     [](const Arrays& in) {
       return Arrays{flip(in[0]), flip(in[0], 1), flip(in[0], std::vector<int>{0, 2}), flip(in[0], -1)};
     }},
    {"roll",
     [](const Arrays& in) {
       const array& y = in[0];
       return Arrays{roll(y, 1),
                     roll(y, -2, 2),
                     roll(y, Shape{1, 2}, std::vector<int>{0, 2}),
                     roll(y, 5, 1),
                     roll(y, 1, std::vector<int>{0, 1}),
                     roll(y, Shape{1, 2})};
     }},
    {"atleast",
     [](const Arrays& in) {
       return Arrays{atleast_1d(in[2]), atleast_2d(in[2]), atleast_3d(in[2]),
                     atleast_2d(in[1]), atleast_3d(in[1]), atleast_3d(in[0])};
     }},
    {"concatenate",
     [](const Arrays& in) {
       const array &x = in[0], &n = in[1];
       return Arrays{concatenate({x, slice(x, {0, 0}, {2, 6})}), concatenate({x, slice(x, {0, 0}, {4, 1})}, 1),
                     concatenate({slice(x, {0, 0}, {3, 4}), n}, -1), concatenate({n, n > array(3)}, 0)};
     }},
    {"stack",
     [](const Arrays& in) {
       return Arrays{stack({in[0], in[0] * 2}), stack({in[0], in[0] + 1}, 1), stack({in[0], in[0], in[0]}, -1)};
     }},
    {"split",
     [](const Arrays& in) {
       return joined({split(in[0], 2), split(in[0], 3, 1), split(in[0], Shape{1, 3}, 2), split(in[0], 2, -1)});
     }},
    {"unstack",
     [](const Arrays& in) {
       return joined({unstack(in[0]), unstack(in[0], 2)});
     }},
    {"repeat and tile",
     [](const Arrays& in) {
       return Arrays{repeat(in[0], 2), repeat(in[0], 3, 1), repeat(in[0], 2, 0),
                     tile(in[0], {2}), tile(in[0], {2, 3}), tile(in[0], {2, 1, 2})};
     }},
    {"pad",
     [](const Arrays& in) {
       return Arrays{pad(in[0], 1), pad(in[0], std::pair(1, 2)),
                     pad(in[0], std::vector<std::pair<int, int>>{{0, 1}, {2, 0}}, array(7.0f)),
                     pad(in[0], std::vector<std::pair<int, int>>{{2, 1}, {1, 3}}, array(0), "edge")};
     }},
    {"slices",
     [](const Arrays& in) {
       const array& y = in[0];
       return Arrays{index(y, 1),
                     index(y, Slice(), Slice::from(1)),
                     index(y, ellipsis, Slice::step(2)),
                     index(y, Slice::step(-1), Slice(2, 0, -1)),
                     index(y, Slice(), Slice::from(-2)),
                     index(y, Slice(0, 5), Slice(), Slice(3, std::nullopt, -2)),
                     index(y, Slice(1, 1))};
     }},
    {"dynamic slices",
     [](const Arrays& in) {
       return Arrays{slice(in[0], in[1], {0, 1}, {2, 3}), slice_update(in[0], ones({2, 2}), in[1], {0, 1})};
     }},
    {"slice_update",
     [](const Arrays& in) {
       return Arrays{slice_update(in[0], full({2, 2}, array(9.0f)), Shape{1, 1}, Shape{3, 3})};
     }},
    {"complex shapes",
     [](const Arrays& in) {
       return Arrays{transpose(in[0]), concatenate({in[0], in[0]}), flip(in[0], 1), reshape(in[0], {3, 2}),
                     pad(in[0], 1),    tile(in[0], {2, 1})};
     }},
};

}  // namespace

TEST_CASE("creation, shape and movement as in MLX") {
  std::vector<Assertion> all = creation;
  all.insert(all.end(), movement.begin(), movement.end());
  check_assertions("shapes", all);
}

}  // namespace weft::test
