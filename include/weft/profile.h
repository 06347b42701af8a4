#pragma once
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "weft/transforms.h"

/// What a function becomes on this machine, and where its time goes: a table of its kernels, library calls and copies.
namespace weft {

/// A launch, library call or copy of a program. Bytes, operations and times are of a call of the function, in which it
/// may run several times.
struct KernelRow {
  std::string name;         ///< of the code or of the library's work: "row_12", "dot f32 []x64x64x32"
  std::string what;         ///< what it computes: "max sub exp sum div -> f32(64,64)", "onednn brg:avx512_core"
  std::string kind;         ///< "kernel", "library", "copy", or "nested": control flow, whose body has its own rows
  int groups = 1;           ///< of a kernel: independent parts that share the launch
  double launches = 1;      ///< in a call of the function
  double bytes = 0;         ///< read and written; each part of a buffer counts once a launch
  double flops = 0;         ///< operations on elements: a multiply-add is two, an exponential is one
  double predicted_ms = 0;  ///< by the compiler's cost model
  double floor_ms = 0;      ///< what moving the bytes and computing the operations takes at the machine's peaks
  double ms = 0;            ///< as measured; 0 where nothing was
  /// Returns the fraction of the machine's peak that was reached; 0 where nothing was measured.
  double of_peak() const { return ms > 0 ? floor_ms / ms : 0; }
};

/// The rows of a function's programs in the order in which they run, and their sums.
struct WEFT_API KernelTable {
  std::vector<KernelRow> rows;  ///< in the order in which they run, unless by_work() has sorted them
  std::string peaks;            ///< of the machine: "43.1 GB/s copied, 180 GFLOP/s in float32 products, …"
  /// Returns the measured milliseconds of all rows; 0 where nothing was measured.
  double ms() const;
  /// Returns the milliseconds of all rows as the compiler's cost model predicts them.
  double predicted_ms() const;
  /// Returns the milliseconds that all rows take at the machine's peaks.
  double floor_ms() const;
  /// Returns the table with one row for all launches that compute the same, those that take longest first.
  KernelTable by_work() const;
  /// Returns the table as text: a line with the sums, then at most `most` rows.
  std::string to_string(size_t most = 1000) const;
};
/// Prints the table as to_string() has it.
WEFT_API std::ostream& operator<<(std::ostream& os, const KernelTable& table);

/// Compiles the function for these arguments, and returns what it became with predicted times. The function does not
/// run, and no state changes; it is traced, where it was not before. A function that compile() has not made is
/// explained as compile(fun) would make it. Lengths of dynamic axes count at their bounds.
///
///     auto step = compile(train, {.state = model.state()});
///     std::cout << explain(step, {x, y});
WEFT_API KernelTable explain(const ArrayFunction& fun, const std::vector<array>& arguments);

/// Calls the function `runs` + 3 times and returns what ran with measured times, each the median over the last `runs`
/// calls. State that the function updates changes with every call. On a GPU the times are the GPU's own. Throws
/// std::invalid_argument where `runs` is less than 1.
///
///     std::cout << profile(step, {x, y}).by_work();
WEFT_API KernelTable profile(const ArrayFunction& fun, const std::vector<array>& arguments, int runs = 10);
/// Returns the same of anything that computes: several compiled functions, eager operations. `run` evaluates what it
/// computes, as eval does.
WEFT_API KernelTable profile(const std::function<void()>& run, int runs = 10);

}  // namespace weft
