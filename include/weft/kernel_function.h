#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/array.h"
#include "weft/device.h"
#include "weft/interop.h"
#include "weft/kernel.h"
#include "weft/kernel/debug.h"
#include "weft/kernel_tuning.h"

/// Kernels as functions of arrays: lazy, in programs of `compile`, under vmap and in derivatives, which follow from the
/// kernel's body.
///
///     auto softmax = k::kernel("softmax", [](k::In<float, 2> x, k::Out<float, 2> y) {
///                      const int64_t n = x.dim(1);
///                      auto row = k::program_id(0);
///                      auto v = x(row, k::ds(0, n)).load(-INFINITY);
///                      auto e = k::exp(v - k::max(v, 0));
///                      y(row, k::ds(0, n)) = e / k::sum(e, 0);
///                    }).grid([](auto x, auto) { return k::Grid{x.dim(0)}; });
///     array p = softmax(logits);  // builds a graph; nothing runs yet
namespace weft::k {

/// Returns a traced kernel as text at a stage: "tile" (its tile IR, with the extents of its arrays) and
/// "schedule" (the steps of its loops and its launch); on CPUs "legalized" (the tile IR that code is made of), "llvm"
/// and "assembly"; on GPUs "cuda", "ptx" and "sass", which need NVRTC, the last also nvdisasm or cuobjdump, and no GPU.
/// `machine`: instructions of the CPU ("native", "avx512", "avx2", "generic"), or the GPU's architecture ("sm_90a");
/// empty: those of this machine, without a GPU sm_90a. Throws std::invalid_argument where there is no such stage or
/// machine.
WEFT_API std::string show(const Program& program, std::string_view stage, const std::string& machine = "");

/// Memory of the caller's as a kernel takes it: an array of a parameter's dtype.
struct RawArray {
  /// Its first element, in the memory of the device.
  void* data = nullptr;
  /// Its extents. One that is a symbol is a run-time extent: the kernel is compiled once for all of its values, and the
  /// memory has room for the largest.
  Shape shape;
  /// Elements between neighbours along each axis; empty: row-major, symbols at their bounds.
  std::vector<int64_t> strides = {};
  /// The extent of each axis in this launch: values of the symbols in `shape`, and its numbers again; empty: the values
  /// come from other arrays, or from the list of them that `launch` takes.
  std::vector<int64_t> extents = {};
};

/// The value of a run-time extent in one launch: `{n, 77}`, where n is a symbol.
struct RawExtent {
  /// The symbol, as it stands in shapes.
  Dim length;
  /// Its value, from 1 to the bound.
  int64_t value = 0;
};

using weft::RawStream;

namespace detail {

template <class T>
inline constexpr bool is_handle = false;
template <class T, int R>
inline constexpr bool is_handle<In<T, R>> = true;
template <class T, int R>
inline constexpr bool is_handle<Out<T, R>> = true;
template <class T, int R>
inline constexpr bool is_handle<InOut<T, R>> = true;

/// The parameters of a function or of an object that is called.
template <class F>
struct ParametersOf : ParametersOf<decltype(&F::operator())> {};
template <class Result, class... A>
struct ParametersOf<Result (*)(A...)> {
  using type = std::tuple<std::decay_t<A>...>;
};
template <class C, class Result, class... A>
struct ParametersOf<Result (C::*)(A...) const> : ParametersOf<Result (*)(A...)> {};

/// An array of a kernel, before its extents are known.
struct ArrayType {
  Use use;
  Dtype dtype;
  int rank;
};

/// A configuration of any type, and how two of them are compared.
struct AnyConfig {
  std::shared_ptr<const void> value = {};
  bool (*equal)(const void*, const void*) = nullptr;
  LaunchOptions launch = {};
  std::string text = {};  // the values
  weft::schedule::Steps steps = {};
};

/// The configurations of a kernel, and how one of them is chosen.
struct Tuning {
  using Arrays = std::vector<array>;
  std::vector<AnyConfig> configs = {};
  std::function<std::vector<int64_t>(const Arrays&)> key = {};
  std::function<std::vector<AnyConfig>(const std::vector<AnyConfig>&, const Arrays&)> prune = {};
  std::function<double(const AnyConfig&, const Arrays&)> estimate = {};
  size_t most_measured = 0;  // 0: all of them
  std::vector<ArrayReset> resets = {};
  std::optional<std::vector<size_t>> restored = {};
  TuneOptions options = {};
};

/// A kernel without its C++ types.
struct Definition {
  std::string name;
  std::vector<ArrayType> arrays;
  std::function<void(std::span<const AnyRef>, const void* config)> body;
  std::function<Grid(std::span<const AnyRef>, const void* config)> grid = {};
  std::function<std::vector<Shape>(const std::vector<array>&, const void* config)> outputs = {};
  Tuning tuning = {};
  std::vector<std::vector<int>> factors = {};  // by array and axis, -1: whole; none: they follow from the body
};
/// Returns the factors that a rule names.
WEFT_API std::vector<std::vector<int>> sharding_of(const Definition& d, std::string_view rule);

/// A definition with the programs that were traced of it. Copies share them.
class WEFT_API Traced {
 public:
  explicit Traced(Definition definition);
  const Definition& definition() const;
  std::vector<array> call(const std::vector<array>& inputs, const AnyConfig& config) const;
  std::vector<array> interpret(const std::vector<array>& inputs, const AnyConfig& config) const;
  std::vector<array> debug(const Debugger& debugger, const std::vector<array>& inputs, const AnyConfig& config) const;
  Program program(const std::vector<array>& inputs, const AnyConfig& config) const;
  void launch(const RawStream& stream, const std::vector<RawArray>& arrays, const std::vector<RawExtent>& extents,
              const AnyConfig& config, Line at) const;
  void debug_launch(const Debugger& debugger, const std::vector<RawArray>& arrays,
                    const std::vector<RawExtent>& extents, const AnyConfig& config, Line at) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Two configurations: by ==, or where their type has none by their bytes.
template <class C>
bool equal_configs(const void* a, const void* b) {
  if constexpr (std::equality_comparable<C>) {
    return *static_cast<const C*>(a) == *static_cast<const C*>(b);
  } else {
    static_assert(std::is_trivially_copyable_v<C>,
                  "a configuration is compared: give it `friend bool operator==(const C&, const C&) = default;`");
    return std::equal(static_cast<const std::byte*>(a), static_cast<const std::byte*>(a) + sizeof(C),
                      static_cast<const std::byte*>(b));
  }
}

}  // namespace detail

/// A kernel as a function of arrays. Its arguments are the arrays that it reads (In, InOut) in the order of its
/// parameters, its results those that it writes (Out, InOut). An InOut argument does not change: the result begins as a
/// copy of it, or takes over its memory where nothing else needs it. Immutable and cheap to copy; several threads may
/// call one. It is traced once for each combination of shapes and configuration.
///
/// A call throws std::invalid_argument "[kernel NAME] …" where an argument has another dtype or rank than its
/// parameter, the grid is missing, a result has a dynamic length that no argument has, or what the tracing throws.
/// A dynamic length is a run-time scalar of the kernel (`extent`). Derivatives are kernels that follow
/// from its body; one whose body cannot be derived throws there, and takes a rule by custom_function
/// (weft/transforms.h).
template <class... P>
class KernelFunction {
  static constexpr size_t count = (size_t{0} + ... + size_t{detail::is_handle<P>});
  static constexpr bool configured = sizeof...(P) == count + 1;
  using Parameters = std::tuple<P..., std::tuple<>>;
  static_assert(count > 0 && sizeof...(P) <= count + 1 &&
                    detail::is_handle<std::tuple_element_t<count - 1, Parameters>>,
                "a kernel takes k::In, k::Out and k::InOut, and at most one configuration behind them");
  template <size_t I>
  using Handle = std::tuple_element_t<I, Parameters>;
  using Handles = std::make_index_sequence<count>;
  template <size_t... I>
  static constexpr size_t counted(Use other, std::index_sequence<I...>) {
    return (size_t{0} + ... + size_t{Handle<I>::use != other});
  }
  static constexpr size_t inputs = counted(Use::out, Handles{}), results = counted(Use::in, Handles{});

