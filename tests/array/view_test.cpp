// Views: strides and flags of evaluated arrays, no copies, and values that stay what they were.
#include <doctest/doctest.h>

#include <random>

#include "array/host.h"
#include "array/realise.h"
#include "runtime/trace.h"
#include "weft/compile.h"
#include "weft/memory.h"
#include "weft/ops.h"
#include "weft/transforms.h"

using namespace weft;

namespace {

std::mt19937_64 rng(11);
int64_t uniform(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(rng); }

array data(Shape shape) {
  array a = reshape(arange(static_cast<int>(num_elements(shape))), shape);
  a = a + 0;
  a.eval();
  return a;
}

const void* buffer(const array& a) {
  a.eval();
  std::shared_lock lock(graph::structure());
  return a.value().node->storage(a.value().index)->buffer->data();
}

}  // namespace

TEST_CASE("movement of data is a view: strides as in MLX, no program, no copy") {
  const array x = data({3, 4});
  const int64_t programs = runtime::counters().programs_run.load();
  const auto view = [&](const array& v, const Strides& strides) {
    CHECK(v.strides() == strides);
    CHECK(buffer(v) == buffer(x));
  };
  view(transpose(x), {1, 4});
  view(swapaxes(x, 0, 1), {1, 4});
  view(broadcast_to(x, {2, 3, 4}), {0, 4, 1});
  view(slice(x, {0, 1}, {3, 4}, {2, 2}), {8, 2});
  view(slice(x, {2, 3}, {-4, -5}, {-1, -1}), {-4, -1});
  view(reshape(x, {2, 6}), {6, 1});
  view(reshape(transpose(x), {2, 2, 3}), {2, 1, 4});
  view(split(x, 2, 1)[1], {4, 1});
  view(stop_gradient(transpose(x)), {1, 4});
  view(weft::view(x, uint32), {4, 1});
  view(diagonal(x), {5});
  CHECK(expand_dims(x, 1).strides().size() == 3);
  CHECK(runtime::counters().programs_run.load() == programs);
  const array flat = reshape(transpose(x), {12});  // no view: the elements are not at regular distances
  flat.eval();
  CHECK(runtime::counters().programs_run.load() == programs + 1);
  CHECK(flat.to_vector<int>() == std::vector<int>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
  CHECK(x.strides(-2) == 4);
}

TEST_CASE("flags") {
  const array x = data({3, 4});
  const auto flags = [](const array& a, bool contiguous, bool row, bool column) {
    const array::Flags f = a.flags();
    CHECK(f.contiguous == contiguous);
    CHECK(f.row_contiguous == row);
    CHECK(f.col_contiguous == column);
  };
  flags(x, true, true, false);
  flags(transpose(x), true, false, true);
  flags(slice(x, {0, 0}, {3, 2}), false, false, false);
  flags(slice(x, {1, 0}, {3, 4}), true, true, false);
  flags(broadcast_to(x, {2, 3, 4}), false, false, false);
  flags(reshape(x, {1, 12}), true, true, true);
  flags(data({1}), true, true, true);
  CHECK(broadcast_to(x, {2, 3, 4}).data_size() == 12);
  CHECK(slice(x, {0, 0}, {3, 2}).data_size() == 10);
  CHECK(contiguous(transpose(x)).flags().row_contiguous);
  array t = transpose(x);
  t.eval();
  CHECK(contiguous(t).strides() == Strides{3, 1});
  CHECK(contiguous(t, true).strides() == Strides{1, 4});
}

TEST_CASE("contiguous keeps a column-major layout also of what has no data yet") {
  const auto pending = [] { return data({3, 4}) + 1; };
  const array rows = contiguous(transpose(pending())), columns = contiguous(transpose(pending()), true);
  CHECK(rows.strides() == Strides{3, 1});
  CHECK(columns.strides() == Strides{1, 4});
  CHECK(columns.to_vector<float>() == rows.to_vector<float>());
  CHECK(contiguous(pending(), true).strides() == Strides{4, 1});
  CHECK(
      contiguous(transpose(data({2, 3, 4}) + 1, {0, 2, 1}), true).flags().row_contiguous);  // neither order: row-major
  CHECK(contiguous(reshape(transpose(pending()), {4, 1, 3}), true).strides() == Strides{1, 4, 4});
  CHECK(contiguous(data({5}) + 1, true).strides() == Strides{1});
  // The base is computed once for several views of it, and with other results.
  const array x = pending(), base = contiguous(x), left = transpose(base), right = reshape(base, {2, 6}),
              other = sum(x);
  eval(left, right, base, other);
  CHECK(left.strides() == Strides{1, 4});
  CHECK(right.strides() == Strides{6, 1});
  CHECK(left.to_vector<float>() == rows.to_vector<float>());
  CHECK(right.to_vector<float>() == x.to_vector<float>());
  // Derivatives pass.
  const array g = grad([](const array& v) { return sum(square(contiguous(transpose(v), true))); })(data({3, 4}));
  CHECK(g.to_vector<float>() == (data({3, 4}) * 2).to_vector<float>());
}

TEST_CASE("random chains of movement hold what the compiler computes") {
  for (int trial = 0; trial < 200; ++trial) {
    const array x = data({uniform(1, 4), uniform(1, 5), uniform(1, 4)});
    array lazy = x + 0, chain = x;  // the same chain on a pending sum goes through the compiler
    for (int64_t n = uniform(1, 5); n > 0; --n) {
      const auto both = [&](auto&& f) { lazy = f(lazy), chain = f(chain); };
      const int64_t kind = uniform(0, 4);
      if (kind == 0) {
        std::vector<int> axes(chain.ndim());
        for (size_t k = 0; k < axes.size(); ++k) axes[k] = static_cast<int>(k);
        std::shuffle(axes.begin(), axes.end(), rng);
        both([&](const array& a) { return transpose(a, axes); });
      } else if (kind == 1 && chain.size() > 0) {
        Shape shape{-1};
        if (int64_t{chain.shape()[0]} % 2 == 0) shape = {2, -1};
        both([&](const array& a) { return reshape(a, shape); });
      } else if (kind == 2) {
        Shape start, stop, step;
        for (const Dim& d : chain.shape()) {
          const bool back = uniform(0, 1) == 1;
          start.emplace_back(back ? int64_t{d} - 1 : uniform(0, 1));
          stop.emplace_back(back ? -int64_t{d} - 1 : int64_t{d});
          step.emplace_back((back ? -1 : 1) * uniform(1, 2));
        }
        both([&](const array& a) { return slice(a, start, stop, step); });
      } else if (kind == 3) {
        Shape shape = chain.shape();
        shape.insert(shape.begin(), Dim(uniform(1, 2)));
        both([&](const array& a) { return broadcast_to(a, shape); });
      } else {
        both([](const array& a) { return expand_dims(a, 0); });
      }
      if (uniform(0, 2) == 0) chain.eval();  // a view of a view
    }
    chain.eval();
    REQUIRE(chain.shape() == lazy.shape());
    CHECK((chain * 2).to_vector<int>() == (lazy * 2).to_vector<int>());  // strided operands
    CHECK(chain.to_vector<int>() == lazy.to_vector<int>());
  }
}

TEST_CASE("data() is contiguous; a view keeps its base alive") {
  array t = array(0);
  {
    const array x = data({3, 4});
    t = transpose(x);
    t.eval();
  }
  CHECK(t.strides() == Strides{1, 4});
  const int* p = t.data<int>();
  CHECK(std::vector<int>(p, p + 12) == std::vector<int>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
  CHECK(t.strides() == Strides{3, 1});
}

TEST_CASE("a view keeps its base from being overwritten") {
  array state = data({2, 3});
  const auto step = compile(
      [&](const std::vector<array>&) {
        state = state + 1;
        return std::vector<array>{};
      },
      {.state = {&state}});
  step({});
  const void* before = buffer(state);
  step({});
  CHECK(buffer(state) == before);  // in place: no other handle shares it
  array old = transpose(state);
  old.eval();
  REQUIRE(buffer(old) == before);
  step({});
  CHECK(buffer(state) != before);
  CHECK(old.to_vector<int>() == std::vector<int>{2, 5, 3, 6, 4, 7});
  CHECK(state.to_vector<int>() == std::vector<int>{3, 4, 5, 6, 7, 8});
  old = array(0);
  const void* fresh = buffer(state);
  step({});
  CHECK(buffer(state) == fresh);
  array row = slice(state, {1, 0}, {2, 3});  // a view that is the state now
  row.eval();
  state = reshape(row, {3});
  row = array(0);
  state.eval();
  const auto other = compile(
      [&](const std::vector<array>&) {
        state = state * 2;
        return std::vector<array>{};
      },
      {.state = {&state}});
  other({});
  CHECK(state.to_vector<int>() == std::vector<int>{14, 16, 18});
}
