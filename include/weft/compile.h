#pragma once
#include <string>
#include <vector>

#include "weft/numerics.h"
#include "weft/transforms.h"

namespace weft {

/// One axis of one argument with a length that changes from call to call: one program serves all lengths 1..bound.
/// Axes with the same name have the same length in every call.
struct DynamicAxis {
  int argument;
  int axis;
  std::string name;
  int64_t bound;
};

struct CompileOptions {
  /// Handles that the function reads and may rebind: parameters, optimizer state, random keys. They are inputs and
  /// outputs of the program; a call updates them, in place where nobody else holds the old value.
  std::vector<array*> state = {};
  std::vector<DynamicAxis> dynamic = {};
};

/// The function as a program: traced once for each signature (dtypes and shapes of the arguments), then run without
/// tracing. Side effects of `fun` other than on `state` happen while tracing only. Inside another trace the function is
/// simply called.
///
///     auto step = compile([&](const std::vector<array>& batch) { …; return std::vector{loss}; }, {.state =
///       model.state()});
///     array loss = step({x, y})[0];
WEFT_API ArrayFunction compile(const ArrayFunction& fun, const CompileOptions& options);
/// As MLX's. `shapeless` changes nothing: sizes are part of the signature, and a function of other sizes is traced
/// again, which is right for every function. One program for many lengths is what CompileOptions::dynamic asks for.
WEFT_API ArrayFunction compile(const ArrayFunction& fun, bool shapeless = false);

/// What results of programs that are built from now on may give up for speed, eager ones and compiled ones; programs
/// that were traced before keep what they had.
WEFT_API Numerics numerics();
WEFT_API void set_numerics(const Numerics& numerics);

/// While compilation is off, calls of compiled functions just call the functions.
WEFT_API void disable_compile();
WEFT_API void enable_compile();

/// MLX's switch. `disabled` is disable_compile(), every other mode enable_compile(): simplification and fusion are part
/// of making any program, eager or compiled, so that `no_simplify` and `no_fuse` leave out nothing. Values do not
/// depend on the mode.
enum class CompileMode { disabled, no_simplify, no_fuse, enabled };
WEFT_API void set_compile_mode(CompileMode mode);

}  // namespace weft
