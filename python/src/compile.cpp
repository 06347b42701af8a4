#include <memory>
#include <mutex>
#include <unordered_map>

#include "function.h"
#include "transforms.h"
#include "tree.h"
#include "weft/compile.h"

namespace weft::python {

namespace {

/// One trace of a compiled Python function: a C++ program whose state are the arrays of captured trees.
struct Traced {
  std::vector<array> slots;     ///< captured inputs during a call, handles that the program updates
  std::vector<size_t> outputs;  ///< for each captured output its slot, or slots.size() + its number among the results
  size_t own = 0;               ///< results of the function itself; captured outputs without a slot follow
  nb::object result;            ///< what the function returned, with any arrays
  ArrayFunction program;
  bool ran = false;  ///< whether the function ran in this call, which may have changed the trees
  // Of the call that is under way; the trace reads them.
  nb::handle arguments;
  nb::handle inputs_tree, outputs_tree;
};

/// Puts objects back where leaves were when it goes out of scope.
struct Restored {
  const std::vector<Leaf>& leaves;
  ~Restored() {
    for (const Leaf& leaf : leaves) leaf.replace(leaf.value);
  }
};

/// Traces the function: captured inputs are replaced by the slots' placeholders, and put back afterwards.
std::vector<array> trace(Traced& t, nb::handle fun, const std::vector<array>& values) {
  nb::gil_scoped_acquire held;
  t.ran = true;
  std::vector<Leaf> inputs;
  array_leaves(t.inputs_tree, inputs);
  const Restored restored{inputs};
  for (size_t k = 0; k < inputs.size(); ++k) inputs[k].replace(nb::cast(t.slots[k]));
  size_t at = 0;
  const nb::object arguments = with_arrays(t.arguments, values, at);
  nb::object result =
      nb::steal(PyObject_Call(fun.ptr(), nb::object(arguments[0]).ptr(), nb::object(arguments[1]).ptr()));
  if (!result.is_valid()) throw nb::python_error();
  std::vector<array> out = arrays_of(result);
  t.own = out.size();
  at = 0;
  t.result = with_arrays(result, std::vector<array>(t.own, array(0)), at);  // its structure: no traced value stays
  t.outputs.clear();
  std::vector<Leaf> outputs;
  array_leaves(t.outputs_tree, outputs);
  for (const Leaf& leaf : outputs) {
    size_t slot = 0;
    while (slot < inputs.size() && !(inputs[slot].container.is(leaf.container) && inputs[slot].key.equal(leaf.key)))
      ++slot;
    if (slot < inputs.size()) {
      t.slots[slot] = array_of(leaf.value);
    } else {
      slot += out.size() - t.own;
      out.push_back(array_of(leaf.value));
    }
    t.outputs.push_back(slot);
  }
  return out;
}

/// A function that mx.compile returns.
class CompiledFunction {
 public:
  /// The handles are held by the Python object of the function.
  CompiledFunction(nb::handle fun, nb::handle inputs, nb::handle outputs)
      : fun_(fun), inputs_(inputs), outputs_(outputs) {}

  nb::object operator()(const nb::tuple& args, const nb::dict& kwargs) {
    // Threads take turns: one may come here while another runs the program, or traces, which needs the interpreter.
    std::unique_lock turn(running_, std::try_to_lock);
    if (!turn) {
      nb::gil_scoped_release released;
      turn.lock();
    }
    std::string key;
    append_key(key, args, "compile");
    append_key(key, kwargs, "compile");
    std::vector<Leaf> inputs;
    append_key(key, inputs_, "compile", true, &inputs);
    std::shared_ptr<Traced>& found = traces_[key];
    if (!found) found = std::make_shared<Traced>();
    const std::shared_ptr<Traced> t = found;
    try {
      return run(*t, args, kwargs, inputs);
    } catch (...) {
      if (!t->result.is_valid()) traces_.erase(key);  // what cannot be traced leaves nothing behind
      throw;
    }
  }

 private:
  nb::object run(Traced& t, const nb::tuple& args, const nb::dict& kwargs, const std::vector<Leaf>& inputs) {
    const nb::object arguments = nb::make_tuple(args, kwargs);
    t.arguments = arguments, t.inputs_tree = inputs_, t.outputs_tree = outputs_;
    if (!t.program) build(t, inputs.size());
    t.ran = false;
    std::vector<array> results;
    const std::vector<bool> alone = held_by_tree_alone(inputs);
    {
      // The program updates slots in place where nothing else holds their values: objects that only the tree holds
      // lend their handles meanwhile.
      const Lent lent{t.slots, inputs, alone};
      const std::vector<array> values = arrays_of(arguments);
      nb::gil_scoped_release released;
      results = t.program(values);
    }
    put_outputs(t, results, inputs, alone);
    size_t at = 0;
    return with_arrays(t.result, results, at);
  }

