// The debugger: it stops at lines of the user's program, and shows values, arrays and loops there.
#include "weft/kernel/debug.h"

#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "weft/kernel_async.h"

namespace {

namespace k = weft::k;

/// Lines of the kernel below, as it is traced.
struct Lines {
  int load = 0, loop = 0, add = 0, store = 0;
};

/// y[i, :] = sum over j of x[i, j] · (0 1 2 3): four programs, a loop of three.
k::Program weighted(Lines& lines) {
  using weft::float32;
  return k::trace("weighted", {{k::Use::in, float32, {4, 3}, "x"}, {k::Use::out, float32, {4, 4}}}, {4},
                  [&](std::span<const k::AnyRef> r) {
                    const k::In<float, 2> x(r[0]);
                    const k::Out<float, 2> y(r[1]);
                    const auto row = k::program_id(0);
                    k::Mut sum = k::zeros<float>({4});
                    lines.loop = __LINE__ + 1;
                    k::loop(3, [&](k::Index j) {
                      lines.load = __LINE__ + 1;
                      const auto v = k::watch("v", x(row, j).load());
                      lines.add = __LINE__ + 1;
                      sum = k::watch("sum", sum.get() + v * k::cast<float>(k::arange(4)));
                    });
                    lines.store = __LINE__ + 1;
                    y(row, k::all) = sum;
                  });
}

std::vector<float> run(const k::Program& program, const k::Debugger& debugger) {
  std::vector<float> x(12), y(16);
  std::iota(x.begin(), x.end(), 1.0f);
  void* const arrays[] = {x.data(), y.data()};
  k::debug(program, arrays, debugger);
  return y;
}

TEST_CASE("a breakpoint stops at a line of one program, in each iteration of a loop") {
  Lines lines;
  const k::Program program = weighted(lines);
  std::vector<std::string> seen;
  k::Debugger debugger;
  debugger.breakpoints = {{.file = "debug_test.cpp", .line = lines.add, .program = 2}};
  debugger.stopped = [&](k::Stop& stop) {
    CHECK(stop.at().number == lines.add);
    CHECK(stop.program() == 2);
    CHECK(stop.role() == -1);
    CHECK(stop.reason() == "breakpoint 1");
    REQUIRE(stop.backtrace().size() == 1);
    seen.push_back(stop.print("v") + " " + stop.backtrace()[0]);
    CHECK(stop.print("x[2, 0:2]") == "[7, 8]");
    CHECK(stop.print("p0[:, 1]") == "[2, 5, 8, 11]");
    return k::Go::on;
  };
  const std::vector<float> y = run(program, debugger);
  REQUIRE(seen.size() == 3);
  CHECK(seen[0].starts_with("7 iteration 0 of a loop to 3 by 1 at "));
  CHECK(seen[2].starts_with("9 iteration 2 of a loop to 3 by 1 at "));
  CHECK(y[2 * 4 + 3] == 3 * (7 + 8 + 9));
}

TEST_CASE("a breakpoint stops behind a value of a name") {
  Lines lines;
  const k::Program program = weighted(lines);
  std::vector<std::string> sums;
  k::Debugger debugger;
  debugger.breakpoints = {{.program = 1, .value = "sum"}};
  debugger.stopped = [&](k::Stop& stop) {
    sums.push_back(stop.print("sum[3]"));
    return k::Go::on;
  };
  run(program, debugger);
  CHECK(sums == std::vector<std::string>{"12", "27", "45"});
}

TEST_CASE("conditions of breakpoints, and values as numbers") {
  Lines lines;
  const k::Program program = weighted(lines);
  int stops = 0;
  k::Debugger debugger;
  debugger.breakpoints = {{.line = lines.add, .when = [](const k::Stop& stop) { return stop.number("v") > 10; }}};
  debugger.stopped = [&](k::Stop& stop) {
    ++stops;
    CHECK(stop.program() == 3);
    CHECK_THROWS_WITH_AS(stop.number("x[0]"), doctest::Contains("x[0] has 3 elements"), std::invalid_argument);
    CHECK_THROWS_WITH_AS(stop.print("x[9, 0]"), doctest::Contains("passes the end of an axis of 4"),
                         std::invalid_argument);
    CHECK_THROWS_WITH_AS(stop.print("z"), doctest::Contains("there is no z: known are v, "), std::invalid_argument);
    return k::Go::on;
  };
  run(program, debugger);
  CHECK(stops == 2);
}

TEST_CASE("steps: by line, past a loop, out of it, by instruction") {
  Lines lines;
  const k::Program program = weighted(lines);
  std::vector<int> at;
  k::Debugger debugger;
  const std::vector<k::Go> ways{k::Go::line, k::Go::out, k::Go::on};
  debugger.breakpoints = {{.line = lines.load, .program = 1}};
  debugger.stopped = [&](k::Stop& stop) {
    at.push_back(stop.at().number);
    stop.breakpoints().clear();
    return ways[at.size() - 1];
  };
  run(program, debugger);
  CHECK(at == std::vector{lines.load, lines.add, lines.store});

  at.clear();
  debugger.breakpoints = {{.line = lines.loop, .program = 1}};
  debugger.stopped = [&](k::Stop& stop) {
    at.push_back(stop.at().number);
    stop.breakpoints().clear();
    return at.size() == 1 ? k::Go::over : k::Go::on;
  };
  run(program, debugger);
  CHECK(at == std::vector{lines.loop, lines.store});

  int instructions = 0;
  debugger = {
      .stopped =
          [&](k::Stop& stop) { return stop.program() == 0 && ++instructions > 0 ? k::Go::instruction : k::Go::on; },
      .at_begin = true};
  run(program, debugger);
  CHECK(instructions > 12);
}

TEST_CASE("the debugger ends a run, and stops where the interpreter finds a mistake") {
  Lines lines;
  const k::Program program = weighted(lines);
  CHECK_THROWS_WITH_AS(run(program, {.stopped = [](k::Stop&) { return k::Go::quit; }, .at_begin = true}),
                       doctest::Contains("the debugger ended the run"), std::runtime_error);
  int wrong_line = 0, stops = 0;
  const k::Program wrong =
      k::trace("wrong", {{k::Use::in, weft::float32, {4, 3}}, {k::Use::out, weft::float32, {4, 4}}}, {2},
               [&](std::span<const k::AnyRef> r) {
                 const k::Out<float, 2> y(r[1]);
                 wrong_line = __LINE__ + 1;
                 y(0, 0) = k::cast<float>(k::program_id(0));
               });
  const k::Debugger debugger{.stopped = [&](k::Stop& stop) {
    ++stops;
    CHECK(stop.at().number == wrong_line);
    CHECK(stop.program() == 1);
    return k::Go::on;
  }};
  CHECK_THROWS_AS(run(wrong, debugger), std::runtime_error);
  CHECK(stops == 1);
}

TEST_CASE("roles are stopped one by one") {
  int line = 0;
  const k::Program program = k::trace("roles", {{k::Use::in, weft::float32, {8}}, {k::Use::out, weft::float32, {8}}},
                                      {1}, [&](std::span<const k::AnyRef> r) {
                                        const k::In<float, 1> x(r[0]);
                                        const k::Out<float, 1> y(r[1]);
                                        const auto kept = k::shared<float>({8});
                                        const k::Barrier full;
                                        k::roles({{.warps = 1,
                                                   .body =
                                                       [&] {
                                                         full.copy(kept(k::all), x(k::all));
                                                         full.arrive();
                                                       }},
                                                  {.warps = 1, .body = [&] {
                                                     full.wait(0);
                                                     line = __LINE__ + 1;
                                                     y(k::all) = kept(k::all) * 2.f;
                                                   }}});
                                      });
  std::vector<float> x(8, 3), y(8);
  void* const arrays[] = {x.data(), y.data()};
  int stops = 0;
  k::debug(program, arrays, {.breakpoints = {{.line = line}}, .stopped = [&](k::Stop& stop) {
                               ++stops;
                               CHECK(stop.role() == 1);
                               CHECK(stop.print("l0[0:2]") == "[3, 3]");
                               return k::Go::on;
                             }});
  CHECK(stops == 1);
  CHECK(y[7] == 6);
}

/// Works in a folder from which the path of this file leads to it: the path may be relative to where the compiler ran.
/// Whether there is one is `found`.
class BesideSource {
 public:
  BesideSource() {
    std::filesystem::path from = WEFT_SOURCE_DIR;
    for (const char* const below : {"", "src", "kernel", "language"}) {
      from /= below;
      if (found = std::filesystem::exists(from / __FILE__); found) break;
    }
    if (found) std::filesystem::current_path(from);
  }
  ~BesideSource() { std::filesystem::current_path(before_); }
  BesideSource(const BesideSource&) = delete;
  BesideSource& operator=(const BesideSource&) = delete;
  bool found = false;

