// Code of GPUs in a kernel: checks, and the tracing of its counterpart.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "kernel/language/trace.h"
#include "weft/kernel_code.h"

namespace weft::k {

using kernel::Type;
using kernel::Value;

namespace {

bool is_name(const std::string& s) {
  return !s.empty() && std::isdigit(static_cast<unsigned char>(s[0])) == 0 &&
         std::all_of(s.begin(), s.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

std::vector<std::string> operands_of(const std::string& list) {
  std::vector<std::string> out(1);
  for (const char c : list) {
    if (c == ',') out.emplace_back();
    else if (c != ' ') out.back() += c;
  }
  return out;
}

/// Returns how many registers an operand of PTX takes.
int64_t registers_of(Dtype t, int pack) {
  const auto bytes = static_cast<int64_t>(t.size());
  return bytes == 8 ? pack : std::max<int64_t>(1, (pack * bytes + 3) / 4);
}

/// Checks that each operand has as many constraints as registers, and that those of results are outputs.
void check_constraints(const Trace& t, const Code& code, std::span<const Dtype> results, std::span<const Dtype> args,
                       Line at) {
  const std::vector<std::string> given = operands_of(code.constraints);
  int64_t outputs = 0, inputs = 0;
  for (const Dtype d : results) outputs += registers_of(d, code.pack);
  for (const Dtype d : args) inputs += registers_of(d, code.pack);
  if (static_cast<int64_t>(given.size()) != outputs + inputs)
    t.refuse(at, fmt::format("code '{}': {} constraints in \"{}\": its results take {} registers and its arguments {}, "
                             "one constraint each",
                             code.name, given.size(), code.constraints, outputs, inputs));
  for (size_t k = 0; k < given.size(); ++k) {
    const bool result = static_cast<int64_t>(k) < outputs;
    const std::string letter = result && given[k].starts_with("=") ? given[k].substr(1) : given[k];
    if ((result && !given[k].starts_with("=")) || letter.size() != 1 ||
        std::string_view("rhlfd").find(letter[0]) == std::string_view::npos)
      t.refuse(at, fmt::format("code '{}': the constraint '{}' of operand {}: give {}r, h, l, f or d", code.name,
                               given[k], k, result ? "= and " : ""));
  }
}

void check_code(const Trace& t, const Code& code, std::span<const Dtype> results, std::span<const Dtype> args,
                Line at) {
  constexpr int packs[] = {1, 2, 4, 8, 16};
  if (std::find(std::begin(packs), std::end(packs), code.pack) == std::end(packs))
    t.refuse(at, fmt::format("code '{}': it runs for 1, 2, 4, 8 or 16 elements at once, not {}", code.name, code.pack));
  if (args.empty() || results.empty())
    t.refuse(at, fmt::format("code '{}': it takes a tile and makes a tile at least", code.name));
  if (!code.constraints.empty()) return check_constraints(t, code, results, args, at);
  if (code.inputs.size() != args.size() || code.outputs.size() != results.size())
    t.refuse(at, fmt::format("code '{}': it names {} arguments and {} results, and has {} and {}: name each", code.name,
                             code.inputs.size(), code.outputs.size(), args.size(), results.size()));
  std::vector<std::string> names = code.inputs;
  names.insert(names.end(), code.outputs.begin(), code.outputs.end());
  for (const std::string& name : names)
    if (!is_name(name) || std::count(names.begin(), names.end(), name) > 1)
      t.refuse(at, fmt::format("code '{}': '{}' is no name of its own: give letters, digits and _", code.name, name));
}

kernel::InlineCode described(const Code& code) {
  return {.name = code.name,
          .text = code.text,
          .constraints = code.constraints,
          .inputs = code.inputs,
          .outputs = code.outputs,
          .pack = code.pack,
          .effects = code.effects,
          .file = code.line.file,
          .line = code.line.number};
}

}  // namespace

std::vector<Any> inline_code(const Code& code, std::span<const Any> args, std::span<const Dtype> results,
                             const Counterpart& counterpart, Line at) {
  Trace& t = Trace::current("code", at);
  std::vector<Value> values;
  std::vector<Dtype> dtypes;
  for (const Any& v : args) values.push_back(t.value(v, at)), dtypes.push_back(t.builder.type(values.back()).dtype);
  check_code(t, code, results, dtypes, at);
  for (const Dtype d : results) check_dtype(t, "code", d, at);
  const std::vector<int64_t> dims = common_shape(t, fmt::format("code '{}'", code.name), values, at);
  kernel::Builder& b = t.at(at);
  for (Value& v : values) v = dims.empty() ? v : b.broadcast(v, dims);
  kernel::Builder::Counterpart traced;
  if (counterpart)
    traced = [&](const std::vector<Value>& given) {
      std::vector<Value> made;
      const std::vector<size_t> slots = t.living();
      const std::vector<Value> before = t.variables(slots);
      t.in_block([&] {
        std::vector<Any> tiles;
        for (const Value v : given) tiles.push_back(t.any(v));
        for (const Any& v : counterpart(tiles)) made.push_back(t.value(v, at));
      });
      if (t.variables(slots) != before)
        t.refuse(at, fmt::format("code '{}': its counterpart assigns to a variable: return the value", code.name));
      if (made.size() != results.size())
        t.refuse(at, fmt::format("code '{}': its counterpart returns {} values: return {}", code.name, made.size(),
                                 results.size()));
      for (size_t k = 0; k < made.size(); ++k)
        if (!(b.type(made[k]) == Type{results[k], dims}))
          t.refuse(at, fmt::format("code '{}': value {} of its counterpart is {}: return {}", code.name, k,
                                   text(b.type(made[k])), text({results[k], dims})));
      return made;
    };
  std::vector<Any> out;
  for (const Value v : b.inline_code(described(code), values, {results.begin(), results.end()}, dims, traced))
    out.push_back(t.any(v));
  return out;
}

}  // namespace weft::k
