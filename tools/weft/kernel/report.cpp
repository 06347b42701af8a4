#include "tools/weft/kernel/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "array/routines/kernel_stages.h"
#include "compiler/program.h"
#include "compiler/program/measured_rates.h"
#include "kernel/expand/expand.h"
#include "target/cuda/inspect.h"
#include "tools/weft/machine_options.h"
#include "weft/device.h"
#include "weft/ops.h"

namespace weft::tool {

using nlohmann::ordered_json;

namespace {

std::string arrays_text(const graph::KernelProgram& program) {
  constexpr const char* uses[] = {"", "out ", "inout "};
  std::string out;
  for (size_t k = 0; k < program.arrays.size(); ++k)
    out += fmt::format("{}{}{}", k ? ", " : "", uses[static_cast<size_t>(program.arrays[k].use)],
                       graph::to_string(program.arrays[k].type));
  return out;
}

void add_roofline(ordered_json& row, const graph::KernelProgram& program, const target::Rates& rates) {
  const Roofline best = roofline(program, rates);
  if (best.seconds > 0) row["least_ms"] = 1e3 * best.seconds, row["bound"] = best.bound;
}

ordered_json code_report(const kernel::Kernel& kernel, const target::Machine& gpu) {
  const target::cuda::KernelCode code = target::cuda::code_of(kernel, gpu);
  return {{"registers", code.usage.registers},
          {"spill_store_bytes", code.usage.spill_store_bytes},
          {"spill_load_bytes", code.usage.spill_load_bytes},
          {"stack_bytes", code.usage.stack_bytes},
          {"shared_bytes", code.shared_bytes},
          {"threads", code.threads},
          {"programs_a_block", code.programs},
          {"blocks_a_program", code.blocks},
          {"blocks_an_sm", code.occupancy.blocks},
          {"occupancy", code.occupancy.share},
          {"limiter", code.occupancy.limiter}};
}

bool same_bits(const array& a, const array& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.raw_data(), b.raw_data(), a.nbytes()) == 0;
}

/// Returns the largest difference as a share of the largest number.
double difference(const array& got, const array& wanted) {
  const array a = astype(got, float32), b = astype(wanted, float32);
  const double scale = max(abs(b)).item<float>(), most = max(abs(a - b)).item<float>();
  return scale > 0 ? most / scale : most;
}

/// Returns the share of the largest number by which results of a GPU may differ: sums in another order, and its own
/// exponentials.
double tolerance(Dtype t) { return t == float64 ? 1e-12 : is_low_float(t) ? 2e-2 : is_float(t) ? 1e-4 : 0; }

ordered_json described(const KernelSubject& s) {
  ordered_json out{{"kernel", s.name}};
  if (!s.summary.empty()) out["summary"] = s.summary;
  const graph::KernelProgram& p = *s.program;
  out["arrays"] = arrays_text(p);
  out["programs"] = p.grid;
  out["bytes"] = least_bytes(p);
  out["product_flops"] = p.work.products;
  out["other_flops"] = p.work.operations;
  std::string steps = stage_text(p, "schedule", "");
  steps.pop_back();
  out["schedule"] = steps;
  return out;
}

}  // namespace

std::string description(const KernelSubject& s) { return described(s).dump(); }

std::string report(const KernelSubject& s, const target::Machine& gpu) {
  ordered_json out = described(s);
  out["digest"] = kernel::digest(s.program->kernel).hex();
  out["gpu"] = gpu.arch;
  std::string why;
  if (target::cuda::nvrtc_available(&why)) out.update(code_report(s.program->kernel, gpu));
  else out["gpu_code"] = "none: " + why;
  add_roofline(out, *s.program, target::stated_rates(gpu));
  return out.dump();
}

std::string timing(const KernelSubject& s, double ms) {
  ordered_json out = described(s);
  out["machine"] = machine_text();
  out["ms"] = ms;
  out["GBps"] = least_bytes(*s.program) / ms / 1e6;
  if (s.program->work.products > 0) out["product_gflops"] = s.program->work.products / ms / 1e6;
  add_roofline(out, *s.program, compiler::machine_rates(compiler::default_target()));
  if (out.contains("least_ms")) out["of_least"] = out["least_ms"].get<double>() / ms;
  return out.dump();
}

std::string comparison(const KernelSubject& s, uint64_t seed, bool& equal) {
  const std::vector<array> inputs = random_arguments(*s.program, seed);
  const bool gpu = default_device().type == Device::gpu;
  graph::KernelProgram program = *s.program;
  if (!gpu) program.kernel = kernel::expand(program.kernel);  // the functions of which a CPU has the same bits
  const std::vector<array> wanted = interpreted(program, inputs), got = call_of(s.program, inputs);
  ordered_json out{{"kernel", s.name}, {"arrays", arrays_text(*s.program)}, {"machine", machine_text()}};
  equal = got.size() == wanted.size();
  double most = 0;
  for (size_t k = 0; k < got.size() && k < wanted.size(); ++k) {
    const double d = difference(got[k], wanted[k]);
    most = std::max(most, d);
    equal = equal && (gpu ? d <= tolerance(got[k].dtype()) : same_bits(got[k], wanted[k]));
  }
  out["difference"] = most;
  out["equal"] = equal;
  return out.dump();
}

std::string text_of_report(const std::string& json) {
  std::string out;
  const ordered_json report = ordered_json::parse(json);
  for (const auto& [key, value] : report.items()) {
    std::string name = key, text = value.is_string()         ? value.get<std::string>()
                                   : value.is_number_float() ? fmt::format("{:.6g}", value.get<double>())
                                                             : value.dump();
    std::replace(name.begin(), name.end(), '_', ' ');
    out += fmt::format("{:20} {}\n", name, text);
  }
  return out;
}

}  // namespace weft::tool
