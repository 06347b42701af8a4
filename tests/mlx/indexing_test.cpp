// Indexing, gathers, scatters, order: tests/mlx/generate/indexing.py.
#include "weft/indexing.h"

#include <doctest/doctest.h>

#include <limits>

#include "mlx/assertions.h"
#include "weft/ops.h"

namespace weft::test {
namespace {

array rows(const array& x, int from, int to) { return index(x, Slice(from, to)); }

const std::vector<Assertion> reading = {
    {"take",
     [](const Arrays& in) {
       const array &x = in[0], &i = in[1];
       return Arrays{take(x, i, 0), take(x, i, 1), take(x, i),
                     take(x, 2, 0), take(x, 7),    take(x, array({0, 1, 2, 3}, {2, 2}), 1)};
     }},
    {"take_along_axis",
     [](const Arrays& in) {
       return Arrays{take_along_axis(in[0], in[1], 0), take_along_axis(in[0], slice(in[1], {0, 0}, {2, 1}), 0),
                     take_along_axis(flatten(in[0]), array({1, 19, 4}), 0)};
     }},
    {"along a matrix",
     [](const Arrays& in) {
       return Arrays{take_along_axis(in[0], in[1], 1), take_along_axis(in[0], in[1], -1)};
     }},
    {"put_along_axis",
     [](const Arrays& in) {
       return Arrays{put_along_axis(in[0], in[1], in[2], 0), put_along_axis(in[0], in[1], array(7.0f), 0)};
     }},
    {"arrays of integers",
     [](const Arrays& in) {
       const array &y = in[0], &i = in[1], &j = in[2];
       return Arrays{index(y, abs(i) % array(2)),
                     index(y, Slice(), j),
                     index(y, array({0, 1}), array({2, 0})),
                     index(y, array({1, 0}), Slice(), array({3, 1})),
                     index(y, ellipsis, i),
                     index(y, Slice(), array({0, 1}), array({2, 3})),
                     index(y, 1, j),
                     index(y, slice(j, {0, 0}, {2, 1}) % array(2), array({0, 2}))};
     }},
    {"mixed",
     [](const Arrays& in) {
       const array &y = in[0], &i = in[1];
       return Arrays{index(y, 0, ellipsis, newaxis),
                     index(y, newaxis, Slice(), 1),
                     index(y, 1, 2, 3),
                     index(y, Slice(), newaxis, Slice::step(2)),
                     index(y, -1, -2),
                     index(y, ellipsis, 0),
                     index(y, i % array(2), newaxis, Slice::from(1)),
                     index(y, Slice::step(-1), i % array(3))};
     }},
    {"where",
     [](const Arrays& in) {
       const array &x = in[0], &v = in[1];
       return Arrays{where(x > array(0), x, v), where(x > array(0), array(1.0f), v), where(v > array(0), x, array(0)),
                     where(array(true), x, array(2.0f))};
     }},
};

const std::vector<Assertion> writing = {
    {"slice assignment",
     [](const Arrays& in) {
       const array &x = in[0], &u = in[1];
       return Arrays{at(x, Slice(1, 3), Slice()).set(rows(u, 0, 2)), at(x, Slice(), 0).set(array(3.0f)),
                     at(x, Slice::step(2), Slice::step(-1)).set(rows(u, 0, 3)), at(x, 2).set(index(u, 0)),
                     at(x, ellipsis, -1).set(array(1.0f))};
     }},
    {"array assignment",
     [](const Arrays& in) {
       return Arrays{at(in[0], array({0, 3, 1, 4})).set(in[1]),
                     at(in[0], array({0, 1}), array({2, 3})).set(array(5.0f))};
     }},
    {"mask assignment",
     [](const Arrays& in) {
       int n = sum(in[1]).item<int>();
       return Arrays{at(in[0], in[1]).set(array(0.0f)),
                     masked_scatter(in[0], in[1], slice(arange(20, float32), {0}, {n})),
                     at(in[0], index(in[1], Slice(), 0)).set(array(2.0f))};
     },
     {},
     false},
};

std::vector<Assertion> updates() {
  using Method = array (IndexedArray::*)(const array&) const;
  std::vector<Assertion> all;
  for (auto [name, method] :
       std::initializer_list<std::pair<const char*, Method>>{{"add", &IndexedArray::add},
                                                             {"subtract", &IndexedArray::subtract},
                                                             {"multiply", &IndexedArray::multiply},
                                                             {"divide", &IndexedArray::divide},
                                                             {"maximum", &IndexedArray::maximum},
                                                             {"minimum", &IndexedArray::minimum}})
    all.push_back({std::string("at ") + name, [method = method](const Arrays& in) {
                     const array &x = in[0], &i = in[1], &u = in[2];
                     return Arrays{(at(x, i).*method)(u), (at(x, Slice(1, 4), 1).*method)(index(u, 0, Slice::to(3))),
                                   (at(x, i, array({0, 1, 0, 1})).*method)(index(u, 0))};
                   }});
  return all;
}

const std::vector<Assertion> order = {
    {"sort",
     [](const Arrays& in) {
       const array &y = in[0], &n = in[1];
       return Arrays{sort(y, -1), sort(y, 0), sort(y),       argsort(y, 1),
                     argsort(y),  sort(n, 1), argsort(n, 1), argsort(n, 0)};
     }},
    {"partition",
     [](const Arrays& in) {
       const array& z = in[0];
       return Arrays{index(partition(z, 3, -1), 3), sort(rows(partition(z, 2, -1), 0, 2)),
                     sort(rows(partition(z, 4, -1), 5, 7)), take(z, index(argpartition(z, 3, -1), 3))};
     }},
    {"topk",
     [](const Arrays& in) {
       return Arrays{sort(topk(in[0], 3)), sort(topk(in[1], 2, 0), 0), sort(topk(in[1], 1, -1), -1)};
     }},
    {"median",
     [](const Arrays& in) {
       return Arrays{median(in[0]), median(in[0], 0), median(in[0], 1, true), median(in[1], 1),
                     median(in[0], std::vector<int>{0, 1})};
     }},
    {"searchsorted",
     [](const Arrays& in) {
       return Arrays{searchsorted(in[0], in[1]), searchsorted(in[0], in[1], "right"),
                     searchsorted(in[0], index(in[0], 2)), searchsorted(in[0], in[0], "right")};
     }},
    {"argmax",
     [](const Arrays& in) {
       const array &y = in[0], &n = in[1];
       return Arrays{argmax(y), argmax(y, 1), argmin(y, 2, true), argmax(n, 0), argmin(n), argmax(n, true)};
     }},
    {"nan order",
     [](const Arrays& in) {
       return Arrays{sort(in[0]),
                     argsort(in[0]),
                     max(in[0]),
                     min(in[0]),
                     argmax(index(in[0], Slice::from(2))),
                     maximum(in[0], array(2)),
                     cummax(in[0], 0)};
     }},
};

}  // namespace

TEST_CASE("indexing and order as in MLX") {
  std::vector<Assertion> all = reading;
  for (const auto& more : {writing, updates(), order}) all.insert(all.end(), more.begin(), more.end());
  check_assertions("indexing", all);
}

}  // namespace weft::test
