// Kernels as functions of arrays in Python: a function is traced for the dtypes, shapes and configuration of a call.
#include <algorithm>
#include <map>
#include <set>

#include "helpers.h"
#include "kernel_language.h"
#include "module.h"
#include "streams.h"
#include "weft/kernel_function.h"

namespace weft::python::kernels {

namespace {

using k::detail::AnyConfig;
using k::detail::Definition;
using k::detail::Traced;

constexpr const char* launch_names[] = {"warps", "stages", "cluster", "registers", "ping_pong", "schedule"};

/// The values that a kernel's function takes by name, how it is launched, and the steps of its loops.
struct Config {
  nb::dict values;
  k::LaunchOptions launch;
  std::string steps;
};

/// A Python function of arrays and of some of a kernel's values, by their names.
struct Callback {
  nb::object function;
  std::set<std::string> names;  // of the parameters
  bool takes_all = false;       // by **kwargs

  Callback() = default;
  explicit Callback(nb::object f) : function(std::move(f)) {
    if (!PyCallable_Check(function.ptr())) return;
    const nb::module_ inspect = nb::module_::import_("inspect");
    const nb::object any_name = inspect.attr("Parameter").attr("VAR_KEYWORD");
    const nb::object parameters = inspect.attr("signature")(function).attr("parameters");
    for (const nb::handle p : nb::object(parameters.attr("values")())) {
      names.insert(nb::cast<std::string>(nb::object(p.attr("name"))));
      takes_all |= nb::object(p.attr("kind")).is(any_name);
    }
  }
  bool is_function() const { return function.is_valid() && PyCallable_Check(function.ptr()); }

  nb::object operator()(const nb::list& args, const nb::dict& values) const {
    nb::dict named;
    for (const auto& [name, value] : values)
      if (takes_all || names.contains(nb::cast<std::string>(name))) named[name] = value;
    const nb::object result = nb::steal(PyObject_Call(function.ptr(), nb::tuple(args).ptr(), named.ptr()));
    if (!result.is_valid()) throw nb::python_error();
    return result;
  }
};

/// What a kernel is made of: its function and what was said of it.
struct Source {
  std::string name;
  Callback body, grid, outputs;
  std::vector<std::pair<std::string, k::Use>> arrays;
  std::vector<std::string> values;  // names of the other parameters
  nb::dict defaults;

