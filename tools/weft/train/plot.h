#pragma once
// Curves as an SVG file and as characters in a terminal.
#include <string>
#include <utility>
#include <vector>

namespace weft::tool {

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;  // in the order of x; points that are not finite are left out
};

struct PlotText {
  std::string title, x_label, y_label;
};

/// Returns ticks that cover [low, high]: about `count` steps of 1, 2 or 5 times a power of ten.
std::vector<double> ticks(double low, double high, int count);
/// Returns at most `most` points, each the mean of neighbours, so that a noisy curve keeps its course.
std::vector<std::pair<double, double>> thinned(const std::vector<std::pair<double, double>>& points, size_t most);

/// Returns an SVG document, 720 × 440, with axes, ticks, labels and a legend.
std::string svg_plot(const std::vector<Series>& series, const PlotText& text);

/// Returns `width` × `height` characters with labelled axes: braille dots where `utf8`, else one letter for each
/// series.
std::string terminal_plot(const std::vector<Series>& series, int width, int height, bool utf8);

}  // namespace weft::tool