  static std::vector<bool> held_by_tree_alone(const std::vector<Leaf>& leaves) {
    std::vector<bool> alone;
    for (const Leaf& leaf : leaves) alone.push_back(Py_REFCNT(leaf.value.ptr()) <= 2);  // the tree's and the leaf's
    return alone;
  }

  /// Moves the captured arrays into the slots, and what the slots hold then back into objects that lent their own.
  struct Lent {
    Lent(std::vector<array>& handles, const std::vector<Leaf>& leaves, const std::vector<bool>& by_tree)
        : slots(handles), inputs(leaves), alone(by_tree) {
      for (size_t k = 0; k < inputs.size(); ++k) {
        array& own = array_of(inputs[k].value);
        if (alone[k]) std::swap(slots[k], own);
        else slots[k] = own;
      }
    }
    ~Lent() {
      for (size_t k = 0; k < inputs.size(); ++k)
        if (alone[k]) array_of(inputs[k].value) = slots[k];
    }
    std::vector<array>& slots;
    const std::vector<Leaf>& inputs;
    const std::vector<bool>& alone;
  };

  void build(Traced& t, size_t count) {
    t.slots.assign(count, array(0));
    CompileOptions options;
    for (array& slot : t.slots) options.state.push_back(&slot);
    t.program =
        weft::compile([&t, fun = fun_](const std::vector<array>& values) { return trace(t, fun, values); }, options);
  }

  /// Replaces the captured outputs. Where they are the captured inputs too, what lent its handle has its new value.
  void put_outputs(Traced& t, const std::vector<array>& results, const std::vector<Leaf>& inputs,
                   const std::vector<bool>& alone) {
    const bool same = outputs_.is(inputs_) && !t.ran;
    std::vector<Leaf> others;
    if (!same) array_leaves(outputs_, others);
    const std::vector<Leaf>& outputs = same ? inputs : others;
    if (outputs.size() != t.outputs.size())
      throw std::invalid_argument("[compile] the captured outputs have " + std::to_string(outputs.size()) +
                                  " arrays; when the function was traced it left " + std::to_string(t.outputs.size()));
    for (size_t k = 0; k < outputs.size(); ++k) {
      const size_t from = t.outputs[k], count = t.slots.size();
      const PyObject* in = outputs[k].container.ptr();  // the default random sequence makes an object for each call
      if (same && from == k && alone[k] && (PyDict_Check(in) || PyList_Check(in))) continue;
      outputs[k].replace(nb::cast(from < count ? t.slots[from] : results.at(t.own + from - count)));
    }
    for (array& slot : t.slots) slot = none_;  // the arrays' objects alone hold their values
  }

  nb::handle fun_, inputs_, outputs_;
  array none_{0};
  std::recursive_mutex running_;
  std::unordered_map<std::string, std::shared_ptr<Traced>> traces_;
};

}  // namespace

void define_compile(nb::module_& m) {
  m.def(
      "compile",
      [](nb::callable fun, nb::object inputs, nb::object outputs, bool) {
        const auto compiled = std::make_shared<CompiledFunction>(fun, inputs, outputs);
        return make_function({fun, inputs, outputs}, [compiled](const nb::tuple& args, const nb::dict& kwargs) {
          return (*compiled)(args, kwargs);
        });
      },
      nb::arg("fun"), nb::arg("inputs") = nb::none(), nb::arg("outputs") = nb::none(), nb::arg("shapeless") = false,
      nb::sig("def compile(fun: Callable[P, R], inputs: object | None = None, outputs: object | None = None, "
              "shapeless: bool = False) -> Callable[P, R]"),
      "Returns the function as a program: traced once for each structure, dtypes and shapes of its arguments, then "
      "run without tracing. `inputs` and `outputs` are lists or dicts whose arrays it reads and replaces. `shapeless` "
      "changes nothing: other shapes are traced again, which is right for every function.");
  m.def("disable_compile", &disable_compile, "Turns compilation off: compiled functions just call the functions.");
  m.def("enable_compile", &enable_compile, "Turns compilation on again.");
}

}  // namespace weft::python
