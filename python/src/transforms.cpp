#include "transforms.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "function.h"
#include "tree.h"
#include "weft/ops.h"
#include "weft/transforms.h"

namespace weft::python {

namespace {

/// An argument that names several things: one, several, or none.
template <class T>
using OneOrMore = std::variant<T, std::vector<T>>;
template <class T>
std::vector<T> as_list(const OneOrMore<T>& x) {
  return x.index() == 0 ? std::vector<T>{std::get<0>(x)} : std::get<1>(x);
}

/// Calls a Python function with arguments whose arrays are replaced.
nb::object call(nb::handle fun, nb::handle args, nb::handle kwargs) {
  return nb::steal(PyObject_Call(fun.ptr(), args.ptr(), kwargs.is_valid() ? kwargs.ptr() : nullptr));
}
nb::object checked(nb::object result) {
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

void require_arrays(nb::handle tree, const char* op) {
  visit_leaves(tree, [&](nb::handle leaf) {
    if (!is_array(leaf))
      throw std::invalid_argument(std::string("[") + op + "] the argument should contain only arrays; got " +
                                  nb::cast<std::string>(nb::str(leaf.type())));
  });
}

/// The arguments by which value_and_grad differentiates.
struct Wanted {
  std::vector<int> numbers;
  bool single = false;  ///< one number that was not in a list
  std::vector<std::string> names;

  Wanted(const std::optional<OneOrMore<int>>& argnums, const OneOrMore<std::string>& argnames)
      : names(as_list(argnames)) {
    if (argnums) numbers = as_list(*argnums);
    else if (names.empty()) numbers = {0};
    if (numbers.empty() && names.empty()) throw std::invalid_argument("[grad] Gradient wrt no argument requested");
    std::ranges::sort(numbers);  // gradients come in the order of the arguments, as in MLX
    std::set<int> seen;
    for (const int n : numbers) {
      if (n < 0)
        throw std::invalid_argument("[grad] Can't compute the gradient of negative argument index " +
                                    std::to_string(n));
      if (!seen.insert(n).second)
        throw std::invalid_argument("[grad] Duplicate argument index " + std::to_string(n) + " is not allowed.");
    }
    if (std::set<std::string>(names.begin(), names.end()).size() != names.size())
      throw std::invalid_argument("[grad] an argument's name is given twice");
  }

  /// Returns the trees to differentiate by, in a list.
  nb::list trees(const nb::tuple& args, const nb::dict& kwargs) const {
    nb::list out;
    for (const int n : numbers) {
      if (static_cast<size_t>(n) >= args.size())
        throw std::invalid_argument("[grad] Can't compute the gradient of argument index " + std::to_string(n) +
                                    " because the function is called with only " + std::to_string(args.size()) +
                                    " positional arguments.");
      out.append(args[static_cast<size_t>(n)]);
    }
    for (const std::string& name : names) {
      if (!kwargs.contains(name.c_str()))
        throw std::invalid_argument("[grad] Can't compute the gradient of keyword argument '" + name +
                                    "' because the function is called with the following keyword arguments " +
                                    nb::cast<std::string>(nb::str(nb::list(kwargs.keys()))));
      out.append(kwargs[name.c_str()]);
    }
    require_arrays(out, "grad");
    return out;
  }

  /// Returns positional and keyword arguments with these trees in place of those that were asked for.
  std::pair<nb::object, nb::object> with(const nb::tuple& args, const nb::dict& kwargs, const nb::list& trees) const {
    nb::list positional(args);
    nb::dict named;
    for (auto [key, value] : kwargs) named[key] = value;
    for (size_t k = 0; k < numbers.size(); ++k) positional[static_cast<size_t>(numbers[k])] = trees[k];
    for (size_t k = 0; k < names.size(); ++k) named[names[k].c_str()] = trees[numbers.size() + k];
    return {nb::tuple(positional), named};
  }

  /// Returns gradients as MLX does: one tree, a tuple, or (positional, {name: tree}).
  nb::object result(const nb::list& trees) const {
    nb::object positional = nb::none();
    if (numbers.size() == 1) positional = nb::borrow(trees[0]);
    if (numbers.size() > 1) {
      nb::list parts;
      for (size_t k = 0; k < numbers.size(); ++k) parts.append(trees[k]);
      positional = nb::tuple(parts);
    }
    if (names.empty()) return positional;
    nb::dict named;
    for (size_t k = 0; k < names.size(); ++k) named[names[k].c_str()] = trees[numbers.size() + k];
    return nb::make_tuple(positional, named);
  }
};

/// Returns the loss in what a function returned: a scalar, or the first of a tuple or list.
nb::object loss_of(nb::handle result, bool gradient_only) {
  const auto refuse = [&](nb::handle got) {
    throw std::invalid_argument(
        "[grad] The return value of the function whose gradient we want to compute should be a scalar array; but " +
        nb::cast<std::string>(got.type().attr("__name__")) + " was returned.");
  };
  if (is_array(result)) return nb::borrow(result);
  if (gradient_only || !(PyTuple_Check(result.ptr()) || PyList_Check(result.ptr())) || nb::len(result) == 0)
    refuse(result);
  nb::object first = result[0];
  if (!is_array(first)) refuse(first);
  return first;
}

/// Puts arrays in the place of those of trees, and these back when it goes out of scope. A function then sees the
/// objects that it was given (a module, say), and what it assigns to them stays.
class Replaced {
 public:
  Replaced(nb::handle trees, const std::vector<array>& values) {
    size_t at = 0;
    trees_ = replace_arrays(trees, [&](nb::handle leaf) {
      const nb::object value = nb::cast(values.at(at++));
      before_.emplace(value.ptr(), std::pair{value, nb::borrow(leaf)});
      return value;
    });
  }
  ~Replaced() {
    replace_arrays(trees_, [&](nb::handle leaf) {
      const auto found = before_.find(leaf.ptr());
      return found == before_.end() ? nb::borrow(leaf) : found->second.second;
    });
  }
  nb::list trees() const { return nb::cast<nb::list>(trees_); }

 private:
  nb::object trees_;
  std::map<PyObject*, std::pair<nb::object, nb::object>> before_;  // by the object in its place, which lives as long
};

nb::object value_and_gradient(nb::handle fun, const Wanted& wanted, bool gradient_only, const nb::tuple& args,
                              const nb::dict& kwargs) {
  const nb::list trees = wanted.trees(args, kwargs);
  nb::object result;
  const ArrayFunction traced = [&](const std::vector<array>& values) {
    const Replaced replaced(trees, values);
    const auto [positional, named] = wanted.with(args, kwargs, replaced.trees());
    result = checked(call(fun, positional, named));
    std::vector<array> out = {array_of(loss_of(result, gradient_only))};
    for (const array& a : arrays_of(result)) out.push_back(a);
    return out;
  };
  const std::vector<array> inputs = arrays_of(trees);
  std::vector<int> all(inputs.size());
  for (size_t k = 0; k < all.size(); ++k) all[k] = static_cast<int>(k);
  const auto [values, gradients] = weft::value_and_grad(traced, all)(inputs);
  size_t at = 0;
  const nb::object derived = wanted.result(nb::cast<nb::list>(with_arrays(trees, gradients, at)));
  if (gradient_only) return derived;
  at = 1;
  return nb::make_tuple(with_arrays(result, values, at), derived);
}

using Argnums = std::optional<OneOrMore<int>>;
using Argnames = OneOrMore<std::string>;

nb::object differentiated(nb::callable fun, const Argnums& argnums, const Argnames& argnames, bool gradient_only) {
  return make_function({fun}, [f = nb::handle(fun), wanted = Wanted(argnums, argnames), gradient_only](
                                  const nb::tuple& args, const nb::dict& kwargs) {
    return value_and_gradient(f, wanted, gradient_only, args, kwargs);
  });
}

/// Returns the arrays that a function of arrays returned: one, or a tuple or list.
std::vector<array> results_of(nb::handle result, const char* op) {
  std::vector<array> out;
  visit_leaves(result, [&](nb::handle leaf) {
    if (!is_array(leaf))
      throw std::invalid_argument(std::string("[") + op + "] the function must return arrays; it returned " +
                                  nb::cast<std::string>(nb::str(leaf.type())));
    out.push_back(array_of(leaf));
  });
  return out;
}

/// Returns a Python function of arrays, one argument each, as one of C++.
ArrayFunction function_of_arrays(nb::callable fun, const char* op) {
  return [fun, op](const std::vector<array>& values) {
    nb::gil_scoped_acquire held;
    nb::list arguments;
    for (const array& a : values) arguments.append(a);
    return results_of(checked(call(fun, nb::tuple(arguments), nb::handle())), op);
  };
}

nb::tuple pair_of_lists(const std::pair<std::vector<array>, std::vector<array>>& p) {
  nb::list first, second;
  for (const array& a : p.first) first.append(a);
  for (const array& a : p.second) second.append(a);
  return nb::make_tuple(first, second);
}

constexpr int no_axis = std::numeric_limits<int>::min();

/// Appends an axis for each array of `tree` from a prefix tree of axes: ints, and None for no_axis.
void axes_of(nb::handle axes, nb::handle tree, std::vector<int>& out, const char* which) {
  if (axes.is_none() || PyLong_Check(axes.ptr())) {
    const int axis = axes.is_none() ? no_axis : nb::cast<int>(axes);
    visit_leaves(tree, [&](nb::handle) { out.push_back(axis); });
    return;
  }
  const auto mismatch = [&] {
    throw std::invalid_argument(std::string("[vmap] ") + which + " must be an int, None, or a tree of them that is a " +
                                "prefix of the tree of arrays");
  };
  if (PyDict_Check(axes.ptr())) {
    if (!PyDict_Check(tree.ptr())) mismatch();
    for (auto [key, child] : nb::borrow<nb::dict>(tree)) {
      if (!nb::borrow<nb::dict>(axes).contains(key)) mismatch();
      axes_of(axes[key], child, out, which);
    }
    return;
  }
  const bool both = (PyTuple_Check(axes.ptr()) || PyList_Check(axes.ptr())) &&
                    (PyTuple_Check(tree.ptr()) || PyList_Check(tree.ptr()));
  if (!both || nb::len(axes) != nb::len(tree)) mismatch();
  for (size_t k = 0; k < nb::len(tree); ++k) axes_of(axes[k], tree[k], out, which);
}

void check_axes(nb::handle axes) {
  visit_leaves(axes, [](nb::handle leaf) {
    if (!leaf.is_none() && !PyLong_Check(leaf.ptr())) throw std::invalid_argument("[vmap] axis must be int or None.");
  });
}

nb::object mapped(nb::callable fun, nb::object in_axes, nb::object out_axes) {
  check_axes(in_axes);
  check_axes(out_axes);
  const nb::handle f = fun, axes_in = in_axes, axes_out = out_axes;
  return make_function({fun, in_axes, out_axes}, [f, axes_in, axes_out](const nb::tuple& args, const nb::dict& named) {
    if (nb::len(named) > 0) throw nb::type_error("[vmap] mapped functions take positional arguments alone");
    require_arrays(args, "vmap");
    std::vector<int> in;
    const std::vector<array> values_in = arrays_of(args);
    const bool spread = PyTuple_Check(axes_in.ptr()) || PyList_Check(axes_in.ptr());
    if (spread || args.size() != 1) axes_of(axes_in, args, in, "in_axes");
    else axes_of(axes_in, args[0], in, "in_axes");
    for (size_t k = 0; k < in.size(); ++k)  // C++ counts axes from the front, and -1 is none
      in[k] = in[k] == no_axis ? -1 : in[k] < 0 ? in[k] + static_cast<int>(values_in[k].ndim()) : in[k];
    nb::object result;
    std::vector<int> out;
    const ArrayFunction traced = [&](const std::vector<array>& values) {
      size_t at = 0;
      const nb::object replaced = with_arrays(args, values, at);
      result = checked(call(f, replaced, nb::handle()));
      std::vector<array> found = results_of(result, "vmap");
      out.clear();
      const bool one = is_array(result) && PyTuple_Check(axes_out.ptr()) && nb::len(axes_out) == 1;
      axes_of(one ? nb::object(axes_out[0]) : nb::borrow(axes_out), result, out, "out_axes");
      return found;
    };
    // Where results want their batch axis is known when the function has returned: it comes in front, and is moved.
    std::vector<array> values = weft::vmap(traced, in)(values_in);
    for (size_t k = 0; k < values.size(); ++k)
      values[k] = out[k] == no_axis ? take(values[k], 0, 0) : moveaxis(values[k], 0, out[k]);
    size_t at = 0;
    return with_arrays(result, values, at);
  });
}

nb::object recomputed(nb::callable fun) {
  return make_function({fun}, [f = nb::handle(fun)](const nb::tuple& args, const nb::dict& kwargs) {
    // The derivative calls the function again when this call is over.
    const Kept result, arguments(nb::make_tuple(args, kwargs));
    const ArrayFunction traced = [fun = Kept(nb::borrow(f)), arguments, result](const std::vector<array>& values) {
      nb::gil_scoped_acquire held;
      size_t at = 0;
      const nb::object replaced = with_arrays(*arguments, values, at);
      *result = checked(call(*fun, nb::object(replaced[0]), nb::object(replaced[1])));
      return arrays_of(*result);
    };
    const std::vector<array> values = weft::checkpoint(traced)(arrays_of(*arguments));
    size_t at = 0;
    return with_arrays(*result, values, at);
  });
}

}  // namespace

void define_transforms(nb::module_& m) {
  define_function(m);
  const nb::object one = nb::int_(0);
  m.def(
      "value_and_grad",
      [](nb::callable fun, const Argnums& argnums, const Argnames& argnames) {
        return differentiated(std::move(fun), argnums, argnames, false);
      },
      nb::arg("fun"), nb::arg("argnums") = nb::none(), nb::arg("argnames") = nb::list(),
      nb::sig("def value_and_grad(fun: Callable[P, R], argnums: int | Sequence[int] | None = None, "
              "argnames: str | Sequence[str] = []) -> Callable[P, tuple[R, Any]]"),
      "Returns a function that computes fun's results and the gradients of the first, a scalar, by the arguments "
      "(trees of arrays) that are named by their numbers and names; by the first argument where none is named.");
  m.def(
      "grad",
      [](nb::callable fun, const Argnums& argnums, const Argnames& argnames) {
        return differentiated(std::move(fun), argnums, argnames, true);
      },
      nb::arg("fun"), nb::arg("argnums") = nb::none(), nb::arg("argnames") = nb::list(),
      nb::sig("def grad(fun: Callable[P, R], argnums: int | Sequence[int] | None = None, "
              "argnames: str | Sequence[str] = []) -> Callable[P, Any]"),
      "Returns a function that computes the gradients of value_and_grad alone.");
  m.def(
      "vjp",
      [](nb::callable fun, const std::vector<array>& primals, const std::vector<array>& cotangents) {
        return pair_of_lists(weft::vjp(function_of_arrays(std::move(fun), "vjp"), primals, cotangents));
      },
      nb::arg("fun"), nb::arg("primals"), nb::arg("cotangents"),
      nb::sig("def vjp(fun: Callable, primals: list[array], cotangents: list[array]) "
              "-> tuple[list[array], list[array]]"),
      "Returns the results of fun at the primals, and the products of the cotangents with its Jacobian.");
  m.def(
      "jvp",
      [](nb::callable fun, const std::vector<array>& primals, const std::vector<array>& tangents) {
        return pair_of_lists(weft::jvp(function_of_arrays(std::move(fun), "jvp"), primals, tangents));
      },
      nb::arg("fun"), nb::arg("primals"), nb::arg("tangents"),
      nb::sig("def jvp(fun: Callable, primals: list[array], tangents: list[array]) "
              "-> tuple[list[array], list[array]]"),
      "Returns the results of fun at the primals, and the products of its Jacobian with the tangents.");
  m.def("vmap", mapped, nb::arg("fun"), nb::arg("in_axes") = one, nb::arg("out_axes") = one,
        nb::sig("def vmap(fun: Callable[P, R], in_axes: object = 0, out_axes: object = 0) -> Callable[P, R]"),
        "Returns fun applied to every element along an axis of its arguments, all at once. The axes are ints, None for "
        "what is not mapped, or trees of them.");
  m.def("checkpoint", recomputed, nb::arg("fun"), nb::sig("def checkpoint(fun: Callable[P, R]) -> Callable[P, R]"),
        "Returns the same function, whose gradient computes it again instead of keeping its intermediate results.");
  define_compile(m);
  define_custom_function(m);
  define_control(m);
}

}  // namespace weft::python
