// The child's side of trials: compiles, runs and compares.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "base/error.h"
#include "compiler/tune/bench.h"
#include "compiler/tune/trial.h"
#include "kernel/interpret.h"

namespace weft::compiler {
namespace {

// What the interpreter does in a second or two.
constexpr double most_interpreted_work = 4e6;
constexpr int64_t most_interpreted_bytes = int64_t{4} << 20;

using Results = std::vector<std::vector<char>>;

double operations_and_bytes(const graph::KernelProgram& p) {
  return p.work.operations + p.work.products + p.work.moved;
}

/// Returns a message as one line.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

class Trials {
 public:
  Trials(const TrialRequest& request, target::Target& target, const std::function<void(const std::string&)>& say)
      : request_(request), target_(target), say_(say), programs_(request.order.programs),
        item_(item_of(programs_, request.order.resets)), bench_(item_, target.device()), code_(programs_.size()) {}

  void run() {
    compile();
    if (request_.reference >= 0 && !try_one(static_cast<size_t>(request_.reference))) return;
    for (size_t k = 0; k < programs_.size(); ++k)
      if (request_.wanted[k] && code_[k] && static_cast<int>(k) != request_.reference && !try_one(k)) return;
    say_("done");
  }

 private:
  bool needed(size_t k) const { return request_.wanted[k] || static_cast<int>(k) == request_.reference; }

  /// Compiles all programs, several at a time.
  void compile() {
    std::atomic<size_t> next = 0;
    const auto work = [&] {
      for (size_t k = next++; k < programs_.size(); k = next++)
        if (needed(k)) compile(k);
    };
    std::vector<std::thread> threads;
    for (int k = 1; k < request_.compilers; ++k) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
  }

  void compile(size_t k) {
    say(fmt::format("compiling {}", k));
    try {
      code_[k] = target_.compile(std::span(&programs_[k]->kernel, 1))[0];
      say(fmt::format("compiled {} {}", k, one_line(target_.objection(programs_[k]->kernel))));
    } catch (const std::exception& e) {
      code_[k] = nullptr;
      say(fmt::format("fails {} {}", k, one_line(e.what())));
    }
  }

  void say(const std::string& line) {
    const std::lock_guard lock(mutex_);
    say_(line);
  }

  bool interpreted(size_t k) const {
    int64_t bytes = 0;
    for (const auto& [node, b] : item_.buffers) bytes += b.used;
    return request_.interprets && operations_and_bytes(*programs_[k]) <= most_interpreted_work &&
           bytes <= most_interpreted_bytes;
  }

  /// Returns what the interpreter computes of the data that the bench has.
  Results interpret(size_t k) const {
    std::vector<std::vector<char>> memory;
    std::vector<kernel::HostBuffer> buffers;
    for (const auto& [node, b] : item_.buffers) memory.push_back(bench_.contents(node));
    size_t at = 0;
    for (const auto& [node, b] : item_.buffers) buffers.push_back({memory[at++].data(), b.used / b.dtype.size()});
    const std::vector<int64_t> bounds = graph::bounds_of(*programs_[k]);
    kernel::interpret(programs_[k]->kernel, buffers, bounds, graph::programs_at(*programs_[k], bounds));
    Results out;
    at = 0;
    for (const auto& [node, b] : item_.buffers) {
      if (b.written) out.push_back(std::move(memory[at]));
      ++at;
    }
    return out;
  }

  Results run(size_t k) {
    bench_.fill(positive_);
    bench_.run(item_.candidates[k], code_[k].get());
    return bench_.results();
  }

  /// Tries a program; returns false where the device may be broken, and no other one can be tried in this process.
  bool try_one(size_t k) {
    bench_.fill(positive_);
    std::optional<Results> by_interpreter;
    if (interpreted(k)) {
      say(fmt::format("interpreting {}", k));
      try {
        by_interpreter = interpret(k);
      } catch (const std::exception& e) {
        say(fmt::format("fails {} the interpreter: {}", k, one_line(e.what())));
        return true;
      }
    }
    say(fmt::format("running {}", k));
    try {
      Results got = run(k);
      // Of logarithms and roots nothing is left where half of the data is negative.
      if (reference_ < 0 && !positive_ && !bench_.mostly_finite(got)) {
        positive_ = true;
        return try_one(k);
      }
      judge(k, std::move(got), by_interpreter);
    } catch (const std::exception& e) {
      say(fmt::format("fails {} {}", k, one_line(e.what())));
      return !target_.device();
    }
    return true;
  }

  void judge(size_t k, Results got, const std::optional<Results>& by_interpreter) {
    if (by_interpreter && !bench_.agree(*by_interpreter, got, false))
      return say(fmt::format("fails {} computes something else than the interpreter", k));
    if (reference_ >= 0 && !bench_.agree(expected_, got, false))
      return say(fmt::format("differs {} {}", k, reference_));
    if (reference_ < 0) reference_ = static_cast<int>(k), expected_ = std::move(got);
    say(fmt::format("works {}", k));
  }

  const TrialRequest& request_;
  target::Target& target_;
  const std::function<void(const std::string&)>& say_;
  const std::vector<std::shared_ptr<const graph::KernelProgram>>& programs_;
  TuneItem item_;
  TuneBench bench_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const target::Executable>> code_;
  bool positive_ = false;
  int reference_ = -1;
  Results expected_;
};

TuneBuffer buffer_of(const graph::KernelArray& array) {
  TuneBuffer b;
  b.dtype = array.type.dtype;
  b.bytes = b.used = num_elements(array.type.shape) * array.type.dtype.size();
  b.written = array.use != graph::KernelUse::in;
  b.updated = array.use == graph::KernelUse::in_out;
  return b;
}

}  // namespace

TuneItem item_of(const std::vector<std::shared_ptr<const graph::KernelProgram>>& programs,
                 const std::vector<graph::KernelReset>& resets, const std::optional<std::vector<size_t>>& restored) {
  TuneItem item;
  item.name = "kernel " + programs[0]->kernel.name;
  item.equals = item.rotates = true;
  std::vector<NodeId> nodes;
  for (size_t k = 0; k < programs[0]->arrays.size(); ++k) {
    nodes.push_back(static_cast<NodeId>(k));
    TuneBuffer b = buffer_of(programs[0]->arrays[k]);
    if (restored) b.updated = b.updated && std::find(restored->begin(), restored->end(), k) != restored->end();
    for (const graph::KernelReset& reset : resets)
      if (reset.array == k) b.constant = reset.value, b.updated = b.written;
    item.buffers[nodes.back()] = b;
  }
  for (const auto& program : programs) {
    Lowered code{program->kernel, nodes,          {},
                 program->grid,   program->count, program->work.operations + program->work.products};
    for (const Symbol* s : program->symbols) code.symbols.push_back({0, s});
    for (const auto& [node, b] : item.buffers) code.work += static_cast<double>(b.bytes);
    item.candidates.push_back({{}, std::make_shared<const Lowered>(std::move(code)), nodes, nullptr, {}, false});
  }
  return item;
}

void run_trials(const TrialRequest& request, target::Target& target,
                const std::function<void(const std::string&)>& say) {
  Trials(request, target, say).run();
}

}  // namespace weft::compiler
