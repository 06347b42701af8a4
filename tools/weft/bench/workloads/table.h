#pragma once
// The table of workloads, bench/workloads.json, which is part of the program: training steps of models that users
// bring, and single operations, with their sizes on a GPU, on a CPU, and tiny ones for tests.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "weft/dtype.h"

namespace weft::tool {

/// The sizes of a workload on one device.
class Sizes {
 public:
  Sizes(std::string dtype, std::map<std::string, double> values)
      : dtype_name_(std::move(dtype)), values_(std::move(values)) {}
  /// Returns a whole number by its name; throws std::out_of_range with the name where there is none.
  int operator()(const std::string& name) const { return static_cast<int>(number(name)); }
  /// Returns a number by its name, as above.
  float number(const std::string& name) const;
  /// Returns bfloat16 for "bf16", else float32.
  Dtype dtype() const { return dtype_name_ == "bf16" ? bfloat16 : float32; }
  /// Returns "bf16", "f32" or "tf32": float32 whose products may be rounded to TF32.
  const std::string& dtype_name() const { return dtype_name_; }

 private:
  std::string dtype_name_;
  std::map<std::string, double> values_;
};

/// One row of the table.
struct WorkloadRow {
  std::string name, what;
  std::string kind;                    ///< which model or operation: several rows may share one
  std::string optimizer;               ///< of models: "adamw" or "sgd"
  std::map<std::string, Sizes> sizes;  ///< by device: "gpu", "cpu"; of models also "tiny"
};

/// Returns the training steps, in the table's order.
const std::vector<WorkloadRow>& model_workloads();
/// Returns the single operations.
const std::vector<WorkloadRow>& operation_workloads();

}  // namespace weft::tool
