#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "temporary_folder.h"
#include "tools/weft/explain/trace_file.h"
#include "weft/io.h"
#include "weft/ops.h"

using namespace weft;
using namespace weft::tool;

namespace {

target::Rates rates_of(double bandwidth, double flops) {
  target::Rates r;
  r.copy.fill(bandwidth);
  r.products.f32 = flops;
  return r;
}

}  // namespace

TEST_CASE("trace file: slices with rates and fractions, threads, counters") {
  runtime::Timeline t;
  t.names = {"row_1", "say \"hello\""};
  t.threads = {"main", "worker 1"};
  t.slices = {{.name = 0,
               .kind = "kernel",
               .thread = 0,
               .start = 10,
               .length = 2,
               .bytes = 4000,
               .flops = 1000,
               .program = 3,
               .step = 5},
              {.name = 1, .kind = "part", .thread = 1, .start = 10.5, .length = 1}};
  t.samples = {{"memory", 12, 64}};
  const auto root = nlohmann::json::parse(trace_json(t, rates_of(8e9, 1e9)));
  const auto& events = root["traceEvents"];
  REQUIRE(events.size() == 6);
  CHECK(events[1]["args"]["name"] == "main");
  const auto& step = events[3];
  CHECK(step["name"] == "row_1");
  CHECK(step["ph"] == "X");
  CHECK(step["cat"] == "kernel");
  CHECK(step["ts"] == 10.0);
  CHECK(step["dur"] == 2.0);
  CHECK(step["args"]["GB/s"] == 2.0);
  CHECK(step["args"]["GFLOP/s"] == 0.5);
  CHECK(step["args"]["fraction of peak"] == 0.5);  // 1000 operations at 1 GFLOP/s: 1 of 2 µs
  CHECK(step["args"]["program"] == 3);
  CHECK(events[4]["name"] == "say \"hello\"");
  CHECK(events[4]["args"].empty());
  CHECK(events[5]["ph"] == "C");
  CHECK(events[5]["args"]["bytes"] == 64);
}

TEST_CASE("trace file: written also where the work fails, and refused before it begins") {
  const TemporaryFolder folder;
  const std::string file = folder / "t.json";
  const auto fail = [] {
    sum(ones({1000}) * 3.0f).item<float>();
    throw std::runtime_error("on the way");
    return 0;
  };
  CHECK_THROWS_WITH(traced(file, fail), "on the way");
  const auto root = nlohmann::json::parse(io::read_file(file));
  CHECK(root["traceEvents"].size() > 3);
  bool ran = false;
  CHECK_THROWS_AS(traced(folder / "no/such/folder.json", [&] { return ran = true, 0; }), std::runtime_error);
  CHECK_FALSE(ran);
  CHECK(traced("", [] { return 7; }) == 7);
  CHECK_FALSE(runtime::recording());
}
