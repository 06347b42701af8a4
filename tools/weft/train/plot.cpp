// Two renderings of curves.
#include "tools/weft/train/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft::tool {

namespace {

using Points = std::vector<std::pair<double, double>>;

struct Box {
  double x0 = std::numeric_limits<double>::infinity(), x1 = -x0, y0 = x0, y1 = -x0;
};

Points finite(const Points& points) {
  Points out;
  for (const auto& p : points)
    if (std::isfinite(p.first) && std::isfinite(p.second)) out.push_back(p);
  return out;
}

/// The bounding box of all points; never empty in either direction.
Box extent(const std::vector<Series>& series) {
  Box b;
  for (const auto& s : series)
    for (const auto& [x, y] : finite(s.points))
      b = {std::min(b.x0, x), std::max(b.x1, x), std::min(b.y0, y), std::max(b.y1, y)};
  if (!(b.x0 <= b.x1)) return {0, 1, 0, 1};
  if (b.x0 == b.x1) b.x0 -= 0.5, b.x1 += 0.5;
  if (b.y0 == b.y1) b.y0 -= 0.5, b.y1 += 0.5;
  return b;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
  return out;
}

constexpr const char* colours[] = {"#2a6fbb", "#d1495b", "#3a8f5c", "#8a5fb0"};
constexpr double svg_width = 720, svg_height = 440, left = 64, right = 16, top = 40, bottom = 52;

/// Maps values to positions in the SVG.
struct Frame {
  Box box;
  double x(double v) const { return left + (v - box.x0) / (box.x1 - box.x0) * (svg_width - left - right); }
  double y(double v) const {
    return svg_height - bottom - (v - box.y0) / (box.y1 - box.y0) * (svg_height - top - bottom);
  }
};

std::string svg_axes(const Frame& f, const PlotText& text) {
  std::string out;
  for (const double v : ticks(f.box.y0, f.box.y1, 6))
    if (v >= f.box.y0 && v <= f.box.y1)
      out += fmt::format(
          "<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"#e4e4e4\"/><text x=\"{:.1f}\" y=\"{:.1f}\" "
          "text-anchor=\"end\">{}</text>\n",
          left, f.y(v), svg_width - right, left - 8, f.y(v) + 4, fmt::format("{:.6g}", v));
  for (const double v : ticks(f.box.x0, f.box.x1, 8))
    if (v >= f.box.x0 && v <= f.box.x1)
      out += fmt::format(
          "<path d=\"M{:.1f} {:.1f}v5\" stroke=\"#444\"/><text x=\"{:.1f}\" y=\"{:.1f}\" "
          "text-anchor=\"middle\">{}</text>\n",
          f.x(v), svg_height - bottom, f.x(v), svg_height - bottom + 19, fmt::format("{:.6g}", v));
  out += fmt::format("<path d=\"M{0:.1f} {1:.1f}V{2:.1f}H{3:.1f}\" fill=\"none\" stroke=\"#444\"/>\n", left, top,
                     svg_height - bottom, svg_width - right);
  out += fmt::format("<text x=\"{:.1f}\" y=\"22\" text-anchor=\"middle\" font-size=\"15\">{}</text>\n", svg_width / 2,
                     escaped(text.title));
  out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                     (left + svg_width - right) / 2, svg_height - 12, escaped(text.x_label));
  const double middle = (top + svg_height - bottom) / 2;
  out += fmt::format("<text transform=\"translate(18 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n", middle,
                     escaped(text.y_label));
  return out;
}

std::string svg_curve(const Frame& f, const Series& s, size_t index) {
  const Points points = thinned(finite(s.points), 600);
  const char* colour = colours[index % std::size(colours)];
  std::string path, marks;
  for (const auto& [x, y] : points) path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", f.x(x), f.y(y));
  if (points.size() <= 40)  // few enough to be seen one by one
    for (const auto& [x, y] : points)
      marks += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>", f.x(x), f.y(y), colour);
  if (path.empty()) return "";
  const double row = top + 14 + 18 * static_cast<double>(index);
  return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"/>{}\n", path, colour, marks) +
         fmt::format(
             "<path d=\"M{:.1f} {:.1f}h22\" stroke=\"{}\" stroke-width=\"3\"/><text x=\"{:.1f}\" "
             "y=\"{:.1f}\">{}</text>\n",
             svg_width - right - 150, row - 4, colour, svg_width - right - 122, row, escaped(s.name));
}

/// A picture of dots, `across` × `down` for each character.
class Canvas {
 public:
  Canvas(int width, int height, bool braille)
      : width_(width), height_(height), braille_(braille), cells_(static_cast<size_t>(width * height), 0) {}
  int columns() const { return braille_ ? width_ * 2 : width_; }
  int rows() const { return braille_ ? height_ * 4 : height_; }

  void dot(int column, int row, char letter) {
    if (column < 0 || row < 0 || column >= columns() || row >= rows()) return;
    // Unicode's numbering of the braille dots: 1 2 3 7 down the left side, 4 5 6 8 down the right.
    static constexpr int bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    if (braille_) cell(column / 2, row / 4) |= bits[row % 4][column % 2];
    else cell(column, row) = letter;
  }

