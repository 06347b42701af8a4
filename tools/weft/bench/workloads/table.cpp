#include "tools/weft/bench/workloads/table.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tools/weft/workload_table.h"

namespace weft::tool {

namespace {

Sizes sizes_from(const nlohmann::json& json) {
  std::map<std::string, double> values;
  for (const auto& [name, value] : json.items())
    if (value.is_number()) values.emplace(name, value.get<double>());
  return {json.at("dtype").get<std::string>(), std::move(values)};
}

std::vector<WorkloadRow> workload_rows(const char* list, const char* kind) {
  std::vector<WorkloadRow> rows;
  const auto table = nlohmann::json::parse(workload_table);
  for (const auto& json : table.at(list)) {
    WorkloadRow row{json.at("name"), json.at("what"), json.at(kind), json.value("optimizer", ""), {}};
    for (const char* device : {"gpu", "cpu", "tiny"})
      if (json.contains(device)) row.sizes.emplace(device, sizes_from(json.at(device)));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

float Sizes::number(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) throw std::out_of_range("[workloads] a workload has no size '" + name + "'");
  return static_cast<float>(found->second);
}

const std::vector<WorkloadRow>& model_workloads() {
  static const std::vector<WorkloadRow> rows = workload_rows("models", "model");
  return rows;
}

const std::vector<WorkloadRow>& operation_workloads() {
  static const std::vector<WorkloadRow> rows = workload_rows("operations", "operation");
  return rows;
}

}  // namespace weft::tool
