// Many runs of the library's own kernels beside other work of random length: every one leaves the same bits.
#include "support.h"

#include "compiler/program.h"
#include "device.h"
#include "weft/compile.h"
#include "weft/device.h"
#include "weft/stream.h"

using namespace weft;
using namespace weft::testing;

namespace {

array drawn(const Shape& shape, uint64_t seed) { return random::normal(shape, bfloat16, 0, 1, random::key(seed)); }

/// Attention and its derivative, with dropout where `rate` is above 0, of lengths that no block divides.
ArrayFunction attention_step(float rate) {
  return [rate](const Arrays& in) {
    const auto loss = [&](const Arrays& v) {
      return sum(astype(fast::dropout_attention(v[0], v[1], v[2], 0.3f, rate, "causal", std::nullopt, in[3]), float32) *
                 0.01f);
    };
    return value_and_grad(ScalarFunction(loss), {0, 1, 2})({in[0], in[1], in[2]}).second;
  };
}

/// Runs a compiled function over and over, and on a GPU products of random size in a second stream beside it.
void repeat(const ArrayFunction& f, const Arrays& in) {
  const compiler::Policy before = compiler::default_policy();
  compiler::Policy own = before;
  own.libraries = false;
  compiler::set_default_policy(own);
  const ArrayFunction step = compile(f);
  const Arrays first = step(in);
  eval(first);
  compiler::set_default_policy(before);
  const int runs = test::on_gpu() ? 1000 : 20;
  const Stream beside = test::on_gpu() ? new_stream(default_device()) : default_stream(default_device());
  uint64_t state = 1;
  int different = 0;
  for (int run = 0; run < runs; ++run) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto side = static_cast<int>(16 + (state >> 33) % 8 * 64);
    array other = full({side, side}, array(1.0f), beside);
    for (uint64_t k = 0; k < (state >> 60) % 4; ++k) other = matmul(other, other, beside);
    async_eval({other});
    const Arrays again = step(in);
    for (size_t k = 0; k < first.size(); ++k)
      if (!array_equal(again[k], first[k]).item<bool>()) ++different;
    if (run % 100 == 0) synchronize(beside);
  }
  CHECK(different == 0);
}

}  // namespace

TEST_CASE("attention, its derivative and products leave the same bits in every run") {
  const Arrays heads{drawn({2, 4, 200, 64}, 1), drawn({2, 4, 200, 64}, 2), drawn({2, 4, 200, 64}, 3), random::key(4)};
  SUBCASE("attention") { repeat(attention_step(0), heads); }
  SUBCASE("attention with dropout") { repeat(attention_step(0.3f), heads); }
  SUBCASE("a product with an epilogue, and its derivative") {
    repeat(
        [](const Arrays& in) {
          const auto loss = [&](const Arrays& v) {
            return sum(astype(fast::gelu_tanh(matmul(v[0], v[1]) + v[2]), float32));
          };
          return value_and_grad(ScalarFunction(loss), {0, 1, 2})(in).second;
        },
        {drawn({200, 136}, 5), drawn({136, 328}, 6), drawn({328}, 7)});
  }
  SUBCASE("a long contraction in parts") {
    repeat([](const Arrays& in) { return Arrays{matmul(in[0], in[1])}; }, {drawn({72, 4096}, 8), drawn({4096, 64}, 9)});
  }
}