  std::string line(int row) const {
    std::string out;
    for (int c = 0; c < width_; ++c) {
      const int v = cells_[static_cast<size_t>(row * width_ + c)];
      if (v == 0) out += ' ';
      else if (!braille_) out += static_cast<char>(v);
      else
        out += {static_cast<char>(0xE2), static_cast<char>(0xA0 | (v >> 6)),
                static_cast<char>(0x80 | (v & 0x3F))};  // U+2800 + v
    }
    return out;
  }

 private:
  int& cell(int column, int row) { return cells_[static_cast<size_t>(row * width_ + column)]; }
  int width_, height_;
  bool braille_;
  std::vector<int> cells_;
};

void draw(Canvas& canvas, const Box& b, const Series& s, char letter) {
  const auto column = [&](double x) {
    return static_cast<int>(std::lround((x - b.x0) / (b.x1 - b.x0) * (canvas.columns() - 1)));
  };
  const auto row = [&](double y) {
    return static_cast<int>(std::lround((b.y1 - y) / (b.y1 - b.y0) * (canvas.rows() - 1)));
  };
  const Points points = thinned(finite(s.points), static_cast<size_t>(canvas.columns()));
  for (size_t i = 0; i < points.size(); ++i) {
    const int c1 = column(points[i].first), r1 = row(points[i].second);
    const int c0 = i ? column(points[i - 1].first) : c1, r0 = i ? row(points[i - 1].second) : r1;
    const int steps = std::max({std::abs(c1 - c0), std::abs(r1 - r0), 1});
    for (int k = 0; k <= steps; ++k)
      canvas.dot(c0 + static_cast<int>(std::lround(static_cast<double>((c1 - c0) * k) / steps)),
                 r0 + static_cast<int>(std::lround(static_cast<double>((r1 - r0) * k) / steps)), letter);
  }
}

}  // namespace

std::vector<double> ticks(double low, double high, int count) {
  if (!(low < high) || count < 1) return {low};
  const double raw = (high - low) / count, power = std::pow(10.0, std::floor(std::log10(raw)));
  const double share = raw / power, step = power * (share <= 1 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10);
  std::vector<double> out;
  for (double k = std::floor(low / step); k * step <= high + step * 0.999; ++k) out.push_back(k == 0 ? 0 : k * step);
  return out;
}

Points thinned(const Points& points, size_t most) {
  if (points.size() <= most || most == 0) return points;
  Points out;
  for (size_t i = 0; i < most; ++i) {
    const size_t begin = i * points.size() / most, end = (i + 1) * points.size() / most;
    double x = 0, y = 0;
    for (size_t k = begin; k < end; ++k) x += points[k].first, y += points[k].second;
    out.emplace_back(x / static_cast<double>(end - begin), y / static_cast<double>(end - begin));
  }
  return out;
}

std::string svg_plot(const std::vector<Series>& series, const PlotText& text) {
  Frame frame{extent(series)};
  const double margin = (frame.box.y1 - frame.box.y0) * 0.04;
  frame.box.y0 -= margin, frame.box.y1 += margin;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" "
      "font-size=\"12\" fill=\"#222\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
      svg_width, svg_height);
  out += svg_axes(frame, text);
  for (size_t i = 0; i < series.size(); ++i) out += svg_curve(frame, series[i], i);
  return out + "</svg>\n";
}

std::string terminal_plot(const std::vector<Series>& series, int width, int height, bool utf8) {
  const Box b = extent(series);
  const int margin = 9;
  Canvas canvas(std::max(width - margin, 8), std::max(height - 2, 2), utf8);
  std::string legend;
  for (size_t i = 0; i < series.size(); ++i) {
    const char letter = "*o+x"[i % 4];
    draw(canvas, b, series[i], letter);
    legend += (legend.empty() ? "" : "   ") + (utf8 ? series[i].name : fmt::format("{} {}", letter, series[i].name));
  }
  const int rows = std::max(height - 2, 2), columns = std::max(width - margin, 8);
  std::string out;
  for (int r = 0; r < rows; ++r) {
    const bool labelled = r == 0 || r == rows - 1 || r == rows / 2;
    const double value = b.y1 - (b.y1 - b.y0) * r / (rows - 1);
    out +=
        (labelled ? fmt::format("{:>7.4g} ", value) : std::string(8, ' ')) + (utf8 ? "│" : "|") + canvas.line(r) + "\n";
  }
  std::string axis;
  for (int c = 0; c < columns; ++c) axis += utf8 ? "─" : "-";
  out += std::string(8, ' ') + (utf8 ? "└" : "+") + axis + "\n";
  const std::string first = fmt::format("{:.6g}", b.x0), last = fmt::format("{:.6g}", b.x1);
  const int gap = columns - static_cast<int>(first.size() + last.size() + legend.size());
  const auto before = static_cast<size_t>(std::max(gap / 2, 1)),
             after = static_cast<size_t>(std::max(gap - gap / 2, 1));
  return out + std::string(9, ' ') + first + std::string(before, ' ') + legend + std::string(after, ' ') + last + "\n";
}

}  // namespace weft::tool
