#include "compiler/tune/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>
#include <set>
#include <sstream>

#include "base/error.h"
#include "compiler/tune/bench.h"
#include "runtime/cache_dir.h"
#include "runtime/threads.h"
#include "runtime/trace.h"

namespace weft::compiler {

namespace {

using Clock = std::chrono::steady_clock;
using Executables = std::vector<std::shared_ptr<const target::Executable>>;

constexpr std::string_view tuner_version = "2 ";  // raise it when schedules or measurements change their meaning
// A challenger must take less than this share of the rules' time, in the median and at best.
constexpr double margin = 0.95;
constexpr std::string_view config_mark = "config:";
constexpr size_t least_repeats = 3;
constexpr double runs_of_a_candidate = 6;   // including the time to fill and compare, at least
constexpr double hopeless = 1.5;            // times the best first time: slower candidates are not timed again
constexpr size_t kernels_for_a_thread = 2;  // kernels that are compiled before the first of them is measured

struct State {
  std::mutex mutex;      // protects the choices
  std::mutex measuring;  // one measurement at a time
  TuneChoices choices;
  std::set<Digest> measured;  // by this process
  double spent = 0, budget = 1.5;
};
State& state() {
  static auto& s = *new State;
  return s;
}

Digest key_with_threads(const Digest& key) {
  return Hasher().digest(key).text("threads").number(runtime::num_threads()).finish();
}

std::optional<Variant> on_disk(const Digest& key) {
  const auto data = runtime::cache_get("tune", key);
  if (!data) return {};
  const std::string_view text(reinterpret_cast<const char*>(data->data()), data->size());
  if (!text.starts_with(tuner_version)) return {};
  return parse_variant(text.substr(tuner_version.size()));
}

/// Looks up a choice under one exact key.
std::optional<Variant> find(const Digest& key, const Policy& policy) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto known = [&](const TuneChoices& choices) -> std::optional<Variant> {
    const auto it = choices.find(key);
    if (it == choices.end()) return {};
    return parse_variant(it->second);
  };
  std::optional<Variant> found = policy.choices ? known(*policy.choices) : std::nullopt;
  if (!found && policy.tuning != Tuning::off && (policy.tuning != Tuning::force || s.measured.contains(key))) {
    found = known(s.choices);
    if (!found) found = on_disk(key);
  }
  if (found) s.choices[key] = to_string(*found);
  return found;
}

bool same_bits(const TuneItem& item) {
  return std::all_of(item.candidates.begin(), item.candidates.end(),
                     [](const TuneCandidate& c) { return c.same_bits; });
}

/// Returns enough of the first items to give every thread something to compile.
std::span<const TuneItem> some_items(std::span<const TuneItem> items) {
  size_t count = 0, kernels = 0;
  while (count < items.size() && kernels < kernels_for_a_thread * static_cast<size_t>(runtime::num_threads()))
    for (const TuneCandidate& c : items[count++].candidates) kernels += c.code != nullptr;
  return items.first(count);
}

/// Compiles the candidates of all items. The result is null for library calls, and for code that the target cannot
/// compile.
std::vector<Executables> compile(std::span<const TuneItem> items, target::Target& target) {
  std::vector<kernel::Kernel> kernels;
  for (const TuneItem& item : items)
    for (const TuneCandidate& c : item.candidates)
      if (c.code) kernels.push_back(c.code->kernel);
  Executables all;
  try {
    all = target.compile(kernels);
  } catch (const std::exception&) {  // at least one fails: find out which
    for (const kernel::Kernel& k : kernels) try {
        all.push_back(target.compile(std::span<const kernel::Kernel>(&k, 1))[0]);
      } catch (const std::exception&) {
        all.push_back(nullptr);
      }
  }
  std::vector<Executables> by_item;
  size_t next = 0;
  for (const TuneItem& item : items) {
    by_item.emplace_back();
    for (const TuneCandidate& c : item.candidates) by_item.back().push_back(c.code ? all[next++] : nullptr);
  }
  return by_item;
}

/// Measures one item.
class Contest {
 public:
  /// After `deadline`, candidates that have not run yet are not tried, and no more repeats begin.
  Contest(const TuneItem& item, const Executables& executables, const TuneEffort& effort, Clock::time_point deadline,
          runtime::Accelerator* device)
      : item_(item), executables_(executables), effort_(effort), deadline_(deadline), bench_(item, device),
        runners_(item.candidates.size()) {}

