// Tapes as JSON and back. Numbers that JSON cannot represent (infinities, NaN) are written as their bits.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/error.h"
#include "base/hash.h"
#include "graph/calls/kernel_text.h"
#include "graph/table.h"
#include "io/json.h"
#include "io/program/tape.h"
#include "kernel/rules.h"
#include "kernel/text/text.h"

namespace weft::io {

namespace {

using graph::Attrs;
using nlohmann::ordered_json;
using json = nlohmann::json;

constexpr int version = 1;

constexpr AttrList lists[] = {{"axes", &Attrs::axes},     {"axes2", &Attrs::axes2}, {"batch", &Attrs::batch},
                              {"batch2", &Attrs::batch2}, {"start", &Attrs::start}, {"step", &Attrs::step},
                              {"low", &Attrs::low},       {"high", &Attrs::high},   {"integers", &Attrs::integers},
                              {"window", &Attrs::window}};
constexpr graph::ScatterMode modes[] = {graph::ScatterMode::set, graph::ScatterMode::add, graph::ScatterMode::max,
                                        graph::ScatterMode::min, graph::ScatterMode::prod};

ordered_json dims(const Shape& shape) {
  ordered_json out = ordered_json::array();
  for (const Dim& d : shape) {
    if (d.symbol()) out.push_back({d.symbol()->name, d.bound()});
    else out.push_back(d.bound());
  }
  return out;
}

ordered_json number_json(const Number& n) {
  if (n.integral) return {{"integer", n.i}};
  return {{"bits", std::bit_cast<uint64_t>(n.f)}};
}

/// Writes the attributes that differ from their defaults.
void write_attrs(ordered_json& out, const Attrs& a) {
  const Attrs plain;
  for (const AttrList& list : lists)
    if (!(a.*list.member).empty()) out[list.key] = a.*list.member;
  if (!a.shape.empty()) out["shape"] = dims(a.shape);
  if (a.dtype != plain.dtype) out["dtype"] = dtype_name(a.dtype);
  if (!(a.number == plain.number)) out["number"] = number_json(a.number);
  if (!a.call.empty()) out["call"] = a.call;
  if (a.kernel && kernel::has_code(a.kernel->kernel.body))
    throw_invalid("kernel " + a.kernel->kernel.name,
                  "has code of GPUs, which files do not take: export the program without this kernel");
  if (a.kernel) out["kernel"] = graph::text_of(*a.kernel);
  if (a.packed) out["packed"] = true;
  if (a.reducer != plain.reducer) out["reducer"] = std::string(kernel::name(a.reducer));
  if (a.mode != plain.mode) out["mode"] = std::string(graph::name(a.mode));
  if (a.generator == graph::Generator::philox) out["generator"] = "philox";
}

ordered_json refs_json(const std::vector<Tape::Ref>& refs) {
  ordered_json out = ordered_json::array();
  for (const auto& [value, result] : refs) {
    if (result == 0) out.push_back(value);
    else out.push_back({value, result});
  }
  return out;
}

ordered_json type_json(const graph::Type& type) { return {dtype_name(type.dtype), dims(type.shape)}; }

ordered_json tape_json(const Tape& tape) {
  ordered_json out;
  out["inputs"] = ordered_json::array();
  for (const graph::Type& t : tape.inputs) out["inputs"].push_back(type_json(t));
  out["entries"] = ordered_json::array();
  for (const Tape::Entry& e : tape.entries) {
    ordered_json entry;
    entry["op"] = std::string(graph::row(e.op).name);
    entry["of"] = refs_json(e.inputs);
    write_attrs(entry, e.attrs);
    if (const auto& a = e.attention)
      entry["attention"] = {{"scale", number_json(Number::of_real(a->scale))},
                            {"causal", a->causal},
                            {"offset", a->offset},
                            {"mask", a->mask},
                            {"derivative", a->derivative}};
    if (e.attention && e.attention->dropout > 0)
      entry["attention"]["dropout"] = number_json(Number::of_real(e.attention->dropout));
    if (const auto& c = e.control) {
      entry["control"] = {{"constants", c->constants},
                          {"carry", c->carry},
                          {"length", dims({c->length})[0]},
                          {"reverse", c->reverse},
                          {"max_steps", c->max_steps}};
      entry["control"]["bodies"] = ordered_json::array();
      for (const auto& body : c->bodies) entry["control"]["bodies"].push_back(tape_json(*body));
    }
    if (e.body) entry["name"] = e.name, entry["key"] = e.key, entry["body"] = tape_json(*e.body);
    out["entries"].push_back(std::move(entry));
  }
  out["outputs"] = refs_json(tape.outputs);
  return out;
}

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

/// Reads what `tape_json` wrote; every field is checked for its kind, and unknown ones are refused.
class TapeReader {
 public:
  /// `shapeless`: nothing is laid out at the bounds of symbols.
  explicit TapeReader(bool shapeless) : shapeless_(shapeless) {}
  Tape tape(const json& root) const {
    fields(root, "a function", {"inputs", "entries", "outputs"}, {"inputs", "entries", "outputs"});
    Tape out;
    for (const json& t : list(root["inputs"], "inputs")) out.inputs.push_back(type(t));
    for (const json& e : list(root["entries"], "entries")) {
      const size_t position = out.entries.size();
      try {
        out.entries.push_back(entry(e, static_cast<int>(out.inputs.size() + position)));
      } catch (const KernelTextError& error) {
        throw KernelTextError(fmt::format("entry {}: {}", position, error.what()), error.text, error.line,
                              error.column);
      } catch (const std::runtime_error& error) {
        fail(fmt::format("entry {}: {}", position, error.what()));
      }
    }
    out.outputs = refs(root["outputs"], static_cast<int>(out.inputs.size() + out.entries.size()));
    return out;
  }

