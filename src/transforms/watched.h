#pragma once
// A call of a user's function whose arguments are watched, and small things that the transforms share.
#include "array/realise.h"
#include "graph/build.h"
#include "graph/derive/derive.h"
#include "transforms/closure.h"
#include "weft/transforms.h"

namespace weft::transforms {

/// Aliases in place of some arguments, for as long as the function runs and its graph is looked at.
class Watched {
 public:
  /// The arguments in `argnums`; throws "[op] …".
  Watched(const char* op, const std::vector<array>& arguments, const std::vector<int>& argnums);
  /// All arguments.
  explicit Watched(const std::vector<array>& arguments);

  const std::vector<array>& arguments() const { return arguments_; }
  const graph::Values& targets() const { return targets_; }

 private:
  void watch(size_t n);
  detail::Trace trace_;
  std::vector<array> arguments_;
  graph::Values targets_;
};

void require_float(const char* op, const char* what, const array& a);
/// Counted from the front, each once.
std::vector<size_t> checked_argnums(const char* op, const std::vector<int>& argnums, size_t count);
/// Zeros like `of` where a derivative is empty.
std::vector<array> filled(const graph::Values& derivatives, const graph::Values& of);
ArrayFunction as_array_function(const ScalarFunction& fun);
ArrayFunction as_array_function(const UnaryFunction& fun);

}  // namespace weft::transforms