 public:
  /// The type of the configuration; an empty tuple where the function takes none.
  using Config = std::tuple_element_t<count, Parameters>;

  /// Makes a kernel of a function; the function `kernel` deduces the types.
  template <class F>
  KernelFunction(std::string name, F function) : traced_(definition(std::move(name), std::move(function), Handles{})) {
    if constexpr (std::default_initializable<Config>) config_ = any({Config{}});
  }

  /// Returns the kernel with a grid: fixed, or computed by f(parameters…) or f(parameters…, configuration) from the
  /// extents of handles: numbers (`dim`), or expressions of run-time scalars (`extent`).
  KernelFunction grid(Grid fixed) const {
    return with([&](detail::Definition& d) {
      d.grid = [fixed = std::move(fixed)](std::span<const AnyRef>, const void*) { return fixed; };
    });
  }
  template <class F>
  requires(!std::convertible_to<F, Grid>) KernelFunction grid(F f)
  const {
    return with([&](detail::Definition& d) {
      d.grid = [f = std::move(f)](std::span<const AnyRef> refs, const void* config) {
        return Grid(on_handles(f, refs, config, Handles{}));
      };
    });
  }
  /// Returns the kernel with the shapes of its Out arrays: f(arguments…) or f(arguments…, configuration) returns one
  /// Shape, or a std::vector of them. Without, all have the shape of the first argument, and its rank.
  template <class F>
  KernelFunction outputs(F f) const {
    return with([&](detail::Definition& d) {
      d.outputs = [f = std::move(f)](const std::vector<array>& in, const void* config) {
        return shapes(on_arrays(f, in, config, Inputs{}));
      };
    });
  }
  /// Returns the kernel with another configuration, and nothing to choose; the first one is Config{}.
  KernelFunction config(Config value, LaunchOptions launched = {}) const {
    KernelFunction out = *this;
    if (!traced_.definition().tuning.configs.empty()) out = tuning([](detail::Tuning& t) { t.configs.clear(); });
    out.config_ = any({std::move(value), launched, config_.steps});
    return out;
  }

