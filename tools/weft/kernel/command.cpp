// weft kernel: kernels as users write them, and what the targets make of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "array/routines/kernel_stages.h"
#include "compiler/program.h"
#include "target/cpu/codegen/options.h"
#include "target/target.h"
#include "tools/weft/bench/support.h"
#include "tools/weft/command.h"
#include "tools/weft/kernel/report.h"
#include "weft/device.h"
#include "weft/kernel/debug.h"
#include "weft/ops.h"

namespace weft::tool {

namespace {

using nlohmann::ordered_json;

struct KernelOptions {
  std::string kernel, stage, arch;
  int64_t seed = 0, reps = 15;
  bool json = false;
  MachineOptions machine;
};

/// Prints JSON objects as they are, or as text.
void print_rows(const std::vector<std::string>& rows, bool json) {
  for (const std::string& row : rows) fmt::print("{}\n", json ? row : text_of_report(row));
}

int list(const KernelOptions& o) {
  std::vector<std::string> rows;
  for (const KernelSubject& s : find_subjects(o.kernel, false)) rows.push_back(description(s));
  if (o.json) print_rows(rows, true);
  else
    for (const std::string& text : rows) {
      const ordered_json row = ordered_json::parse(text);
      fmt::print("{:18} {}\n{:18} {}, {} programs\n", row["kernel"].get<std::string>(),
                 row.value("summary", std::string()), "", row["arrays"].get<std::string>(),
                 row["programs"].get<int64_t>());
      fmt::print("{:18} schedule: {}\n", "", row["schedule"].get<std::string>());
    }
  return 0;
}

std::vector<std::string> stage_names() {
  std::vector<std::string> out;
  for (const KernelStage& s : kernel_stages()) out.emplace_back(s.name);
  return out;
}

/// Prints a kernel at a stage. The library's kernels are made for the machine of the stage; those stages that all have
/// are of the CPU, or of the GPU that is named.
int show_stage(const KernelOptions& o, const target::Machine& gpu) {
  const auto stage = std::find_if(kernel_stages().begin(), kernel_stages().end(),
                                  [&](const KernelStage& k) { return k.name == o.stage; });
  const bool of_gpu = stage->of == KernelStage::Of::gpu || (stage->of == KernelStage::Of::all && !o.arch.empty());
  target::set_cpu_isa(o.machine.isa);
  std::vector<std::string> rows;
  for (const KernelSubject& s : find_subjects(o.kernel, false, of_gpu ? &gpu : &target::cpu().machine())) {
    const std::string text = stage_text(*s.program, o.stage, of_gpu ? gpu.arch : o.machine.isa);
    if (o.json) rows.push_back(ordered_json{{"kernel", s.name}, {"stage", o.stage}, {"text", text}}.dump());
    else fmt::print("{}", text);
  }
  print_rows(rows, o.json);
  return 0;
}

int show(const KernelOptions& o) {
  const target::Machine gpu = target::gpu_of(o.arch.empty() ? usual_arch() : o.arch);
  if (!o.stage.empty()) return show_stage(o, gpu);
  std::vector<std::string> rows;
  for (const KernelSubject& s : find_subjects(o.kernel, false, &gpu)) rows.push_back(report(s, gpu));
  print_rows(rows, o.json);
  return 0;
}

int debug(const KernelOptions& o) {
  for (const KernelSubject& s : find_subjects(o.kernel, true, &target::cpu().machine())) {
    const k::Program program = traced_program(*s.program);
    const k::Debugger debugger{.stopped = k::debug_shell(std::cin, std::cout), .at_begin = true};
    try {
      debugged(program, random_arguments(*s.program, static_cast<uint64_t>(o.seed)), debugger);
    } catch (const std::runtime_error& e) {
      fmt::print("{}\n", e.what());
      return 1;
    }
    fmt::print("kernel {} has ended\n", s.name);
  }
  return 0;
}

int run(const KernelOptions& o) {
  apply(o.machine);
  std::vector<std::string> rows;
  for (const KernelSubject& s : find_subjects(o.kernel, false, &compiler::default_target().machine())) {
    ordered_json row{{"kernel", s.name}, {"machine", machine_text()}};
    const std::vector<array> results = call_of(s.program, random_arguments(*s.program, static_cast<uint64_t>(o.seed)));
    for (const array& y : results) {
      const array v = astype(y, float32);
      row["results"].push_back({{"array", graph::to_string(y.value().type())},
                                {"least", min(v).item<float>()},
                                {"mean", mean(v).item<float>()},
                                {"largest", max(v).item<float>()}});
    }
    rows.push_back(row.dump());
  }
  print_rows(rows, o.json);
  return 0;
}

int bench(const KernelOptions& o) {
  apply(o.machine);
  std::vector<std::string> rows;
  for (const KernelSubject& s : find_subjects(o.kernel, false, &compiler::default_target().machine())) {
    const std::vector<array> inputs = random_arguments(*s.program, static_cast<uint64_t>(o.seed));
    eval(inputs);
    const auto once = [&] { eval(call_of(s.program, inputs)); };
    const double ms = default_device().type == Device::gpu ? device_ms(o.reps, 20, once) : median_of(o.reps, once);
    rows.push_back(timing(s, ms));
  }
  print_rows(rows, o.json);
  return 0;
}

int check_kernels(const KernelOptions& o) {
  apply(o.machine);
  bool all = true;
  std::vector<std::string> rows;
  const Device first = default_device(), gpu(Device::gpu);
  std::vector<Device> devices{first};
  if (first.type == Device::cpu && is_available(gpu)) devices.push_back(gpu);
  for (const Device& device : devices) {
    set_default_device(device);
    for (const KernelSubject& s : find_subjects(o.kernel, true, &compiler::default_target().machine())) {
      bool equal = false;
      rows.push_back(comparison(s, static_cast<uint64_t>(o.seed), equal));
      all = all && equal;
    }
  }
  set_default_device(first);
  print_rows(rows, o.json);
  return all ? 0 : 1;
}

Command kernel_command(const std::string& name, const std::string& summary, const std::string& example,
                       int (*run_it)(const KernelOptions&)) {
  auto o = std::make_shared<KernelOptions>();
  OptionSet set;
  Option& kernel = set.add("KERNEL", "", &o->kernel,
                           "a built-in kernel (weft kernel list), an exported program, or a file with tile IR; without "
                           "it all built-in ones");
  kernel.as_positional();
  if (run_it == show) {
    set.add("stage", "NAME", &o->stage, "print the kernel at this stage instead of the report").one_of(stage_names());
    set.add("arch", "SM", &o->arch, "the GPU's architecture, with or without such a GPU: sm_80, sm_90a …")
        .defaults_to("this machine's, else sm_90a");
  }
  if (run_it != debug) set.add("json", "", &o->json, "print each kernel as a line of JSON");
  if (run_it == run || run_it == debug || run_it == bench || run_it == check_kernels)
    set.add("seed", "N", &o->seed, "of the random arguments").range(0, 1e9);
  if (run_it == bench) set.add("reps", "N", &o->reps, "runs that are timed; the median counts").range(1, 1e6);
  if (run_it != list && run_it != debug) add_machine_options(set, o->machine);
  return {"kernel " + name, summary, example, set, [o, run_it](OptionSet&) { return run_it(*o); }};
}

}  // namespace

std::vector<Command> kernel_commands() {
  return {
      kernel_command("list", "Lists built-in kernels, or those of a file", "weft kernel list program.weft", list),
      kernel_command("show", "Shows a kernel: what it needs of a machine, or its text at a stage",
                     "weft kernel show softmax --stage ptx --arch sm_90a", show),
      kernel_command("run", "Runs a kernel on random arguments", "weft kernel run softmax", run),
      kernel_command("debug", "Runs a kernel in the interpreter, and stops at its lines", "weft kernel debug softmax",
                     debug),
      kernel_command("bench", "Times a kernel against the machine's limits", "weft kernel bench add --reps 50", bench),
      kernel_command("check", "Compares the interpreter's results with the CPU's and with a GPU's",
                     "weft kernel check matmul", check_kernels)};
}

}  // namespace weft::tool
