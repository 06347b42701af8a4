#include "tools/weft/train/progress.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

using namespace weft::tool;

namespace {

/// What a Progress writes for the given steps.
std::string written(ProgressStyle style, int64_t steps, int64_t every) {
  std::FILE* file = std::tmpfile();
  {
    Progress progress(style, file, 0, steps, every);
    for (int64_t k = 1; k <= steps; ++k) {
      StepReport r{k, 4.0 / static_cast<double>(k), std::nullopt, 10, 1000};
      if (k == 5) r.val_loss = 2.5;
      progress.step(r);
    }
  }
  std::string out(static_cast<size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  REQUIRE(std::fread(out.data(), 1, out.size(), file) == out.size());
  std::fclose(file);
  return out;
}

}  // namespace

TEST_CASE("a JSON line keeps every digit, and has a validation loss only where there is one") {
  const float loss = 1.2345678f;
  const auto plain = nlohmann::json::parse(json_line({3, static_cast<double>(loss), std::nullopt, 12.5, 61440}));
  CHECK(plain["step"] == 3);
  CHECK(plain["loss"].get<double>() == static_cast<double>(loss));
  CHECK(plain["ms"] == 12.5);
  CHECK(plain["tok_s"] == 61440);
  CHECK(plain.size() == 4);
  const auto with = nlohmann::json::parse(json_line({3, 1, 1.0 / 3, 1, 1}));
  CHECK(with["val_loss"].get<double>() == 1.0 / 3);
}

TEST_CASE("durations and numbers are short") {
  CHECK(duration(0.2) == "0s");
  CHECK(duration(59) == "59s");
  CHECK(duration(67) == "1m 07s");
  CHECK(duration(7500) == "2h 05m");
  CHECK(duration(-3) == "0s");
  CHECK(short_number(812) == "812");
  CHECK(short_number(21944) == "21.9k");
  CHECK(short_number(1.254e6) == "1.25M");
  CHECK(short_number(999.9) == "1.0k");
}

TEST_CASE("the bar fits any width") {
  const StepReport r{500, 2.34567, std::nullopt, 35, 21900};
  const std::string line = bar_line(r, 1000, 17.5, 2.5, 100);
  CHECK(line.find("500/1000") != std::string::npos);
  CHECK(line.find("loss 2.3457") != std::string::npos);
  CHECK(line.find("val 2.5000") != std::string::npos);
  CHECK(line.find("21.9k tok/s") != std::string::npos);
  CHECK(line.find("[===============               ]") == 0);
  for (int columns = 0; columns < 140; ++columns)
    CHECK(bar_line(r, 1000, 17.5, 2.5, columns).size() <= static_cast<size_t>(std::max(columns - 1, 0)));
}

TEST_CASE("lines: the first, every so many, the last, and where there is a validation loss") {
  const std::string out = written(ProgressStyle::lines, 12, 4);
  size_t lines = 0;
  for (const char c : out) lines += c == '\n';
  CHECK(lines == 5);  // 1, 4, 5, 8, 12
  CHECK(out.find("step  5/12  loss 0.8000  val 2.5000") != std::string::npos);
  CHECK(out.find("step 12/12") != std::string::npos);
  CHECK(out.find('\r') == std::string::npos);
}

TEST_CASE("JSON: one object a step and nothing else") {
  const std::string out = written(ProgressStyle::json_lines, 7, 4);
  size_t begin = 0;
  for (int64_t k = 1; k <= 7; ++k) {
    const size_t end = out.find('\n', begin);
    REQUIRE(end != std::string::npos);
    const auto row = nlohmann::json::parse(out.substr(begin, end - begin));
    CHECK(row["step"] == k);
    CHECK(row.contains("val_loss") == (k == 5));
    begin = end + 1;
  }
  CHECK(begin == out.size());
}

TEST_CASE("a bar is one line, redrawn, with its last state at the end") {
  const std::string out = written(ProgressStyle::bar, 50, 1);
  CHECK(out.front() == '\r');
  CHECK(out.back() == '\n');
  CHECK(out.find('\n') == out.size() - 1);
  CHECK(out.find("50/50") != std::string::npos);
}

TEST_CASE("a file is no terminal") {
  std::FILE* file = std::tmpfile();
  CHECK(progress_style(file, false) == ProgressStyle::lines);
  CHECK(progress_style(file, true) == ProgressStyle::json_lines);
  CHECK(terminal_columns(file) == 80);
  std::fclose(file);
}