  [[noreturn]] void refuse_call(const std::string& what) const {
    throw std::invalid_argument("[kernel " + name + "] " + what);
  }
};

/// Values as the compiler keeps them.
struct KeptValues {
  Kept values;
  std::string text;
};

bool equal_values(const void* a, const void* b) {
  return static_cast<const KeptValues*>(a)->text == static_cast<const KeptValues*>(b)->text;
}

nb::dict values_of(const void* config) { return nb::borrow<nb::dict>(*static_cast<const KeptValues*>(config)->values); }

AnyConfig any_config(const Source& source, const Config& config) {
  nb::dict values;
  std::string text = "{";
  for (const auto& [name, value] : config.values)
    if (std::find(source.values.begin(), source.values.end(), nb::cast<std::string>(name)) == source.values.end())
      source.refuse_call("its function has no parameter " + nb::cast<std::string>(name) + " that a configuration sets");
  for (const std::string& name : source.values) {
    const nb::str key(name.c_str());
    if (config.values.contains(key)) values[key] = config.values[key];
    else if (source.defaults.contains(key)) values[key] = source.defaults[key];
    else source.refuse_call("the parameter " + name + " has no value: give it a default, or one by .config");
    text += (text.size() > 1 ? "," : "") + nb::cast<std::string>(nb::repr(nb::object(values[key])));
  }
  auto kept = std::make_shared<const KeptValues>(KeptValues{Kept(values), text + "}"});
  const std::string shown = kept->text;
  return {std::move(kept), equal_values, config.launch, shown,
          config.steps.empty() ? schedule::Steps() : schedule::parse(config.steps)};
}

/// Returns the annotation of a parameter as one of In, Out, InOut; nothing for another one.
std::optional<k::Use> use_of(nb::handle annotation) {
  if (annotation.is(nb::type<In>())) return k::Use::in;
  if (annotation.is(nb::type<Out>())) return k::Use::out;
  if (annotation.is(nb::type<InOut>())) return k::Use::in_out;
  if (!PyUnicode_Check(annotation.ptr())) return std::nullopt;
  std::string text = nb::cast<std::string>(annotation);  // of a module with `from __future__ import annotations`
  text = text.substr(text.rfind('.') + 1);
  if (text == "In") return k::Use::in;
  if (text == "Out") return k::Use::out;
  if (text == "InOut") return k::Use::in_out;
  return std::nullopt;
}

void read_parameters(Source& s) {
  const nb::object parameter = nb::module_::import_("inspect").attr("Parameter");
  const nb::object signature = nb::module_::import_("inspect").attr("signature")(s.body.function);
  for (const nb::handle p : nb::object(signature.attr("parameters").attr("values")())) {
    const auto name = nb::cast<std::string>(nb::object(p.attr("name")));
    if (const auto use = use_of(nb::object(p.attr("annotation")))) {
      if (!s.values.empty()) s.refuse_call("the array " + name + " follows a value: name arrays first");
      s.arrays.emplace_back(name, *use);
      continue;
    }
    if (std::find(std::begin(launch_names), std::end(launch_names), name) != std::end(launch_names))
      s.refuse_call("the parameter " + name + " has the name of an option of launches: rename it");
    s.values.push_back(name);
    const nb::object given = p.attr("default");
    if (!given.is(parameter.attr("empty"))) s.defaults[name.c_str()] = given;
  }
  const bool writes =
      std::any_of(s.arrays.begin(), s.arrays.end(), [](const auto& a) { return a.second != k::Use::in; });
  if (!writes)
    s.refuse_call(
        "its function writes no array: annotate parameters by In, Out and InOut, as in `def f(x: In, y: Out)`");
}

nb::object handle_of(k::Use use, const k::AnyRef& ref) {
  if (use == k::Use::in) return nb::cast(In{{ref}});
  if (use == k::Use::out) return nb::cast(Out{{ref}});
  return nb::cast(InOut{{ref}});
}

nb::list handles_of(const Source& s, std::span<const k::AnyRef> refs) {
  nb::list out;
  for (size_t n = 0; n < refs.size(); ++n) out.append(handle_of(s.arrays[n].second, refs[n]));
  return out;
}

k::GridAxis axis_of(nb::handle extent) {
  if (nb::isinstance<k::GridAxis>(extent)) return nb::cast<const k::GridAxis&>(extent);
  if (int64_t n = 0; !is_value(extent) && read_int(extent, n)) return k::GridAxis(n);
  return k::GridAxis(index_of(extent, here()));
}

k::Grid grid_of(nb::handle given) {
  if (!PyTuple_Check(given.ptr()) && !PyList_Check(given.ptr())) return {axis_of(given)};
  k::Grid out;
  for (const nb::handle axis : given) out.push_back(axis_of(axis));
  return out;
}

/// The shape and the dtype of a result.
struct Shaped {
  Shape shape;
  Dtype dtype;
};

bool is_shape(nb::handle o) {
  if (!PyTuple_Check(o.ptr()) && !PyList_Check(o.ptr())) return false;
  int64_t n = 0;
  for (const nb::handle item : o)
    if (!read_int(item, n)) return false;
  return true;
}

/// Returns one result: a shape, or a pair of a shape and a dtype.
Shaped shaped(const Source& s, nb::handle o, Dtype usual) {
  Shape shape;
  const bool pair = PyTuple_Check(o.ptr()) && nb::len(o) == 2 && nb::isinstance<Dtype>(o[1]);
  const nb::object lengths = pair ? nb::object(o[0]) : nb::borrow(o);
  if (!is_shape(lengths) || !nb::try_cast(lengths, shape))
    s.refuse_call("outputs returns a shape or (shape, dtype), of several results a list of them, not " +
                  nb::cast<std::string>(nb::repr(o)));
  return {shape, pair ? nb::cast<Dtype>(nb::object(o[1])) : usual};
}

/// Returns the Out arrays of a call.
std::vector<Shaped> results_of(const Source& s, const std::vector<array>& inputs, const nb::dict& values) {
  const auto wanted = static_cast<size_t>(
      std::count_if(s.arrays.begin(), s.arrays.end(), [](const auto& a) { return a.second == k::Use::out; }));
  if (!s.outputs.is_function()) {
    if (wanted > 0 && inputs.empty()) s.refuse_call("has no arguments whose shape results could have: give outputs");
    return wanted == 0 ? std::vector<Shaped>{} : std::vector<Shaped>(wanted, {inputs[0].shape(), inputs[0].dtype()});
  }
  nb::list args;
  for (const array& a : inputs) args.append(a);
  const nb::object given = s.outputs(args, values);
  const Dtype usual = inputs.empty() ? float32 : inputs[0].dtype();
  std::vector<Shaped> out;
  if (PyList_Check(given.ptr()) && !is_shape(given))
    for (const nb::handle o : given) out.push_back(shaped(s, o, usual));
  else out.push_back(shaped(s, given, usual));
  if (out.size() != wanted)
    s.refuse_call("outputs returns " + std::to_string(out.size()) + " shapes for " + std::to_string(wanted) +
                  " Out arrays");
  return out;
}

Definition definition_of(const Source* source, std::vector<k::detail::ArrayType> types) {
  Definition d{source->name, std::move(types), [source](std::span<const k::AnyRef> refs, const void* config) {
                 nb::gil_scoped_acquire held;
                 source->body(handles_of(*source, refs), values_of(config));
               }};
  if (source->grid.function.is_valid() && !source->grid.function.is_none())
    d.grid = [source](std::span<const k::AnyRef> refs, const void* config) {
      nb::gil_scoped_acquire held;
      return grid_of(source->grid.is_function() ? source->grid(handles_of(*source, refs), values_of(config))
                                                : source->grid.function);
    };
  d.outputs = [source](const std::vector<array>& inputs, const void* config) {
    nb::gil_scoped_acquire held;
    std::vector<Shape> shapes;
    for (Shaped& r : results_of(*source, inputs, values_of(config))) shapes.push_back(std::move(r.shape));
    return shapes;
  };
  return d;
}

/// A kernel: what was said of it, and what it was traced for, by the dtypes and ranks of its arrays. The traced
/// programs refer to the source, which only this object has.
class Kernel {
 public:
  Kernel(nb::object function, std::string name, nb::object grid, nb::object outputs)
      : source_(std::make_unique<Source>()) {
    source_->name = std::move(name);
    source_->body = Callback(std::move(function));
    source_->grid = Callback(std::move(grid));
    source_->outputs = Callback(std::move(outputs));
    read_parameters(*source_);
  }
  Kernel(const Kernel& other)
      : source_(std::make_unique<Source>(*other.source_)), configs_(other.configs_), rank_(other.rank_),
        rule_(other.rule_) {}
  Kernel(Kernel&& other) noexcept
      : source_(std::move(other.source_)), configs_(std::move(other.configs_)), first_(std::move(other.first_)),
        rank_(other.rank_), rule_(std::move(other.rule_)), traced_(std::move(other.traced_)) {}

