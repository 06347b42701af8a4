// Transposes that are large enough for the tiles a GPU turns them by: whole ones and ragged ones, alone and with
// arithmetic around them.
#include <doctest/doctest.h>

#include <vector>

#include "weft/compile.h"
#include "weft/ops.h"

using namespace weft;

namespace {

/// Element (i, j) is (53 i + j) mod 251: exact in every float, and told from its neighbours.
array numbered(int rows, int columns, Dtype dtype) {
  const array i = reshape(arange(rows), {rows, 1}), j = reshape(arange(columns), {1, columns});
  return astype(remainder(i * array(53) + j, array(251)), dtype);
}

int64_t wrong(const array& turned, int rows, int columns, double factor) {
  const std::vector<double> values = astype(turned, float64).to_vector<double>();
  int64_t count = 0;
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i)
      count += values[static_cast<size_t>(j * rows + i)] != factor * static_cast<double>((53 * i + j) % 251);
  return count;
}

}  // namespace

TEST_CASE("large transposes leave every element in its place") {
  const auto plain = compile(
      [](const std::vector<array>& in) { return std::vector<array>{contiguous(transpose(in[0]))}; }, CompileOptions{});
  const auto twice =
      compile([](const std::vector<array>& in) { return std::vector<array>{transpose(in[0]) + transpose(in[0])}; },
              CompileOptions{});
  const auto mixed = compile([](const std::vector<array>& in) { return std::vector<array>{transpose(in[0]) * in[1]}; },
                             CompileOptions{});
  for (const auto& [dtype, height, width] : {std::tuple{bfloat16, 2048, 2176},
                                             {bfloat16, 2056, 2200},
                                             {bfloat16, 2051, 2053},
                                             {float16, 2056, 2200},
                                             {float32, 1024, 1088},
                                             {float32, 1036, 1092},
                                             {float32, 1031, 1029}}) {
    const int rows = height, columns = width;
    const auto size = dtype.size();
    CAPTURE(size);
    CAPTURE(rows);
    CAPTURE(columns);
    const array x = numbered(rows, columns, dtype), ones = full({columns, rows}, array(1), dtype);
    CHECK(wrong(plain({x})[0], rows, columns, 1) == 0);
    CHECK(wrong(twice({x})[0], rows, columns, 2) == 0);
    CHECK(wrong(mixed({x, ones})[0], rows, columns, 1) == 0);
  }
}
