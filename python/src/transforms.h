#pragma once
#include "convert.h"

/// Transforms of Python functions: each defines its part of the module.
namespace weft::python {

void define_transforms(nb::module_& m);
/// Defines compile, enable_compile and disable_compile.
void define_compile(nb::module_& m);
/// Defines the class custom_function.
void define_custom_function(nb::module_& m);
/// Defines cond, while_loop, scan, jacfwd, jacrev and hessian.
void define_control(nb::module_& m);

}  // namespace weft::python
