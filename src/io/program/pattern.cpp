#include "io/program/pattern.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace weft::io {
namespace {

using json = nlohmann::json;
using Samples = std::vector<const json*>;  // values at one position of all tapes

/// How a real number follows from a polynomial's value.
struct RealForm {
  bool root = false, reciprocal = false, single = false;

  double of(double n) const {
    const double r = root ? std::sqrt(n) : n, v = reciprocal ? 1 / r : r;
    return single ? static_cast<double>(static_cast<float>(v)) : v;
  }
};
/// Those that are tried, in this order.
constexpr RealForm real_forms[] = {{},
                                   {.reciprocal = true},
                                   {.reciprocal = true, .single = true},
                                   {.root = true},
                                   {.root = true, .single = true},
                                   {.root = true, .reciprocal = true},
                                   {.root = true, .reciprocal = true, .single = true}};

std::array<std::pair<const char*, bool>, 3> fields_of(const RealForm& form) {
  return {{{"root", form.root}, {"reciprocal", form.reciprocal}, {"single", form.single}}};
}

// ---- from samples ----

class Merger {
 public:
  explicit Merger(const SamplePoints& points) : points_(points), lengths_(points.points()) {}

  /// Returns the value that stands for all. `where` says which one it is, in messages.
  json merge(const Samples& samples, const std::string& where) const {
    const json& first = *samples[0];
    const auto all = [&](auto holds) { return std::all_of(samples.begin(), samples.end(), holds); };
    if (all([&](const json* s) { return *s == first; })) return first;
    if (all([](const json* s) { return s->is_number_integer(); })) return length(samples, where);
    if (all([](const json* s) { return s->is_object() && s->size() == 1 && s->contains("bits"); }))
      return real(samples, where);
    if (all([&](const json* s) { return s->is_array() && s->size() == first.size(); })) {
      json out = json::array();
      for (size_t k = 0; k < first.size(); ++k)
        out.push_back(merge(members(samples, k), where + (first[k].is_object() ? name_of(first[k], k) : "")));
      return out;
    }
    if (all([&](const json* s) { return s->is_object() && same_keys(*s, first); })) return fields(samples, where);
    throw_invalid("export_function", where + " is another one for other lengths");
  }

 private:
  static std::string name_of(const json& entry, size_t k) {
    return entry.contains("op") ? fmt::format(" {} ({})", k, entry["op"].get<std::string>()) : "";
  }
  template <class Key>
  static Samples members(const Samples& samples, const Key& key) {
    Samples out;
    for (const json* s : samples) out.push_back(&(*s)[key]);
    return out;
  }
  static bool same_keys(const json& a, const json& b) {
    return a.size() == b.size() &&
           std::all_of(a.items().begin(), a.items().end(), [&](const auto& field) { return b.contains(field.key()); });
  }

  json fields(const Samples& samples, const std::string& where) const {
    json out = json::object();
    for (const auto& [key, value] : samples[0]->items()) {
      const Samples of_key = members(samples, key);
      const bool equal = std::all_of(of_key.begin(), of_key.end(), [&](const json* s) { return *s == value; });
      if (!equal && (key == "of" || key == "outputs"))
        throw_invalid("export_function", where + " reads other values for other lengths");
      // The key of a composite may have lengths in it. Its name does, with the digest of the body that readers add.
      if (!equal && key == "key" && samples[0]->contains("name")) out[key] = (*samples[0])["name"];
      else out[key] = merge(of_key, where + (key == "entries" ? "" : ", " + key));
    }
    return out;
  }

  json length(const Samples& samples, const std::string& where) const {
    std::vector<int64_t> values;
    for (const json* s : samples) values.push_back(s->get<int64_t>());
    const auto p = fit(values);
    if (!p) refuse(values, where);
    return object("of_lengths", *p);
  }

  json real(const Samples& samples, const std::string& where) const {
    std::vector<double> values;
    for (const json* s : samples) values.push_back(std::bit_cast<double>((*s)["bits"].get<uint64_t>()));
    for (const RealForm& form : real_forms)
      if (const auto whole = whole_numbers(values, form))
        if (const auto p = fit(*whole)) {
          json out = object("real_of_lengths", *p);
          for (const auto& [key, set] : fields_of(form))
            if (set) out[key] = true;
          return out;
        }
    refuse(values, where);
  }

  /// Returns the whole numbers of which the values are this form; nothing where one is not exactly that.
  static std::optional<std::vector<int64_t>> whole_numbers(const std::vector<double>& values, const RealForm& form) {
    std::vector<int64_t> out;
    for (const double v : values) {
      const double root = form.reciprocal ? 1 / v : v, n = std::nearbyint(form.root ? root * root : root);
      if (!(std::fabs(n) < 0x1p53) || form.of(n) != v) return {};
      out.push_back(static_cast<int64_t>(n));
    }
    return out;
  }

  std::optional<Polynomial> fit(const std::vector<int64_t>& values) const {
    auto p = interpolate(points_, values);
    for (size_t k = 0; p && k < values.size(); ++k)
      if (p->value(lengths_[k]) != values[k]) p.reset();
    return p;
  }

  template <class T>
  [[noreturn]] void refuse(const std::vector<T>& values, const std::string& where) const {
    std::string found;
    for (size_t k = 0; k < values.size() && k < 4; ++k)
      found += fmt::format("{}{} for {}", k == 0 ? "" : ", ", values[k], fmt::join(lengths_[k], " and "));
    throw_invalid("export_function",
                  where + " follows from the lengths by no polynomial of second degree: it is " + found);
  }

  static json object(const char* kind, const Polynomial& p) {
    json terms = json::array();
    for (const Polynomial::Term& t : p.terms) {
      terms.push_back({t.coefficient});
      for (const int k : t.lengths) terms.back().push_back(k);
    }
    json out{{kind, terms}};
    if (p.divisor != 1) out["over"] = p.divisor;
    return out;
  }