  /// Returns the kernel with steps for its loops and its launch (docs/schedules.md), behind those that it has; all
  /// configurations get them. Loops are named l0, l1, … in the order in which they are written. Steps change no values.
  /// What the kernel cannot have is refused when it is called, or when its code is made for a GPU.
  KernelFunction schedule(const weft::schedule::Steps& steps) const {
    KernelFunction out = *this;
    if (!traced_.definition().tuning.configs.empty())
      out = tuning([&](detail::Tuning& t) {
        for (detail::AnyConfig& c : t.configs) c.steps = c.steps.then(steps);
      });
    out.config_.steps = config_.steps.then(steps);
    return out;
  }
  /// Returns the same by the text of the steps.
  KernelFunction schedule(std::string_view steps) const { return schedule(weft::schedule::parse(steps)); }

  /// Returns the kernel with a rule by which devices may divide its arrays: a name for each axis of arguments and
  /// results, as in "m k, k n -> m n". Axes of one name are divided together, "-" stays whole, and over a name that no
  /// result has, results are added up. Without, the rule follows from what programs load and store (docs/kernels.md).
  /// Throws std::invalid_argument "[kernel NAME] sharding: …".
  KernelFunction sharding(std::string_view rule) const {
    return with([&](detail::Definition& d) { d.factors = detail::sharding_of(d, rule); });
  }

  /// Returns the kernel with configurations of which the compiler chooses the fastest for each call's shapes, by
  /// measurement, when the call is first compiled (docs/kernels.md). The first one is what all others must compute too,
  /// and what derivatives, `program`, `show`, `interpret` and `launch` take.
  KernelFunction configs(std::vector<Configured<Config>> list) const {
    KernelFunction out = tuning([&](detail::Tuning& t) {
      t.configs.clear();
      for (const Configured<Config>& c : list) t.configs.push_back(any(c));
    });
    if (!list.empty()) out.config_ = any(std::move(list[0]));
    return out;
  }
  /// Returns the kernel with a key: calls for which f(arguments…) returns equal integers share a choice. Without, those
  /// do whose extents have the same power of two above them.
  template <class F>
  KernelFunction key(F f) const {
    return tuning([&](detail::Tuning& t) {
      t.key = [f = std::move(f)](const std::vector<array>& in) {
        return std::vector<int64_t>(on_arrays(f, in, nullptr, Inputs{}));
      };
    });
  }
  /// Returns the kernel with a choice of the configurations that make sense for a call: f(all, arguments…) returns some
  /// of them, as a std::vector<Configured<Config>>.
  template <class F>
  KernelFunction prune(F f) const {
    return tuning([&](detail::Tuning& t) {
      t.prune = [f = std::move(f)](const std::vector<detail::AnyConfig>& list, const std::vector<array>& in) {
        std::vector<detail::AnyConfig> out;
        for (Configured<Config>& c : pruned(f, known(list), in, Inputs{})) out.push_back(any(std::move(c)));
        return out;
      };
    });
  }
  /// Returns the kernel with a model that ranks: f(configuration, arguments…) returns seconds, and only the `most` with
  /// the least of them, two at least, are measured; where none of them works, the next ones are.
  template <class F>
  requires(!std::convertible_to<F, size_t>) KernelFunction rank(F f, size_t most)
  const {
    return tuning([&](detail::Tuning& t) {
      t.most_measured = most;
      t.estimate = [f = std::move(f)](const detail::AnyConfig& c, const std::vector<array>& in) {
        return static_cast<double>(estimated(f, known({c})[0], in, Inputs{}));
      };
    });
  }
  /// Returns the kernel ranked by the compiler's model, from the bytes and operations that its instructions count.
  KernelFunction rank(size_t most) const {
    return tuning([&](detail::Tuning& t) { t.most_measured = most, t.estimate = {}; });
  }
  /// Returns the kernel with arrays that are filled with a number before each run that is measured, such as counters.
  KernelFunction reset(std::vector<ArrayReset> arrays) const {
    return tuning([&](detail::Tuning& t) { t.resets = std::move(arrays); });
  }
  /// Returns the kernel with the numbers of the InOut arrays that have their old data before each run that is measured;
  /// without, all have.
  KernelFunction restore(std::vector<size_t> arrays) const {
    return tuning([&](detail::Tuning& t) { t.restored = std::move(arrays); });
  }
  /// Returns the kernel with other limits for trials and measurements.
  KernelFunction tune_options(TuneOptions options) const {
    return tuning([&](detail::Tuning& t) { t.options = options; });
  }

