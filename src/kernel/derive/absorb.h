#pragma once
// Elementwise operators moved into the loads and stores of a kernel.
#include <optional>
#include <vector>

#include "kernel/tile.h"

namespace weft::kernel {

/// An operator on elements at one position of arrays of one shape.
struct ElementwiseOp {
  Op op = Op::scalar;  // scalar, cast or bitcast
  ScalarOp scalar_op = ScalarOp::add;
  Dtype dtype = float32;  // of the result
  /// An argument: the value that the kernel stores, an element of an array (its number among `arrays`), or a number.
  struct Argument {
    enum class Kind : uint8_t { stored, array, number } kind;
    Dtype dtype;
    int array = -1;
    Number number = {};
  };
  std::vector<Argument> args;
  std::vector<Dtype> arrays;  // that are read
};

/// Returns whether a kernel reads a parameter by slices alone, no element of it twice, so that what computes an element
/// can stand at the load. `dims`: the extents of the array.
bool can_absorb_load(const Kernel& kernel, Ref param, const std::vector<int64_t>& dims, int64_t programs);
/// Returns whether a kernel writes a parameter by slices alone, no element twice, and never reads it.
bool can_absorb_store(const Kernel& kernel, Ref param, const std::vector<int64_t>& dims, int64_t programs);

/// Returns the kernel that computes the elements of a parameter where it loads them. The arrays that it reads for that
/// take the parameter's position.
Kernel with_absorbed_load(const Kernel& kernel, Ref param, const ElementwiseOp& op);
/// Returns the kernel that applies an operator to what it stores to a parameter. The arrays that it reads for that
/// stand in front of the parameter, which has the operator's dtype.
Kernel with_absorbed_store(const Kernel& kernel, Ref param, const ElementwiseOp& op);

}  // namespace weft::kernel