  const std::string& name() const { return source_->name; }

  Kernel with_configs(std::vector<Config> configs, size_t rank) const {
    Kernel out(*this);
    out.configs_ = std::move(configs), out.rank_ = rank;
    for (const Config& c : out.configs_) any_config(*out.source_, c);  // refuses what does not fit
    return out;
  }
  Kernel with_steps(const std::string& steps) const {
    Kernel out(*this);
    if (out.configs_.empty()) out.configs_.emplace_back();
    for (Config& c : out.configs_) c.steps = c.steps.empty() ? steps : c.steps + "; " + steps;
    return out;
  }
  Kernel with_rule(const std::string& rule) const {
    Kernel out(*this);
    out.rule_ = rule;
    return out;
  }

  nb::object operator()(const std::vector<array>& inputs) {
    return helpers::one_or_tuple(traced(inputs).call(inputs, first_config()));
  }
  nb::object interpret(const std::vector<array>& inputs) {
    return helpers::one_or_tuple(traced(inputs).interpret(inputs, first_config()));
  }
  std::string show(const std::string& stage, const std::vector<array>& inputs, const std::string& machine) {
    return k::show(traced(inputs).program(inputs, first_config()), stage, machine);
  }

  void launch(const nb::args& tensors, nb::handle stream) {
    if (tensors.size() != source_->arrays.size())
      source_->refuse_call("launch: it takes " + std::to_string(source_->arrays.size()) + " tensors, got " +
                           std::to_string(tensors.size()));
    std::vector<RawTensor> held;
    for (const nb::handle t : tensors) {
      if (is_array(t))
        source_->refuse_call("launch: " + source_->arrays[held.size()].first +
                             " is an array of Weft's, which is a value: call the kernel, or give a tensor");
      held.emplace_back(t);
    }
    std::vector<k::RawArray> arrays;
    std::vector<k::detail::ArrayType> types;
    for (size_t n = 0; n < held.size(); ++n) {
      const RawTensor& t = held[n];
      if (t.device != held[0].device) source_->refuse_call("launch: the tensors are on different devices");
      if (t.read_only && source_->arrays[n].second != k::Use::in)
        source_->refuse_call("launch: " + source_->arrays[n].first + " is not to be written: give a tensor that is");
      arrays.push_back({t.data, t.shape, t.strides});
      types.push_back({source_->arrays[n].second, t.dtype, static_cast<int>(t.shape.size())});
    }
    RawStream into{held.empty() ? Device(Device::cpu) : held[0].device};
    if (into.device.type == Device::gpu) {
      if (stream.is_none() && !held[0].stream)
        source_->refuse_call("launch: name the stream of a GPU, such as cupy.cuda.get_current_stream()");
      into.handle = stream.is_none() ? *held[0].stream : stream_handle(stream);
    }
    const AnyConfig& config = first_config();
    const Traced& kernel = of_types(types);
    const Line at = here();
    nb::gil_scoped_release released;
    kernel.launch(into, arrays, {}, config, at);
  }

