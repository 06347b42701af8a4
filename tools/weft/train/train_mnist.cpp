// weft train mnist: checks options and folder, then runs the loop with its reports and its curve.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "tools/weft/command.h"
#include "tools/weft/explain/trace_file.h"
#include "tools/weft/train/interrupts.h"
#include "tools/weft/train/mnist_trainer.h"
#include "tools/weft/train/plot.h"
#include "tools/weft/train/run_folder.h"
#include "tools/weft/train/train_options.h"
#include "weft/io.h"

namespace weft::tool {

namespace {

void show_result(Progress& progress, const MnistTrainer& trainer, const MnistOptions& o, bool complete) {
  if (trainer.step() == 0) return progress.note("the initial weights are in " + o.out);
  std::vector<Series> series{{"training loss", {}}};
  for (const auto& [step, loss] : trainer.state().losses)
    series[0].points.emplace_back(static_cast<double>(step), loss);
  io::write_file_atomically(
      o.out + "/loss.svg",
      svg_plot(series, {"Loss of " + (o.data.empty() ? "synthetic shapes" : o.data), "step", "nats per image"}));
  if (o.json) return;
  progress.note("\n" + terminal_plot(series, std::min(terminal_columns(stdout), 100), 14, terminal_is_utf8()));
  if (complete)
    progress.note(fmt::format(
        "{:.2f} % of {} test images are classed rightly after {} steps\nthe model and loss.svg are in {}",
        100 * trainer.state().accuracies.back().second, trainer.images().test.size(), trainer.step(), o.out));
}

int train(MnistOptions& o, OptionSet& set) {
  std::optional<Checkpoint> from;
  if (!o.resume.empty()) {
    from = load_checkpoint(o.resume);
    if (from->state.kind != "mnist")
      throw UsageError(
          fmt::format("{} holds a run of `weft train {}`, which that command resumes", o.resume, from->state.kind));
    MnistOptions stored;
    take_stored_options(mnist_option_set(stored), set, *from);
  }
  o.out = folder_to_write(o.out, from);
  apply(o.machine);
  const bool replaces = check_output(o.out, o.overwrite, from, "mnist");
  auto trainer = from ? std::make_unique<MnistTrainer>(o, *from) : std::make_unique<MnistTrainer>(o);
  if (from && trainer->step() >= trainer->steps()) {
    fmt::print(stderr, "weft: {} has done all its {} steps; more --epochs resume it\n", o.resume, trainer->step());
    return 0;
  }
  if (replaces) remove_checkpoints(o.out);
  io::write_file_atomically(o.out + "/config.json", trainer->state().options + "\n");

  Progress progress(progress_style(stdout, o.json), stdout, trainer->step(), trainer->steps(),
                    std::max<int64_t>(trainer->steps() / 20, 1));
  progress.note(fmt::format("{}: {} images to learn from, {} to test on", o.data.empty() ? "synthetic shapes" : o.data,
                            trainer->images().train.size(), trainer->images().test.size()));
  progress.note(
      fmt::format("a convolutional network of {} parameters; {}", trainer->model().num_parameters(), machine_text()));
  const Interrupts interrupts;
  const bool complete = trainer->run(
      {.report = [&](const StepReport& report) { progress.step(report); }, .stop = [] { return Interrupts::seen(); }});
  progress.finish();
  show_result(progress, *trainer, o, complete);
  if (!complete)
    progress.note(fmt::format("stopped after step {} of {}, all saved; resume with: weft train mnist --resume {}",
                              trainer->step(), trainer->steps(), o.out));
  return 0;
}

}  // namespace

Command train_mnist_command() {
  auto options = std::make_shared<MnistOptions>();
  return {"train mnist", "Trains a convolutional network on MNIST",
          "weft train mnist --data mnist --out digits --epochs 5", mnist_option_set(*options),
          [options](OptionSet& set) { return traced(options->trace, [&] { return train(*options, set); }); }};
}

}  // namespace weft::tool
