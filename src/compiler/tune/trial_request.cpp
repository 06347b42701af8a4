// Requests to the child as text, and the child's main function.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>

#include <fmt/format.h>

#include "base/error.h"
#include "compiler/tune/trial.h"
#include "compiler/tune/trial_child.h"
#include "graph/calls/kernel_text.h"
#include "runtime/threads.h"

namespace weft::compiler {
namespace {

constexpr std::string_view heading = "weft-try 1";  // raise it when the text changes its meaning

[[noreturn]] void refuse(const std::string& what) { throw_invalid("weft-try", what); }

template <class T>
T number(std::istream& in, const std::string& name) {
  std::string word;
  T value{};
  if (!(in >> word >> value) || word != name) refuse("the request has no " + name);
  return value;
}

std::string all_of(int file) {
  std::string text;
  char part[4096];
  for (;;) {
    const ssize_t n = ::read(file, part, sizeof part);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(part, static_cast<size_t>(n));
  }
}

void write_line(int file, std::string line) {
  line += '\n';
  for (size_t at = 0; at < line.size();) {
    const ssize_t n = ::write(file, line.data() + at, line.size() - at);
    if (n < 0 && errno != EINTR) return;
    if (n > 0) at += static_cast<size_t>(n);
  }
}

}  // namespace

std::string text_of(const TrialRequest& r) {
  std::string out = fmt::format("{}\ndevice {}\nthreads {}\ncompilers {}\ninterprets {}\nreference {}\n", heading,
                                r.device, r.threads, r.compilers, int{r.interprets}, r.reference);
  out += fmt::format("resets {}\n", r.order.resets.size());
  for (const graph::KernelReset& reset : r.order.resets)
    out += fmt::format("array {} value {:.17g}\n", reset.array, reset.value);
  out += fmt::format("programs {}\n", r.order.programs.size());
  for (size_t k = 0; k < r.order.programs.size(); ++k) {
    const std::string text = graph::text_of(*r.order.programs[k]);
    out += fmt::format("wanted {} bytes {}\n{}\n", int{r.wanted[k]}, text.size(), text);
  }
  return out;
}

TrialRequest parse_trial_request(const std::string& text) {
  std::istringstream in(text);
  std::string first;
  std::getline(in, first);
  if (first != heading) refuse("this is no request of this version: install weft-try and the library together");
  TrialRequest r;
  r.device = number<int>(in, "device"), r.threads = number<int>(in, "threads");
  r.compilers = number<int>(in, "compilers"), r.interprets = number<int>(in, "interprets") != 0;
  r.reference = number<int>(in, "reference");
  for (size_t left = number<size_t>(in, "resets"); left > 0; --left) {
    const auto array = number<size_t>(in, "array");
    r.order.resets.push_back({array, number<double>(in, "value")});
  }
  for (size_t left = number<size_t>(in, "programs"); left > 0; --left) {
    r.wanted.push_back(number<int>(in, "wanted") != 0);
    std::string kernel(number<size_t>(in, "bytes"), ' ');
    in.get();
    if (!in.read(kernel.data(), static_cast<std::streamsize>(kernel.size()))) refuse("the request ends in a kernel");
    // It comes from the user's own program, which would run its code next.
    r.order.programs.push_back(graph::program_of_text(kernel, graph::CodeInText::taken));
  }
  if (r.order.programs.empty()) refuse("the request has no kernel");
  return r;
}

int run_trials(int request_file, int report_file) {
  const auto say = [&](const std::string& line) { write_line(report_file, line); };
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // who asked is gone: nobody stops a kernel that does not end
  try {
    const TrialRequest request = parse_trial_request(all_of(request_file));
    if (request.threads > 0) runtime::set_num_threads(request.threads);
    target::Target& target = target_of(request.device);
    say("ready");
    run_trials(request, target, say);
    return 0;
  } catch (const std::exception& e) {
    say(std::string("broken ") + e.what());
    return 1;
  }
}

}  // namespace weft::compiler