  const SamplePoints& points_;
  std::vector<std::vector<int64_t>> lengths_;  // of every sample
};

// ---- to a tape ----

[[noreturn]] void fail_pattern(const std::string& what) { throw std::runtime_error(what); }

int64_t whole_number(const json& value) {
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX}))
    fail_pattern("a polynomial of lengths has something else than whole numbers");
  return value.get<int64_t>();
}

Polynomial polynomial(const json& value, const char* kind, size_t lengths) {
  Polynomial out;
  for (const auto& [key, field] : value.items())
    if (key != kind && key != "over" && key != "root" && key != "reciprocal" && key != "single")
      fail_pattern("a polynomial of lengths has an unknown field");
  if (!value[kind].is_array()) fail_pattern("a polynomial of lengths is no list of terms");
  for (const json& term : value[kind]) {
    if (!term.is_array() || term.empty() || term.size() > 3)
      fail_pattern("a term has a coefficient and up to two lengths");
    out.terms.push_back({whole_number(term[0]), {}});
    for (size_t k = 1; k < term.size(); ++k) {
      const int64_t at = whole_number(term[k]);
      if (at < 0 || at >= static_cast<int64_t>(lengths)) fail_pattern("a term has a length that the arguments lack");
      out.terms.back().lengths.push_back(static_cast<int>(at));
    }
  }
  if (value.contains("over")) out.divisor = whole_number(value["over"]);
  if (out.divisor < 1) fail_pattern("the divisor of a polynomial is not positive");
  return out;
}

/// Puts numbers in the place of the polynomials of a value.
void instantiate(json& value, std::span<const int64_t> lengths) {
  if (value.is_object() && (value.contains("of_lengths") || value.contains("real_of_lengths"))) {
    const bool is_real = value.contains("real_of_lengths");
    const auto n = polynomial(value, is_real ? "real_of_lengths" : "of_lengths", lengths.size()).value(lengths);
    if (!n)
      fail_pattern(fmt::format("the function takes no lengths {}: a size of it would not be a whole number",
                               fmt::join(lengths, " and ")));
    if (!is_real) {
      value = *n;
      return;
    }
    const RealForm form{value.contains("root"), value.contains("reciprocal"), value.contains("single")};
    value = json{{"bits", std::bit_cast<uint64_t>(form.of(static_cast<double>(*n)))}};
    return;
  }
  if (value.is_structured())
    for (json& member : value) instantiate(member, lengths);
}

/// Removes the keys of composites, which may have lengths in them.
void drop_keys(json& value) {
  if (value.is_object() && value.contains("name")) value.erase("key");
  if (value.is_structured())
    for (json& member : value) drop_keys(member);
}

/// Returns which of the lengths n0, n1, … a symbol is.
size_t index_of(const Symbol& s, size_t lengths) {
  for (size_t k = 0; k < lengths; ++k)
    if (s.name == "n" + std::to_string(k)) return k;
  fail_pattern("the length " + s.name + " of an argument has no example");
}

}  // namespace

LengthPattern pattern_of(const SamplePoints& points, const std::vector<Tape>& tapes) {
  std::vector<json> values;
  Samples entries, outputs;
  for (const Tape& t : tapes) values.push_back(json::parse(tape_text(t)));
  for (const json& v : values) entries.push_back(&v["entries"]), outputs.push_back(&v["outputs"]);
  for (const json* e : entries)
    if (e->size() != entries[0]->size())
      throw_invalid("export_function", fmt::format("the function takes {} steps for one length and {} for another",
                                                   entries[0]->size(), e->size()));
  for (const json* o : outputs)
    if (*o != *outputs[0]) throw_invalid("export_function", "the function has other results for other lengths");
  const json merged{{"entries", Merger(points).merge(entries, "entry")}, {"outputs", *outputs[0]}};
  return {merged.dump(-1, ' ', false, json::error_handler_t::replace), points.first, points.first};
}

bool is_instance(const Tape& tape, const LengthPattern& pattern, std::span<const int64_t> lengths) {
  json wanted = json::parse(pattern.json), got = json::parse(tape_text(tape));
  try {
    for (const char* key : {"entries", "outputs"}) instantiate(wanted[key], lengths);
  } catch (const std::runtime_error&) {
    return false;
  }
  for (json* entries : {&wanted["entries"], &got["entries"]}) drop_keys(*entries);
  return wanted["entries"] == got["entries"] && wanted["outputs"] == got["outputs"];
}

Tape tape_for(const TapedFunction& f, std::span<const graph::Type> inputs) {
  if (!f.pattern) return f.tape;
  std::vector<int64_t> lengths = f.pattern->example;
  json value = json::parse(f.pattern->json);
  value["inputs"] = json::parse(tape_text({{inputs.begin(), inputs.end()}, {}, {}}))["inputs"];
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Shape& written = f.tape.inputs[k].shape;
    for (size_t axis = 0; axis < written.size(); ++axis)
      if (const Symbol* s = written[axis].symbol()) lengths[index_of(*s, lengths.size())] = inputs[k].shape[axis];
  }
  for (const char* key : {"entries", "outputs"}) instantiate(value[key], lengths);
  return tape_from_text(value.dump());
}

std::vector<graph::Type> example_types(const TapedFunction& f) {
  std::vector<graph::Type> types = f.tape.inputs;
  if (!f.pattern) return types;
  for (graph::Type& t : types)
    for (Dim& d : t.shape)
      if (d.symbol()) d = f.pattern->example[index_of(*d.symbol(), f.pattern->example.size())];
  return types;
}

}  // namespace weft::io
