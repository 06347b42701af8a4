#pragma once
// What makers of single operations share: inputs of the table's sizes, and operations that are compiled functions.
#include <functional>
#include <vector>

#include "tools/weft/bench/workloads/operations.h"
#include "weft/compile.h"
#include "weft/random.h"

namespace weft::tool {

using Arrays = std::vector<array>;

/// Returns normal numbers in the dtype of the sizes.
inline array drawn(const Sizes& s, const Shape& shape, float scale = 1) {
  return random::normal(shape, s.dtype(), 0, scale);
}
inline array drawn_matrix(const Sizes& s) { return drawn(s, {s("rows"), s("cols")}); }
/// Returns images [batch, image, image, channels].
inline array drawn_images(const Sizes& s) { return drawn(s, {s("batch"), s("image"), s("image"), s("channels")}); }
/// Returns uniform integers below `bound`, int32 [count].
inline array drawn_indices(int bound, int count) { return random::randint(array(0), array(bound), {count}, int32); }

/// Computes the inputs and returns the operation that runs the compiled function on them.
inline Operation compiled_operation(const Arrays& in, const ArrayFunction& f) {
  eval(in);
  return {[in, program = compile(f, CompileOptions{})] { return program(in); }};
}

/// Returns the maker of an operation of one result over the arrays that `inputs` makes.
inline OperationMaker of(const std::function<Arrays(const Sizes&)>& inputs,
                         const std::function<array(const Arrays&)>& f) {
  return [inputs, f](const Sizes& s) {
    return compiled_operation(inputs(s), [f](const Arrays& in) { return Arrays{f(in)}; });
  };
}

/// Returns the maker of an operation over one matrix of rows × cols.
inline OperationMaker of_rows(const std::function<array(const array&)>& f) {
  return of([](const Sizes& s) { return Arrays{drawn_matrix(s)}; }, [f](const Arrays& in) { return f(in[0]); });
}

/// The operations of further_operations.cpp.
std::unordered_map<std::string, OperationMaker> further_operations();

}  // namespace weft::tool