  /// Returns the result, or a tuple of several. Nothing runs yet.
  template <std::convertible_to<array>... A>
  requires(sizeof...(A) == inputs) auto operator()(const A&... arguments) const {
    return unpacked(traced_.call({array(arguments)...}, config_));
  }
  /// Returns the results of a list of arguments: a kernel is an ArrayFunction.
  std::vector<array> operator()(const std::vector<array>& arguments) const { return traced_.call(arguments, config_); }

  /// Computes the results at once in the interpreter, which reports accesses outside of arrays, programs that
  /// interfere, and conditions of assert_ that do not hold, by the user's lines, as std::runtime_error.
  template <std::convertible_to<array>... A>
  requires(sizeof...(A) == inputs) auto interpret(const A&... arguments) const {
    return unpacked(traced_.interpret({array(arguments)...}, config_));
  }
  /// Computes the results of a list of arguments in the interpreter.
  std::vector<array> interpret(const std::vector<array>& arguments) const {
    return traced_.interpret(arguments, config_);
  }
  /// Computes the results of a list of arguments in the interpreter under a debugger (weft/kernel/debug.h), which stops
  /// at lines of the function.
  std::vector<array> debug(const Debugger& debugger, const std::vector<array>& arguments) const {
    return traced_.debug(debugger, arguments, config_);
  }
  template <std::convertible_to<array>... A>
  requires(sizeof...(A) == inputs) auto debug(const Debugger& debugger, const A&... arguments) const {
    return unpacked(traced_.debug(debugger, {array(arguments)...}, config_));
  }
  /// Runs the kernel in the interpreter under a debugger on memory of the host's: row-major arrays, and run-time
  /// extents as `launch` takes them, of which it throws the same.
  void debug_launch(const Debugger& debugger, const std::vector<RawArray>& arrays,
                    const std::vector<RawExtent>& extents = {}, Line at = Line::here()) const {
    traced_.debug_launch(debugger, arrays, extents, config_, at);
  }
  /// Returns what was traced for these arguments, for reading: to_string().
  template <std::convertible_to<array>... A>
  requires(sizeof...(A) == inputs) Program program(const A&... arguments)
  const { return traced_.program({array(arguments)...}, config_); }
  /// Returns what was traced for a list of arguments.
  Program program(const std::vector<array>& arguments) const { return traced_.program(arguments, config_); }

  /// Returns what was traced for these arguments as text at a stage (`show` of a program), for this machine.
  template <std::convertible_to<array>... A>
  requires(sizeof...(A) == inputs) std::string show(std::string_view stage, const A&... arguments)
  const { return k::show(traced_.program({array(arguments)...}, config_), stage); }

  /// Launches the kernel on memory of the caller's, in the order of its parameters, into a stream of the caller's, and
  /// returns without waiting for it: Weft's own streams and arrays have no part in it. The first launch for shapes,
  /// strides and a configuration compiles; later ones may be captured into a graph. On the CPU it runs at once.
  ///
  /// Shapes may have symbols, whose values the arrays' own `extents` say, or the list:
  ///
  ///     const Dim n = symbol("n", 4096);
  ///     rows.launch(stream, {{.data = x, .shape = {n, 64}, .extents = {77, 64}}, {.data = y, .shape = {n, 64}}});
  ///     rows.launch(stream, {{x, {n, 64}}, {y, {n, 64}}}, {{n, 1000}});  // the same code
  ///
  /// Throws std::invalid_argument "[kernel NAME] FILE:LINE: launch: …" with the caller's line where an array has
  /// another rank than its parameter, no memory though it has elements, an address that its dtype does not allow, or is
  /// written and repeats elements; where a run-time extent has no value, two of them, or one that is not from 1 to its
  /// bound.
  void launch(const RawStream& stream, const std::vector<RawArray>& arrays, const std::vector<RawExtent>& extents = {},
              Line at = Line::here()) const {
    traced_.launch(stream, arrays, extents, config_, at);
  }

