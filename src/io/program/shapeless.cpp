#include "io/program/shapeless.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <string>

#include "base/error.h"
#include "io/program/pattern.h"
#include "weft/ops.h"
#include "weft/random.h"

namespace weft::io {
namespace {

using transforms::FunctionGraph;
using ArgumentTypes = std::vector<graph::Type>;
using LengthList = std::vector<int64_t>;

constexpr const char* remedies =
    "; export a signature for each length, or name axes with their bounds in ExportOptions::dynamic";

/// Returns the bound of each of so many symbols: the number of elements of an array with four such axes has 64 bits.
int64_t bound_of(size_t symbols) { return int64_t{1} << (symbols <= 1 ? 20 : symbols == 2 ? 15 : 12); }

bool same_arrays(const std::vector<array>& a, const std::vector<array>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const array& one, const array& other) {
    const graph::Value &x = one.value(), &y = other.value();
    return (x.node == y.node && x.index == y.index) ||
           (x.type() == y.type() && array_equal(one, other, true).item<bool>());
  });
}

class ShapelessTracer {
 public:
  ShapelessTracer(const ArrayFunction& fun, const ArgumentTypes& arguments) : fun_(fun), arguments_(arguments) {
    for (const graph::Type& t : arguments)
      for (const Dim& d : t.shape)
        if (d.bound() > 1 && std::find(lengths_.begin(), lengths_.end(), d.bound()) == lengths_.end())
          lengths_.push_back(d.bound());
  }

  ShapelessTrace trace() {
    if (lengths_.empty()) return of_symbols(run(arguments_));
    std::string why;
    if (const auto graph = attempt(with_symbols(lengths_), &why)) return of_symbols(*graph);
    run(arguments_);  // a function that fails on its example throws its own error
    const LengthList open = open_lengths(why);
    if (all_by_symbols_)
      if (const auto graph = attempt(with_symbols(open), &why)) return of_symbols(*graph);
    return of_pattern(open);
  }

 private:
  // Runs the function. It may run several times: the default random sequence moves on for the trace that is returned.
  FunctionGraph run(const ArgumentTypes& types) {
    const array before = random::default_key();
    try {
      FunctionGraph graph = transforms::graph_of(fun_, types);
      key_after_ = std::exchange(random::default_key(), before);
      return graph;
    } catch (...) {
      random::default_key() = before;
      throw;
    }
  }

  // Returns nothing where the function cannot be traced for the types, and why.
  std::optional<FunctionGraph> attempt(const ArgumentTypes& types, std::string* why = nullptr) {
    std::string reason = "the function failed";  // of a callback in another language
    try {
      return run(types);
    } catch (const std::exception& e) {
      reason = *e.what() ? e.what() : "an error";
    } catch (...) {
    }
    if (why) *why = reason;
    return {};
  }

  // Returns the lengths that may change, each by itself.
  LengthList open_lengths(const std::string& why) {
    LengthList open;
    for (const int64_t n : lengths_) {
      const bool by_symbol = attempt(with_symbols({n})).has_value();
      const bool by_number = !by_symbol && takes(n, n + 1, 2 * n);
      all_by_symbols_ = all_by_symbols_ && !by_number;
      if (by_symbol || by_number) open.push_back(n);
    }
    if (open.empty()) throw_invalid("export_function", "no length of the arguments may change: " + why);
    return open;
  }
  bool takes(int64_t n, int64_t one, int64_t other) {
    return attempt(with_lengths({n}, {one})) || attempt(with_lengths({n}, {other}));
  }

  ShapelessTrace of_symbols(const FunctionGraph& graph) {
    random::default_key() = *key_after_;
    return {tape_of(graph.graph), nullptr, graph.captured};
  }

  // Returns the pattern of traces for several lengths, each of which may change.
  ShapelessTrace of_pattern(const LengthList& open) {
    SamplePoints points;
    points.first = open;
    for (size_t k = 0; k < open.size(); ++k) choose_points(open, k, points);
    ShapelessTrace out;
    LengthPattern pattern = fit(points, out.captured);
    const array key = *key_after_;
    for (size_t k = 0; k < open.size(); ++k) pattern.least[k] = least(pattern, k, out.captured);
    for (const LengthList& at : larger(open))
      if (!agrees(pattern, at, out.captured))
        throw_invalid("export_function", "the trace for lengths " + text(at) + " does not follow from that for " +
                                             text(open) +
                                             ": the function does other steps, or has sizes that are no polynomials "
                                             "of second degree of the lengths" +
                                             remedies);
    random::default_key() = key;
    out.pattern = std::make_shared<const LengthPattern>(std::move(pattern));
    for (const graph::Type& t : with_symbols(open)) out.tape.inputs.push_back(t);
    for (const array& a : out.captured) out.tape.inputs.push_back(a.value().type());
    return out;
  }

