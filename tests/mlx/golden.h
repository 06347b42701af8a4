#pragma once
// MLX's results in files (tests/mlx/golden, written by scripts/mlx_golden.py), and what compares Weft's with them.
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/array.h"

namespace weft::test {

using Arrays = std::vector<array>;

/// An array of a golden file: its elements lie row-major in the file's data.
struct Stored {
  Dtype dtype = float32;
  Shape shape;
  const std::byte* data = nullptr;
  array make() const { return array::from_data(data, shape, dtype); }
};

struct Case {
  std::string name;                     // of assertions and mistakes
  std::string kind, op, dtype, layout;  // of operators
  std::vector<Stored> in, out;
  std::string throws;  // the Python class of what MLX throws; empty where it returns `out`
  std::string title() const { return name.empty() ? kind + "/" + op + "/" + dtype + "/" + layout : name; }
  Arrays inputs() const;
};

class Golden {
 public:
  /// Reads tests/mlx/golden/NAME.npz.
  explicit Golden(const std::string& name);
  const std::vector<Case>& cases() const { return cases_; }

 private:
  std::shared_ptr<array> data_;  // keeps the bytes that the cases point to
  std::vector<Case> cases_;
};

/// How far a float may be from MLX's: `ulp` steps of its dtype, or as many of a number of magnitude `floor`, which is
/// for results that may come out near zero from terms of that magnitude. Integers, bools, shapes, dtypes and NaN must
/// be equal, and signs of zeros where `signed_zero`.
struct Bound {
  double ulp = 0;
  double floor = 0;
  bool signed_zero = true;
};

/// Says in a line how the result differs from the stored one; empty where they agree.
std::string difference(const array& result, const Stored& expected, const Bound& bound);
std::string difference(const Arrays& results, const std::vector<Stored>& expected, const Bound& bound);

/// The Python class that stands for what `function` throws: "ValueError" for std::invalid_argument, "IndexError" for
/// std::out_of_range, "RuntimeError" for std::runtime_error; empty where it returns.
std::string thrown_by(const std::function<void()>& function, std::string* message = nullptr);

}  // namespace weft::test
