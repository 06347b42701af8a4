#include "tools/weft/bench/support.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "compiler/program.h"
#include "weft/compile.h"
#include "weft/device.h"

namespace weft::tool {

namespace {

void append_line(const std::string& file, const std::string& line) {
  std::ofstream out(file, std::ios::app);
  out << line << "\n";
  if (!out.flush()) throw std::runtime_error(fmt::format("[bench] {} cannot be written", file));
}

/// The arguments of this process as they were given, without --record.
std::string command_line() {
  std::ifstream in("/proc/self/cmdline");
  std::string out = "weft", word;
  bool first = true, skip = false;
  while (std::getline(in, word, '\0')) {
    if (!first && !skip && word != "--record" && !word.starts_with("--record=")) out += " " + word;
    skip = !first && word == "--record";
    first = false;
  }
  return out;
}

}  // namespace

ArrayFunction compiled_as(const ArrayFunction& f, const std::vector<array>& inputs, bool libraries) {
  const compiler::Policy before = compiler::default_policy();
  compiler::Policy policy = before;
  policy.libraries = libraries;
  compiler::set_default_policy(policy);
  const auto program = compile(f, {});
  eval(program(inputs));  // built now, under this policy
  compiler::set_default_policy(before);
  return program;
}

void record_command(const std::string& file) {
  const std::time_t now = std::time(nullptr);
  std::tm day{};
  gmtime_r(&now, &day);
  append_line(file,
              nlohmann::ordered_json{
                  {"command", command_line()}, {"date", fmt::format("{:%Y-%m-%d}", day)}, {"flags", WEFT_BUILD_FLAGS}}
                  .dump());
}

Row::Row(const std::string& bench, const BenchOptions& o, const std::string& dtype)
    : json_(o.json), silent_(o.silent), record_(o.record) {
  text("bench", bench).text("peer", "weft").text("mode", o.machine.no_libraries ? "compile, no libraries" : "compile");
  text("dtype", !dtype.empty()    ? dtype
                : o.machine.tf32  ? "tf32"
                : o.dtype == "f8" ? "float8"
                                  : dtype_name(compute_dtype(o.dtype)));
}

Row& Row::text(const char* key, const std::string& value) { return add(key, "\"" + value + "\"", value); }
Row& Row::number(const char* key, double value) {
  return add(key, fmt::format("{:.5f}", value), fmt::format("{:.3f}", value));
}
Row& Row::whole(const char* key, int64_t value) {
  const std::string text = fmt::format("{}", value);
  return add(key, text, text);
}

void Row::print() const {
  if (silent_) return;
  if (json_) fmt::print("{{{}}}\n", json_line_);
  else fmt::print("{}\n", line_);
  std::fflush(stdout);
  if (!record_.empty()) append_line(record_, "{" + json_line_ + "}");
}

Row& Row::add(const char* key, const std::string& json, const std::string& plain) {
  json_line_ += fmt::format("{}\"{}\": {}", json_line_.empty() ? "" : ", ", key, json);
  line_ += fmt::format("{}{} {}", line_.empty() ? "" : "  ", key, plain);
  return *this;
}

double device_ms(int64_t reps, int burst, const std::function<void()>& f) {
  for (int i = 0; i < 3; ++i) f();
  synchronize();
  std::vector<double> times;
  for (int64_t i = 0; i < reps; ++i) {
    times.push_back(1e3 / burst * seconds_of([&] {
                      for (int k = 0; k < burst; ++k) f();
                      synchronize();
                    }));
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void need_gpu(const char* name) {
  if (default_device().type != Device::gpu)
    throw UsageError(fmt::format("weft bench {} measures a GPU: give --device gpu", name));
}

}  // namespace weft::tool
