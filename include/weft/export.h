#pragma once
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "weft/array.h"
#include "weft/compile.h"

// Functions as files: traced, written, and called in another process without the code that they were made from. The
// format is described in docs/programs.md.
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
  /// Axes of positional arguments whose length may be anything from 1 to a bound when the imported function is called;
  /// the example's lengths do not matter.
  std::vector<DynamicAxis> dynamic = {};
  std::string metadata = {};  ///< text that is kept with the functions (UTF-8); ImportedFunction::metadata
};

/// What a callback is told of a function instead of a file being written: maps whose "type" says what they hold, in
/// this order for each signature.
///
///     "inputs"          "inputs": name, shape and dtype of each argument, keyword arguments last, in the order of
///                       their keys
///     "keyword_inputs"  "keywords": key and name of each keyword argument
///     "outputs"         "outputs": name, shape and dtype of each result
///     "constants"       "constants": name and value of arrays and numbers that the function refers to, and that no
///                       earlier signature did
///     "primitive"       one for each operation, in an order in which they can run: "name" of its row in
///                       docs/operators.md, "inputs" and "outputs" as above, "arguments"
///
/// Regions are written out: every operation is a row of the table. "arguments" are the fields of docs/programs.md that
/// differ from their defaults, each as its name (text) and its value: lists of whole numbers as Strides (a whole
/// `number` as one element), lengths as Shape, other numbers as double, names as text. Names are those of NodeNamer,
/// one for each array through all signatures.
using StateT = std::variant<bool, int, size_t, float, double, Dtype, Shape, Strides, std::vector<int>,
                            std::vector<size_t>, std::vector<std::tuple<bool, bool, bool>>,
                            std::vector<std::variant<bool, int, float>>, std::optional<float>, std::string>;
using ExportCallbackInput = std::unordered_map<
    std::string,
    std::variant<std::vector<std::tuple<std::string, Shape, Dtype>>, std::vector<std::pair<std::string, array>>,
                 std::vector<std::pair<std::string, std::string>>, std::vector<StateT>, std::string>>;
using ExportCallback = std::function<void(const ExportCallbackInput&)>;

/// Collects traces of one function for several signatures (dtypes and shapes) in one file. Arrays that the function
/// refers to are stored with it, as they are now. Throws std::invalid_argument for what cannot be exported: a function
/// that draws from the default random sequence (give it a key), `shapeless` (name the axes in ExportOptions instead).
class WEFT_API FunctionExporter {
 public:
  void operator()(const std::initializer_list<array>& args) { (*this)(Args(args)); }
  void operator()(const Args& args);
  void operator()(const Kwargs& kwargs);
  void operator()(const Args& args, const Kwargs& kwargs);
  /// Writes the file, atomically; nothing can be added afterwards. The destructor does the same, but cannot tell what
  /// went wrong, and not where an exception is on its way.
  void close();

  FunctionExporter(std::string file, ArgsKwargsFunction fun, ExportOptions options);
  FunctionExporter(ExportCallback callback, ArgsKwargsFunction fun);
  ~FunctionExporter();
  FunctionExporter(FunctionExporter&&) noexcept;
  FunctionExporter& operator=(FunctionExporter&&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

WEFT_API FunctionExporter exporter(const std::string& file, const ArrayFunction& fun, bool shapeless = false,
                                   const std::string& metadata = "");
WEFT_API FunctionExporter exporter(const std::string& file, const KwargsFunction& fun, bool shapeless = false,
                                   const std::string& metadata = "");
WEFT_API FunctionExporter exporter(const std::string& file, const ArgsKwargsFunction& fun, bool shapeless = false,
                                   const std::string& metadata = "");
WEFT_API FunctionExporter exporter(const std::string& file, const ArrayFunction& fun, const ExportOptions& options);
/// Each call of the exporter traces one signature and tells the callback. Control flow is refused: its bodies are
/// graphs of their own.
WEFT_API FunctionExporter exporter(const ExportCallback& callback, const ArrayFunction& fun, bool shapeless = false);
WEFT_API FunctionExporter exporter(const ExportCallback& callback, const KwargsFunction& fun, bool shapeless = false);
WEFT_API FunctionExporter exporter(const ExportCallback& callback, const ArgsKwargsFunction& fun,
                                   bool shapeless = false);

/// One signature in one file.
WEFT_API void export_function(const std::string& file, const ArrayFunction& fun, const Args& args,
                              bool shapeless = false, const std::string& metadata = "");
WEFT_API void export_function(const std::string& file, const KwargsFunction& fun, const Kwargs& kwargs,
                              bool shapeless = false, const std::string& metadata = "");
WEFT_API void export_function(const std::string& file, const ArgsKwargsFunction& fun, const Args& args,
                              const Kwargs& kwargs, bool shapeless = false, const std::string& metadata = "");
WEFT_API void export_function(const std::string& file, const ArrayFunction& fun, const Args& args,
                              const ExportOptions& options);
/// One signature, told to a callback.
WEFT_API void export_function(const ExportCallback& callback, const ArrayFunction& fun, const Args& args,
                              bool shapeless = false);
WEFT_API void export_function(const ExportCallback& callback, const KwargsFunction& fun, const Kwargs& kwargs,
                              bool shapeless = false);
WEFT_API void export_function(const ExportCallback& callback, const ArgsKwargsFunction& fun, const Args& args,
                              const Kwargs& kwargs, bool shapeless = false);

/// An exported function. A call picks the signature that fits its arguments, or throws std::invalid_argument naming
/// those there are. It is an ordinary function: differentiable, and part of what is traced where it is called inside a
/// trace.
class WEFT_API ImportedFunction {
 public:
  std::vector<array> operator()(const std::initializer_list<array>& args) const { return (*this)(Args(args)); }
  std::vector<array> operator()(const Args& args) const;
  std::vector<array> operator()(const Kwargs& kwargs) const;
  std::vector<array> operator()(const Args& args, const Kwargs& kwargs) const;
  const std::string& metadata() const;  ///< the text that was exported with the functions; empty where there was none

  struct State;
  explicit ImportedFunction(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

/// The file is checked whole; std::runtime_error says what is wrong with it. Its arrays are mapped: pages come in when
/// they are used.
WEFT_API ImportedFunction import_function(const std::string& file);

}  // namespace weft
