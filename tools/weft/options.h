#pragma once
// The options of a subcommand as a table of rows. The command line, the JSON configuration file and the options stored
// in a checkpoint all set values through it, so each is checked in one place, with one error message.
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weft::tool {

/// A mistake on the command line or in a configuration: the program ends with exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Returns the known word that was probably meant by `word`, or "" where none is near (Damerau-Levenshtein distance, at
/// most a third of the letters).
std::string nearest(std::string_view word, const std::vector<std::string>& known);

struct Option {
  std::string name;        // without dashes: "min-lr"
  std::string value_name;  // "N", "X", "FILE"; empty for a switch
  std::string help;
  std::variant<bool*, int64_t*, double*, std::string*> target;
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  bool open_low = false, open_high = false;  // the limit itself is excluded
  std::vector<std::string> choices;
  std::string shown_default;  // instead of the target's value
  bool positional = false;
  bool required = false;
  bool negatable = false;  // --name and --no-name
  bool in_config = false;  // allowed in a configuration file, and stored with a run
  bool fixed = false;      // must not change when a run is resumed
  bool given = false;      // set by the command line or the configuration file

  Option& range(double lowest, double highest) { return low = lowest, high = highest, *this; }
  Option& above(double limit) { return low = limit, open_low = true, *this; }
  Option& below(double limit) { return high = limit, open_high = true, *this; }
  Option& one_of(std::vector<std::string> words) { return choices = std::move(words), *this; }
  Option& defaults_to(std::string text) { return shown_default = std::move(text), *this; }
  Option& as_positional() { return positional = true, *this; }
  Option& needed() { return required = true, *this; }
  Option& with_negation() { return negatable = true, *this; }
  Option& config() { return in_config = true, *this; }
  Option& structural() { return in_config = true, fixed = true, *this; }

  bool is_switch() const { return std::holds_alternative<bool*>(target); }
  std::string shown() const { return positional ? name : "--" + name; }
  /// Returns the value as text, as the help shows it.
  std::string text() const;
};

class OptionSet {
 public:
  /// The targets must outlive the set.
  template <class T>
  Option& add(std::string name, std::string value_name, T* target, std::string help) {
    options_.push_back({});
    Option& o = options_.back();
    o.name = std::move(name), o.value_name = std::move(value_name), o.help = std::move(help), o.target = target;
    return o;
  }

  /// Sets an option from the command line. Throws UsageError where the text is no value of that option.
  void set_text(const std::string& name, const std::string& text);
  /// Sets options from a JSON object in a file; "min_lr" and "min-lr" are the same. Options of the command line stay.
  /// Unknown keys, wrong types and values out of range throw UsageError naming the file, and the nearest known key.
  void set_json(std::string_view json, const std::string& file);
  /// Returns all options with `in_config` as a JSON object, in their order.
  std::string json() const;

  bool given(const std::string& name) const { return find(name).given; }
  const Option& find(const std::string& name) const;
  std::vector<std::string> names() const;
  const std::vector<Option>& all() const { return options_; }

 private:
  Option& entry(const std::string& name);
  std::vector<Option> options_;
};

}  // namespace weft::tool