  /// What Python's garbage collector has to know of.
  std::vector<nb::object*> held() {
    std::vector<nb::object*> out{&source_->body.function, &source_->grid.function, &source_->outputs.function,
                                 &source_->defaults};
    for (Config& c : configs_) out.push_back(&c.values);
    return out;
  }

 private:
  /// Returns the configuration of calls without a choice.
  const AnyConfig& first_config() {
    const nb::ft_lock_guard lock(mutex_);
    if (!first_) first_ = any_config(*source_, configs_.empty() ? Config{} : configs_[0]);
    return *first_;
  }

  Traced traced(const std::vector<array>& inputs) {
    const auto given = static_cast<size_t>(std::count_if(source_->arrays.begin(), source_->arrays.end(),
                                                         [](const auto& a) { return a.second != k::Use::out; }));
    if (inputs.size() != given)
      source_->refuse_call("takes " + std::to_string(given) + " arrays, got " + std::to_string(inputs.size()));
    const std::vector<Shaped> results = results_of(*source_, inputs, values_of(first_config().value.get()));
    std::vector<k::detail::ArrayType> types;
    size_t input = 0, result = 0;
    for (const auto& [name, use] : source_->arrays) {
      if (use == k::Use::out) {
        types.push_back({use, results[result].dtype, static_cast<int>(results[result].shape.size())});
        ++result;
      } else {
        types.push_back({use, inputs[input].dtype(), static_cast<int>(inputs[input].ndim())});
        ++input;
      }
    }
    return of_types(types);
  }