  /// Returns the name.
  const std::string& name() const { return traced_.definition().name; }

 private:
  using Inputs = std::make_index_sequence<inputs>;

  static detail::AnyConfig any(Configured<Config> c) {
    std::string text = detail::config_text(c.values);
    return {std::make_shared<const Config>(std::move(c.values)), detail::equal_configs<Config>, c.launch,
            std::move(text), std::move(c.steps)};
  }
  static std::vector<Configured<Config>> known(const std::vector<detail::AnyConfig>& list) {
    std::vector<Configured<Config>> out;
    for (const detail::AnyConfig& c : list)
      out.emplace_back(*static_cast<const Config*>(c.value.get()), c.launch, c.steps);
    return out;
  }

  template <class Change>
  KernelFunction tuning(Change change) const {
    return with([&](detail::Definition& d) { change(d.tuning); });
  }

  template <class Change>
  KernelFunction with(Change change) const {
    detail::Definition changed = traced_.definition();
    change(changed);
    KernelFunction out = *this;
    out.traced_ = detail::Traced(std::move(changed));
    return out;
  }

  template <class F, size_t... I>
  static detail::Definition definition(std::string name, F function, std::index_sequence<I...> handles) {
    return {std::move(name),
            {{Handle<I>::use, detail::dtype_of<typename Handle<I>::Element>(), Handle<I>::rank}...},
            [function = std::move(function), handles](std::span<const AnyRef> refs, const void* config) {
              on_handles(function, refs, config, handles);
            }};
  }

  /// Calls f(handles…), with the configuration where f takes it.
  template <class F, size_t... I>
  static decltype(auto) on_handles(const F& f, std::span<const AnyRef> refs, const void* config,
                                   std::index_sequence<I...>) {
    if constexpr (configured && std::invocable<const F&, Handle<I>..., const Config&>)
      return f(Handle<I>(refs[I])..., *static_cast<const Config*>(config));
    else return f(Handle<I>(refs[I])...);
  }
  template <class F, size_t... I>
  static decltype(auto) on_arrays(const F& f, const std::vector<array>& in, const void* config,
                                  std::index_sequence<I...>) {
    if constexpr (configured && std::invocable<const F&, decltype(in[I])..., const Config&>)
      return f(in[I]..., *static_cast<const Config*>(config));
    else return f(in[I]...);
  }

  template <class F, size_t... I>
  static std::vector<Configured<Config>> pruned(const F& f, std::vector<Configured<Config>> list,
                                                const std::vector<array>& in, std::index_sequence<I...>) {
    return f(std::move(list), in[I]...);
  }
  template <class F, size_t... I>
  static auto estimated(const F& f, const Configured<Config>& c, const std::vector<array>& in,
                        std::index_sequence<I...>) {
    if constexpr (std::invocable<const F&, const Config&, decltype(in[I])...>) return f(c.values, in[I]...);
    else return f(c, in[I]...);
  }

  static std::vector<Shape> shapes(Shape one) { return {std::move(one)}; }
  static std::vector<Shape> shapes(std::vector<Shape> several) { return several; }

  static auto unpacked(std::vector<array> given) {
    if constexpr (results == 1) return std::move(given[0]);
    else return tuple_of(given, std::make_index_sequence<results>{});
  }
  template <size_t... I>
  static auto tuple_of(std::vector<array>& given, std::index_sequence<I...>) {
    return std::make_tuple(std::move(given[I])...);
  }

  detail::Traced traced_;
  detail::AnyConfig config_;
};

namespace detail {
template <class Tuple>
struct FunctionOf;
template <class... P>
struct FunctionOf<std::tuple<P...>> {
  using type = KernelFunction<P...>;
};
}  // namespace detail

/// Returns a kernel of this name. `function` takes handles by value, k::In<T, R>, k::Out<T, R>, k::InOut<T, R> in any
/// order, and a configuration behind them where it has one. It needs a grid before it is called.
template <class F>
auto kernel(std::string name, F function) {
  using Parameters = typename detail::ParametersOf<std::decay_t<F>>::type;
  return typename detail::FunctionOf<Parameters>::type(std::move(name), std::decay_t<F>(std::move(function)));
}

}  // namespace weft::k