  static const json& list(const json& value, const char* what) {
    if (!value.is_array()) fail(fmt::format("{} is not a list", what));
    return value;
  }
  static std::string text(const json& value, const char* what) {
    if (!value.is_string()) fail(fmt::format("{} is not a text", what));
    return value.get<std::string>();
  }
  static int64_t whole(const json& value, const char* what) {
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)))
      fail(fmt::format("{} is not a whole number", what));
    return value.get<int64_t>();
  }
  static void fields(const json& value, const char* what, const std::vector<std::string>& needed,
                     const std::vector<std::string>& known) {
    if (!value.is_object()) fail(fmt::format("{} is not an object", what));
    for (const std::string& key : needed)
      if (!value.contains(key)) fail(fmt::format("{} lacks \"{}\"", what, key));
    for (const auto& [key, unused] : value.items())
      if (std::find(known.begin(), known.end(), key) == known.end())
        fail(fmt::format("{} has an unknown field {}", what, json(key).dump()));
  }

  static bool truth(const json& value, const char* what) {
    if (!value.is_boolean()) fail(fmt::format("{} is neither true nor false", what));
    return value.get<bool>();
  }

 private:
  static Dim dim(const json& value) {
    constexpr int64_t most = int64_t{1} << 47;
    if (!value.is_array()) {
      const int64_t n = whole(value, "a length");
      if (n < 0 || n > most) fail(fmt::format("the length {} is out of range", n));
      return n;
    }
    if (value.size() != 2) fail("a length is neither a number nor a name with its bound");
    const std::string name = text(value[0], "the name of a length");
    const int64_t bound = whole(value[1], "the bound of a length");
    if (name.empty() || name.size() > 100 || bound < 1 || bound > most)
      fail("a length has an impossible name or bound");
    return symbol(name, bound);
  }
  Shape shape(const json& value) const {
    Shape out;
    double elements = 1;
    for (const json& d : list(value, "a shape")) {
      out.push_back(dim(d));
      const bool open = shapeless_ && !out.back().is_static();
      elements *= open ? 1 : static_cast<double>(std::max<int64_t>(out.back().bound(), 1));
    }
    if (out.size() > 64 || elements > 0x1p47) fail("the shape " + to_string(out) + " is larger than any memory");
    return out;
  }
  static Dtype dtype(const json& value) {
    try {
      return dtype_from_name(text(value, "a dtype"));
    } catch (const std::invalid_argument&) {
      fail("the dtype " + value.dump() + " is not known");
    }
  }
  graph::Type type(const json& value) const {
    if (!value.is_array() || value.size() != 2) fail("a type is not a dtype with a shape");
    return {shape(value[1]), dtype(value[0])};
  }
  static Number number(const json& value) {
    if (!value.is_object() || value.size() != 1) fail("a number is neither an integer nor bits");
    if (value.contains("integer")) return Number::of_int(whole(value["integer"], "a number"));
    if (!value.contains("bits") || !value["bits"].is_number_unsigned()) fail("a number is neither an integer nor bits");
    return Number::of_real(std::bit_cast<double>(value["bits"].get<uint64_t>()));
  }

  static std::vector<Tape::Ref> refs(const json& value, int below) {
    std::vector<Tape::Ref> out;
    for (const json& r : list(value, "a list of values")) {
      const bool pair = r.is_array() && r.size() == 2;
      const int64_t v = whole(pair ? r[0] : r, "a value"), result = pair ? whole(r[1], "a result") : 0;
      if (v < 0 || v >= below || result < 0 || result > 1'000'000)
        fail(fmt::format("value {}.{} is not there yet", v, result));
      out.emplace_back(static_cast<int>(v), static_cast<int>(result));
    }
    return out;
  }

  /// Returns the operator of a row's name, or of the name that earlier files have for it.
  static graph::Op operator_named(const std::string& given) {
    const std::string name = given == "fold" ? "reduce" : given == "prefix" ? "cumulative" : given;
    for (const graph::Row* row : graph::table())
      if (row->name == name && row->op != graph::Op::parameter) return row->op;
    fail("the operator " + json(name).dump() + " is not known");
  }

  Tape::Entry entry(const json& value, int number_of_this) const {
    fields(value, "an entry", {"op", "of"},
           {"op",   "of",    "axes",  "axes2",     "batch",   "batch2",    "start",   "step",     "low",
            "high", "shape", "dtype", "number",    "reducer", "mode",      "call",    "integers", "packed",
            "name", "key",   "body",  "attention", "window",  "generator", "control", "kernel"});
    Tape::Entry e{operator_named(text(value["op"], "op")), refs(value["of"], number_of_this), {}, {}, {}, nullptr};
    for (const AttrList& l : lists)
      if (value.contains(l.key))
        for (const json& v : list(value[l.key], l.key)) (e.attrs.*l.member).push_back(whole(v, l.key));
    if (value.contains("shape")) e.attrs.shape = shape(value["shape"]);
    if (value.contains("dtype")) e.attrs.dtype = dtype(value["dtype"]);
    if (value.contains("number")) e.attrs.number = number(value["number"]);
    if (value.contains("reducer")) e.attrs.reducer = reducer(text(value["reducer"], "reducer"));
    if (value.contains("call")) e.attrs.call = text(value["call"], "call");
    if (value.contains("kernel")) e.attrs.kernel = user_kernel(text(value["kernel"], "kernel"));
    if ((e.attrs.call == "kernel") != (e.attrs.kernel != nullptr))
      fail("\"kernel\" belongs to a call of that name, and to nothing else");
    if (value.contains("generator")) {
      if (text(value["generator"], "generator") != "philox") fail("the generator is not known");
      e.attrs.generator = graph::Generator::philox;
    }
    if (value.contains("packed")) e.attrs.packed = truth(value["packed"], "packed");
    if (value.contains("mode")) e.attrs.mode = mode(text(value["mode"], "mode"));
    const bool region = e.op == graph::Op::composite;
    for (const char* key : {"name", "key", "body"})
      if (value.contains(key) != region) fail(fmt::format("\"{}\" belongs to a composite, and to nothing else", key));
    const bool flow = e.op == graph::Op::cond || e.op == graph::Op::while_loop || e.op == graph::Op::scan;
    if (value.contains("control") != flow) fail("\"control\" belongs to control flow, and to nothing else");
    if (flow) e.control = control(value["control"]);
    if (value.contains("attention")) e.attention = attention(value["attention"]);
    if (e.attention && !region) fail("\"attention\" belongs to a composite, and to nothing else");
    if (region) {
      e.name = text(value["name"], "name");
      e.body = std::make_shared<const Tape>(tape(value["body"]));
      e.key = identified(text(value["key"], "key"), *e.body);
    }
    return e;
  }
  /// Reads and verifies the tile IR of a kernel.
  static std::shared_ptr<const graph::KernelProgram> user_kernel(const std::string& text) {
    try {
      return graph::program_of_text(text);
    } catch (const kernel::TextError& e) {
      throw KernelTextError(e.what(), text, e.line, e.column);
    } catch (const std::invalid_argument& e) {
      throw KernelTextError(e.what(), text, 1, 1);
    }
  }
  Tape::Entry::Control control(const json& value) const {
    const std::vector<std::string> all{"bodies", "constants", "carry", "length", "reverse", "max_steps"};
    fields(value, "control", all, all);
    Tape::Entry::Control out;
    for (const json& body : list(value["bodies"], "bodies"))
      out.bodies.push_back(std::make_shared<const Tape>(tape(body)));
    out.constants = whole(value["constants"], "constants"), out.carry = whole(value["carry"], "carry"),
    out.length = dim(value["length"]);
    out.max_steps = whole(value["max_steps"], "max_steps"), out.reverse = truth(value["reverse"], "reverse");
    return out;
  }
  static graph::AttentionRegion attention(const json& value) {
    fields(value, "attention", {"scale", "causal", "offset", "mask", "derivative"},
           {"scale", "causal", "offset", "mask", "derivative", "dropout"});
    return {number(value["scale"]).real(),
            truth(value["causal"], "causal"),
            whole(value["offset"], "offset"),
            truth(value["mask"], "mask"),
            truth(value["derivative"], "derivative"),
            value.contains("dropout") ? number(value["dropout"]).real() : 0};
  }
  /// Returns the key of a region that was read, with a digest of its body: name and key identify a region, and its body
  /// may differ from this library's of the same name.
  static std::string identified(std::string key, const Tape& body) {
    const std::string mark = " body " + Hasher().text(tape_json(body).dump()).finish().hex();
    return key.ends_with(mark) ? key : key + mark;
  }
  static kernel::Reducer reducer(const std::string& name) {
    for (const kernel::ReducerInfo& row : kernel::reducers)
      if (row.name == name) return row.reducer;
    fail("the reducer " + json(name).dump() + " is not known");
  }
  static graph::ScatterMode mode(const std::string& name) {
    for (const graph::ScatterMode m : modes)
      if (graph::name(m) == name) return m;
    fail("the mode " + json(name).dump() + " is not known");
  }

  bool shapeless_;
};

