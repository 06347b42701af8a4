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

/// Writes functions to files: traced, and called in another process without the code that they were made from. The
/// format is described in docs/programs.md.
///
///     export_function("f.weft", [&](const Args& in) { return Args{model(in[0])}; }, {x});
///     auto f = import_function("f.weft");
///     array y = f({x})[0];
namespace weft {

/// Positional arguments.
using Args = std::vector<array>;
/// Keyword arguments.
using Kwargs = std::unordered_map<std::string, array>;
/// A function of keyword arguments.
using KwargsFunction = std::function<std::vector<array>(const Kwargs&)>;
/// A function of both.
using ArgsKwargsFunction = std::function<std::vector<array>(const Args&, const Kwargs&)>;

/// Options of exporter and export_function.
struct ExportOptions {
  /// Axes of positional arguments whose length may be anything from 1 to a bound when the imported function is called;
  /// the example's lengths do not matter.
  std::vector<DynamicAxis> dynamic = {};
  std::string metadata = {};  ///< text that is kept with the functions (UTF-8); ImportedFunction::metadata
  /// Whether the imported function takes other lengths than those of the example: each length above 1 of the arguments
  /// may be any other one, the same wherever the example has it, up to 2²⁰ (2¹⁵ where there are two such lengths, 2¹²
  /// where there are more), unless the function fixes it. The function is traced once with symbols for the lengths, or,
  /// where it slices or reshapes such axes or computes with lengths, for several lengths, and refused if they do not
  /// agree. An imported function is compiled for each shape that it is called with.
  bool shapeless = false;
};

/// A value of an operation's argument, as an export callback sees it: lists of whole numbers as Strides (a whole number
/// as one element), lengths as Shape, other numbers as double, names as text.
using StateT = std::variant<bool, int, size_t, float, double, Dtype, Shape, Strides, std::vector<int>,
                            std::vector<size_t>, std::vector<std::tuple<bool, bool, bool>>,
                            std::vector<std::variant<bool, int, float>>, std::optional<float>, std::string>;
/// What a callback is told of a function instead of a file being written: maps whose "type" says what they hold, in
/// this order for each signature.
///
///   "inputs"          "inputs": name, shape and dtype of each argument, keyword arguments last, in the order of their
///   keys "keyword_inputs"  "keywords": key and name of each keyword argument "outputs"         "outputs": name, shape
///   and dtype of each result "constants"       "constants": name and value of arrays and numbers that the function
///   refers to, and that no earlier
///                     signature did
///   "primitive"       one for each operation, in an order in which they can run: "name" of its row in
///                     docs/operators.md, "inputs" and "outputs" as above, "arguments"
///
/// Regions are expanded: every operation is a row of the table. "arguments" are the fields of docs/programs.md that
/// differ from their defaults, each as its name (text) and its value. Names are those of NodeNamer, one for each array
/// through all signatures.
using ExportCallbackInput = std::unordered_map<
    std::string,
    std::variant<std::vector<std::tuple<std::string, Shape, Dtype>>, std::vector<std::pair<std::string, array>>,
                 std::vector<std::pair<std::string, std::string>>, std::vector<StateT>, std::string>>;
/// A function that is told of an exported function.
using ExportCallback = std::function<void(const ExportCallbackInput&)>;

/// Collects traces of one function for several signatures (dtypes and shapes) in one file. Arrays that the function
/// refers to are stored with it, as they are now; so is the key of the default random sequence where it draws from
/// that, so that every call of the imported function draws the same numbers (give it a key as an argument for others).
/// Throws std::invalid_argument for what cannot be exported: with `shapeless`, a function whose lengths cannot change,
/// or which does other steps for other lengths.
class WEFT_API FunctionExporter {
 public:
  /// Traces the function for the signature of these arguments and adds it. Throws std::runtime_error after `close`.
  void operator()(const std::initializer_list<array>& args) { (*this)(Args(args)); }
  void operator()(const Args& args);
  void operator()(const Kwargs& kwargs);
  void operator()(const Args& args, const Kwargs& kwargs);
  /// Writes the file, atomically; nothing can be added afterwards. The destructor does the same, but reports no error,
  /// and writes nothing while an exception unwinds.
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

/// Returns an exporter that writes `file` when it is closed. `shapeless` is ExportOptions::shapeless.
WEFT_API FunctionExporter exporter(const std::string& file, const ArrayFunction& fun, bool shapeless = false,
                                   const std::string& metadata = "");
WEFT_API FunctionExporter exporter(const std::string& file, const KwargsFunction& fun, bool shapeless = false,
                                   const std::string& metadata = "");
WEFT_API FunctionExporter exporter(const std::string& file, const ArgsKwargsFunction& fun, bool shapeless = false,
                                   const std::string& metadata = "");
WEFT_API FunctionExporter exporter(const std::string& file, const ArrayFunction& fun, const ExportOptions& options);
/// Returns an exporter that tells the callback of each signature. Control flow is refused (its bodies are graphs of
/// their own), and so is `shapeless`.
WEFT_API FunctionExporter exporter(const ExportCallback& callback, const ArrayFunction& fun, bool shapeless = false);
WEFT_API FunctionExporter exporter(const ExportCallback& callback, const KwargsFunction& fun, bool shapeless = false);
WEFT_API FunctionExporter exporter(const ExportCallback& callback, const ArgsKwargsFunction& fun,
                                   bool shapeless = false);

/// Writes one signature in one file.
WEFT_API void export_function(const std::string& file, const ArrayFunction& fun, const Args& args,
                              bool shapeless = false, const std::string& metadata = "");
WEFT_API void export_function(const std::string& file, const KwargsFunction& fun, const Kwargs& kwargs,
                              bool shapeless = false, const std::string& metadata = "");
WEFT_API void export_function(const std::string& file, const ArgsKwargsFunction& fun, const Args& args,
                              const Kwargs& kwargs, bool shapeless = false, const std::string& metadata = "");
WEFT_API void export_function(const std::string& file, const ArrayFunction& fun, const Args& args,
                              const ExportOptions& options);
/// Tells a callback of one signature.
WEFT_API void export_function(const ExportCallback& callback, const ArrayFunction& fun, const Args& args,
                              bool shapeless = false);
WEFT_API void export_function(const ExportCallback& callback, const KwargsFunction& fun, const Kwargs& kwargs,
                              bool shapeless = false);
WEFT_API void export_function(const ExportCallback& callback, const ArgsKwargsFunction& fun, const Args& args,
                              const Kwargs& kwargs, bool shapeless = false);

/// An exported function. It is an ordinary function: differentiable, and part of what is traced where it is called
/// inside a trace.
class WEFT_API ImportedFunction {
 public:
  /// Calls the signature that fits the arguments and returns its results. Throws std::invalid_argument naming the
  /// signatures there are where none fits.
  std::vector<array> operator()(const std::initializer_list<array>& args) const { return (*this)(Args(args)); }
  std::vector<array> operator()(const Args& args) const;
  std::vector<array> operator()(const Kwargs& kwargs) const;
  std::vector<array> operator()(const Args& args, const Kwargs& kwargs) const;
  /// Returns the text that was exported with the functions; empty where there was none.
  const std::string& metadata() const;

  struct State;
  explicit ImportedFunction(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

/// Returns the functions of a file. The file is checked whole; std::runtime_error says what is wrong with it. Its
/// arrays are mapped: pages are read when they are used.
WEFT_API ImportedFunction import_function(const std::string& file);

}  // namespace weft
