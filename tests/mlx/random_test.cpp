// Random numbers: tests/mlx/generate/randoms.py.
#include "weft/random.h"

#include <doctest/doctest.h>

#include "mlx/assertions.h"
#include "weft/ops.h"

namespace weft::test {
namespace {

const std::vector<Assertion> draws = {
    {"keys",
     [](const Arrays& in) {
       auto [first, second] = random::split(in[0]);
       return Arrays{random::key(0), random::key((uint64_t{1} << 40) + 3), first, second, random::split(in[0], 4)};
     }},
    {"uniform",
     [](const Arrays& in) {
       const array &k = in[0], &p = in[1];
       return Arrays{random::uniform({3, 5}, float32, k),
                     random::uniform(array(-2.0f), array(3.0f), {7}, float32, k),
                     random::uniform(p, p + 1, {3, 4}, float32, k),
                     random::uniform({4, 3}, float16, k),
                     random::uniform({5}, bfloat16, k),
                     random::uniform({}, float32, k)};
     }},
    {"normal",
     [](const Arrays& in) {
       const array &k = in[0], &p = in[1];
       return Arrays{random::normal({3, 5}, k), random::normal({7}, float32, 2.0f, 0.5f, k),
                     random::normal({4}, float16, k), random::normal({3, 4}, float32, p, p, k),
                     random::normal({6}, bfloat16, k)};
     },
     {16, 1, false}},
    {"complex normal",
     [](const Arrays& in) {
       return Arrays{random::normal({2, 3}, complex64, in[0])};
     }},
    {"truncated_normal",
     [](const Arrays& in) {
       const array &k = in[0], &p = in[1];
       return Arrays{random::truncated_normal(array(-1.0f), array(1.0f), {8}, float32, k),
                     random::truncated_normal(p - 1, p, float32, k),
                     random::truncated_normal(array(0.5f), array(2.0f), {4}, float16, k)};
     }},
    {"laplace and gumbel",
     [](const Arrays& in) {
       const array& k = in[0];
       return Arrays{random::laplace({9}, float32, k), random::laplace({4}, 1.0f, 2.0f, k),
                     random::gumbel({9}, float32, k), random::laplace({5}, float16, k),
                     random::gumbel({3}, bfloat16, k)};
     }},
    {"bernoulli",
     [](const Arrays& in) {
       const array &k = in[0], &p = in[1];
       return Arrays{random::bernoulli(array(0.3f), {10}, k), random::bernoulli(p, k),
                     random::bernoulli(p, {2, 3, 4}, k), random::bernoulli(std::optional<array>(k))};
     }},
    {"randint",
     [](const Arrays& in) {
       const array& k = in[0];
       return Arrays{random::randint(array(0), array(10), {9}, int32, k),
                     random::randint(array(-5), array(5), {2, 4}, int32, k),
                     random::randint(array(0), array(200), {6}, uint8, k),
                     random::randint(array({0, 10}), array({5, 90}), {3, 2}, int32, k),
                     random::randint(array(-100), array(100), {5}, int16, k)};
     }},
    {"categorical",
     [](const Arrays& in) {
       const array &k = in[0], &l = in[1];
       return Arrays{random::categorical(l, -1, k), random::categorical(l, 0, k), random::categorical(l, -1, 4, k),
                     random::categorical(l, -1, Shape{6, 3}, k), random::categorical(take(l, 0, 0), -1, 9, k)};
     }},
    {"permutation",
     [](const Arrays& in) {
       return Arrays{random::permutation(9, in[0]), random::permutation(in[1], 0, in[0]),
                     random::permutation(in[1], 1, in[0])};
     }},
    {"many keys",
     [](const Arrays& in) {
       UnaryFunction uniform = [](const array& k) { return random::uniform({3}, float32, k); };
       UnaryFunction normal = [](const array& k) { return random::normal({2}, k); };
       return Arrays{vmap(uniform)(random::split(in[0], 4)), vmap(normal)(random::split(in[0], 3))};
     }},
    {"default sequence",
     [](const Arrays&) {
       random::seed(11);
       Arrays drawn{random::uniform({3}), random::normal({2}), random::randint(array(0), array(9), {4})};
       drawn.push_back(random::bernoulli(array(0.5f), {3})), drawn.push_back(random::uniform({2})),
           drawn.push_back(random::permutation(5));
       return drawn;
     },
     {16, 1, false},
     false},
};

}  // namespace

TEST_CASE("random numbers as in MLX") { check_assertions("random", draws); }

}  // namespace weft::test
