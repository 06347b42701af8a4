// weft train gpt: checks options, folder and text, then runs the loop with its reports, its curve, and its two ways to
// stop.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "tools/weft/command.h"
#include "tools/weft/explain/trace_file.h"
#include "tools/weft/train/checkpoint.h"
#include "tools/weft/train/corpus.h"
#include "tools/weft/train/interrupts.h"
#include "tools/weft/train/plot.h"
#include "tools/weft/train/progress.h"
#include "tools/weft/train/run_folder.h"
#include "tools/weft/train/train_options.h"
#include "tools/weft/train/trainer.h"
#include "weft/io.h"

namespace weft::tool {

namespace {

std::string config_text(const std::string& path) {
  try {
    return read_text(path);
  } catch (const std::runtime_error& e) {
    throw UsageError(fmt::format("--config: {}", e.what()));
  }
}

/// Takes the options of the checkpoint that the command line does not set. A new learning rate changes min_lr too.
void take_stored_gpt_options(TrainOptions& o, OptionSet& set, const Checkpoint& from) {
  TrainOptions stored;
  const bool new_lr = set.given("lr") && !set.given("min-lr");
  const double lr = o.lr;
  take_stored_options(train_option_set(stored), set, from);
  if (new_lr) o.min_lr = stored.min_lr == stored.lr / 10 ? lr / 10 : std::min(stored.min_lr, lr);
  if (o.steps < from.state.step)
    throw UsageError(fmt::format(
        "--steps {} is less than the steps of the checkpoint {}, which has done {}: --steps counts from the first step",
        o.steps, from.folder, from.state.step));
}

std::vector<Series> curves(const RunState& state) {
  std::vector<Series> out{{"training loss", {}}, {"validation loss", {}}};
  for (const auto& [step, loss] : state.losses) out[0].points.emplace_back(static_cast<double>(step), loss);
  for (const auto& [step, loss] : state.val_losses) out[1].points.emplace_back(static_cast<double>(step), loss);
  return out;
}

void describe(Progress& progress, Trainer& trainer, const TrainOptions& o) {
  progress.note(fmt::format("{}: {} tokens of {} kinds to learn from, {} to validate on", o.data,
                            trainer.split().train.size(), trainer.model().vocab(), trainer.split().validation.size()));
  progress.note(fmt::format("{} with {} parameters ({} layers, {} heads, width {}, context {}, {}); {}",
                            o.arch == "llama" ? "Llama" : "GPT", trainer.model().num_parameters(), o.layers, o.heads,
                            o.width, o.context, o.dtype, machine_text()));
  if (trainer.step() > 0) progress.note(fmt::format("going on after step {}", trainer.step()));
}

/// Throws where weights, gradients and the optimizer's state do not fit in memory, before the system kills the process
/// in the first step.
void check_memory(Trainer& trainer) {
  const double need = trainer.least_bytes(), have = machine_memory();
  if (have > 0 && need > have)
    throw UsageError(
        fmt::format("a model of {} parameters needs at least {:.0f} GiB to train, and there are {:.0f} GiB to compute "
                    "in ({}): take fewer --layers or a smaller --width",
                    trainer.model().num_parameters(), need / (1 << 30), have / (1 << 30), machine_text()));
}

/// Writes the curve to a file, and to the terminal where stdout is one.
void show_result(Progress& progress, const Trainer& trainer, const TrainOptions& o, bool complete) {
  if (trainer.step() == 0) return progress.note("the initial weights are in " + o.out);
  const auto series = curves(trainer.state());
  io::write_file_atomically(o.out + "/loss.svg", svg_plot(series, {"Loss of " + o.data, "step", "nats per token"}));
  if (o.json) return;
  progress.note("\n" + terminal_plot(series, std::min(terminal_columns(stdout), 100), 14, terminal_is_utf8()));
  if (complete)
    progress.note(fmt::format(
        "validation loss {:.4f} after {} steps\nthe model and loss.svg are in {}; it writes with: weft sample {}",
        trainer.state().val_losses.back().second, trainer.step(), o.out, o.out));
}

int train(TrainOptions& o, OptionSet& set) {
  if (!o.config.empty()) set.set_json(config_text(o.config), o.config);
  std::optional<Checkpoint> from;
  if (!o.resume.empty()) {
    from = load_checkpoint(o.resume);
    if (from->state.kind != "gpt")
      throw UsageError(fmt::format("{0} holds a run of `weft train {1}`: resume it by `weft train {1} --resume {0}`",
                                   o.resume, from->state.kind));
    take_stored_gpt_options(o, set, *from);
  }
  complete(o, set);
  if (o.data.empty()) throw UsageError("--data FILE is needed: a text to learn from");
  o.out = folder_to_write(o.out, from);
  if (from && from->state.step == o.steps) {
    fmt::print(stderr, "weft: {} has done all its {} steps; a larger --steps resumes it\n", o.resume, o.steps);
    return 0;
  }
  apply(o.machine);
  const std::string text = read_text(o.data);
  const bool replaces = check_output(o.out, o.overwrite, from, "gpt");
  auto trainer = from ? std::make_unique<Trainer>(o, text, *from) : std::make_unique<Trainer>(o, text);
  check_memory(*trainer);
  if (replaces) remove_checkpoints(o.out);
  io::write_file_atomically(o.out + "/config.json", trainer->state().options + "\n");
  trainer->tokenizer().save(o.out + "/tokenizer.json");

  Progress progress(progress_style(stdout, o.json), stdout, trainer->step(), o.steps,
                    std::max<int64_t>(o.steps / 20, 1));
  describe(progress, *trainer, o);
  const Interrupts interrupts;
  Trainer::Hooks hooks;
  hooks.report = [&](const StepReport& report) { progress.step(report); };
  hooks.stop = [] { return Interrupts::seen(); };
  const bool complete_run = trainer->run(hooks);
  progress.finish();
  show_result(progress, *trainer, o, complete_run);
  if (!complete_run)
    progress.note(fmt::format("stopped after step {} of {}, all saved; resume with: weft train gpt --resume {}",
                              trainer->step(), o.steps, o.out));
  return 0;
}

}  // namespace

Command train_gpt_command() {
  auto options = std::make_shared<TrainOptions>();
  return {"train gpt", "Trains a GPT on a text file",
          "weft train gpt --data shakespeare.txt --out shakespeare --steps 2000", train_option_set(*options),
          [options](OptionSet& set) { return traced(options->trace, [&] { return train(*options, set); }); }};
}

}  // namespace weft::tool
