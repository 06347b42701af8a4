// The debugger: an observer of the interpreter that knows when to stop, and what there is to see.
#include "weft/kernel/debug.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "kernel/interpreter/observer.h"
#include "kernel/language/debug_values.h"
#include "kernel/language/trace.h"
#include "kernel/op_info.h"
#include "kernel/rules.h"

namespace weft::k {

using kernel::Frame;
using kernel::Inst;
using kernel::Moment;
using kernel::Op;

struct Stop::State {
  const Program::Data& program;
  std::span<const int64_t> extents;  // of run time, in the order of the program's symbols
  Debugger debugger;
  detail::Scene scene() const { return {program, extents, *moment}; }
  const Moment* moment = nullptr;
  std::string reason = {};
};

namespace {

Line line_of(const kernel::Kernel& kernel, const Inst& inst) {
  const kernel::SourceLine& line = kernel.lines[static_cast<size_t>(inst.line)];
  return {line.file, line.line};
}

/// Returns whether a path ends in a file's name, or in the end of a path.
bool names_file(std::string_view path, std::string_view file) {
  if (!path.ends_with(file)) return false;
  return file.size() == path.size() || file.empty() || path[path.size() - file.size() - 1] == '/';
}

/// Returns whether an instruction is tried again until it succeeds.
bool waits(Op op) { return op == Op::await || kernel::waits_for_programs(op); }

class Session : public kernel::Observer {
 public:
  explicit Session(Stop::State& state) : state_(state) {}

  void before(const Moment& m) override {
    Position& last = last_[{m.program, m.agent}];
    const Frame& top = m.frames.back();
    const Position now{m.inst.line, top.block, top.next, &m.inst};
    previous_ = last.inst;
    const bool again = now.block == last.block && (waits(m.inst.op) ? now.next < last.next : now.next <= last.next);
    const bool repeated = now.block == last.block && now.next == last.next && waits(m.inst.op);
    const bool arrives = m.inst.line > 0 && (now.line != last.line || again);
    last = now;
    state_.moment = &m;
    if (const std::string reason = repeated ? "" : reason_of(m, arrives); !reason.empty()) stop(m, reason);
    state_.moment = nullptr;
  }

  void fault(const Moment& m, const std::string& message) override {
    state_.moment = &m;
    state_.reason = message;
    Stop here(state_);
    if (state_.debugger.stopped) state_.debugger.stopped(here);
    state_.moment = nullptr;
  }

 private:
  struct Position {
    int32_t line = 0;
    const kernel::Block* block = nullptr;
    size_t next = 0;
    const Inst* inst = nullptr;
  };
  /// A step that was asked for, and where from.
  struct Step {
    Go go = Go::on;
    int64_t program = 0;
    kernel::Agent agent = 0;
    size_t depth = 0;
  };

  /// Returns why the kernel stops before an instruction; empty where it does not.
  std::string reason_of(const Moment& m, bool arrives) {
    if (state_.debugger.at_begin && m.inst.line > 0) {
      state_.debugger.at_begin = false;
      return "begin";
    }
    const bool fresh = m.inst.line > 0 && begun_.insert({m.program, m.agent}).second;
    for (size_t k = 0; k < state_.debugger.breakpoints.size(); ++k)
      if (holds(state_.debugger.breakpoints[k], m, arrives, fresh)) return fmt::format("breakpoint {}", k + 1);
    const bool own = step_.program == m.program && step_.agent == m.agent;
    const size_t depth = m.frames.size();
    if (step_.go == Go::on || !own) return "";
    const bool ends = step_.go == Go::instruction || (step_.go == Go::line && arrives) ||
                      (step_.go == Go::over && arrives && depth <= step_.depth) ||
                      (step_.go == Go::out && depth < step_.depth);
    return ends ? "step" : "";
  }

  bool holds(const Breakpoint& b, const Moment& m, bool arrives, bool fresh) {
    const Line at = line_of(m.kernel, m.inst);
    if ((b.program >= 0 && b.program != m.program) || !names_file(at.file, b.file)) return false;
    if (b.value.empty() ? !arrives || (b.line > 0 ? b.line != at.number : !fresh) : !computed_before(b.value))
      return false;
    const Stop here(state_);
    return !b.when || b.when(here);
  }

