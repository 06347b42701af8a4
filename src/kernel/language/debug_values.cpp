#include "kernel/language/debug_values.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include <fmt/format.h>

#include "base/error.h"

namespace weft::k::detail {

namespace {

using kernel::Moment;

constexpr int64_t most_shown = 64;

[[noreturn]] void refuse(const std::string& what) { throw_invalid("debugger", what); }

/// Something with elements, and how to read them. An axis with a run-time extent has so many elements, and lies in
/// memory as if it had its bound.
struct Source {
  std::vector<int64_t> dims, bounds;
  std::function<Number(int64_t)> at;
};

/// A part of an axis; a single index leaves no axis.
struct Range {
  int64_t first = 0, size = 0;
  bool single = false;
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

int64_t whole_number(std::string_view text) {
  text = trimmed(text);
  int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size())
    refuse(fmt::format("\"{}\" is no integer: write indices as 3, 2:5 or :", text));
  return out;
}

/// Reads "3", "2:5", ":" of an axis with n elements.
Range range_of(std::string_view text, int64_t n) {
  text = trimmed(text);
  const size_t colon = text.find(':');
  Range out;
  if (colon == std::string_view::npos) {
    out = {whole_number(text), 1, true};
  } else {
    const std::string_view from = trimmed(text.substr(0, colon)), to = trimmed(text.substr(colon + 1));
    out.first = from.empty() ? 0 : whole_number(from);
    out.size = (to.empty() ? n : std::min(whole_number(to), n)) - out.first;
  }
  if (out.first < 0 || out.size < 0 || out.first + out.size > n)
    refuse(fmt::format("{} passes the end of an axis of {} elements", text, n));
  return out;
}

/// Reads the subscripts of a source, all of it where there are none.
std::vector<Range> ranges_of(std::string_view subscripts, const std::vector<int64_t>& dims) {
  std::vector<Range> out;
  while (!subscripts.empty()) {
    const size_t comma = std::min(subscripts.find(','), subscripts.size());
    if (out.size() == dims.size()) refuse(fmt::format("there are more indices than the {} axes", dims.size()));
    out.push_back(range_of(subscripts.substr(0, comma), dims[out.size()]));
    subscripts.remove_prefix(std::min(comma + 1, subscripts.size()));
  }
  while (out.size() < dims.size()) out.push_back({0, dims[out.size()]});
  return out;
}

Source value_source(const Moment& m, kernel::Value v) {
  const kernel::TileValue& value = m.values[static_cast<size_t>(v)];
  const std::vector<int64_t>& dims = m.kernel.types[static_cast<size_t>(v)].dims;
  return {dims, dims, [&value](int64_t k) { return value[static_cast<size_t>(k)]; }};
}

bool computed(const Moment& m, kernel::Value v) {
  return v >= 0 && static_cast<size_t>(v) < m.values.size() && !m.values[static_cast<size_t>(v)].empty();
}

std::string param_name(const Program::Data& program, size_t k) {
  return program.params[k].name.empty() ? fmt::format("p{}", k) : program.params[k].name;
}

/// Returns the extents of an array in this run.
std::vector<int64_t> extents_of(const Scene& scene, const Param& param) {
  std::vector<int64_t> out = param.dims;
  const std::vector<const Symbol*>& symbols = scene.program.symbols;
  for (size_t axis = 0; axis < param.symbols.size(); ++axis)
    for (size_t k = 0; k < symbols.size(); ++k)
      if (param.symbols[axis] == symbols[k]) out[axis] = scene.extents[k];
  return out;
}

Source source_of(const Scene& scene, std::string_view name) {
  const Program::Data& program = scene.program;
  const Moment& m = scene.moment;
  bool known = false;
  for (size_t k = program.names.size(); k-- > 0;) {
    if (program.names[k].name != name) continue;
    if (computed(m, program.names[k].value)) return value_source(m, program.names[k].value);
    known = true;
  }
  const auto memory = [&](size_t ref, std::vector<int64_t> dims, std::vector<int64_t> bounds) {
    return Source{std::move(dims), std::move(bounds),
                  [&m, ref](int64_t k) { return m.memory.peek(static_cast<kernel::Ref>(ref), k); }};
  };
  for (size_t k = 0; k < program.params.size(); ++k)
    if (const Param& p = program.params[k]; name == fmt::format("p{}", k) || name == p.name)
      return memory(k, extents_of(scene, p), p.dims);
  for (size_t k = 0; k < m.kernel.locals.size(); ++k)
    if (const int64_t n = m.kernel.locals[k].elements; name == fmt::format("l{}", k))
      return memory(program.params.size() + k, {n}, {n});
  for (size_t k = 0; k < program.symbols.size(); ++k)
    if (name == program.symbols[k]->name)
      return {{}, {}, [value = scene.extents[k]](int64_t) { return Number::of_int(value); }};
  if (name.starts_with("%")) {
    const auto v = static_cast<kernel::Value>(whole_number(name.substr(1)));
    if (computed(m, v)) return value_source(m, v);
    known = v >= 0 && static_cast<size_t>(v) < m.values.size();
  }
  if (known) refuse(fmt::format("{} is not computed here: go on until it is", name));
  refuse(fmt::format("there is no {}: known are {}", name, fmt::join(names_of(scene), ", ")));
}

}  // namespace

std::vector<std::string> names_of(const Scene& scene) {
  const Program::Data& program = scene.program;
  const Moment& m = scene.moment;
  std::vector<std::string> out;
  for (const NamedValue& n : program.names)
    if (computed(m, n.value) && std::find(out.begin(), out.end(), n.name) == out.end()) out.push_back(n.name);
  for (size_t k = 0; k < program.params.size(); ++k) out.push_back(param_name(program, k));
  for (size_t k = 0; k < m.kernel.locals.size(); ++k) out.push_back(fmt::format("l{}", k));
  for (const Symbol* s : program.symbols) out.push_back(s->name);
  return out;
}

Looked looked_up(const Scene& scene, std::string_view what) {
  what = trimmed(what);
  const size_t open = std::min(what.find('['), what.size());
  std::string_view subscripts = what.substr(open);
  if (!subscripts.empty()) {
    if (!subscripts.ends_with(']')) refuse(fmt::format("\"{}\" lacks its ]", what));
    subscripts = subscripts.substr(1, subscripts.size() - 2);
  }
  const Source source = source_of(scene, trimmed(what.substr(0, open)));
  const std::vector<Range> ranges = ranges_of(subscripts, source.dims);
  Looked out;
  std::vector<int64_t> sizes;
  for (const Range& r : ranges) {
    sizes.push_back(r.size), out.size *= r.size;
    if (!r.single) out.dims.push_back(r.size);
  }
  for (int64_t n = 0; n < std::min(out.size, most_shown); ++n) {
    int64_t left = n, at = 0, pitch = 1;
    for (size_t k = ranges.size(); k-- > 0;) {
      at += (ranges[k].first + left % sizes[k]) * pitch;
      left /= sizes[k], pitch *= source.bounds[k];
    }
    out.elements.push_back(source.at(at));
  }
  return out;
}

std::string text_of(const Looked& part) {
  const auto number = [](const Number& n) { return n.integral ? fmt::format("{}", n.i) : fmt::format("{:.6g}", n.f); };
  size_t next = 0;
  const std::function<std::string(size_t)> list = [&](size_t axis) {
    if (next >= part.elements.size()) return std::string("…");
    if (axis == part.dims.size()) return number(part.elements[next++]);
    std::string out;
    for (int64_t k = 0; k < part.dims[axis]; ++k) {
      const bool over = next >= part.elements.size();
      out += (k > 0 ? ", " : "") + list(axis + 1);
      if (over) break;
    }
    return "[" + out + "]";
  };
  return part.size == 0 ? "[]" : list(0);
}

}  // namespace weft::k::detail
