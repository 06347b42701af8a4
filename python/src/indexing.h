#pragma once
#include "convert.h"

namespace weft::python {

/// Defines indexing, assignment to elements, and `at`.
void define_indexing(nb::module_& m, nb::class_<array>& c);

}  // namespace weft::python
