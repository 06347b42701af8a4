// Eager programs of other lengths run code that has been compiled before, and give the bits of code of their own.
#include <doctest/doctest.h>

#include <functional>

#include "compiler/program.h"
#include "device.h"
#include "weft/array.h"
#include "weft/compile.h"
#include "weft/ops.h"
#include "weft/random.h"

using namespace weft;

namespace {

using Arrays = std::vector<array>;
using Function = std::function<Arrays(const Arrays&)>;

/// Attention of one query over keys, with a new key and value appended.
Arrays attend(const Arrays& in) {
  const array keys = concatenate({in[1], in[0]}, 1), values = concatenate({in[2], in[0]}, 1);
  return {matmul(softmax(matmul(in[0], swapaxes(keys, 1, 2)) * 0.5f, {-1}), values), keys};
}
Arrays queries_of(int64_t n) {
  return {random::normal({2, 1, 16}, float32, random::key(1)), random::normal({2, n, 16}, float32, random::key(2)),
          random::normal({2, n, 16}, float32, random::key(3))};
}

/// Statistics of rows, a sum down columns, and positions.
Arrays statistics(const Arrays& in) {
  const array rows = (in[0] - mean(in[0], -1, true)) * rsqrt(var(in[0], -1, true) + 2.0f);
  return {sum(transpose(rows), 1), astype(argmax(in[0], 1, false), float32), flip(cumsum(rows, 1), 1)};
}
Arrays matrix_of(int64_t n) { return {random::normal({n, 3 * n + 1}, float32, random::key(4))}; }

bool same_bits(const array& a, const array& b) {
  return a.shape() == b.shape() && array_equal(view(a, int32), view(b, int32)).item<bool>();
}

}  // namespace

TEST_CASE("new lengths compile little once two of a kind have been seen, and results have the same bits") {
  struct Case {
    Function function;
    std::function<Arrays(int64_t)> inputs;
  };
  target::Target& target = compiler::default_target();
  const auto made = [&] { return target.stats().compiled + target.stats().from_disk; };
  for (const Case& c : {Case{attend, queries_of}, Case{statistics, matrix_of}}) {
    int64_t compiled = 0;
    for (int64_t n = 33; n < 63; ++n) {
      const Arrays in = c.inputs(n);
      eval(in);
      const int64_t before = made();
      const Arrays shared = c.function(in);
      eval(shared);
      if (n >= 48) compiled += made() - before;
      const Arrays own = weft::compile(c.function)(in);
      for (size_t k = 0; k < own.size(); ++k) CHECK(same_bits(shared[k], own[k]));
    }
    CHECK(compiled <= 6);
  }
}

TEST_CASE("a program that has run long enough on shared code is compiled for its own lengths") {
  const auto function = [](const array& x) { return sum(exp(x) * reshape(flatten(x), x.shape()), {1}); };
  const auto of = [](int64_t n) {
    const array made = random::normal({n, n + 2}, float32, random::key(5));
    eval(made);
    return made;
  };
  for (int64_t n = 301; n < 309; ++n) eval(function(of(n)));
  const array x = of(313);
  int64_t number = -1;
  int changes = 0;
  for (int k = 0; k < 5000 && changes == 0; ++k) {
    compiler::BuildRecord record;
    eval(function(x));
    REQUIRE(record.programs().size() >= 1);
    changes += number >= 0 && record.programs().back()->number() != number;
    number = record.programs().back()->number();
  }
  CHECK(changes == 1);
}
