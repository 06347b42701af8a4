// Reading and checking option values, from text and from JSON.
#include "options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/overloaded.h"
#include "io/json.h"

namespace weft::tool {

namespace {

/// Returns the range of an option's number, "at least 1" or "between 0 and 1 (1 excluded)", or "".
std::string limits(const Option& o) {
  const bool low = std::isfinite(o.low), high = std::isfinite(o.high);
  const std::string lower = fmt::format("{} {}", o.open_low ? "more than" : "at least", o.low);
  const std::string upper = fmt::format("{} {}", o.open_high ? "less than" : "at most", o.high);
  return low && high ? lower + " and " + upper : low ? lower : high ? upper : "";
}

bool within(const Option& o, double v) {
  return (o.open_low ? v > o.low : v >= o.low) && (o.open_high ? v < o.high : v <= o.high) && std::isfinite(v);
}

[[noreturn]] void refuse(const Option& o, const std::string& origin, const std::string& value,
                         const std::string& wanted) {
  throw UsageError(fmt::format("{}{} is '{}', but must be {}", origin, o.shown(), value, wanted));
}

void assign_integer(Option& o, int64_t* target, const std::string& text, const std::string& origin) {
  const std::string wanted = limits(o).empty() ? "a whole number" : "a whole number, " + limits(o);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !within(o, static_cast<double>(value)))
    refuse(o, origin, text, wanted);
  *target = value;
}

void assign_real(Option& o, double* target, const std::string& text, const std::string& origin) {
  const std::string wanted = limits(o).empty() ? "a number" : "a number, " + limits(o);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !within(o, value)) refuse(o, origin, text, wanted);
  *target = value;
}

void assign_text(Option& o, std::string* target, const std::string& text, const std::string& origin) {
  if (!o.choices.empty() && std::find(o.choices.begin(), o.choices.end(), text) == o.choices.end()) {
    const std::string near = nearest(text, o.choices);
    refuse(
        o, origin, text,
        fmt::format("one of {}{}", fmt::join(o.choices, ", "), near.empty() ? "" : " (did you mean '" + near + "'?)"));
  }
  *target = text;
}

void assign_switch(Option& o, bool* target, const std::string& text, const std::string& origin) {
  if (text != "true" && text != "false") refuse(o, origin, text, "true or false");
  *target = text == "true";
}

void assign(Option& o, const std::string& text, const std::string& origin) {
  std::visit(Overloaded{[&](bool* t) { assign_switch(o, t, text, origin); },
                        [&](int64_t* t) { assign_integer(o, t, text, origin); },
                        [&](double* t) { assign_real(o, t, text, origin); },
                        [&](std::string* t) { assign_text(o, t, text, origin); }},
             o.target);
  o.given = true;
}

/// Returns a JSON value as the text of the command line; throws for the wrong JSON type.
std::string as_text(const Option& o, const nlohmann::json& value, const std::string& origin) {
  const bool fits = std::visit(
      Overloaded{[&](bool*) { return value.is_boolean(); }, [&](int64_t*) { return value.is_number_integer(); },
                 [&](double*) { return value.is_number(); }, [&](std::string*) { return value.is_string(); }},
      o.target);
  static constexpr const char* kinds[] = {"true or false", "a whole number", "a number", "a text"};
  if (!fits) refuse(o, origin, value.dump(), kinds[o.target.index()]);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  const auto distance = [](std::string_view a, std::string_view b) {
    std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
    for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
    for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
    for (size_t i = 1; i <= a.size(); ++i)
      for (size_t j = 1; j <= b.size(); ++j) {
        d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
          d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    return d[a.size()][b.size()];
  };
  std::string best;
  size_t best_distance = word.size() / 3 + 2;
  for (const auto& candidate : known) {
    size_t far = distance(word, candidate);
    if (word.size() >= 3 && candidate.size() > word.size() && candidate.starts_with(word))
      far = std::min<size_t>(far, 1);  // an abbreviation
    if (far < best_distance && far < std::max(word.size(), candidate.size())) best = candidate, best_distance = far;
  }
  return best;
}

std::string Option::text() const {
  return std::visit(
      Overloaded{[](const bool* t) { return std::string(*t ? "true" : "false"); },
                 [](const int64_t* t) { return fmt::format("{}", *t); },
                 [](const double* t) { return fmt::format("{}", *t); }, [](const std::string* t) { return *t; }},
      target);
}

Option& OptionSet::entry(const std::string& name) {
  const auto it = std::find_if(options_.begin(), options_.end(), [&](const Option& o) { return o.name == name; });
  if (it == options_.end()) throw std::logic_error("no option is named " + name);
  return *it;
}

const Option& OptionSet::find(const std::string& name) const { return const_cast<OptionSet*>(this)->entry(name); }

std::vector<std::string> OptionSet::names() const {
  std::vector<std::string> out;
  for (const auto& o : options_)
    if (!o.positional) out.push_back(o.name);
  return out;
}

void OptionSet::set_text(const std::string& name, const std::string& text) { assign(entry(name), text, ""); }

void OptionSet::set_json(std::string_view text, const std::string& file) {
  if (io::nested_deeper(text, 16)) throw UsageError(file + " is nested too deeply for a configuration");
  nlohmann::json root;
  try {
    root = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& e) {
    throw UsageError(fmt::format("{} is not JSON: the mistake is near byte {}", file, e.byte));
  } catch (const nlohmann::json::out_of_range&) {
    throw UsageError(file + " holds a number that is out of range");
  }
  if (!root.is_object())
    throw UsageError(file + " must hold a JSON object with option names as keys, such as {\"layers\": 4}");
  std::vector<std::string> known;
  for (const auto& o : options_)
    if (o.in_config) known.push_back(o.name);
  for (const auto& [key, value] : root.items()) {
    std::string name = key;
    std::replace(name.begin(), name.end(), '_', '-');
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const std::string near = nearest(name, known);
      throw UsageError(fmt::format(
          "{} has an unknown key \"{}\"{}", file, key,
          near.empty() ? fmt::format("; known are {}", fmt::join(known, ", ")) : "; did you mean \"" + near + "\"?"));
    }
    Option& option = entry(name);
    if (!option.given) assign(option, as_text(option, value, file + ": "), file + ": ");
  }
}

std::string OptionSet::json() const {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const auto& o : options_)
    if (o.in_config) std::visit([&](const auto* t) { out[o.name] = *t; }, o.target);
  return out.dump(2);
}

}  // namespace weft::tool
