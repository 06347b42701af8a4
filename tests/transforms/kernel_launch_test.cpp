// Launches of kernels on memory of the caller's with run-time extents: one program for all lengths, on the CPU and
// under a debugger; what does not fit is refused by the caller's line.
#include <string>
#include <vector>

#include "examples/kernels/foreign_stream.h"
#include "support.h"
#include "target/target.h"
#include "weft/kernel_function.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr int64_t bound = 40, columns = 6;

Dim rows_length() { return symbol("rows", bound); }

/// y = x times its row's number plus the number of rows, blocks of 8 rows a program.
auto counted_rows() {
  return k::kernel("counted_rows",
                   [](k::In<float, 2> x, k::Out<float, 2> y) {
                     const auto rows = k::block(k::program_id(0), 8);
                     const auto number = k::cast<float>(k::program_id(0) * 8 + k::arange(8));
                     const auto v = k::watch("v", x(rows, k::all).load());
                     y(rows, k::all) = v * k::col(number) + k::cast<float>(x.extent(0));
                   })
      .grid([](auto x, auto) { return k::Grid{k::cdiv(x.extent(0), 8)}; });
}

std::vector<float> counted() {
  std::vector<float> out(bound * columns);
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(i % 17);
  return out;
}

/// Checks the rows that a launch of n rows wrote, and that it left the others alone.
void check_rows(const std::vector<float>& x, const std::vector<float>& y, int64_t n) {
  bool same = true;
  for (int64_t i = 0; i < bound; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      const auto at = static_cast<size_t>(i * columns + j);
      same = same && y[at] == (i < n ? x[at] * static_cast<float>(i) + static_cast<float>(n) : -1);
    }
  CHECK(same);
}

const std::vector<int64_t> lengths{1, 7, 8, 33, bound};

}  // namespace

TEST_CASE("a launch on memory of the caller's takes run-time extents") {
  const auto f = counted_rows();
  std::vector<float> x = counted();
  const Shape shape{rows_length(), columns};
  const int64_t before = target::cpu().stats().compiled + target::cpu().stats().from_disk;
  for (const int64_t n : lengths) {
    CAPTURE(n);
    std::vector<float> in_array(x.size(), -1), in_list(x.size(), -1), in_both(x.size(), -1);
    f.launch({}, {{.data = x.data(), .shape = shape, .extents = {n, columns}}, {in_array.data(), shape}});
    check_rows(x, in_array, n);
    f.launch({}, {{x.data(), shape}, {in_list.data(), shape}}, {{rows_length(), n}});
    check_rows(x, in_list, n);
    f.launch({}, {{x.data(), shape, {}, {n, columns}}, {in_both.data(), shape, {}, {n, columns}}},
             {{rows_length(), n}});
    check_rows(x, in_both, n);
  }
  CHECK(target::cpu().stats().compiled + target::cpu().stats().from_disk - before <= 1);  // one code for all lengths
}

TEST_CASE("run-time extents of a launch go with strides of its own") {
  const auto f = counted_rows();
  std::vector<float> x = counted(), wide(bound * 9, -1);
  const Shape shape{rows_length(), columns};
  f.launch({}, {{x.data(), shape}, {wide.data(), shape, {9, 1}}}, {{rows_length(), 11}});
  bool same = true;
  for (int64_t i = 0; i < bound; ++i)
    for (int64_t j = 0; j < 9; ++j) {
      const float wanted =
          i < 11 && j < columns ? x[static_cast<size_t>(i * columns + j)] * static_cast<float>(i) + 11 : -1;
      same = same && wide[static_cast<size_t>(i * 9 + j)] == wanted;
    }
  CHECK(same);
}

TEST_CASE("run-time extents of a launch into a GPU's stream") {
  if (!is_available(Device::gpu)) return;
  const auto f = counted_rows();
  const std::vector<float> x = counted();
  const Shape shape{rows_length(), columns}, whole{bound, columns};
  ForeignStream memory;
  for (const int64_t n : lengths) {
    CAPTURE(n);
    void *const from = memory.copy_of(array(x.data(), whole)), *const to = memory.copy_of(full(whole, -1.0f));
    f.launch({Device::gpu, memory.handle()}, {{from, shape}, {to, shape}}, {{rows_length(), n}});
    check_rows(x, memory.read(to, whole).to_vector<float>(), n);
  }
}

TEST_CASE("run-time extents that do not fit are refused by the caller's line") {
  const auto f = counted_rows();
  std::vector<float> x = counted(), y(x.size());
  const Shape shape{rows_length(), columns};
  const auto why = [&](std::vector<int64_t> of_x, std::vector<int64_t> of_y, std::vector<k::RawExtent> list) {
    return message([&] {
      f.launch({}, {{x.data(), shape, {}, std::move(of_x)}, {y.data(), shape, {}, std::move(of_y)}}, std::move(list));
    });
  };
  const std::string missing = why({}, {}, {});
  CHECK(missing.starts_with("[kernel counted_rows] "));
  CHECK(contains(missing, "kernel_launch_test.cpp:"));
  CHECK(contains(missing,
                 ": launch: the run-time extent rows<=40 of the shapes (rows<=40,6), (rows<=40,6) has no value"));
  CHECK(contains(why({0, columns}, {}, {}), "rows<=40 is 0 in array 0 of shape (rows<=40,6): it lies in 1 to 40"));
  CHECK(contains(why({}, {}, {{rows_length(), 41}}), "rows<=40 is 41 in the list of extents: it lies in 1 to 40"));
  CHECK(contains(why({3, columns}, {4, columns}, {}),
                 "rows<=40 is 3 in array 0 of shape (rows<=40,6), and 4 in array 1"));
  CHECK(contains(why({3, columns}, {}, {{rows_length(), 5}}), "and 5 in the list of extents: give it one value"));
  CHECK(contains(why({3, 5}, {}, {}), "is given the extent 5 along axis 1, which has 6"));
  CHECK(contains(why({3}, {}, {}), "has 1 extents: give one for each axis"));
  CHECK(contains(why({3, columns}, {}, {{Dim(9), 9}}), "a value is given for the number 9"));
  CHECK(
      contains(why({3, columns}, {}, {{Dim(symbol("others", 5)), 2}}), "others<=5, which is no extent of the shapes"));
}

TEST_CASE("the debugger runs a kernel on memory of the caller's with run-time extents") {
  const auto f = counted_rows();
  std::vector<float> x = counted(), y(x.size(), -1);
  const Shape shape{rows_length(), columns};
  k::Debugger debugger;
  int stops = 0;
  debugger.breakpoints = {{.program = 1, .value = "v"}};
  debugger.stopped = [&](k::Stop& stop) {
    ++stops;
    CHECK(stop.print("rows") == "11");
    CHECK(stop.number("p0[10, 5]") == x[10 * columns + 5]);
    CHECK(contains(message([&] { stop.print("p0[11, 0]"); }), "passes the end of an axis of 11 elements"));
    CHECK(stop.number("v[2, 5]") == x[10 * columns + 5]);
    CHECK(stop.number("v[3, 5]") == 0);
    return k::Go::on;
  };
  f.debug_launch(debugger, {{x.data(), shape}, {y.data(), shape}}, {{rows_length(), 11}});
  CHECK(stops == 1);
  check_rows(x, y, 11);
  CHECK(contains(message([&] { f.debug_launch(debugger, {{x.data(), shape}, {y.data(), shape}}); }), "has no value"));
  CHECK(contains(message([&] {
                   f.debug_launch(debugger, {{x.data(), {4, columns}, {1, 4}}, {y.data(), {4, columns}}});
                 }),
                 "strides of its own"));
}