  /// Returns whether the instruction before this one computed a value of the name.
  bool computed_before(const std::string& name) const {
    return previous_ && std::any_of(state_.program.names.begin(), state_.program.names.end(), [&](const NamedValue& n) {
             const std::vector<kernel::Value>& results = previous_->results;
             return n.name == name && std::find(results.begin(), results.end(), n.value) != results.end();
           });
  }

  void stop(const Moment& m, const std::string& reason) {
    state_.reason = reason;
    Stop here(state_);
    const Go go = state_.debugger.stopped ? state_.debugger.stopped(here) : Go::on;
    if (go == Go::quit) throw_failure("kernel " + m.kernel.name, "the debugger ended the run");
    step_ = {go, m.program, m.agent, m.frames.size()};
  }

  Stop::State& state_;
  std::map<std::pair<int64_t, kernel::Agent>, Position> last_;
  std::set<std::pair<int64_t, kernel::Agent>> begun_;  // programs and roles that came to a line
  Step step_;
  const Inst* previous_ = nullptr;  // of this program and role
};

/// Returns "iteration 3 of a loop to 16 by 1", "condition", ….
std::string frame_text(const Frame& frame) {
  switch (frame.owner->op) {
    case Op::loop:
      if (frame.owner->parallel)
        return fmt::format("iteration {} of {} parallel ones", frame.hi - 1 - frame.i, frame.hi);
      return fmt::format("iteration {} of a loop to {} by {}", frame.i, frame.hi, frame.by);
    case Op::while_loop: return "loop as long as a condition holds";
    case Op::when:
    case Op::branch: return "condition";
    default: return std::string(kernel::info(frame.owner->op).name);
  }
}

}  // namespace

int64_t Stop::program() const { return state_.moment->program; }
int64_t Stop::role() const { return static_cast<int64_t>(state_.moment->agent) - 1; }
Line Stop::at() const { return line_of(state_.moment->kernel, state_.moment->inst); }
const std::string& Stop::reason() const { return state_.reason; }
std::string Stop::instruction() const { return kernel::print_inst(state_.moment->kernel, state_.moment->inst); }
std::vector<Breakpoint>& Stop::breakpoints() const { return state_.debugger.breakpoints; }

std::vector<std::string> Stop::backtrace() const {
  std::vector<std::string> out;
  const Moment& m = *state_.moment;
  for (size_t k = m.frames.size(); k-- > 0;)
    if (m.frames[k].owner)
      out.push_back(
          fmt::format("{} at {}", frame_text(m.frames[k]), kernel::source_line_of(m.kernel, *m.frames[k].owner)));
  return out;
}

std::vector<std::string> Stop::names() const { return detail::names_of(state_.scene()); }

std::string Stop::print(std::string_view what) const {
  return detail::text_of(detail::looked_up(state_.scene(), what));
}

double Stop::number(std::string_view what) const {
  const detail::Looked found = detail::looked_up(state_.scene(), what);
  if (found.elements.size() != 1)
    throw_invalid("debugger", fmt::format("{} has {} elements: give indices of one", what, found.elements.size()));
  return found.elements[0].real();
}

void name_value(std::string_view name, const Any& v, Line at) {
  Trace& t = Trace::current("watch", at, true);
  t.names.push_back({std::string(name), t.value(v, at)});
}

void debug(const Program& program, std::span<void* const> arrays, const Debugger& debugger,
           std::span<const int64_t> extents) {
  const Program::Data& data = program.data();
  const int64_t count = program.programs(extents);
  std::vector<kernel::Ref> results;
  const std::vector<kernel::HostBuffer> buffers = buffers_of(program, arrays, results);
  Stop::State state{data, extents, debugger};
  Session session(state);
  kernel::interpret_observed(data.kernel, buffers, extents, count, results, session);
}

}  // namespace weft::k
