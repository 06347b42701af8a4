#include "weft/control.h"

#include "function.h"
#include "transforms.h"
#include "tree.h"
#include "weft/transforms.h"

namespace weft::python {

namespace {

/// Returns a Python function of trees as one of C++; what it returned last is kept in `result`.
ArrayFunction of_trees(nb::callable fun, nb::object arguments, nb::object& result) {
  return [fun = std::move(fun), arguments = std::move(arguments), &result](const std::vector<array>& values) {
    nb::object found = nb::steal(PyObject_CallObject(fun.ptr(), filled(arguments, values).ptr()));
    if (!found.is_valid()) throw nb::python_error();
    result = found;
    return arrays_of(found);
  };
}

nb::object conditional(const Operand& pred, nb::callable true_fun, nb::callable false_fun, const nb::args& operands) {
  nb::object result;
  const nb::object arguments = nb::borrow<nb::tuple>(operands);
  const std::vector<array> values = cond(pred.get(), of_trees(std::move(true_fun), arguments, result),
                                         of_trees(std::move(false_fun), arguments, result), arrays_of(arguments));
  return filled(result, values);
}

nb::object repeated(nb::callable cond_fun, nb::callable body_fun, nb::object init, std::optional<int64_t> max_steps) {
  nb::object ignored;
  const nb::object arguments = nb::make_tuple(init);
  const ArrayFunction condition = of_trees(std::move(cond_fun), arguments, ignored);
  const std::vector<array> values = while_loop(
      [&](const std::vector<array>& carry) {
        const std::vector<array> found = condition(carry);
        if (found.size() != 1) throw std::invalid_argument("[while_loop] the condition must return one bool");
        return found[0];
      },
      of_trees(std::move(body_fun), arguments, ignored), arrays_of(init), max_steps);
  return filled(init, values);
}

nb::object scanned(nb::callable f, nb::object init, nb::object xs, std::optional<int64_t> length, bool reverse) {
  nb::object results;
  const ScanFunction step = [&](const std::vector<array>& carry, const std::vector<array>& x) {
    const nb::object pair = f(filled(init, carry), filled(xs, x));
    if (!PyTuple_Check(pair.ptr()) || nb::len(pair) != 2)
      throw std::invalid_argument("[scan] the function must return (carry, results of this step)");
    results = pair[1];
    return std::pair{arrays_of(nb::object(pair[0])), arrays_of(results)};
  };
  const auto [carry, stacked] = scan(step, arrays_of(init), arrays_of(xs), length, reverse);
  return nb::make_tuple(filled(init, carry), filled(results, stacked));
}

/// Returns the Jacobian of a function of one array.
template <class Transform>
nb::object jacobian(nb::callable fun, const Transform& transform) {
  return make_function({fun}, [f = nb::handle(fun), transform](const nb::tuple& args, const nb::dict&) -> nb::object {
    if (nb::len(args) != 1) throw nb::type_error("[jacobian] the function takes one array");
    const nb::object argument = args[0];
    const UnaryFunction of_array = [&](const array& value) {
      const nb::object found = f(value);
      if (!is_array(found)) throw std::invalid_argument("[jacobian] the function must return one array");
      return array_of(found);
    };
    return nb::cast(transform(of_array)(to_array(argument)));
  });
}

}  // namespace

void define_control(nb::module_& m) {
  m.def("cond", conditional, nb::arg("pred"), nb::arg("true_fun"), nb::arg("false_fun"), nb::arg("operands"),
        nb::sig("def cond(pred: bool | array, true_fun: Callable, false_fun: Callable, *operands: Any) -> Any"),
        "Returns true_fun(*operands) where pred is true, else false_fun(*operands): only that one runs. Both return "
        "trees of the same shapes and dtypes.");
  m.def("while_loop", repeated, nb::arg("cond_fun"), nb::arg("body_fun"), nb::arg("init"),
        nb::arg("max_steps") = nb::none(),
        nb::sig("def while_loop(cond_fun: Callable, body_fun: Callable, init: Any, max_steps: int | None = None) "
                "-> Any"),
        "Returns the carry, a tree, after body_fun was applied for as long as cond_fun(carry) is true; at most "
        "max_steps times where that is given, which makes reverse derivatives cheaper.");
  m.def("scan", scanned, nb::arg("f"), nb::arg("init"), nb::arg("xs") = nb::none(), nb::arg("length") = nb::none(),
        nb::arg("reverse") = false,
        nb::sig("def scan(f: Callable, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False) "
                "-> tuple[Any, Any]"),
        "Returns the last carry and the stacked results of (carry, result) = f(carry, x) for each x along the first "
        "axis of the arrays in xs.");
  m.def(
      "jacfwd", [](nb::callable f) { return jacobian(f, [](const UnaryFunction& g) { return weft::jacfwd(g); }); },
      nb::arg("fun"), nb::sig("def jacfwd(fun: Callable[[array], array]) -> Callable[[array], array]"),
      "Returns a function that computes the Jacobian: shape of the result, then shape of the argument. Forward mode.");
  m.def(
      "jacrev", [](nb::callable f) { return jacobian(f, [](const UnaryFunction& g) { return weft::jacrev(g); }); },
      nb::arg("fun"), nb::sig("def jacrev(fun: Callable[[array], array]) -> Callable[[array], array]"),
      "Returns a function that computes the same Jacobian in reverse mode.");
  m.def(
      "hessian", [](nb::callable f) { return jacobian(f, [](const UnaryFunction& g) { return weft::hessian(g); }); },
      nb::arg("fun"), nb::sig("def hessian(fun: Callable[[array], array]) -> Callable[[array], array]"),
      "Returns a function that computes the Hessian.");
}

}  // namespace weft::python
