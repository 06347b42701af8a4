// Kernels of arrays whose extents are known at run time alone: one program for every length.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernel/language/run.h"
#include "weft/kernel.h"

namespace {

namespace k = weft::k;

using test_kernels::run_with;

const weft::Symbol* rows_symbol() { return weft::symbol("rows", 40); }
const weft::Symbol* columns_symbol() { return weft::symbol("columns", 24); }

/// An array [rows <= 40, columns <= 24] or [rows <= 40].
k::Param ragged(k::Use use, bool two_axes = true) {
  if (two_axes) return {use, weft::float32, {40, 24}, {}, {rows_symbol(), columns_symbol()}};
  return {use, weft::float32, {40}, {}, {rows_symbol()}};
}

std::vector<float> counted(size_t n) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<float>((i * 37) % 101) - 50;
  return out;
}

const std::array<std::array<int64_t, 2>, 5> lengths{{{1, 1}, {7, 24}, {32, 5}, {39, 16}, {40, 24}}};

/// Returns the message of what `f` throws; "" where it throws nothing.
template <class F>
std::string refusal(const F& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

/// Traces a kernel of one program on an array [rows <= 40, columns <= 24].
template <class F>
k::Program ragged_kernel(const F& body) {
  return k::trace("ragged", {ragged(k::Use::in_out)}, {1},
                  [&](std::span<const k::AnyRef> refs) { body(k::InOut<float, 2>(refs[0])); });
}

}  // namespace

TEST_CASE("extents of run time bound loops, guards, masks and the grid of one program") {
  // Sums of rows: blocks of 8 rows a program, columns in parts of 16.
  const auto grid = [](std::span<const k::AnyRef> r) { return k::Grid{k::cdiv(k::In<float, 2>(r[0]).extent(0), 8)}; };
  const auto program = k::trace_with(
      "row_sums", {ragged(k::Use::in), ragged(k::Use::out, false)}, grid, [](std::span<const k::AnyRef> r) {
        const k::In<float, 2> x(r[0]);
        const k::Out<float, 1> y(r[1]);
        const auto rows = k::block(k::program_id(0), 8);
        k::Mut sum = k::zeros<float>({8});
        k::loop(0, x.extent(1), 16, [&](k::Index at) {
          const auto inside = k::row(at + k::arange(16)) < k::reshape(x.extent(1), {1, 1});
          sum += k::sum(k::where(inside, x(rows, k::ds(at, 16)).load(100), 0.0), 1);
        });
        y(rows) = sum;
      });
  CHECK(program.programs() == 5);
  REQUIRE(program.symbols().size() == 2);
  CHECK(program.symbols()[0] == rows_symbol());
  for (const auto& extents : lengths) {
    CAPTURE(extents[0]);
    CAPTURE(extents[1]);
    CHECK(program.programs(extents) == (extents[0] + 7) / 8);
    auto x = counted(40 * 24);
    std::vector<float> y(40, -1);
    run_with(program, extents, x, y);
    for (int64_t i = 0; i < 40; ++i) {
      float wanted = i < extents[0] ? 0.0f : -1.0f;
      for (int64_t j = 0; i < extents[0] && j < extents[1]; ++j) wanted += x[static_cast<size_t>(i * 24 + j)];
      CHECK(y[static_cast<size_t>(i)] == wanted);
    }
  }
}

