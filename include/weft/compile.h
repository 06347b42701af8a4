#pragma once
#include <string>
#include <vector>

#include "weft/numerics.h"
#include "weft/transforms.h"

namespace weft {

/// One axis of one argument with a length that changes from call to call: one program serves all lengths 1 … bound.
/// Axes with the same name have the same length in every call.
struct DynamicAxis {
  int argument;      ///< index of the argument
  int axis;          ///< index of its axis
  std::string name;  ///< of the length
  int64_t bound;     ///< largest length; buffers are laid out for it
};

/// Options of compile.
struct CompileOptions {
  /// Handles that the function reads and may rebind: parameters, optimizer state, random keys. They are inputs and
  /// outputs of the program; a call updates them, in place where nothing else holds the old value.
  std::vector<array*> state = {};
  std::vector<DynamicAxis> dynamic = {};  ///< axes whose length is not part of the signature
};

/// Returns the function as a program: traced once for each signature (dtypes and shapes of the arguments), then run
/// without tracing. Side effects of `fun` other than on `state` happen while tracing only. Inside another trace the
/// function is simply called. weft/shape.h shows a dynamic axis.
///
///     auto step = compile([&](const std::vector<array>& batch) { return std::vector{loss(batch[0], batch[1])}; },
///                         {.state = model.state()});
///     array value = step({x, y})[0];
WEFT_API ArrayFunction compile(const ArrayFunction& fun, const CompileOptions& options);
/// Returns the same without options, as MLX's. `shapeless` changes nothing: sizes are part of the signature, and a
/// function of other sizes is traced again, which is right for every function. CompileOptions::dynamic makes one
/// program for many lengths.
WEFT_API ArrayFunction compile(const ArrayFunction& fun, bool shapeless = false);

/// Returns what results may give up for speed (weft/numerics.h).
WEFT_API Numerics numerics();
/// Sets what results of programs that are built from now on may give up for speed, eager ones and compiled ones;
/// programs that were traced before keep what they had.
WEFT_API void set_numerics(const Numerics& numerics);

/// Turns compilation off: calls of compiled functions just call the functions.
WEFT_API void disable_compile();
/// Turns compilation on again.
WEFT_API void enable_compile();

/// MLX's switch of compile. Simplification and fusion are part of making any program, eager or compiled, so
/// `no_simplify` and `no_fuse` leave out nothing. Values do not depend on the mode.
enum class CompileMode { disabled, no_simplify, no_fuse, enabled };
/// Calls disable_compile() for `disabled`, enable_compile() for every other mode.
WEFT_API void set_compile_mode(CompileMode mode);

}  // namespace weft
