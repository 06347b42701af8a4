// weft explain: the programs of a trained model, or of an exported one.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <stdexcept>

#include "compiler/pipeline.h"
#include "compiler/program/measured_rates.h"
#include "io/program/tape.h"
#include "tools/weft/command.h"
#include "tools/weft/explain/explain.h"
#include "tools/weft/machine_options.h"
#include "tools/weft/train/checkpoint.h"
#include "weft/export.h"
#include "weft/ops.h"

namespace weft::tool {

namespace {

struct ExplainOptions {
  std::string path, show, step = "both";
  int64_t runs = 10;
  bool json = false, verify = false;
  MachineOptions machine;
};

std::vector<std::string> stages_to_show(const std::string& list) {
  try {
    return compiler::parse_printable(list, "--show");
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  }
}

/// Returns arrays of the types that a function was exported for: ones, which every operator accepts; lengths at their
/// bounds, those of a shapeless function 64, or the example's where others need not fit.
std::vector<array> example_arguments(const io::TapedFunction& f) {
  std::vector<array> out;
  const std::vector<graph::Type> types = io::example_types(f);
  for (size_t k = 0; k < f.arguments + f.keywords.size(); ++k) {
    Shape shape;
    for (const Dim& d : types[k].shape) shape.push_back(f.shapeless && d.symbol() ? int64_t{64} : d.bound());
    out.push_back(ones(shape, types[k].dtype));
  }
  eval(out);
  return out;
}

std::vector<Explained> explain_file(const ExplainOptions& o) {
  const io::ProgramFile program = io::read_program(o.path);
  const ImportedFunction imported = import_function(o.path);
  std::vector<Explained> out;
  for (const io::TapedFunction& f : program.functions) {
    std::vector<array> flat = example_arguments(f);
    Kwargs kwargs;
    for (size_t k = 0; k < f.keywords.size(); ++k) kwargs.emplace(f.keywords[k], flat[f.arguments + k]);
    const Args args(flat.begin(), flat.begin() + static_cast<std::ptrdiff_t>(f.arguments));
    const auto run = [&] { eval(imported(args, kwargs)); };
    std::string types;
    for (const array& a : flat) types += (types.empty() ? "" : ", ") + graph::to_string(a.value().type());
    out.push_back(explain_program(fmt::format("{}({})", o.path, types), static_cast<int>(o.runs), run, run));
  }
  return out;
}

int explain(const ExplainOptions& o) {
  const auto show = stages_to_show(o.show);
  if (o.verify) compiler::set_verification(true);
  apply(o.machine);
  const target::Rates rates = compiler::machine_rates(compiler::default_target());
  const auto programs = std::filesystem::is_regular_file(o.path)
                            ? explain_file(o)
                            : explain_run(load_checkpoint(o.path), o.step, static_cast<int>(o.runs));
  if (!o.json) fmt::print("This machine: {}\n", to_string(rates));
  for (const Explained& e : programs)
    if (o.json) fmt::print("{}\n", explained_json(e, rates, show));
    else fmt::print("\n{}", explained_text(e, rates, show));
  return 0;
}

}  // namespace

Command explain_command() {
  auto options = std::make_shared<ExplainOptions>();
  OptionSet set;
  set.add("PATH", "", &options->path, "the folder of a run, or a file that export_function has written")
      .as_positional()
      .needed();
  set.add("step", "WHICH", &options->step, "train, sample (of images: test) or both")
      .one_of({"train", "sample", "both"});
  set.add("show", "STAGES", &options->show,
          "print these whole: graph, groups, schedules, tune, kernels, plan, passes, after:PASS");
  set.add("verify", "", &options->verify, "hold what each pass of the compiler makes against its rules");
  set.add("runs", "N", &options->runs, "timed runs; figures are their medians").range(1, 10000);
  set.add("json", "", &options->json, "one JSON object a program");
  add_machine_options(set, options->machine);
  return {"explain", "Shows what a model's steps became: kernels, memory, time",
          "weft explain shakespeare --step train", set, [options](OptionSet&) { return explain(*options); }};
}

}  // namespace weft::tool
