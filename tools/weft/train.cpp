// weft train gpt: options, folder and text checked; then the loop, with its reports, its curve, and its two ways to stop.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>

#include "checkpoint.h"
#include "command.h"
#include "corpus.h"
#include "plot.h"
#include "progress.h"
#include "runtime/threads.h"
#include "train_options.h"
#include "trainer.h"
#include "weft/io.h"

namespace weft::tool {

namespace {

volatile std::sig_atomic_t interrupted = 0;

/// Ctrl-C and SIGTERM end the run after the step; a second one ends it at once.
class Interrupts {
 public:
  Interrupts() {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = 1; };
    action.sa_flags = SA_RESETHAND | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &before_int_);
    sigaction(SIGTERM, &action, &before_term_);
  }
  ~Interrupts() {
    sigaction(SIGINT, &before_int_, nullptr);
    sigaction(SIGTERM, &before_term_, nullptr);
  }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

 private:
  struct sigaction before_int_ {
  }, before_term_{};
};

std::string config_text(const std::string& path) {
  try {
    return read_text(path);
  } catch (const std::runtime_error& e) {
    throw UsageError(fmt::format("--config: {}", e.what()));
  }
}

/// The resumed run's own options, under what this command line gives. What the checkpoint was made with and cannot change is held against
/// it.
void take_stored_options(TrainOptions& o, OptionSet& set, const Checkpoint& from) {
  TrainOptions stored;
  OptionSet stored_set = train_option_set(stored);
  stored_set.set_json(from.state.options, from.folder + "/state.json");
  for (const auto& option : set.all())
    if (option.fixed && option.given && option.text() != stored_set.find(option.name).text())
      throw UsageError(fmt::format("{} {} contradicts the checkpoint {}, which has {}: leave it out, or start a new run without --resume",
                                   option.shown(), option.text(), from.folder, stored_set.find(option.name).text()));
  // A learning rate or a number of steps that changes takes what depends on it along.
  const bool new_lr = set.given("lr") && !set.given("min-lr");
  const double min_lr = stored.min_lr == stored.lr / 10 ? o.lr / 10 : std::min(stored.min_lr, o.lr);
  set.set_json(from.state.options, from.folder + "/state.json");
  if (new_lr) o.min_lr = min_lr;
  if (o.steps < from.state.step)
    throw UsageError(fmt::format("--steps {} is behind the checkpoint {}, which has done {}: --steps counts from the very beginning",
                                 o.steps, from.folder, from.state.step));
}

std::string folder_to_write(const TrainOptions& o, const std::optional<Checkpoint>& from) {
  if (!o.out.empty()) return o.out;
  if (!from) return "out";
  return from->run_folder();
}

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

/// Whether the folder can take this run; true where an old one in it must go first.
bool check_output(const TrainOptions& o, const std::optional<Checkpoint>& from) {
  const bool goes_on = from && same_folder(from->run_folder(), o.out);
  const bool occupied = !goes_on && has_checkpoint(o.out);
  if (occupied && !o.overwrite)
    throw UsageError(fmt::format(
        "{0} holds a run already: go on with it by `weft train gpt --resume {0}`, choose another folder with --out, or give --overwrite",
        o.out));
  prepare_folder(o.out);
  return occupied;
}

std::vector<Series> curves(const RunState& state) {
  std::vector<Series> out{{"training loss", {}}, {"validation loss", {}}};
  for (const auto& [step, loss] : state.losses) out[0].points.emplace_back(static_cast<double>(step), loss);
  for (const auto& [step, loss] : state.val_losses) out[1].points.emplace_back(static_cast<double>(step), loss);
  return out;
}

