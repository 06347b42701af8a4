// weft bench models, weft bench operations: the workloads of the table.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tools/weft/bench/support.h"
#include "tools/weft/bench/workloads/model.h"
#include "tools/weft/bench/workloads/operations.h"
#include "weft/device.h"
#include "weft/io.h"
#include "weft/memory.h"
#include "weft/ops.h"

namespace weft::tool {

namespace {

/// Sets the numerics of a dtype of the table, and then those from before.
class DtypeNumerics {
 public:
  explicit DtypeNumerics(const std::string& dtype) : before_(numerics()) {
    Numerics n = before_;
    n.tf32 = dtype == "tf32";
    set_numerics(n);
  }
  ~DtypeNumerics() { set_numerics(before_); }
  DtypeNumerics(const DtypeNumerics&) = delete;
  DtypeNumerics& operator=(const DtypeNumerics&) = delete;

 private:
  Numerics before_;
};

bool on_a_gpu() { return default_device().type == Device::gpu; }

std::string sizes_of(const BenchOptions& o) { return !o.sizes.empty() ? o.sizes : on_a_gpu() ? "gpu" : "cpu"; }

/// Calls `measure` for the rows that --only names (all without it), and goes on where one throws. Throws UsageError for
/// an unknown name, std::runtime_error at the end where one has thrown.
void for_rows(const BenchOptions& o, const std::vector<WorkloadRow>& rows,
              const std::function<void(const WorkloadRow&, const Sizes&)>& measure) {
  std::vector<std::string> names, failed;
  for (const auto& row : rows) names.push_back(row.name);
  if (!o.only.empty() && std::find(names.begin(), names.end(), o.only) == names.end())
    throw UsageError(fmt::format("there is no workload '{}'; known are {}", o.only, fmt::join(names, ", ")));
  for (const auto& row : rows) {
    if (!o.only.empty() && row.name != o.only) continue;
    const auto sizes = row.sizes.find(sizes_of(o));
    if (sizes == row.sizes.end()) throw UsageError(fmt::format("{} has no sizes '{}'", row.name, sizes_of(o)));
    const DtypeNumerics numerics(sizes->second.dtype_name());
    try {
      measure(row, sizes->second);
    } catch (const std::exception& e) {
      fmt::print(stderr, "{}: {}\n", row.name, e.what());
      failed.push_back(row.name);
    }
    clear_cache();
  }
  if (!failed.empty()) throw std::runtime_error(fmt::format("not measured: {}", fmt::join(failed, ", ")));
}

/// Returns how often something of `seconds` is repeated to take `total` seconds.
int64_t repetitions(double seconds, double total, int64_t least, int64_t most) {
  return std::clamp(static_cast<int64_t>(total / std::max(seconds, 1e-9)), least, most);
}

/// Returns the milliseconds of a run. On a GPU runs are issued in bursts without waiting; on a CPU each is waited for.
double workload_ms(const BenchOptions& o, const std::function<std::vector<array>()>& run, bool wait) {
  const auto waited = [&] {
    eval(run());
    synchronize();
  };
  waited();
  const double once = seconds_of(waited);
  if (on_a_gpu() && !wait)
    return device_ms(reps_of(o, 7), static_cast<int>(repetitions(once, 0.05, 2, long_burst)), [&] { run(); });
  return median_of(reps_of(o, repetitions(once, 2, 7, 100)), waited, o.cpu_time);
}

/// Writes what PyTorch's side needs to compute the same losses: parameters and batch before the first step, and the
/// losses of three steps.
void write_losses(const std::string& folder, const std::string& name, WorkloadStep& step) {
  std::unordered_map<std::string, array> out;
  for (const auto& [parameter, handle] : step.workload().model->parameters())
    out.insert_or_assign("parameter." + parameter, copy(*handle));
  for (size_t i = 0; i < step.workload().batch.size(); ++i)
    out.insert_or_assign(fmt::format("batch.{}", i), step.workload().batch[i]);
  for (auto& [key, value] : out) eval(value);
  std::vector<array> losses;
  for (int i = 0; i < 3; ++i) {
    losses.push_back(step());
    eval(losses.back());
  }
  out.insert_or_assign("losses", stack(losses));
  std::filesystem::create_directories(folder);
  save_safetensors(folder + "/" + name + ".safetensors", out);
}

}  // namespace

void bench_models(const BenchOptions& o) {
  for_rows(o, model_workloads(), [&](const WorkloadRow& row, const Sizes& sizes) {
    WorkloadStep step(row, sizes_of(o));
    if (!o.write.empty()) return write_losses(o.write, row.name, step);
    reset_peak_memory();
    float loss = 0;
    const double first = seconds_of([&] { loss = step().item<float>(); });
    const double ms = workload_ms(
        o, [&] { return std::vector<array>{step()}; }, false);
    Row("models", o, sizes.dtype_name())
        .text("name", row.name)
        .whole("params", step.workload().model->num_parameters())
        .number("ms", ms)
        .number("first_loss", loss)
        .number("first_step_s", first)
        .number("peak_GiB", static_cast<double>(get_peak_memory()) / (1 << 30))
        .print();
    if (o.profile) print_profile(5, [&] { step().item<float>(); });
  });
}

void bench_operations(const BenchOptions& o) {
  for_rows(o, operation_workloads(), [&](const WorkloadRow& row, const Sizes& sizes) {
    const Operation operation = operation_makers().at(row.kind)(sizes);
    const double first = seconds_of([&] { eval(operation.run()); });
    const double ms = workload_ms(o, operation.run, operation.eager);
    Row("operations", o, sizes.dtype_name())
        .text("name", row.name)
        .number("ms", ms)
        .number("first_step_s", first)
        .print();
    if (o.profile) print_profile(5, [&] { eval(operation.run()); });
  });
}

}  // namespace weft::tool