TEST_CASE("several axes of a grid have run-time numbers of programs") {
  // Element (i, j) is written by program (k, i, j) of those of a sequential axis that count its rows.
  const auto grid = [](std::span<const k::AnyRef> r) {
    const k::InOut<float, 2> x(r[0]);
    return k::Grid{{x.extent(0), k::Order::sequential}, 2, x.extent(1)};
  };
  const auto program = k::trace_with("cells", {ragged(k::Use::in_out)}, grid, [](std::span<const k::AnyRef> r) {
    const k::InOut<float, 2> x(r[0]);
    const auto row = k::program_id(0), column = k::program_id(2);
    const auto count = k::cast<float>(k::program_count(2) + k::program_count(0) + k::program_count(1));
    k::when(k::program_id(1) == 1, [&] { x(row, column) = x(row, column) * 2.0f + count; });
  });
  // Nothing lies outside where the indices are those of the grid.
  CHECK(program.to_string().find("limit") == std::string::npos);
  CHECK(program.to_string().find("select") == std::string::npos);
  for (const auto& extents : lengths) {
    CHECK(program.programs(extents) == 2 * extents[1]);
    auto x = counted(40 * 24);
    const auto before = x;
    run_with(program, extents, x);
    for (int64_t i = 0; i < 40; ++i)
      for (int64_t j = 0; j < 24; ++j) {
        const auto at = static_cast<size_t>(i * 24 + j);
        const bool inside = i < extents[0] && j < extents[1];
        CHECK(x[at] == (inside ? before[at] * 2 + static_cast<float>(extents[1] + extents[0] + 2) : before[at]));
      }
  }
}

TEST_CASE("gathers, views and limits end at run-time extents") {
  const auto program = k::trace("views", {ragged(k::Use::in), {k::Use::out, weft::float32, {5, 64}}}, {1},
                                [](std::span<const k::AnyRef> r) {
                                  const k::In<float, 2> x(r[0]);
                                  const k::Out<float, 2> y(r[1]);
                                  const auto at = k::arange(64);
                                  y(0, k::all) = k::gather(x, at, 0 * at);
                                  y(1, k::all) = x.permute({1, 0})(0, k::ds(0, 64)).load(-1);
                                  const auto half = x.limit(0, x.extent(0) / 2);
                                  y(2, k::all) = half(k::ds(0, 64), 0).load(-2);
                                  // Every third row from the second one on.
                                  const k::In<float, 2> part(r[0].part({1, 0}, {13, 24}, {3, 1}));
                                  y(3, k::all) = part(k::ds(0, 64), 0).load(-3);
                                  y(4, k::all) = x(k::ds(x.extent(0) - 64, 64), 0).load(-4);
                                });
  for (const auto& extents : lengths) {
    auto x = counted(40 * 24);
    std::vector<float> y(5 * 64);
    run_with(program, extents, x, y);
    const int64_t rows = extents[0];
    const auto element = [&](int64_t i, int64_t end, float other) {
      return i >= 0 && i < end ? x[static_cast<size_t>(i * 24)] : other;
    };
    for (int64_t i = 0; i < 64; ++i) {
      const auto got = [&](int64_t k) { return y[static_cast<size_t>(k * 64 + i)]; };
      CHECK(got(0) == element(i, rows, 0));
      CHECK(got(1) == element(i, rows, -1));
      CHECK(got(2) == element(i, rows / 2, -2));
      CHECK(got(3) == (i < 13 ? element(3 * i + 1, rows, -3) : -3.0f));
      CHECK(got(4) == element(rows - 64 + i, rows, -4));
    }
  }
}

TEST_CASE("what is known of an extent leaves guards out") {
  const auto text = [](bool assumed) {
    return k::trace_with(
               "blocks", {ragged(k::Use::in_out, false)}, [](std::span<const k::AnyRef>) { return k::Grid{1}; },
               [&](std::span<const k::AnyRef> r) {
                 const k::InOut<float, 1> x(r[0]);
                 if (assumed) k::assume_multiple(x.extent(0), 8);
                 k::loop(0, x.extent(0), 8, [&](k::Index i) { x(k::ds(i, 8)) += 1.0f; });
               })
        .to_string();
  };
  CHECK(text(false).find("limit") != std::string::npos);
  CHECK(text(true).find("limit") == std::string::npos);
}