  const Traced& of_types(const std::vector<k::detail::ArrayType>& types) {
    std::vector<int> key;
    for (const k::detail::ArrayType& t : types) key.push_back(static_cast<int>(t.dtype.val()) * 64 + t.rank);
    const nb::ft_lock_guard lock(mutex_);
    const auto known = traced_.find(key);
    if (known != traced_.end()) return known->second;
    Definition d = definition_of(source_.get(), types);
    if (configs_.size() > 1) {
      for (const Config& c : configs_) d.tuning.configs.push_back(any_config(*source_, c));
      d.tuning.most_measured = rank_;
    }
    if (!rule_.empty()) d.factors = k::detail::sharding_of(d, rule_);
    return traced_.emplace(key, Traced(std::move(d))).first->second;
  }

  std::unique_ptr<Source> source_;
  std::vector<Config> configs_;
  std::optional<AnyConfig> first_;  // of them, once it is asked for
  size_t rank_ = 0;
  std::string rule_;
  std::map<std::vector<int>, Traced> traced_;
  nb::ft_mutex mutex_;  // of Python without a lock of its own
};

int traverse_kernel(PyObject* self, visitproc visit, void* arg) noexcept {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  for (const nb::object* o : nb::inst_ptr<Kernel>(self)->held()) Py_VISIT(o->ptr());
  return 0;
}

int clear_kernel(PyObject* self) noexcept {
  for (nb::object* o : nb::inst_ptr<Kernel>(self)->held()) o->reset();
  return 0;
}

PyType_Slot kernel_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_kernel)},
                              {Py_tp_clear, reinterpret_cast<void*>(clear_kernel)},
                              {0, nullptr}};

std::vector<array> arrays_in(const nb::args& args) {
  std::vector<array> out;
  for (const nb::handle a : args) out.push_back(to_array(a));
  return out;
}

Config config_of(const nb::kwargs& given) {
  Config out;
  for (const auto& [name, value] : given) {
    const auto key = nb::cast<std::string>(name);
    if (key == "warps") out.launch.warps = nb::cast<int>(value);
    else if (key == "stages") out.launch.stages = nb::cast<int>(value);
    else if (key == "cluster") out.launch.cluster = nb::cast<int>(value);
    else if (key == "registers") out.launch.registers = nb::cast<int>(value);
    else if (key == "ping_pong") out.launch.ping_pong = nb::cast<int>(value);
    else if (key == "schedule") out.steps = nb::cast<std::string>(value);
    else out.values[name] = value;
  }
  return out;
}

}  // namespace