  TuneResult run() {
    for (const bool positive : {false, true}) {
      if (!validate(positive))
        return {Variant{}, item_.name + ": the rules' code fails here (" + runners_[0].dropped + ")"};
      if (bench_.mostly_finite(expected_)) break;
    }
    time();
    return decide();
  }

 private:
  struct Runner {
    std::string dropped;  // why
    std::vector<double> seconds;
    double median() const {
      std::vector<double> sorted = seconds;
      std::sort(sorted.begin(), sorted.end());
      return sorted[sorted.size() / 2];
    }
    double least() const { return *std::min_element(seconds.begin(), seconds.end()); }
  };

  /// Runs every candidate once, on fresh data, and drops those that fail or differ. Returns false if the first one
  /// fails.
  bool validate(bool positive) {
    for (size_t k = 0; k < runners_.size(); ++k) try {
        Runner& runner = runners_[k];
        const TuneCandidate& candidate = item_.candidates[k];
        runner.dropped = candidate.code && !executables_[k] ? "does not compile" : "";
        if (k > 0 && Clock::now() > deadline_) runner.dropped = "not tried";
        if (!runner.dropped.empty()) continue;
        bench_.fill(positive);
        bench_.run(candidate, executables_[k].get());
        if (k == 0) expected_ = bench_.results();
        else if (!bench_.agree(expected_, bench_.results(), candidate.same_bits)) runner.dropped = "wrong";
      } catch (const std::exception& e) {
        runners_[k].dropped = e.what();
      }
    return runners_[0].dropped.empty();
  }

  /// Times all candidates in turns. The first repeat decides how many fit into the item's time, and which candidates
  /// are too slow to repeat.
  void time() {
    double best = 1e9;
    size_t repeats = 1;
    const auto start = Clock::now();
    for (size_t r = 0; r < repeats && (r == 0 || Clock::now() < deadline_); ++r) {
      for (size_t k = 0; k < runners_.size(); ++k) {
        if (!runners_[k].dropped.empty() || (k > 0 && r > 0 && runners_[k].least() > hopeless * best)) continue;
        runners_[k].seconds.push_back(bench_.run(item_.candidates[k], executables_[k].get()));
        if (r > 0) continue;
        best = std::min(best, runners_[k].seconds[0]);
      }
      const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
      if (r == 0)
        repeats = std::clamp(static_cast<size_t>(effort_.seconds_of_an_item / std::max(elapsed, 1e-6)),
                             std::min(least_repeats, effort_.most_repeats), effort_.most_repeats);
    }
  }

  /// Returns the winner: the rules' choice, unless another is faster by the margin.
  TuneResult decide() const {
    TuneResult result{item_.equals ? item_.candidates[0].variant : Variant{}, item_.name + ":"};
    double bound = runners_[0].median() * (item_.equals ? 1 : margin);
    const double least =
        item_.equals ? INFINITY : runners_[0].least() * margin;  // the median alone may be disturbed by another process
    for (size_t k = 0; k < runners_.size(); ++k) {
      const Runner& runner = runners_[k];
      const bool timed = runner.dropped.empty();
      result.times.push_back(
          {runner.dropped, timed ? runner.median() : 0, timed ? runner.least() : 0, runner.seconds.size()});
      result.note +=
          fmt::format("{} {} {}", k ? "," : "", to_string(item_.candidates[k].variant),
                      runner.dropped.empty() ? fmt::format("{:.3f} ms", 1e3 * runner.median()) : runner.dropped);
      const bool often = runner.seconds.size() >= std::min(least_repeats, effort_.most_repeats);
      if (k == 0 || !timed || !often || runner.median() >= bound || runner.least() >= least) continue;
      bound = runner.median();
      result.variant = item_.candidates[k].variant;
    }
    result.note += fmt::format(" -> {}", to_string(result.variant));
    return result;
  }