TEST_CASE("whole blocks in front of a run-time extent, and programs that count backwards, need no guards") {
  const auto text = [](const auto& body) {
    const auto grid = [](std::span<const k::AnyRef> r) { return k::Grid{k::InOut<float, 1>(r[0]).extent(0)}; };
    return k::trace_with("whole", {ragged(k::Use::in_out, false)}, grid,
                         [&](std::span<const k::AnyRef> r) { body(k::InOut<float, 1>(r[0])); })
        .to_string();
  };
  using X = k::InOut<float, 1>;
  const auto guarded = [](const std::string& t) {
    return t.find("limit") != std::string::npos || t.find("mask") != std::string::npos;
  };
  const auto blocks = [&](const X& x, const k::Index& end, int64_t size) {
    k::loop(0, end, size, [&](k::Index i) { x(k::ds(i, size)) += 1.0f; });
  };
  const auto floor_of = [](const k::Index& n, int64_t block) { return k::floordiv(n, block) * block; };
  CHECK(!guarded(text([&](const X& x) { blocks(x, floor_of(x.extent(0), 8), 8); })));
  CHECK(!guarded(text([&](const X& x) { blocks(x, floor_of(x.extent(0), 8), 4); })));
  CHECK(guarded(text([&](const X& x) { blocks(x, floor_of(x.extent(0), 8), 16); })));
  CHECK(guarded(text([&](const X& x) { blocks(x, floor_of(x.extent(0), 8) + 8, 8); })));
  const auto seen = [&](const X& x) { return k::minimum(k::program_id(0) + 1, x.extent(0)); };
  CHECK(!guarded(text([&](const X& x) { blocks(x, k::maximum(k::floordiv(seen(x), 8), 0) * 8, 8); })));
  CHECK(!guarded(text([](const X& x) { x(k::program_count(0) - 1 - k::program_id(0)) = 0.0f; })));
  CHECK(guarded(text([](const X& x) { x(k::program_count(0) - k::program_id(0)) = 0.0f; })));
  // The value of a length that is an axis is that of its extent.
  CHECK(!guarded(text([&](const X& x) { blocks(x, floor_of(k::extent(rows_symbol()), 8), 8); })));
}

TEST_CASE("what needs a number says so, and names what has the value") {
  const auto refused = [](const auto& body, const char* words) {
    const std::string message = refusal([&] { ragged_kernel(body); });
    CAPTURE(message);
    CHECK(message.find(words) != std::string::npos);
    CHECK(message.find("extents_test.cpp") != std::string::npos);
  };
  using X = k::InOut<float, 2>;
  refused([](const X& x) { x.dim(0); }, "extent(0) is its value, bound(0) the largest one");
  refused([](const X& x) { x(0, k::all) = 0.0f; }, "axis 1 of [<=40,<=24] is taken whole");
  refused([](const X& x) { x.limit(0, x.extent(0) + 1); }, "say so by assume_range");
  refused([](const X& x) { x.any().part({0, 0}, {40, 24}, {1, -1}); }, "reach outside");
  refused(
      [](const X& x) {
        k::Mut many = x.extent(1);
        static_cast<void>(many.get() + 1);
        x.limit(1, many.get() * 2);
      },
      "0 to 24");
  const auto of_memory = [](std::span<const k::AnyRef> r) {
    return k::Grid{k::cast<k::i64>(k::InOut<float, 2>(r[0])(0, 0).load())};
  };
  const auto nothing = [](std::span<const k::AnyRef>) {};
  CHECK(refusal([&] {
          k::trace_with("g", {ragged(k::Use::in_out)}, of_memory, nothing);
        }).find("axis 0 of the grid is no expression of extents") != std::string::npos);
  const auto counted_grid = [](std::span<const k::AnyRef> r) { return k::Grid{k::InOut<float, 2>(r[0]).extent(0)}; };
  const std::string programs = refusal([&] {
    k::trace_with("g", {ragged(k::Use::in_out)}, counted_grid, [](std::span<const k::AnyRef>) { k::num_programs(0); });
  });
  CHECK(programs.find("program_count(0) is its value") != std::string::npos);
  const auto program = k::trace_with("g", {ragged(k::Use::in_out)}, counted_grid, nothing);
  const std::array<int64_t, 2> outside{41, 1};
  CHECK(refusal([&] { program.programs(outside); }).find("the extent rows is 41: it lies in 1 to 40") !=
        std::string::npos);
  CHECK(refusal([&] { program.programs({}); }).find("2 run-time extents") != std::string::npos);
  CHECK(refusal([&] {
          k::trace("g", {{k::Use::in, weft::float32, {41}, {}, {rows_symbol()}}}, {1}, nothing);
        }).find("other bounds of its symbols") != std::string::npos);
}