std::vector<int64_t> length_list(const json& value) {
  constexpr int64_t most = int64_t{1} << 47;
  std::vector<int64_t> out;
  for (const json& n : TapeReader::list(value, "the lengths of a pattern")) {
    out.push_back(TapeReader::whole(n, "a length"));
    if (out.back() < 1 || out.back() > most) fail("a length of a pattern is out of range");
  }
  return out;
}

/// Moves the pattern out of a function's value: "entries" and "outputs" are empty afterwards.
std::shared_ptr<const LengthPattern> take_pattern(json& function) {
  const std::vector<std::string> both{"example", "least"};
  TapeReader::fields(function["lengths"], "\"lengths\"", both, both);
  LengthPattern out{{}, length_list(function["lengths"]["example"]), length_list(function["lengths"]["least"])};
  if (out.example.size() != out.least.size()) fail("the example and the least lengths are not as many");
  json moved;
  for (const char* key : {"entries", "outputs"}) {
    if (!function.contains(key)) fail(fmt::format("a function lacks \"{}\"", key));
    moved[key] = std::exchange(function[key], json::array());
  }
  out.json = moved.dump();
  return std::make_shared<const LengthPattern>(std::move(out));
}

}  // namespace

std::span<const AttrList> attr_lists() { return lists; }