void describe(Progress& progress, Trainer& trainer, const TrainOptions& o) {
  const auto& c = trainer.model().config;
  progress.note(fmt::format("{}: {} tokens of {} kinds to learn from, {} to validate on", o.data, trainer.split().train.size(), c.vocab,
                            trainer.split().validation.size()));
  progress.note(fmt::format("GPT with {} parameters ({} layers, {} heads, width {}, context {}, {}); {} threads",
                            trainer.model().num_parameters(), c.layers, c.heads, c.width, c.context, o.dtype, runtime::num_threads()));
  if (trainer.step() > 0) progress.note(fmt::format("going on after step {}", trainer.step()));
}

/// Weights, gradients and AdamW's two moments must fit; better to say so now than to be killed by the system in the first step.
void check_memory(Trainer& trainer) {
  const double need = 16.0 * static_cast<double>(trainer.model().num_parameters());
  const double have = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (have > 0 && need > have)
    throw UsageError(
        fmt::format("a model of {} parameters needs at least {:.0f} GiB to train, and this machine has {:.0f} GiB: take fewer --layers or "
                    "a smaller --width",
                    trainer.model().num_parameters(), need / (1 << 30), have / (1 << 30)));
}

/// The curve as a file, and where people look on, in the terminal.
void show_result(Progress& progress, const Trainer& trainer, const TrainOptions& o, bool complete) {
  if (trainer.step() == 0) return progress.note("the initial weights are in " + o.out);
  const auto series = curves(trainer.state());
  io::write_file_atomically(o.out + "/loss.svg", svg_plot(series, {"Loss of " + o.data, "step", "nats per token"}));
  if (o.json) return;
  progress.note("\n" + terminal_plot(series, std::min(terminal_columns(stdout), 100), 14, terminal_is_utf8()));
  if (complete)
    progress.note(fmt::format("validation loss {:.4f} after {} steps\nthe model and loss.svg are in {}; it writes with: weft sample {}",
                              trainer.state().val_losses.back().second, trainer.step(), o.out, o.out));
}

int train(TrainOptions& o, OptionSet& set) {
  if (!o.config.empty()) set.set_json(config_text(o.config), o.config);
  std::optional<Checkpoint> from;
  if (!o.resume.empty()) {
    from = load_checkpoint(o.resume);
    take_stored_options(o, set, *from);
  }
  complete(o, set);
  if (o.data.empty()) throw UsageError("--data FILE is needed: a text to learn from");
  o.out = without_slash(folder_to_write(o, from));
  if (from && from->state.step == o.steps) {
    fmt::print(stderr, "weft: {} has done all its {} steps; a larger --steps goes on\n", o.resume, o.steps);
    return 0;
  }
  apply_machine_options(o.threads, o.no_libraries, o.isa);
  const std::string text = read_text(o.data);
  const bool replaces = check_output(o, from);
  auto trainer = from ? std::make_unique<Trainer>(o, text, *from) : std::make_unique<Trainer>(o, text);
  check_memory(*trainer);
  if (replaces) remove_checkpoints(o.out);
  io::write_file_atomically(o.out + "/config.json", trainer->state().options + "\n");
  trainer->tokenizer().save(o.out + "/tokenizer.json");

  Progress progress(progress_style(stdout, o.json), stdout, trainer->step(), o.steps, std::max<int64_t>(o.steps / 20, 1));
  describe(progress, *trainer, o);
  const Interrupts interrupts;
  Trainer::Hooks hooks;
  hooks.report = [&](const StepReport& report) { progress.step(report); };
  hooks.stop = [] { return interrupted != 0; };
  const bool complete_run = trainer->run(hooks);
  progress.finish();
  show_result(progress, *trainer, o, complete_run);
  if (!complete_run)
    progress.note(
        fmt::format("stopped after step {} of {}, all saved; go on with: weft train gpt --resume {}", trainer->step(), o.steps, o.out));
  return 0;
}

}  // namespace

Command train_gpt_command() {
  auto options = std::make_shared<TrainOptions>();
  return {"train gpt", "Trains a GPT on a text file", "weft train gpt --data shakespeare.txt --out shakespeare --steps 2000",
          train_option_set(*options), [options](OptionSet& set) { return train(*options, set); }};
}

}  // namespace weft::tool
