#pragma once
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "weft/array.h"
#include "weft/compile.h"

// Functions as files: traced, written, and called in another process without the code that they were made from. The format is described in docs/programs.md.
//
//     export_function("f.weft", [&](const Args& in) { return Args{model(in[0])}; }, {x});
//     auto f = import_function("f.weft");
//     array y = f({x})[0];

namespace weft {

using Args = std::vector<array>;
using Kwargs = std::unordered_map<std::string, array>;
using KwargsFunction = std::function<std::vector<array>(const Kwargs&)>;
using ArgsKwargsFunction = std::function<std::vector<array>(const Args&, const Kwargs&)>;

struct ExportOptions {
  /// Axes of positional arguments whose length may be anything from 1 to a bound when the imported function is called; the example's lengths do not matter.
  std::vector<DynamicAxis> dynamic = {};
};

/// Collects traces of one function for several signatures (dtypes and shapes) in one file. Arrays that the function refers to are stored with it, as they are now.
/// Throws std::invalid_argument for what cannot be exported: a function that draws from the default random sequence (give it a key), `shapeless` (name the axes in
/// ExportOptions instead).
class WEFT_API FunctionExporter {
 public:
  void operator()(const std::initializer_list<array>& args) { (*this)(Args(args)); }
  void operator()(const Args& args);
  void operator()(const Kwargs& kwargs);
  void operator()(const Args& args, const Kwargs& kwargs);
  /// Writes the file, atomically; nothing can be added afterwards. The destructor does the same, but cannot tell what went wrong, and not where an
  /// exception is on its way.
  void close();

  FunctionExporter(std::string file, ArgsKwargsFunction fun, ExportOptions options);
  ~FunctionExporter();
  FunctionExporter(FunctionExporter&&) noexcept;
  FunctionExporter& operator=(FunctionExporter&&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

WEFT_API FunctionExporter exporter(const std::string& file, const ArrayFunction& fun, bool shapeless = false);
WEFT_API FunctionExporter exporter(const std::string& file, const KwargsFunction& fun, bool shapeless = false);
WEFT_API FunctionExporter exporter(const std::string& file, const ArgsKwargsFunction& fun, bool shapeless = false);
WEFT_API FunctionExporter exporter(const std::string& file, const ArrayFunction& fun, const ExportOptions& options);

/// One signature in one file.
WEFT_API void export_function(const std::string& file, const ArrayFunction& fun, const Args& args, bool shapeless = false);
WEFT_API void export_function(const std::string& file, const KwargsFunction& fun, const Kwargs& kwargs, bool shapeless = false);
WEFT_API void export_function(const std::string& file, const ArgsKwargsFunction& fun, const Args& args, const Kwargs& kwargs, bool shapeless = false);
WEFT_API void export_function(const std::string& file, const ArrayFunction& fun, const Args& args, const ExportOptions& options);

/// An exported function. A call picks the signature that fits its arguments, or throws std::invalid_argument naming those there are. It is an ordinary function:
/// differentiable, and part of what is traced where it is called inside a trace.
class WEFT_API ImportedFunction {
 public:
  std::vector<array> operator()(const std::initializer_list<array>& args) const { return (*this)(Args(args)); }
  std::vector<array> operator()(const Args& args) const;
  std::vector<array> operator()(const Kwargs& kwargs) const;
  std::vector<array> operator()(const Args& args, const Kwargs& kwargs) const;

  struct State;
  explicit ImportedFunction(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

/// The file is checked whole; std::runtime_error says what is wrong with it. Its arrays are mapped: pages come in when they are used.
WEFT_API ImportedFunction import_function(const std::string& file);

}  // namespace weft
