// The parent's side of trials: starts the child, follows what it says, and decides what became of each program.
#include "compiler/tune/trial.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "compiler/tune/trial_lines.h"
#include "runtime/threads.h"

extern char** environ;

namespace weft::compiler {
namespace {

using TrialClock = std::chrono::steady_clock;

constexpr double start_limit = 120;  // seconds until a child is ready: a GPU's context may take long
constexpr int report_file = 3, most_compilers = 8;

/// A file descriptor that is closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int file = -1) : file_(file) {}
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return file_; }
  void reset(int file = -1) {
    if (file_ >= 0) ::close(file_);
    file_ = file;
  }

 private:
  int file_;
};

/// A child: its lines, and its end.
class Child {
 public:
  Child(const std::string& program, const std::string& request) {
    const Descriptor memory(::memfd_create("weft-try", MFD_CLOEXEC));
    int ends[2];
    if (memory.get() < 0 || !write_all(memory.get(), request) || ::pipe2(ends, O_CLOEXEC) != 0) return;
    ::lseek(memory.get(), 0, SEEK_SET);
    lines_.reset(ends[0]);
    const Descriptor pipe(ends[1]), input(moved_up(memory.get())), write_end(moved_up(pipe.get()));
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, input.get(), 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, write_end.get(), report_file);
    std::string name = program;
    char* arguments[] = {name.data(), nullptr};
    if (::posix_spawn(&id_, program.c_str(), &files, nullptr, arguments, environ) != 0) id_ = -1;
    posix_spawn_file_actions_destroy(&files);
  }
  ~Child() { stop(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  bool started() const { return id_ > 0; }

  enum class Next { line, ended, late };
  /// Waits for a line, until the time has come.
  Next next(std::string& line, TrialClock::time_point until) {
    for (;;) {
      if (const size_t end = text_.find('\n'); end != std::string::npos) {
        line = text_.substr(0, end);
        text_.erase(0, end + 1);
        return Next::line;
      }
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - TrialClock::now()).count() + 1;
      if (left <= 0) return Next::late;
      pollfd wait{lines_.get(), POLLIN, 0};
      const int ready = ::poll(&wait, 1, static_cast<int>(std::min<int64_t>(left, 1000)));
      if (ready <= 0) continue;
      char part[4096];
      const ssize_t n = ::read(lines_.get(), part, sizeof part);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return Next::ended;
      text_.append(part, static_cast<size_t>(n));
    }
  }

  /// Waits for the end of the child, and returns how it ended.
  std::string end() {
    if (id_ <= 0) return "";
    int status = 0;
    while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
    id_ = -1;
    return WIFSIGNALED(status) ? fmt::format("ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)))
                               : fmt::format("ended with status {}", WEXITSTATUS(status));
  }
  void stop() {
    if (id_ > 0) ::kill(id_, SIGKILL);
    end();
  }

 private:
  /// Returns the file under a number that no file of the child has, even where this process has no standard input.
  static int moved_up(int file) { return ::fcntl(file, F_DUPFD_CLOEXEC, report_file + 1); }

  static bool write_all(int file, const std::string& text) {
    for (size_t at = 0; at < text.size();) {
      const ssize_t n = ::write(file, text.data() + at, text.size() - at);
      if (n < 0 && errno != EINTR) return false;
      if (n > 0) at += static_cast<size_t>(n);
    }
    return true;
  }

  pid_t id_ = -1;
  Descriptor lines_;
  std::string text_;
};

/// Follows children until something became of every program.
class Attempts {
 public:
  explicit Attempts(TrialRequest request)
      : request_(std::move(request)), found_(request_.order.programs.size()), doing_(found_.size()),
        known_(found_.size()) {}

  /// Returns false where no child could be started.
  bool run(const std::string& program) {
    size_t attempts = 2 * found_.size() + 4;
    while (std::find(known_.begin(), known_.end(), false) != known_.end() && attempts-- > 0) {
      for (size_t k = 0; k < known_.size(); ++k) request_.wanted[k] = !known_[k], doing_[k] = {};
      ready_ = done_ = false;
      if (!follow(program)) return false;
    }
    return true;
  }

  std::vector<Trial> take() {
    for (size_t k = 0; k < known_.size(); ++k)
      if (!known_[k]) fail(k, "was not tried to the end");
    return std::move(found_);
  }

  /// Takes a line of the child.
  void take(const std::string& line) {
    std::istringstream words(line);
    std::string what;
    size_t k = 0;
    words >> what >> k;
    if (what == "ready") ready_ = true;
    if (what == "done") done_ = true;
    if (k >= found_.size()) return;
    std::string rest;
    std::getline(words >> std::ws, rest);
    if (what == "compiling") begin(k, What::compiles);
    if (what == "interpreting") begin(k, What::interpreted);
    if (what == "running") begin(k, What::runs);
    if (what == "compiled") found_[k].objection = rest, doing_[k].what = What::nothing;
    if (what == "works") works(k);
    if (what == "fails") fail(k, rest);
    if (what == "differs") differs(k, rest);
  }

 private:
  enum class What { nothing, compiles, interpreted, runs };
  struct Doing {
    What what = What::nothing;
    TrialClock::time_point since = {};
  };

  void begin(size_t k, What what) { doing_[k] = {what, TrialClock::now()}; }

  void works(size_t k) {
    if (request_.reference < 0) request_.reference = static_cast<int>(k);
    found_[k].works = known_[k] = true;
    doing_[k] = {};
  }
  void fail(size_t k, const std::string& why) {
    if (known_[k] && static_cast<int>(k) != request_.reference) return;
    found_[k] = {false, with_users_lines(why, *request_.order.programs[k])};
    known_[k] = true;
    doing_[k] = {};
    if (static_cast<int>(k) == request_.reference) request_.reference = -1;
  }
  void differs(size_t k, const std::string& from) {
    const auto other = static_cast<size_t>(std::max(std::atoi(from.c_str()), 0));
    fail(k, "computes something else than " + request_.order.names.at(std::min(other, found_.size() - 1)));
  }

  double limit(What what) const {
    if (what == What::compiles) return request_.order.compile_limit;
    return what == What::nothing ? INFINITY : request_.order.run_limit;
  }
  TrialClock::time_point deadline(TrialClock::time_point start) const {
    const auto after = [](TrialClock::time_point from, double seconds) {
      return from + std::chrono::duration_cast<TrialClock::duration>(std::chrono::duration<double>(seconds));
    };
    if (!ready_) return after(start, start_limit);
    auto first = after(TrialClock::now(), 3600);
    for (const Doing& d : doing_)
      if (d.what != What::nothing) first = std::min(first, after(d.since, std::min(limit(d.what), 1e6)));
    return first;
  }

  /// Runs one child to its end; returns false where it could not even begin.
  bool follow(const std::string& program) {
    Child child(program, text_of(request_));
    if (!child.started()) return false;
    const auto start = TrialClock::now();
    for (;;) {
      std::string line;
      switch (child.next(line, deadline(start))) {
        case Child::Next::line: take(line); continue;
        case Child::Next::late: child.stop(); return stopped();
        case Child::Next::ended: return done_ || ended(child.end());
      }
    }
  }

  /// Blames what took longer than its limit. What the interpreter was slow with is run without it.
  bool stopped() {
    if (!ready_) return false;
    for (size_t k = 0; k < doing_.size(); ++k) {
      const What what = doing_[k].what;
      const double took = std::chrono::duration<double>(TrialClock::now() - doing_[k].since).count();
      if (what == What::nothing || took < limit(what)) continue;
      if (what == What::interpreted) request_.interprets = false;
      else if (what == What::compiles) fail(k, fmt::format("is not compiled after {:g} s", limit(what)));
      else fail(k, fmt::format("does not end: it was stopped after {:g} s", limit(what)));
    }
    return true;
  }

  /// Blames what the child did when it ended; of several things at once, none, and has them done one by one.
  bool ended(const std::string& how) {
    if (!ready_) return false;
    std::vector<size_t> busy;
    for (size_t k = 0; k < doing_.size(); ++k)
      if (doing_[k].what != What::nothing) busy.push_back(k);
    if (busy.size() > 1) request_.compilers = 1;
    if (busy.size() != 1) return true;
    const What what = doing_[busy[0]].what;
    fail(busy[0], fmt::format("{}: its process {}", what == What::compiles ? "breaks the compiler" : "crashes", how));
    return true;
  }

  TrialRequest request_;
  std::vector<Trial> found_;
  std::vector<Doing> doing_;
  std::vector<bool> known_;
  bool ready_ = false, done_ = false;
};

std::string& chosen_program() {
  static auto& path = *new std::string;
  return path;
}

/// Returns the number of a target among the devices of this machine: -1 is the CPU; nothing for other targets.
std::optional<int> number_of(target::Target& target) {
  if (&target == &target::cpu()) return -1;
  for (int k = 0; target.device() && k < target::gpu_count(); ++k)
    if (&target == &target_of(k)) return k;
  return {};
}

}  // namespace

