#include "tools/weft/train/plot.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

using namespace weft::tool;

namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

/// Characters of UTF-8.
size_t length(const std::string& text) {
  size_t n = 0;
  for (const char c : text) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return n;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

Series falling() {
  Series s{"loss & <more>", {}};
  for (int i = 0; i <= 1000; ++i) s.points.emplace_back(i, 4 * std::exp(-i / 200.0));
  return s;
}

}  // namespace

TEST_CASE("ticks are round and cover the range") {
  CHECK(ticks(0, 10, 5) == std::vector<double>{0, 2, 4, 6, 8, 10});
  const auto t = ticks(1.37, 4.2, 6);
  CHECK(t.front() <= 1.37);
  CHECK(t.back() >= 4.2);
  CHECK(t.size() >= 5);
  CHECK(t[1] - t[0] == doctest::Approx(0.5));
  CHECK(ticks(3, 3, 5).size() == 1);
}

TEST_CASE("thinning keeps ends and mean") {
  const auto s = falling();
  const auto t = thinned(s.points, 100);
  REQUIRE(t.size() == 100);
  double before = 0, after = 0;
  for (const auto& p : s.points) before += p.second / static_cast<double>(s.points.size());
  for (const auto& p : t) after += p.second / 100;
  CHECK(after == doctest::Approx(before).epsilon(0.01));
  CHECK(t.front().second > t.back().second);
  CHECK(thinned(s.points, 5000).size() == s.points.size());
}

TEST_CASE("the SVG has a curve a series, labels, and nothing that breaks XML") {
  Series val{"validation", {{0, 4.0}, {500, std::nan("")}, {1000, 1.0}}};
  const std::string svg = svg_plot({falling(), val}, {"Loss of a<b>.txt", "step", "nats per token"});
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(count(svg, "stroke-width=\"1.6\"") == 2);
  CHECK(count(svg, "<circle") == 2);  // the point that is not a number is left out
  CHECK(count(svg, "nan") == 0);
  CHECK(count(svg, "inf") == 0);
  CHECK(svg.find("Loss of a&lt;b&gt;.txt") != std::string::npos);
  CHECK(svg.find("loss &amp; &lt;more&gt;") != std::string::npos);
  CHECK(svg.find(">step<") != std::string::npos);
  CHECK(svg.find(">nats per token<") != std::string::npos);
  CHECK(count(svg, "<text") == count(svg, "</text>"));
  CHECK(count(svg, "<") == count(svg, ">"));
}

TEST_CASE("plots of nothing, of one point and of a constant are plots") {
  for (const auto& points : {std::vector<std::pair<double, double>>{}, {{3, 2.5}}, {{0, 1}, {9, 1}}}) {
    const std::string svg = svg_plot({{"s", points}}, {"t", "x", "y"});
    CHECK(count(svg, "nan") == 0);
    CHECK(count(svg, "inf") == 0);
    CHECK(!terminal_plot({{"s", points}}, 60, 10, true).empty());
  }
}

TEST_CASE("the terminal plot falls from the upper left to the lower right") {
  for (const bool utf8 : {true, false}) {
    CAPTURE(utf8);
    const auto rows = lines(terminal_plot({falling()}, 60, 12, utf8));
    REQUIRE(rows.size() == 12);
    for (size_t i = 0; i < 10; ++i) CHECK(length(rows[i]) == 60);
    const auto blank = [&](const std::string& row, size_t from, size_t n) {  // in characters after the axis
      std::vector<std::string> cells;
      for (const char c : row) {
        if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) cells.emplace_back();
        cells.back() += c;
      }
      for (size_t i = from; i < from + n; ++i)
        if (cells[9 + i] != " ") return false;
      return true;
    };
    CHECK(!blank(rows[0], 0, 5));
    CHECK(blank(rows[0], 10, 40));
    CHECK(blank(rows[9], 0, 20));
    CHECK(!blank(rows[9], 40, 11));
    CHECK(rows[11].find("1000") != std::string::npos);
    CHECK(rows[11].find("loss") != std::string::npos);
  }
}
