#pragma once
#include <functional>

#include "convert.h"

namespace weft::python {

/// What a transform returns: a Python function made of a C++ one. The objects that it needs are known to Python's
/// garbage collector, since a module that holds a transformed function is itself what the function holds.
class TransformedFunction {
 public:
  /// `positional` is a tuple, `named` a dict. The body uses `held` by handles.
  using Body = std::function<nb::object(const nb::tuple& positional, const nb::dict& named)>;
  TransformedFunction(std::vector<nb::object> held, Body body) : held_(std::move(held)), body_(std::move(body)) {}

  nb::object operator()(const nb::tuple& positional, const nb::dict& named) const { return body_(positional, named); }
  /// The objects, of which the first is the function that was transformed.
  std::vector<nb::object>& held() { return held_; }

 private:
  std::vector<nb::object> held_;
  Body body_;
};

/// Returns the Python object of a transformed function.
nb::object make_function(std::vector<nb::object> held, TransformedFunction::Body body);
/// Defines its class.
void define_function(nb::module_& m);

}  // namespace weft::python