std::vector<Trial> try_programs(const TrialOrder& order, target::Target& target, std::string& note) {
  TrialRequest request{order, std::vector<bool>(order.programs.size(), true)};
  request.threads = runtime::num_threads();
  request.compilers = std::min(request.threads, most_compilers);
  const std::optional<int> device = number_of(target);
  const std::string program = trial_program();
  if (device && !program.empty()) {
    request.device = *device;
    Attempts trials(request);
    if (trials.run(program)) return trials.take();
    note = program + " could not be started: configurations were tried in this process";
  } else {
    note = device ? "weft-try is not installed beside the library: configurations were tried in this process"
                  : "the target is no device of this machine: configurations were tried in this process";
  }
  Attempts here(request);
  run_trials(request, target, [&](const std::string& line) { here.take(line); });
  return here.take();
}

std::string trial_program() {
  if (!chosen_program().empty()) return chosen_program();
  Dl_info info;
  if (::dladdr(reinterpret_cast<const void*>(&chosen_program), &info) == 0 || !info.dli_fname) return "";
  std::error_code error;
  std::filesystem::path file = std::filesystem::absolute(info.dli_fname, error);
  if (!std::filesystem::exists(file, error)) file = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path folder = file.parent_path();
  for (const char* where : {"weft-try", "../weft-try", "../bin/weft-try", "../../bin/weft-try"})
    if (const std::filesystem::path path = folder / where; ::access(path.c_str(), X_OK) == 0)
      return path.lexically_normal().string();
  return "";
}

std::string set_trial_program(std::string path) { return std::exchange(chosen_program(), std::move(path)); }

}  // namespace weft::compiler