  const TuneItem& item_;
  const Executables& executables_;
  const TuneEffort& effort_;
  Clock::time_point deadline_;
  TuneBench bench_;
  std::vector<Runner> runners_;
  std::vector<std::vector<char>> expected_;
};

TuneResult contest(const TuneItem& item, const Executables& executables, const TuneEffort& effort, double seconds,
                   runtime::Accelerator* device) {
  try {
    const auto time_left =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(seconds, 1e6)));
    return Contest(item, executables, effort, Clock::now() + time_left, device).run();
  } catch (const std::exception& e) {  // no memory for the buffers
    return {Variant{}, item.name + ": not measured: " + e.what()};
  }
}

}  // namespace

std::string to_string(const Variant& variant) {
  if (!variant.config.empty()) return std::string(config_mark) + variant.config;
  return variant.schedule ? to_string(*variant.schedule) : "rules";
}

std::optional<Variant> parse_variant(std::string_view text) {
  if (text == "rules") return Variant{};
  if (text.starts_with(config_mark)) return Variant{{}, std::string(text.substr(config_mark.size()))};
  std::optional<Schedule> schedule = parse_schedule(text);
  return schedule ? std::optional(Variant{std::move(schedule)}) : std::nullopt;
}

std::optional<Variant> recorded_choice(const Digest& key, const Policy& policy) {
  if (const std::optional<Variant> found = find(key, policy)) return found;
  return find(key_with_threads(key), policy);
}

void record_choice(const Digest& key, const Variant& variant) {
  const std::string choice = to_string(variant), entry = std::string(tuner_version) + choice;
  runtime::cache_put("tune", key, entry.data(), entry.size());
  const std::lock_guard lock(state().mutex);
  state().choices[key] = choice;
  state().measured.insert(key);
}

std::vector<TuneResult> measure(const std::vector<TuneItem>& items, target::Target& target, const TuneEffort& effort) {
  const std::lock_guard lock(state().measuring);
  const runtime::Span span("compiler", "measure");
  double& spent = state().spent;
  std::vector<TuneResult> results;
  std::vector<Executables> executables;  // of items from `first` on
  size_t first = 0;
  for (size_t k = 0; k < items.size(); ++k) {
    const TuneItem& item = items[k];
    const auto start = Clock::now();
    const double expected = runs_of_a_candidate * static_cast<double>(item.candidates.size()) * item.seconds;
    if (effort.recorded && (spent >= state().budget || spent + expected > state().budget)) {
      results.push_back({Variant{}, item.name + ": no time left to measure"});
      if (!same_bits(item)) record_choice(item.key, {});
      continue;
    }
    if (k >= first + executables.size()) {  // some items before it may have been skipped
      first = k;
      executables = compile(some_items(std::span(items).subspan(k)), target);
    }
    const double left = effort.recorded ? state().budget - spent : INFINITY;
    results.push_back(contest(item, executables[k - first], effort, left, target.device()));
    if (!effort.recorded) continue;
    record_choice(same_bits(item) ? key_with_threads(item.key) : item.key, results.back().variant);
    spent += std::chrono::duration<double>(Clock::now() - start).count();
  }
  return results;
}

std::string tuning_choices() {
  TuneChoices all;
  {
    const std::lock_guard lock(state().mutex);
    all = state().choices;
  }
  if (const auto& given = default_policy().choices) all.insert(given->begin(), given->end());
  std::string text;
  for (const auto& [key, choice] : all) text += fmt::format("{} {}\n", key.hex(), choice);
  return text;
}

std::shared_ptr<const TuneChoices> parse_tuning_choices(const std::string& text) {
  std::istringstream lines(text);
  auto choices = std::make_shared<TuneChoices>();
  std::string digest, choice;
  while (lines >> digest) {
    if (digest.size() != 32 || digest.find_first_not_of("0123456789abcdef") != std::string::npos ||
        !(lines >> choice) || !parse_variant(choice))
      throw_invalid("parse_tuning_choices",
                    "expected lines of 32 hexadecimal digits and a variant, got \"" + digest.substr(0, 40) + "\"");
    (*choices)[{std::stoull(digest.substr(0, 16), nullptr, 16), std::stoull(digest.substr(16), nullptr, 16)}] = choice;
  }
  return choices;
}

double set_tuning_budget(double seconds) {
  const std::lock_guard lock(state().measuring);
  return std::exchange(state().budget, seconds);
}

void reset_tuning() {
  const std::lock_guard one(state().measuring), other(state().mutex);
  state().choices.clear();
  state().measured.clear();
  state().spent = 0;
}

}  // namespace weft::compiler
