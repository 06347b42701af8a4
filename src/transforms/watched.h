#pragma once
// A call of a user's function whose arguments are watched, and helpers that the transforms share.
#include "array/realise.h"
#include "graph/build.h"
#include "graph/derive/derive.h"
#include "transforms/closure.h"
#include "weft/transforms.h"

namespace weft::transforms {

/// Replaces some arguments by aliases while the function runs and its graph is read.
class Watched {
 public:
  /// Watches the arguments in `argnums`; throws "[op] …" where there is no such argument.
  Watched(const char* op, const std::vector<array>& arguments, const std::vector<int>& argnums);
  /// Watches all arguments.
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
/// Returns the arguments counted from the front; throws where one is named twice or does not exist.
std::vector<size_t> checked_argnums(const char* op, const std::vector<int>& argnums, size_t count);
/// Returns the derivatives, with zeros like `of` where one is empty.
std::vector<array> filled(const graph::Values& derivatives, const graph::Values& of);
ArrayFunction as_array_function(const ScalarFunction& fun);
ArrayFunction as_array_function(const UnaryFunction& fun);

}  // namespace weft::transforms