std::string tape_text(const Tape& tape) {
  return tape_json(tape).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}
Tape tape_from_text(std::string_view text) {
  const json value = json::parse(text, nullptr, false);
  if (value.is_discarded()) fail("the tape is not JSON");
  return TapeReader(false).tape(value);
}

std::string functions_json(const std::vector<TapedFunction>& functions) {
  ordered_json out;
  out["version"] = version;
  out["functions"] = ordered_json::array();
  for (const TapedFunction& f : functions) {
    ordered_json one = tape_json(f.tape);
    if (f.pattern) {
      one.update(ordered_json::parse(f.pattern->json));
      one["lengths"] = {{"example", f.pattern->example}, {"least", f.pattern->least}};
    }
    one["arguments"] = f.arguments;
    one["keywords"] = f.keywords;
    one["stored"] = f.stored;
    if (f.shapeless) one["shapeless"] = true;
    out["functions"].push_back(std::move(one));
  }
  return out.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::vector<TapedFunction> functions_from_json(std::string_view text) {
  constexpr int deepest = 256;  // composites in composites
  if (nested_deeper(text, deepest)) fail("the program is nested too deeply");
  json root = json::parse(text.begin(), text.end(), nullptr, false);
  if (root.is_discarded()) fail("the program is not JSON");
  TapeReader::fields(root, "the program", {"version", "functions"}, {"version", "functions"});
  if (const int64_t v = TapeReader::whole(root["version"], "the version"); v != version)
    fail(fmt::format("the program has version {}; this library reads version {}", v, version));
  std::vector<TapedFunction> out;
  TapeReader::list(root["functions"], "functions");
  for (json& f : root["functions"]) {
    TapeReader::fields(f, "a function", {"arguments", "keywords", "stored"},
                       {"inputs", "entries", "outputs", "arguments", "keywords", "stored", "shapeless", "lengths"});
    TapedFunction one;
    if (f.contains("shapeless")) one.shapeless = TapeReader::truth(f["shapeless"], "shapeless");
    for (const json& k : TapeReader::list(f["keywords"], "keywords"))
      one.keywords.push_back(TapeReader::text(k, "a keyword"));
    for (const json& k : TapeReader::list(f["stored"], "stored"))
      one.stored.push_back(TapeReader::text(k, "the name of an array"));
    const int64_t arguments = TapeReader::whole(f["arguments"], "arguments");
    if (f.contains("lengths")) one.pattern = take_pattern(f);
    for (const char* key : {"arguments", "keywords", "stored", "shapeless", "lengths"}) f.erase(key);
    one.tape = TapeReader(one.shapeless).tape(f);
    const auto others = static_cast<int64_t>(one.keywords.size() + one.stored.size());
    if (arguments < 0 || arguments != static_cast<int64_t>(one.tape.inputs.size()) - others)
      fail("arguments, keywords and stored arrays are not as many as the inputs");
    if (std::adjacent_find(one.keywords.begin(), one.keywords.end(), std::greater_equal<>()) != one.keywords.end())
      fail("the keywords are not in order, each once");
    one.arguments = static_cast<size_t>(arguments);
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace weft::io
