#pragma once
// Traces of functions whose arguments may have other lengths than those of the example.
#include <vector>

#include "transforms/traced.h"

namespace weft::io {

/// Returns the function's graph with a symbol for each length above 1 of the arguments that can be another one; axes of
/// one length have one symbol. A length that the function itself fixes (by an array that it refers to, for example)
/// stays a number. The function is run once, or a few times where not all lengths stay open.
///
/// Throws std::invalid_argument, with what to do, where no length can change, and where the function takes another
/// length which a symbol cannot stand for.
transforms::FunctionGraph trace_shapeless(const ArrayFunction& fun, const std::vector<graph::Type>& arguments);

}  // namespace weft::io