void define_kernel(nb::module_& m) {
  nb::class_<Config>(m, "Config",
                     "Values of a kernel's parameters, and how it is launched on a GPU: warps, stages, cluster, "
                     "registers, ping_pong and the steps of a schedule (docs/schedules.md).")
      .def(
          "__init__", [](Config* self, const nb::kwargs& values) { new (self) Config(config_of(values)); },
          nb::arg("values"), nb::sig("def __init__(self, **values: Any) -> None"));
  nb::class_<Kernel>(m, "Kernel", nb::type_slots(kernel_slots),
                     "A kernel as a function of arrays: of those that it reads (In, InOut), in the order of its "
                     "parameters; its results are those that it writes (Out, InOut). Lazy, compiled, batched by vmap "
                     "and differentiated by its body as other functions are; custom_function gives it another "
                     "derivative.")
      .def(
          "__call__", [](Kernel& f, const nb::args& arrays) { return f(arrays_in(arrays)); }, nb::arg("arrays"),
          nb::sig("def __call__(self, *arrays: array) -> Any"), "Returns the result, or a tuple of several.")
      .def(
          "interpret", [](Kernel& f, const nb::args& arrays) { return f.interpret(arrays_in(arrays)); },
          nb::arg("arrays"), nb::sig("def interpret(self, *arrays: array) -> Any"),
          "Computes the results at once in the interpreter, which reports accesses outside of arrays and programs that "
          "interfere by the lines of the function.")
      .def(
          "show",
          [](Kernel& f, const std::string& stage, const nb::args& arrays, const std::string& machine) {
            return f.show(stage, arrays_in(arrays), machine);
          },
          nb::arg("stage"), nb::arg("arrays"), nb::kw_only(), nb::arg("machine") = "",
          nb::sig("def show(self, stage: str, *arrays: array, machine: str = \"\") -> str"),
          "Returns what was traced for these arguments as text: \"tile\", \"schedule\"; of CPUs \"legalized\", "
          "\"llvm\", \"assembly\"; of GPUs \"cuda\", \"ptx\", \"sass\" (machine: \"sm_90a\").")
      .def(
          "launch", [](Kernel& f, const nb::args& tensors, nb::handle stream) { f.launch(tensors, stream); },
          nb::arg("tensors"), nb::kw_only(), nb::arg("stream") = nb::none(),
          nb::sig("def launch(self, *tensors: Any, stream: Any = None) -> None"),
          "Launches the kernel on tensors of another library, one for each parameter, into a stream of its (an int or "
          "a stream of PyTorch or CuPy; PyTorch's tensors name its current one), and does not wait for it. On the CPU "
          "it "
          "runs at once.")
      .def(
          "config", [](const Kernel& f, const nb::kwargs& values) { return f.with_configs({config_of(values)}, 0); },
          nb::arg("values"), nb::sig("def config(self, **values: Any) -> Kernel"),
          "Returns the kernel with a configuration, as of Config.")
      .def(
          "configs",
          [](const Kernel& f, const std::vector<Config>& list, size_t rank) { return f.with_configs(list, rank); },
          nb::arg("list"), nb::arg("rank") = 0,
          nb::sig("def configs(self, list: Sequence[Config], rank: int = 0) -> Kernel"),
          "Returns the kernel with configurations of which the compiler measures the fastest for each call's shapes; "
          "`rank`: only so many, those that its model likes best.")
      .def("schedule", &Kernel::with_steps, nb::arg("steps"),
           "Returns the kernel with steps for its loops and its launch (docs/schedules.md).")
      .def("sharding", &Kernel::with_rule, nb::arg("rule"),
           "Returns the kernel with a rule by which devices may divide its arrays, as \"m k, k n -> m n\".")
      .def_prop_ro("name", &Kernel::name, "The name.");
  m.def(
      "kernel",
      [](nb::object function, nb::object grid, nb::object outputs,
         const std::optional<std::string>& name) -> nb::object {
        const auto make = [grid, outputs, name](nb::object f) {
          return nb::cast(
              Kernel(f, name ? *name : nb::cast<std::string>(nb::object(f.attr("__name__"))), grid, outputs));
        };
        return function.is_none() ? nb::cpp_function(make) : make(function);
      },
      nb::arg("function") = nb::none(), nb::kw_only(), nb::arg("grid") = nb::none(), nb::arg("outputs") = nb::none(),
      nb::arg("name") = nb::none(),
      nb::sig("@overload\n"
              "def kernel(function: Callable[..., Any], *, grid: Any, outputs: Callable[..., Any] | None = None, "
              "name: str | None = None) -> Kernel: ...\n"
              "@overload\n"
              "def kernel(function: None = None, *, grid: Any, outputs: Callable[..., Any] | None = None, "
              "name: str | None = None) -> Callable[[Callable[..., Any]], Kernel]"),
      "Returns a kernel of a function on tiles, also as a decorator: `@kernel(grid=lambda x, y: x.dim(0))`. Parameters "
      "that are annotated In, Out or InOut are arrays; others are values of its configuration. `grid`: the programs "
      "along each axis, or a function of the arrays. `outputs`: a function of the arguments that returns the shape of "
      "the Out array, or (shape, dtype), of several a list; without, they are those of the first argument.");
}

}  // namespace weft::python::kernels

namespace weft::python {

void define_kernel_language(nb::module_& m) {
  kernels::define_values(m);
  kernels::define_tile_functions(m);
  kernels::define_arrays(m);
  kernels::define_control(m);
  kernels::define_asynchronous(m);
  kernels::define_kernel(m);
}

}  // namespace weft::python
