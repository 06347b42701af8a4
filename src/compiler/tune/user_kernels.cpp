#include "compiler/tune/user_kernels.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <numeric>
#include <sstream>
#include <thread>

#include <fmt/format.h>

#include "base/error.h"
#include "compiler/schedule/work.h"
#include "compiler/tune/trial.h"
#include "compiler/tune/tune.h"
#include "runtime/cache_dir.h"
#include "runtime/threads.h"
#include "runtime/trace.h"
#include "target/rates.h"

namespace weft::compiler {
namespace {

using graph::KernelCandidate;
using graph::KernelProgram;
using graph::KernelTuning;
using TuneClock = std::chrono::steady_clock;

constexpr const char* kept_kind = "tune-kernel";
constexpr int kept_version = 1;       // raise it when trials or measurements change their meaning
constexpr size_t least_measured = 2;  // whatever the model says
constexpr double longest_wait = 600;  // seconds, for another process that measures
constexpr double most_seconds_of_times = 1;

/// What is known of a configuration.
struct Finding {
  bool works = false;
  double seconds = 0;
  std::string text = {};  // why it does not work, or what is said against it
};

/// Holds the cache folder's lock for measurements, as long as there is a folder, and no longer than can be waited for.
class MeasuringLock {
 public:
  MeasuringLock() {
    const std::string folder = runtime::cache_dir();
    if (folder.empty()) return;
    file_ = ::open((folder + "/measuring.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const auto end = TuneClock::now() + std::chrono::duration<double>(longest_wait);
    while (file_ >= 0 && ::flock(file_, LOCK_EX | LOCK_NB) != 0 && TuneClock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ~MeasuringLock() {
    if (file_ >= 0) ::close(file_);
  }
  MeasuringLock(const MeasuringLock&) = delete;
  MeasuringLock& operator=(const MeasuringLock&) = delete;

 private:
  int file_ = -1;
};

/// Chooses for one kernel.
class KernelTuner {
 public:
  KernelTuner(const KernelProgram& kernel, target::Target& target, const Policy& policy)
      : kernel_(kernel), tuning_(*kernel.tuning), target_(target), policy_(policy),
        findings_(tuning_.candidates.size()), keys_(tuning_.candidates.size()) {
    Hasher all;
    for (size_t k = 0; k < keys_.size(); ++k) {
      keys_[k] = key_of(tuning_.candidates[k]);
      all.digest(keys_[k]);
    }
    choice_key_ = all.number(tuning_.most_measured).finish();
    for (size_t k = 0; k < keys_.size(); ++k)
      if (!tuning_.candidates[k].program) findings_[k] = Finding{false, 0, tuning_.candidates[k].refused};
  }

  ChosenKernel run() {
    if (&target_ == &target::null()) return chosen(ranked()[0], "not measured: the target computes nothing");
    if (const std::optional<size_t> known = recorded()) return chosen(*known, "recorded");
    static auto& one_at_a_time = *new std::mutex;
    const std::lock_guard in_this_process(one_at_a_time);
    const MeasuringLock in_any_process;
    if (const std::optional<size_t> known = recorded()) return chosen(*known, "recorded");
    const runtime::Span span("compiler", "configurations are measured");
    const auto start = TuneClock::now();
    const size_t best = choose();
    record_choice(choice_key_, Variant{{}, tuning_.candidates[best].word});
    ChosenKernel out = chosen(best, figures());
    out.ms = std::chrono::duration<double, std::milli>(TuneClock::now() - start).count();
    return out;
  }

 private:
  std::string where() const {
    return "kernel " + kernel_.kernel.name + (kernel_.where.empty() ? "" : " (" + kernel_.where + ")");
  }

  Digest key_of(const KernelCandidate& c) const {
    Hasher h;
    h.text("configuration").number(kept_version).text(c.word).digest(target_.digest());
    if (c.program) h.digest(graph::shape_free_digest(c.program->kernel, tuning_.keyed));
    for (const int64_t n : tuning_.shape_key) h.number(n);
    for (const graph::KernelReset& r : tuning_.resets) h.number(r.array).number(r.value);
    h.number(policy_.numerics.tf32).number(policy_.numerics.deterministic).number(policy_.libraries);
    return h.number(runtime::num_threads()).finish();
  }

  bool forced() const { return policy_.tuning == Tuning::force; }

  /// Returns the configuration that was chosen before, if it is one of these.
  std::optional<size_t> recorded() const {
    Policy policy = policy_;
    if (policy.tuning == Tuning::off) policy.tuning = Tuning::cached;
    const std::optional<Variant> variant = recorded_choice(choice_key_, policy);
    if (!variant) return {};
    for (size_t k = 0; k < tuning_.candidates.size(); ++k)
      if (tuning_.candidates[k].word == variant->config && tuning_.candidates[k].program) return k;
    return {};
  }

  /// Returns the configurations that were traced, those first that the models call fastest where there is a limit.
  std::vector<size_t> ranked() const {
    std::vector<size_t> order;
    std::vector<double> seconds(tuning_.candidates.size());
    for (size_t k = 0; k < seconds.size(); ++k) {
      const KernelCandidate& c = tuning_.candidates[k];
      if (!c.program) continue;
      order.push_back(k);
      seconds[k] = c.estimate ? *c.estimate : estimated_seconds(*c.program, target_.machine());
    }
    if (tuning_.most_measured > 0)
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return seconds[a] < seconds[b]; });
    return order;
  }

  /// Tries and measures the first ones by rank; where none of them works, the next ones.
  size_t choose() {
    const std::vector<size_t> order = ranked();
    const size_t step =
        tuning_.most_measured > 0 ? std::max(tuning_.most_measured, least_measured) : std::max<size_t>(order.size(), 1);
    for (size_t first = 0; first < order.size(); first += step) {
      const std::vector<size_t> some(order.begin() + static_cast<std::ptrdiff_t>(first),
                                     order.begin() + static_cast<std::ptrdiff_t>(std::min(first + step, order.size())));
      if (const std::optional<size_t> best = choose_among(some)) return *best;
    }
    refuse();
  }

  std::optional<size_t> choose_among(std::vector<size_t> some) {
    std::sort(some.begin(), some.end());
    std::vector<size_t> unknown;
    for (const size_t k : some)
      if (forced() || !read(k)) unknown.push_back(k);
    if (!unknown.empty()) {
      try_out(unknown);
      measure_all(some);
      for (const size_t k : some) keep(k);
    }
    return fastest(some);
  }

  /// Returns the fastest that works; those with an objection only where there is no other.
  std::optional<size_t> fastest(const std::vector<size_t>& some) const {
    std::optional<size_t> best;
    const auto rank = [&](size_t k) { return std::pair(!findings_[k]->text.empty(), findings_[k]->seconds); };
    for (const size_t k : some)
      if (findings_[k]->works && (!best || rank(k) < rank(*best))) best = k;
    return best;
  }

  void try_out(const std::vector<size_t>& some) {
    TrialOrder order{{}, {}, tuning_.resets, tuning_.compile_limit, tuning_.run_limit};
    for (const size_t k : some) {
      order.programs.push_back(tuning_.candidates[k].program);
      order.names.push_back(tuning_.candidates[k].word);
    }
    const std::vector<Trial> trials = try_programs(order, target_, note_);
    for (size_t k = 0; k < some.size(); ++k)
      findings_[some[k]] = Finding{trials[k].works, 0, trials[k].works ? trials[k].objection : trials[k].why};
  }

  /// Times those of `some` that work; those with an objection only where there is no other.
  void measure_all(const std::vector<size_t>& some) {
    std::vector<size_t> timed;
    for (const bool objections : {false, true}) {
      for (const size_t k : some)
        if (findings_[k]->works && (objections || findings_[k]->text.empty())) timed.push_back(k);
      if (!timed.empty()) break;
    }
    if (timed.empty()) return;
    std::vector<std::shared_ptr<const KernelProgram>> programs;
    for (const size_t k : timed) programs.push_back(tuning_.candidates[k].program);
    TuneItem item = item_of(programs, tuning_.resets, tuning_.restored);
    for (size_t k = 0; k < timed.size(); ++k) item.candidates[k].variant.config = tuning_.candidates[timed[k]].word;
    const TuneResult result =
        measure({item}, target_, {most_seconds_of_times, std::max<size_t>(tuning_.repetitions, 1), false})[0];
    if (result.times.empty()) throw_failure("kernel " + kernel_.kernel.name, result.note);
    for (size_t k = 0; k < timed.size(); ++k) {
      Finding& f = *findings_[timed[k]];
      if (result.times[k].dropped.empty()) f.seconds = result.times[k].median;
      else f = {false, 0, result.times[k].dropped};
    }
  }

  /// Reads what is kept of a configuration.
  bool read(size_t k) {
    if (findings_[k]) return true;
    const auto data = runtime::cache_get(kept_kind, keys_[k]);
    if (!data) return false;
    std::istringstream in(std::string(data->begin(), data->end()));
    std::string program, what, text;
    Finding f;
    if (!(in >> program >> what >> f.seconds)) return false;
    std::getline(in >> std::ws, f.text);
    f.works = what == "works";
    if (!f.works && program != tuning_.candidates[k].program->key.hex()) return false;
    findings_[k] = f;
    return true;
  }

  void keep(size_t k) const {
    const Finding& f = *findings_[k];
    const std::string text = fmt::format("{} {} {:.9g} {}", tuning_.candidates[k].program->key.hex(),
                                         f.works ? "works" : "fails", f.seconds, f.text);
    runtime::cache_put(kept_kind, keys_[k], text.data(), text.size());
  }

  std::string said_of(size_t k) const {
    const std::optional<Finding>& f = findings_[k];
    if (!f) return "not measured, by rank";
    if (!f->works) return f->text;
    const std::string time = f->seconds > 0 ? fmt::format("{:.4f} ms", 1e3 * f->seconds) : "not timed";
    return f->text.empty() ? time : time + " (" + f->text + ")";
  }

  std::string figures() const {
    std::string out;
    for (size_t k = 0; k < findings_.size(); ++k)
      out += fmt::format("{}{} {}", k ? ", " : "", tuning_.candidates[k].word, said_of(k));
    return note_.empty() ? out : out + " (" + note_ + ")";
  }

  ChosenKernel chosen(size_t k, const std::string& how) const {
    const KernelCandidate& c = tuning_.candidates[k];
    return {c.program, c.word, fmt::format("{}: {} -> {}", where(), how, c.word)};
  }

  [[noreturn]] void refuse() const {
    std::string text = kernel_.where.empty() ? "" : kernel_.where + ": ";
    text += "no configuration works:";
    for (size_t k = 0; k < findings_.size(); ++k)
      text += fmt::format("\n  {}: {}", tuning_.candidates[k].word, said_of(k));
    throw_invalid("kernel " + kernel_.kernel.name,
                  text +
                      "\ncorrect the kernel, or give it other configurations (what is known is kept; Tuning::force "
                      "tries them again)");
  }

  const KernelProgram& kernel_;
  const KernelTuning& tuning_;
  target::Target& target_;
  const Policy& policy_;
  std::vector<std::optional<Finding>> findings_;  // by configuration
  std::vector<Digest> keys_;
  Digest choice_key_;
  std::string note_;
};

}  // namespace

ChosenKernel choose_configuration(const KernelProgram& kernel, target::Target& target, const Policy& policy) {
  return KernelTuner(kernel, target, policy).run();
}

double estimated_seconds(const KernelProgram& program, const target::Machine& machine) {
  constexpr double cached = 4;  // caches are so many times as fast as memory
  const target::Rates rates = target::stated_rates(machine);
  double arrays = 0;
  for (const graph::KernelArray& a : program.arrays)
    arrays += static_cast<double>(num_elements(a.type.shape) * a.type.dtype.size()) *
              (a.use == graph::KernelUse::in_out ? 2 : 1);
  const double memory = std::max(std::min(arrays, program.work.moved), program.work.moved / cached) / rates.memory();
  const double vector = program.work.operations / rates.vector;
  const double products = program.work.products / rates.peak(arithmetic_of(program.work.operands, program.work.tf32));
  // Programs come in rounds of as many as run at once; the last round is seldom full.
  const double at_once =
      std::max<double>(machine.simt ? static_cast<double>(machine.processors) : runtime::num_threads(), 1);
  const double programs = static_cast<double>(std::max<int64_t>(program.grid, 1));
  const double rounds = std::ceil(programs / at_once) * at_once / programs;
  return std::max({memory, vector, products}) * rounds;
}

}  // namespace weft::compiler
