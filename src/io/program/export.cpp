// weft/export.h: functions to files and back.
#include "weft/export.h"

#include <algorithm>
#include <exception>
#include <map>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "io/program/export_callback.h"
#include "io/program/shapeless.h"
#include "io/program/tape.h"
#include "io/safetensors_header.h"
#include "transforms/traced.h"

namespace weft {

namespace {

std::vector<std::string> sorted_names(const Kwargs& kwargs) {
  std::vector<std::string> names;
  for (const auto& [name, unused] : kwargs) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<graph::Type> argument_types(const Args& args, const Kwargs& kwargs, const ExportOptions& options) {
  std::vector<graph::Type> types;
  for (const array& a : args) types.push_back(a.value().type());
  for (const std::string& name : sorted_names(kwargs)) types.push_back(kwargs.at(name).value().type());
  if (options.shapeless && !options.dynamic.empty())
    throw_invalid("export_function",
                  "a shapeless function has no dynamic axes of its own: give one of the two options");
  for (const DynamicAxis& d : options.dynamic) {
    if (d.argument < 0 || d.argument >= static_cast<int>(args.size()))
      throw_invalid("export_function", "dynamic axis \"" + d.name + "\" is of argument " + std::to_string(d.argument) +
                                           ", but there are " + std::to_string(args.size()));
    Shape& shape = types[static_cast<size_t>(d.argument)].shape;
    const int axis = normalize_axis("export_function", d.axis, static_cast<int>(shape.size()));
    if (d.bound < 1 || d.name.empty())
      throw_invalid("export_function", "a dynamic axis needs a name and a bound of at least 1");
    shape[static_cast<size_t>(axis)] = symbol(d.name, d.bound);
  }
  return types;
}

void refuse_shapeless(bool shapeless) {
  if (shapeless) throw_invalid("export_function", "a callback is told of one signature: shapeless must be false");
}

std::string signature(const io::TapedFunction& f) {
  std::string out = "(";
  for (size_t k = 0; k < f.arguments + f.keywords.size(); ++k) {
    if (k > 0) out += ", ";
    if (k >= f.arguments) out += f.keywords[k - f.arguments] + "=";
    out += graph::to_string(f.tape.inputs[k]);
  }
  for (size_t k = 0; f.pattern && k < f.pattern->least.size(); ++k)
    if (f.pattern->least[k] > 1) out += fmt::format(", n{} at least {}", k, f.pattern->least[k]);
  return out + ")";
}

/// Returns whether arguments have the written types, one length for each symbol.
bool fits(const io::TapedFunction& f, const std::vector<array>& given) {
  std::map<const Symbol*, int64_t> lengths;
  for (size_t k = 0; k < given.size(); ++k) {
    const graph::Type &written = f.tape.inputs[k], &type = given[k].value().type();
    if (written.dtype != type.dtype || written.shape.size() != type.shape.size()) return false;
    for (size_t axis = 0; axis < written.shape.size(); ++axis) {
      const Dim &w = written.shape[axis], &g = type.shape[axis];
      if (w == g) continue;
      if (!w.symbol() || g.symbol() || g.bound() < 1 || g.bound() > w.bound()) return false;
      if (lengths.emplace(w.symbol(), g.bound()).first->second != g.bound()) return false;
    }
  }
  for (size_t k = 0; f.pattern && k < f.pattern->least.size(); ++k)
    for (const auto& [symbol, n] : lengths)
      if (symbol->name == "n" + std::to_string(k) && n < f.pattern->least[k]) return false;
  return true;
}

}  // namespace

struct FunctionExporter::State {
  std::string file;  // or
  ExportCallback callback;
  ArgsKwargsFunction fun;
  ExportOptions options;
  std::vector<io::TapedFunction> functions;
  std::unordered_map<std::string, array> arrays;
  std::map<std::pair<const graph::Node*, int>, std::string> names;  // of stored arrays
  io::CallbackState told;
  bool open = true;
};

FunctionExporter::FunctionExporter(std::string file, ArgsKwargsFunction fun, ExportOptions options)
    : state_(std::make_unique<State>(
          State{std::move(file), nullptr, std::move(fun), std::move(options), {}, {}, {}, {}})) {}
FunctionExporter::FunctionExporter(ExportCallback callback, ArgsKwargsFunction fun)
    : state_(std::make_unique<State>(State{"the exporter", std::move(callback), std::move(fun), {}, {}, {}, {}, {}})) {
  if (!state_->callback) throw_invalid("export_function", "the callback is empty");
}
FunctionExporter::FunctionExporter(FunctionExporter&&) noexcept = default;
FunctionExporter::~FunctionExporter() {
  if (!state_ || std::uncaught_exceptions() > 0) return;  // a failed export leaves no file
  try {
    close();
  } catch (...) {  // only close() reports errors
  }
}

void FunctionExporter::operator()(const Args& args) { (*this)(args, {}); }
void FunctionExporter::operator()(const Kwargs& kwargs) { (*this)({}, kwargs); }

void FunctionExporter::operator()(const Args& args, const Kwargs& kwargs) {
  State& s = *state_;
  if (!s.open) throw std::runtime_error("[export_function] " + s.file + " is closed: nothing can be added");
  io::TapedFunction f;
  f.arguments = args.size();
  f.keywords = sorted_names(kwargs);
  const auto flat = [&](const std::vector<array>& in) {
    Kwargs by_name;
    for (size_t k = 0; k < f.keywords.size(); ++k) by_name.emplace(f.keywords[k], in[f.arguments + k]);
    return s.fun(Args(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(f.arguments)), by_name);
  };
  const auto types = argument_types(args, kwargs, s.options);
  f.shapeless = s.options.shapeless;
  std::vector<array> captured;
  if (f.shapeless) {
    io::ShapelessTrace traced = io::trace_shapeless(flat, types);
    f.tape = std::move(traced.tape), f.pattern = std::move(traced.pattern), captured = std::move(traced.captured);
  } else {
    const auto traced = transforms::graph_of(flat, types);
    if (s.callback) return io::tell(s.callback, traced.graph, f.keywords, traced.captured, s.told);
    f.tape = io::tape_of(traced.graph), captured = traced.captured;
  }
  for (const array& a : captured) {
    const auto [it, fresh] =
        s.names.try_emplace(std::pair(a.value().node.get(), a.value().index), std::to_string(s.names.size()));
    if (fresh) s.arrays.emplace(it->second, io::as_stored(a));
    f.stored.push_back(it->second);
  }
  s.functions.push_back(std::move(f));
}

void FunctionExporter::close() {
  State& s = *state_;
  if (!std::exchange(s.open, false) || s.callback) return;
  std::unordered_map<std::string, std::string> texts{{"format", "weft.program"},
                                                     {"program", io::functions_json(s.functions)}};
  if (!s.options.metadata.empty()) texts.emplace("metadata", s.options.metadata);
  io::save_safetensors_as(s.file, s.arrays, texts);
}

namespace {

ArgsKwargsFunction with_both(const ArrayFunction& fun) {
  return [fun](const Args& args, const Kwargs&) { return fun(args); };
}
ArgsKwargsFunction with_both(const KwargsFunction& fun) {
  return [fun](const Args&, const Kwargs& kwargs) { return fun(kwargs); };
}

}  // namespace

FunctionExporter exporter(const std::string& file, const ArgsKwargsFunction& fun, bool shapeless,
                          const std::string& metadata) {
  return {file, fun, {.metadata = metadata, .shapeless = shapeless}};
}
FunctionExporter exporter(const std::string& file, const ArrayFunction& fun, const ExportOptions& options) {
  return {file, with_both(fun), options};
}
FunctionExporter exporter(const std::string& file, const ArrayFunction& fun, bool shapeless,
                          const std::string& metadata) {
  return exporter(file, with_both(fun), shapeless, metadata);
}
FunctionExporter exporter(const std::string& file, const KwargsFunction& fun, bool shapeless,
                          const std::string& metadata) {
  return exporter(file, with_both(fun), shapeless, metadata);
}
FunctionExporter exporter(const ExportCallback& callback, const ArgsKwargsFunction& fun, bool shapeless) {
  refuse_shapeless(shapeless);
  return {callback, fun};
}
FunctionExporter exporter(const ExportCallback& callback, const ArrayFunction& fun, bool shapeless) {
  return exporter(callback, with_both(fun), shapeless);
}
FunctionExporter exporter(const ExportCallback& callback, const KwargsFunction& fun, bool shapeless) {
  return exporter(callback, with_both(fun), shapeless);
}

void export_function(const std::string& file, const ArrayFunction& fun, const Args& args, bool shapeless,
                     const std::string& metadata) {
  FunctionExporter e = exporter(file, fun, shapeless, metadata);
  e(args);
  e.close();
}
void export_function(const std::string& file, const KwargsFunction& fun, const Kwargs& kwargs, bool shapeless,
                     const std::string& metadata) {
  FunctionExporter e = exporter(file, fun, shapeless, metadata);
  e(kwargs);
  e.close();
}
void export_function(const std::string& file, const ArgsKwargsFunction& fun, const Args& args, const Kwargs& kwargs,
                     bool shapeless, const std::string& metadata) {
  FunctionExporter e = exporter(file, fun, shapeless, metadata);
  e(args, kwargs);
  e.close();
}
void export_function(const std::string& file, const ArrayFunction& fun, const Args& args,
                     const ExportOptions& options) {
  FunctionExporter e = exporter(file, fun, options);
  e(args);
  e.close();
}
void export_function(const ExportCallback& callback, const ArrayFunction& fun, const Args& args, bool shapeless) {
  exporter(callback, fun, shapeless)(args);
}
void export_function(const ExportCallback& callback, const KwargsFunction& fun, const Kwargs& kwargs, bool shapeless) {
  exporter(callback, fun, shapeless)(kwargs);
}
void export_function(const ExportCallback& callback, const ArgsKwargsFunction& fun, const Args& args,
                     const Kwargs& kwargs, bool shapeless) {
  exporter(callback, fun, shapeless)(args, kwargs);
}

/// Compiles each function of the file once for its signature, a shapeless one for each shape it is called with.
struct ImportedFunction::State {
  std::string file;
  io::ProgramFile program;
  std::vector<ArrayFunction> compiled;
};

namespace {

ArrayFunction compiled_function(const io::TapedFunction& f, const std::vector<array>& stored) {
  CompileOptions options;
  for (size_t k = 0; k < f.arguments + f.keywords.size() && !f.shapeless; ++k)
    for (size_t axis = 0; axis < f.tape.inputs[k].shape.size(); ++axis)
      if (const Symbol* s = f.tape.inputs[k].shape[axis].symbol())
        options.dynamic.push_back({static_cast<int>(k), static_cast<int>(axis), s->name, s->bound});
  return compile(
      [f, stored](const std::vector<array>& in) {
        graph::Values inputs;
        std::vector<graph::Type> types;
        for (const auto* list : {&in, &stored})
          for (const array& a : *list) inputs.push_back(a.value()), types.push_back(a.value().type());
        std::vector<array> results;
        for (graph::Value& v : io::replay(io::tape_for(f, types), inputs)) results.emplace_back(std::move(v));
        return results;
      },
      options);
}

}  // namespace

std::vector<array> ImportedFunction::operator()(const Args& args) const { return (*this)(args, {}); }
std::vector<array> ImportedFunction::operator()(const Kwargs& kwargs) const { return (*this)({}, kwargs); }

std::vector<array> ImportedFunction::operator()(const Args& args, const Kwargs& kwargs) const {
  const auto names = sorted_names(kwargs);
  std::vector<array> flat = args;
  for (const std::string& name : names) flat.push_back(kwargs.at(name));
  std::string known, given;
  for (size_t k = 0; k < state_->program.functions.size(); ++k) {
    const io::TapedFunction& f = state_->program.functions[k];
    if (f.arguments == args.size() && f.keywords == names && fits(f, flat)) return state_->compiled[k](flat);
    known += (known.empty() ? "" : ", ") + signature(f);
  }
  for (const array& a : flat) given += (given.empty() ? "" : ", ") + graph::to_string(a.value().type());
  throw_invalid("import_function", state_->file + " was exported for " + (known.empty() ? "nothing" : known) +
                                       ", and called with (" + given + ")");
}

const std::string& ImportedFunction::metadata() const { return state_->program.metadata; }

ImportedFunction import_function(const std::string& file) {
  auto state = std::make_shared<ImportedFunction::State>();
  state->file = file;
  state->program = io::read_program(file);
  for (size_t k = 0; k < state->program.functions.size(); ++k)
    state->compiled.push_back(compiled_function(state->program.functions[k], state->program.stored[k]));
  return ImportedFunction(state);
}

}  // namespace weft