 private:
  std::filesystem::path before_ = std::filesystem::current_path();
};

TEST_CASE("the debugger takes run-time extents") {
  const weft::Symbol* const rows = weft::symbol("rows", 5);
  int line = 0;
  const k::Program program = k::trace_with(
      "ragged",
      {{k::Use::in, weft::float32, {5, 2}, "x", {rows, nullptr}}, {k::Use::in_out, weft::float32, {5}, "y", {rows}}},
      [](std::span<const k::AnyRef> r) { return k::Grid{k::Index(r[0].extent(0))}; },
      [&](std::span<const k::AnyRef> r) {
        const k::In<float, 2> x(r[0]);
        const auto row = k::program_id(0);
        const k::InOut<float, 1> y(r[1]);
        line = __LINE__ + 1;
        y(row) = k::sum(x(row, k::all).load(), 0) + k::cast<float>(x.extent(0));
      });
  for (const int64_t n : {1, 3, 5}) {
    CAPTURE(n);
    std::vector<float> x(10), y(5, -1);
    std::iota(x.begin(), x.end(), 1.0f);
    void* const arrays[] = {x.data(), y.data()};
    std::vector<int64_t> programs;
    k::Debugger debugger;
    debugger.breakpoints = {{.file = "debug_test.cpp", .line = line}};
    debugger.stopped = [&](k::Stop& stop) {
      programs.push_back(stop.program());
      CHECK(stop.number("rows") == static_cast<double>(n));
      CHECK(stop.names().back() == "rows");
      if (n == 3) CHECK(stop.print("x[:, 1]") == "[2, 4, 6]");
      CHECK_THROWS_WITH(stop.print("x[" + std::to_string(n) + ", 0]"), doctest::Contains("passes the end"));
      return k::Go::on;
    };
    k::debug(program, arrays, debugger, std::array{n});
    CHECK(static_cast<int64_t>(programs.size()) == n);
    for (size_t i = 0; i < 5; ++i)
      CHECK(y[i] == (static_cast<int64_t>(i) < n ? static_cast<float>(4 * i + 3) + static_cast<float>(n) : -1.0f));
  }
  std::vector<float> x(10), y(5);
  void* const arrays[] = {x.data(), y.data()};
  CHECK_THROWS_WITH(k::debug(program, arrays, {}),
                    doctest::Contains("[kernel ragged] has 1 run-time extents, and 0 values are given"));
  CHECK_THROWS_WITH(k::debug(program, arrays, {}, std::array{int64_t{6}}), doctest::Contains("it lies in 1 to 5"));
}

TEST_CASE("the shell answers commands") {
  const BesideSource here;
  Lines lines;
  const k::Program program = weighted(lines);
  std::istringstream in(
      "break debug_test.cpp:" + std::to_string(lines.add) +
      " if v >= 8\nb program 9\ndelete 2\nc\np sum\nprint v\np nothing\nbt\nnames\nlist\nwhat\n\nd 1\nfinish\nq\n");
  std::ostringstream out;
  CHECK_THROWS_WITH(run(program, {.stopped = k::debug_shell(in, out), .at_begin = true}),
                    doctest::Contains("the debugger ended the run"));
  const std::string text = out.str();
  CAPTURE(text);
  const auto has = [&](const std::string& part) { return text.find(part) != std::string::npos; };
  CHECK(has("begin: program 0 at "));
  CHECK(has("breakpoint 1\n"));
  CHECK(has("breakpoint 1: program 2 at "));
  CHECK(has("(debug) [0, 7, 14, 21]"));
  CHECK(has("(debug) 8"));
  CHECK(has("there is no nothing"));
  CHECK(has("iteration 1 of a loop to 3 by 1 at "));
  CHECK(has("there is no command what"));
  CHECK(has("k::watch(\"sum\"") == here.found);
  CHECK(has("step: program 2 at "));
}

}  // namespace