  // Returns the pattern of the traces at the points; where there is none, says which of the lengths has none by itself.
  LengthPattern fit(const SamplePoints& points, std::vector<array>& captured) {
    std::string why;
    try {
      return sampled(points, captured);
    } catch (const std::exception& e) {
      why = e.what();
    }
    for (size_t k = 0; k < points.first.size() && points.first.size() > 1; ++k) {
      std::vector<array> unused;
      try {
        sampled({{points.first[k]}, {points.once[k]}, {points.twice[k]}}, unused);
      } catch (const std::exception& e) {
        throw std::invalid_argument(std::string(e.what()) + " (the length " + std::to_string(points.first[k]) + " of " +
                                    axes_of(points.first[k]) + ")" + remedies);
      }
    }
    throw std::invalid_argument(why + remedies);
  }

  LengthPattern sampled(const SamplePoints& points, std::vector<array>& captured) {
    std::vector<Tape> tapes;
    std::optional<array> key;
    for (const LengthList& at : points.points()) {
      const FunctionGraph graph = run(with_lengths(points.first, at));
      if (tapes.empty()) captured = graph.captured, key = key_after_;
      if (!same_arrays(graph.captured, captured))
        throw_invalid("export_function",
                      "the function refers to other arrays for other lengths: give them as arguments");
      tapes.push_back(tape_of(graph.graph));
    }
    key_after_ = key;
    return pattern_of(points, tapes);
  }

  // Returns whether the pattern is the function's trace for the lengths. Lengths that the function refuses count.
  bool agrees(const LengthPattern& pattern, const LengthList& at, const std::vector<array>& captured) {
    const auto graph = attempt(with_lengths(pattern.example, at));
    return !graph || (same_arrays(graph->captured, captured) && is_instance(tape_of(graph->graph), pattern, at));
  }

  // Returns the smallest value of a length from which on all that are tried agree with the pattern: a slice may take
  // the whole of a short axis, for example.
  int64_t least(const LengthPattern& pattern, size_t k, const std::vector<array>& captured) {
    int64_t found = pattern.example[k];
    for (const int64_t n : {found - 1, found - 2, found / 2, int64_t{4}, int64_t{3}, int64_t{2}, int64_t{1}}) {
      if (n < 1 || n >= found) continue;
      LengthList at = pattern.example;
      at[k] = n;
      if (!agrees(pattern, at, captured)) break;
      found = n;
    }
    return found;
  }

  // Chooses two other values of the length, which the function takes while the others stay.
  void choose_points(const LengthList& open, size_t k, SamplePoints& points) {
    const int64_t n = open[k];
    for (const auto& [once, twice] : {std::pair(n + 1, n + 3), std::pair(2 * n, 3 * n), std::pair(2 * n, 4 * n)})
      if (attempt(with_lengths({n}, {once})) && attempt(with_lengths({n}, {twice}))) {
        points.once.push_back(once), points.twice.push_back(twice);
        return;
      }
    throw_invalid("export_function", "the length " + std::to_string(n) + " of " + axes_of(n) +
                                         " may change, but three values that the function takes were not found" +
                                         remedies);
  }

  // Returns further lengths that are checked: odd, even and large ones, alone and together.
  static std::vector<LengthList> larger(const LengthList& open) {
    std::vector<LengthList> out;
    for (size_t k = 0; k < open.size(); ++k)
      for (const int64_t n : {open[k] + 2, open[k] + 7, 2 * open[k], 8 * open[k], 500 * open[k] + 1}) {
        out.push_back(open);
        out.back()[k] = n;
      }
    for (const int64_t factor : {2, 3}) {
      out.push_back(open);
      for (int64_t& n : out.back()) n *= factor;
    }
    return out;
  }

  ArgumentTypes with_symbols(const LengthList& open) const {
    return changed(open, [&](size_t k) { return Dim(symbol("n" + std::to_string(k), bound_of(open.size()))); });
  }
  ArgumentTypes with_lengths(const LengthList& of, const LengthList& now) const {
    return changed(of, [&](size_t k) { return Dim(now[k]); });
  }
  // Returns the types with another length in the place of each that is listed.
  template <class Other>
  ArgumentTypes changed(const LengthList& open, Other other) const {
    ArgumentTypes types = arguments_;
    for (graph::Type& t : types)
      for (Dim& d : t.shape)
        if (const auto at = std::find(open.begin(), open.end(), d.bound()); at != open.end())
          d = other(static_cast<size_t>(at - open.begin()));
    return types;
  }

  std::string axes_of(int64_t n) const {
    std::string out;
    for (size_t k = 0; k < arguments_.size(); ++k)
      for (size_t axis = 0; axis < arguments_[k].shape.size(); ++axis)
        if (arguments_[k].shape[axis] == n)
          out += (out.empty() ? "axis " : ", axis ") + std::to_string(axis) + " of argument " + std::to_string(k);
    return out;
  }

  static std::string text(const LengthList& lengths) {
    std::string out;
    for (const int64_t n : lengths) out += (out.empty() ? "" : " and ") + std::to_string(n);
    return out;
  }

  const ArrayFunction& fun_;
  const ArgumentTypes& arguments_;
  LengthList lengths_;  // of the example, each once
  bool all_by_symbols_ = true;
  std::optional<array> key_after_;  // of the default random sequence after the last run
};

}  // namespace

ShapelessTrace trace_shapeless(const ArrayFunction& fun, const ArgumentTypes& arguments) {
  return ShapelessTracer(fun, arguments).trace();
}

}  // namespace weft::io
