#include "io/shapeless.h"

#include <algorithm>
#include <exception>
#include <set>
#include <string>

#include "base/error.h"
#include "weft/random.h"

namespace weft::io {
namespace {

using transforms::FunctionGraph;
using ArgumentTypes = std::vector<graph::Type>;
using ExampleLengths = std::vector<int64_t>;

constexpr const char* symbol_remedies =
    "; keep its axes as they are (no reshape, slice or concatenation along them), export a signature for each length, "
    "or name axes with their bounds in ExportOptions::dynamic";

/// Returns the bound of each of so many symbols: the number of elements of an array with four such axes has 64 bits.
int64_t bound_of(size_t symbols) { return int64_t{1} << (symbols <= 1 ? 20 : symbols == 2 ? 15 : 12); }

class ShapelessTracer {
 public:
  ShapelessTracer(const ArrayFunction& fun, const ArgumentTypes& arguments) : fun_(fun), arguments_(arguments) {
    for (const graph::Type& t : arguments)
      for (const Dim& d : t.shape)
        if (d.bound() > 1 && std::find(lengths_.begin(), lengths_.end(), d.bound()) == lengths_.end())
          lengths_.push_back(d.bound());
  }

  FunctionGraph trace() {
    if (lengths_.empty()) return run(arguments_);
    FunctionGraph graph;
    if (const std::string why = attempt(with_symbols(lengths_), &graph); !why.empty()) {
      run(arguments_);  // a function that fails on its example throws its own error
      const ExampleLengths open = open_lengths(why);
      if (const std::string together = attempt(with_symbols(open), &graph); !together.empty())
        throw_invalid("export_function",
                      "the lengths " + text(open) + " cannot change at once: " + together + symbol_remedies);
    }
    return graph;
  }

 private:
  FunctionGraph run(const ArgumentTypes& types) {
    const array key = random::default_key();
    try {
      return transforms::graph_of(fun_, types);
    } catch (...) {
      random::default_key() = key;
      throw;
    }
  }

  // Returns why the function cannot be traced for the types; nothing where it can.
  std::string attempt(const ArgumentTypes& types, FunctionGraph* graph = nullptr) {
    const array key = random::default_key();
    try {
      FunctionGraph traced = run(types);
      if (graph) *graph = std::move(traced);
      else random::default_key() = key;
      return {};
    } catch (const std::exception& e) {
      return *e.what() ? e.what() : "an error";
    } catch (...) {  // of a callback in another language
      return "the function failed";
    }
  }

  // Returns the lengths that may change, each by itself.
  ExampleLengths open_lengths(const std::string& why) {
    ExampleLengths open;
    for (const int64_t n : lengths_) {
      const std::string alone = attempt(with_symbols({n}));
      if (alone.empty()) open.push_back(n);
      else if (attempt(with_length(n, n + 1)).empty() || attempt(with_length(n, 2 * n)).empty())
        throw_invalid("export_function", "the length " + std::to_string(n) + " of " + axes_of(n) +
                                             " may change, but not as a symbol: " + alone + symbol_remedies);
    }
    if (open.empty()) throw_invalid("export_function", "no length of the arguments may change: " + why);
    return open;
  }

  ArgumentTypes with_symbols(const ExampleLengths& open) const {
    ArgumentTypes types = arguments_;
    for (graph::Type& t : types)
      for (Dim& d : t.shape)
        if (const auto at = std::find(open.begin(), open.end(), d.bound()); at != open.end())
          d = symbol("n" + std::to_string(at - open.begin()), bound_of(open.size()));
    return types;
  }

  ArgumentTypes with_length(int64_t n, int64_t other) const {
    ArgumentTypes types = arguments_;
    for (graph::Type& t : types) std::replace(t.shape.begin(), t.shape.end(), Dim(n), Dim(other));
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

  static std::string text(const ExampleLengths& lengths) {
    std::string out;
    for (const int64_t n : lengths) out += (out.empty() ? "" : " and ") + std::to_string(n);
    return out;
  }

  const ArrayFunction& fun_;
  const ArgumentTypes& arguments_;
  ExampleLengths lengths_;  // of the example, each once
};

}  // namespace

FunctionGraph trace_shapeless(const ArrayFunction& fun, const ArgumentTypes& arguments) {
  return ShapelessTracer(fun, arguments).trace();
}

}  // namespace weft::io
