// explain and profile: tables of what a function becomes.
#include "weft/profile.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "runtime/trace.h"
#include "weft/compile.h"
#include "weft/control.h"
#include "weft/ops.h"

using namespace weft;

namespace {

std::vector<array> some_kernels(const std::vector<array>& in) {
  return {tanh(matmul(in[0], in[1])), cumsum(in[0], 1), cumsum(in[0] + 1.0f, 1)};
}

const KernelRow* row_with(const KernelTable& table, const std::string& text) {
  const auto found = std::find_if(table.rows.begin(), table.rows.end(),
                                  [&](const KernelRow& row) { return row.what.find(text) != std::string::npos; });
  return found == table.rows.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("profile: what a function computes, with launches, bytes, times and shares of the peak") {
  const array x = ones({512, 256}), w = ones({256, 64});
  const auto f = compile(some_kernels);
  const KernelTable table = profile(f, {x, w}, 3);
  double launches = 0, flops = 0;
  for (const KernelRow& row : table.rows) {
    CAPTURE(row.name);
    launches += row.launches, flops += row.flops;
    CHECK(row.ms > 0);
    CHECK(row.bytes > 0);
    CHECK(row.predicted_ms >= row.floor_ms);
    CHECK(row.of_peak() == doctest::Approx(row.floor_ms / row.ms));
  }
  CHECK(launches == doctest::Approx(launches < 4 ? 3 : 4));  // tanh rides on the product, or does not
  CHECK(flops >= 2.0 * 512 * 256 * 64);
  const KernelRow* const cumulative = row_with(table, "cumulative");
  REQUIRE(cumulative);
  CHECK(cumulative->what.find("f32(512,256)") != std::string::npos);
  CHECK(cumulative->bytes == 2.0 * 4 * 512 * 256);

  const KernelTable by_work = table.by_work();
  CHECK(by_work.rows.size() <= table.rows.size());
  CHECK(by_work.ms() == doctest::Approx(table.ms()));
  CHECK(by_work.predicted_ms() == doctest::Approx(table.predicted_ms()));
  for (size_t k = 1; k < by_work.rows.size(); ++k) CHECK(by_work.rows[k - 1].ms >= by_work.rows[k].ms);
  std::ostringstream text;
  text << table;
  CHECK(text.str() == table.to_string());
  CHECK(text.str().find(cumulative->what) != std::string::npos);
  CHECK(by_work.to_string(1).find("rows more") != std::string::npos);
}

TEST_CASE("profile: rows of equal work are one row, and a loop's body has rows of its own") {
  const array x = ones({64, 32});
  eval(x);
  const KernelTable twice = profile(
      [&] {
        const array a = exp(x) + 1.0f, b = cumsum(a, 1);
        eval(b);
        eval(cumsum(exp(b) + 1.0f, 1));
      },
      2);
  const KernelTable table = twice.by_work();
  const KernelRow* const row = row_with(table, "cumulative");
  REQUIRE(row);
  CHECK(row->launches == 2);

  const auto loop = compile([](const std::vector<array>& in) {
    return while_loop([](const std::vector<array>& c) { return c[1] < 5; },
                      [](const std::vector<array>& c) {
                        return std::vector<array>{sin(c[0]), c[1] + 1};
                      },
                      {in[0], array(0)});
  });
  const KernelTable of_loop = profile(loop, {x}, 2);
  const KernelRow* const body = row_with(of_loop, "sin");
  REQUIRE(body);
  CHECK(body->launches == 5);
}

TEST_CASE("explain: what a call would run, without running it") {
  const array x = ones({512, 256}), w = ones({256, 64});
  eval(x, w);
  array state = zeros({4});
  eval(state);
  const auto f = compile(
      [&](const std::vector<array>& in) {
        state = state + 1.0f;
        return some_kernels(in);
      },
      {.state = {&state}});
  const int64_t launches = runtime::counters().kernel_launches;
  const KernelTable before = explain(f, {x, w});
  CHECK(sum(state).item<float>() == 0);
  const KernelTable ran = profile(f, {x, w}, 1);
  CHECK(sum(state).item<float>() == 4 * 4);  // four calls, four elements
  REQUIRE(before.rows.size() == ran.rows.size());
  for (size_t k = 0; k < ran.rows.size(); ++k) {
    CHECK(before.rows[k].what == ran.rows[k].what);
    CHECK(before.rows[k].bytes == ran.rows[k].bytes);
    CHECK(before.rows[k].ms == 0);
    CHECK(before.rows[k].of_peak() == 0);
    CHECK(before.rows[k].predicted_ms > 0);
  }
  CHECK(runtime::counters().kernel_launches > launches);
  CHECK(before.to_string().find("not measured") != std::string::npos);
}

TEST_CASE("explain: functions that are not compiled, and those that compute nothing") {
  const array x = ones({128, 8});
  const KernelTable table = explain([](const std::vector<array>& in) { return std::vector<array>{exp(in[0])}; }, {x});
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].flops == 128.0 * 8);
  CHECK(explain([](const std::vector<array>& in) { return in; }, {x}).rows.empty());
}

TEST_CASE("profile: what cannot be measured is refused") {
  const array x = ones({2});
  CHECK_THROWS_WITH_AS(profile([&] { eval(x + 1.0f); }, 0), doctest::Contains("0 runs"), std::invalid_argument);
  CHECK_THROWS_AS(profile(ArrayFunction(), {x}), std::invalid_argument);
  CHECK_THROWS_AS(profile(std::function<void()>()), std::invalid_argument);
  CHECK_THROWS_AS(explain(ArrayFunction(), {x}), std::invalid_argument);
}
