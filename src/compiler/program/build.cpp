// The Program that the passes (compiler/pipeline.h) leave behind: its code, its runs, its text.
#include "compiler/program/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
#include <set>

#include "base/error.h"
#include "compiler/ir/index_map.h"
#include "compiler/pipeline.h"
#include "compiler/plan/predict.h"
#include "compiler/plan/steps.h"
#include "compiler/program/declined.h"
#include "compiler/program/replay.h"
#include "compiler/program/share_code.h"
#include "compiler/program/step_times.h"
#include "compiler/tune/steps.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "runtime/interrupt.h"
#include "runtime/nvtx.h"
#include "runtime/threads.h"
#include "runtime/trace.h"

namespace weft::compiler {

namespace {

constexpr size_t least_captured_steps = 4;

/// Room for the arguments of a launch.
struct Arguments {
  std::vector<int64_t> values;
  std::vector<void*> pointers;
  std::vector<target::Segment> segments;
};

/// The room that the last run on the thread has left for the next one. A run within another one makes its own.
thread_local Arguments spare_arguments;

class CompiledProgram : public Program {
 public:
  /// `texts`: the groups may be asked for later.
  CompiledProgram(const Source& source, target::Target& target, const Policy& policy, bool texts)
      : shares_code_(policy.share_code), device_(target.device()), machine_(target.machine()) {
    const runtime::Span span("compiler", "build");
    Compilation made = run_passes({source, target, policy}, texts);
    ir_ = std::move(made.ir);
    steps_ = std::move(made.steps);
    passes_ = std::move(made.passes);
    find_updates(source);
    find_symbols();
    if (texts || dumps("schedules"))
      schedules_text_ = schedules_text(
          {ir_, made.grouping, made.ordering.buffer_owner, made.ordering.has_buffer, made.ordering.streamed, target},
          made.tuned.variants, policy);
    if (texts || dumps("groups")) groups_text_ = weft::compiler::print(ir_, made.grouping);
    time("compile", stats_.compile_ms, [&] { begin(target); });
    const auto wait = [&] { wait_for_calls(made, {source, target, policy}); };
    if (device_) time("wait for plans", stats_.wait_ms, wait);
    else wait();
    add_pass_times();
    count();
    host_seconds_ = predicted_host_seconds();
    find_graph_segments();
    for (const char* stage : {"graph", "groups", "schedules", "tune", "kernels", "plan", "passes"})
      if (dumps(stage)) std::cerr << "== " << stage << "\n" << print(stage);
  }

  std::vector<Output> execute(std::span<const graph::Storage* const> inputs,
                              std::span<const int64_t> symbols) const override;
  std::unique_ptr<BoundProgram> bind(std::span<const int64_t> symbols, void* arena) const override;
  int input_of(size_t output) const override {
    const Location& at = steps_.outputs[output].location;
    return at.in == Location::In::input ? at.index : -1;
  }
  bool recordable() const override {
    return std::all_of(steps_.steps.begin(), steps_.steps.end(), [](const Step& s) {
      return s.program ? s.program->recordable() : !s.call || s.call->recordable();
    });
  }
  bool outgrown() const override { return runs_.load(std::memory_order_relaxed) >= most_runs_; }
  double host_seconds() const override { return ran_.load(std::memory_order_relaxed) ? host_seconds_ : INFINITY; }
  const std::vector<const Symbol*>& symbols() const override { return symbols_; }
  const Stats& stats() const override { return stats_; }
  const std::vector<StepInfo>& steps() const override { return infos_; }
  std::vector<Prediction> predict(const target::Rates& rates) const override {
    return weft::compiler::predict(steps_, machine_, rates);
  }
  int64_t number() const override { return number_; }
  std::string print(const std::string& stage) const override;

 private:
  /// One run, or several after each other: where buffers and symbols are found, and room for the arguments of a launch.
  class Runner : public BoundProgram {
   public:
    Runner(const CompiledProgram& program, std::span<const int64_t> symbols, void* arena = nullptr);
    void run() override;
    void run(size_t begin, size_t end);  // of its steps
    void* address(const Location& location) const;
    GraphCache::Key key() const;
    void copy(void* to, const void* from, size_t bytes) const;
    /// From now on the device's times are noted: the number of the turn. They become slices after `run`.
    int64_t note_times();
    void keep_times();
    void swap(Arguments& other) { std::swap(arguments_, other); }

   protected:
    const CompiledProgram& program_;

   private:
    void execute(const Step& step);
    void execute_recorded(size_t k);
    int64_t value(const Symbol* symbol) const;
    runtime::BufferRef arena_;
    void* arena_base_;
    std::vector<int64_t> symbols_;
    Arguments arguments_;
    std::shared_ptr<StepTimes> times_;
  };

  /// Adds the time of `work` to `ms`, and to a timeline.
  template <class Work>
  static void time(const char* stage, double& ms, Work work) {
    const runtime::Span span("compiler", stage);
    const auto start = std::chrono::steady_clock::now();
    work();
    ms += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  /// Steps after each other that are given to a device at once, or one by one.
  struct GraphSegment {
    size_t begin, end;
    std::unique_ptr<GraphCache> graphs;  // of runs that are captured: several steps, and all of them work of the device
  };
  void begin(target::Target& target);
  void begin_kernels(target::Target& target, size_t first);
  void wait_for_calls(const Compilation& made, const PassContext& cx);
  void add_pass_times();
  void find_updates(const Source& source);
  void find_symbols();
  void find_graph_segments();
  void run(Runner& runner, const GraphCache::Key& key, bool at_once) const;
  std::vector<std::vector<size_t>> launches() const;
  void count();
  double predicted_host_seconds() const;
  int64_t runs_until_outgrown() const;
  void check_inputs(size_t inputs, std::span<const int64_t> symbols) const;
  runtime::BufferRef make_arena() const;
  std::string print_plan() const;
  std::string print_after(const std::string& pass) const;

  Ir ir_;
  StepPlan steps_;
  std::vector<PassResult> passes_;
  std::vector<std::shared_ptr<const target::Executable>> executables_;
  std::vector<const Symbol*> symbols_;
  std::vector<StepInfo> infos_;
  std::vector<int> written_inputs_;
  std::vector<int> updated_input_;  // by output: the input in whose storage its next value lies, or -1
  const bool shares_code_;
  int64_t most_runs_ = INT64_MAX;          // of shared code
  mutable std::atomic<int64_t> runs_ = 0;  // counted where code is shared
  runtime::Accelerator* device_;           // whose memory it works on; null: the host's
  const target::Machine machine_;
  std::vector<GraphSegment> graph_segments_;
  GraphCache* arena_ = nullptr;  // whose memory between the steps is, where any of them are captured
  mutable StepTimesRing step_times_;
  mutable std::atomic<bool> ran_ = false;  // libraries have made their choices
  std::string groups_text_, schedules_text_;
  double host_seconds_ = 0;  // of a run after the first one
  Stats stats_;
  int64_t number_ = ++runtime::counters().programs_built;
};

/// A call that waits for the device stands between recordings. What holds programs of its own is given step by step as
/// a whole.
void CompiledProgram::find_graph_segments() {
  const size_t count = steps_.steps.size();
  const bool nests =
      std::any_of(steps_.steps.begin(), steps_.steps.end(), [](const Step& s) { return s.program != nullptr; });
  const auto written = [&](size_t k) {
    return device_ && !nests && (!steps_.steps[k].call || steps_.steps[k].call->recordable());
  };
  for (size_t begin = 0, end = 0; begin < count; begin = end) {
    for (end = begin + 1; end < count && written(end) == written(begin);) ++end;
    graph_segments_.push_back(
        {begin, end, written(begin) && end - begin >= least_captured_steps ? std::make_unique<GraphCache>() : nullptr});
    if (graph_segments_.back().graphs) arena_ = graph_segments_.back().graphs.get();
  }
}

void CompiledProgram::run(Runner& runner, const GraphCache::Key& key, bool at_once) const {
  if (!arena_ || runtime::nvtx::on()) return runner.run();
  for (const GraphSegment& s : graph_segments_) {
    if (s.graphs)
      s.graphs->run(
          *device_, key, [&] { runner.run(s.begin, s.end); }, at_once);
    else runner.run(s.begin, s.end);
  }
}

/// Starts everything that is made in the background: plans of libraries, which take longest, then the code of all
/// kernels.
void CompiledProgram::begin(target::Target& target) {
  begin_calls(steps_);
  begin_kernels(target, 0);
}

/// Starts the code of the kernels from `first` on.
void CompiledProgram::begin_kernels(target::Target& target, size_t first) {
  if (shares_code_ && share_code(steps_, first, target)) most_runs_ = runs_until_outgrown();
  const std::vector<std::vector<size_t>> of_all = launches();
  auto begun = target.begin(std::span(steps_.kernels).subspan(first), std::span(of_all).subspan(first));
  executables_.insert(executables_.end(), begun.begin(), begun.end());
}

/// Waits for the plans of libraries. Other code takes the place of what they decline.
void CompiledProgram::wait_for_calls(const Compilation& made, const PassContext& cx) {
  const size_t known = steps_.kernels.size();
  if (replace_declined(steps_, ir_, made.grouping, made.ordering, cx)) begin_kernels(cx.target, known);
}

void CompiledProgram::add_pass_times() {
  for (const PassResult& r : passes_) {
    if (!r.applied) continue;
    stats_.passes.emplace_back(r.pass->name, r.ms);
    stats_.verify_ms += r.verify_ms;
    const bool groups =
        std::holds_alternative<GroupingPass>(r.pass->run) || std::holds_alternative<OrderingPass>(r.pass->run);
    const bool lowers = std::holds_alternative<TuningPass>(r.pass->run) ||
                        std::holds_alternative<LoweringPass>(r.pass->run) ||
                        std::holds_alternative<PlanPass>(r.pass->run);
    (groups ? stats_.group_ms : lowers ? stats_.lower_ms : stats_.simplify_ms) += r.ms;
  }
  stats_.tune_ms = steps_.tune_ms;
  stats_.lower_ms -= steps_.tune_ms;
}

/// An output that the plan finds in the input which it updates needs no storage of its own in a run. (One that is a
/// view of an input, or another input's value, does.)
void CompiledProgram::find_updates(const Source& source) {
  updated_input_.assign(steps_.outputs.size(), -1);
  for (const Update& u : source.updates) {
    if (!u.optional || input_of(static_cast<size_t>(u.output)) == u.input) written_inputs_.push_back(u.input);
    const OutputPlan& out = steps_.outputs[static_cast<size_t>(u.output)];
    const auto input = static_cast<size_t>(u.input);
    Strides given = input < source.layouts.size() ? source.layouts[input].strides : Strides{};
    if (given.empty()) given = row_major_strides(ir_[ir_.inputs[input]].type.shape);
    if (out.location.in == Location::In::input && out.location.index == u.input && out.location.offset == 0 &&
        out.strides == given)
      updated_input_[static_cast<size_t>(u.output)] = u.input;
  }
}

void CompiledProgram::find_symbols() {
  std::set<const Symbol*> seen;
  for (const Step& step : steps_.steps)
    if (step.program)
      for (const auto& nested : step.program->programs())
        for (const Symbol* s : nested->symbols())
          if (seen.insert(s).second) symbols_.push_back(s);
  const auto find = [&](const Dim& d) {
    if (d.symbol() && seen.insert(d.symbol()).second) symbols_.push_back(d.symbol());
  };
  for (const IrNode& node : ir_.nodes) {
    for (const Dim& d : node.type.shape) find(d);
    if (node.attrs->control) find(node.attrs->control->length);
  }
}

/// Of each kernel: the numbers of segments that its launches have.
std::vector<std::vector<size_t>> CompiledProgram::launches() const {
  std::vector<std::vector<size_t>> out(steps_.kernels.size());
  for (const Step& step : steps_.steps) {
    if (step.kind != Step::Kind::launch) continue;
    std::vector<size_t>& known = out[step.kernel];
    if (std::find(known.begin(), known.end(), step.segments.size()) == known.end())
      known.push_back(step.segments.size());
  }
  return out;
}

void CompiledProgram::count() {
  for (const Step& step : steps_.steps) {
    if (step.kind == Step::Kind::launch) ++stats_.launches;
    if (step.kind == Step::Kind::library) ++stats_.library_calls;
    if (step.kind == Step::Kind::nested) stats_.add_run(step.program->stats());
    if (step.kind == Step::Kind::copy) ++stats_.copies;
    static constexpr const char* kinds[] = {"kernel", "library", "nested", "copy"};
    infos_.push_back({step.name, step.call ? step.call->name() : step.what, kinds[static_cast<int>(step.kind)],
                      static_cast<int>(step.segments.size()), step.cost.bytes, step.cost.flops, step.cost.arithmetic});
  }
  const auto block = [&](int64_t bytes) {
    return bytes == 0 ? 0 : device_ ? static_cast<int64_t>(device_->block_bytes(static_cast<size_t>(bytes))) : bytes;
  };
  stats_.peak_bytes = block(steps_.arena_bytes);
  for (NodeId id : ir_.inputs) stats_.peak_bytes += block(volume(ir_[id].type.shape) * ir_[id].type.dtype.size());
  for (const OutputPlan& out : steps_.outputs) stats_.peak_bytes += out.owns ? block(out.bytes) : 0;
  const std::set<int> written(written_inputs_.begin(), written_inputs_.end());
  for (size_t k = 0; k < steps_.outputs.size(); ++k)
    stats_.shared_results += !steps_.outputs[k].owns && !written.contains(input_of(k));
  stats_.arena_bytes = steps_.arena_bytes;
  stats_.live_bytes = steps_.live_bytes;
}

double CompiledProgram::predicted_host_seconds() const {
  const target::Rates rates = target::stated_rates(machine_);
  const bool known = std::none_of(steps_.steps.begin(), steps_.steps.end(), [](const Step& s) {
    return s.program || (s.call && (s.cost.flops == 0 || !s.call->recordable()));
  });
  if (!known) return INFINITY;
  if (device_) return static_cast<double>(steps_.steps.size()) / rates.launch;
  double seconds = 0;
  for (const Prediction& step : predict(rates)) seconds += step.seconds;
  return seconds;
}

/// Code of a program's own pays once the runs have taken as long as compiling it does.
int64_t CompiledProgram::runs_until_outgrown() const {
  const double compiling = (device_ ? 0.1 : 0.01) * static_cast<double>(steps_.kernels.size());  // seconds
  double seconds = 0;
  for (const Prediction& step : predict(target::stated_rates(machine_))) seconds += step.seconds;
  return static_cast<int64_t>(std::ceil(std::min(compiling / seconds, 1e9)));
}

void CompiledProgram::check_inputs(size_t inputs, std::span<const int64_t> symbols) const {
  if (inputs != ir_.inputs.size())
    throw_invalid("run", fmt::format("the program takes {} inputs, got {}", ir_.inputs.size(), inputs));
  if (symbols.size() != symbols_.size())
    throw_invalid("run", fmt::format("the program has {} dynamic lengths, got {}", symbols_.size(), symbols.size()));
  for (size_t k = 0; k < symbols.size(); ++k)
    if (symbols[k] < 1 || symbols[k] > symbols_[k]->bound)
      throw_invalid("run", fmt::format("length {} is {}, but must lie in 1..{}", symbols_[k]->name, symbols[k],
                                       symbols_[k]->bound));
}

std::vector<Output> CompiledProgram::execute(std::span<const graph::Storage* const> inputs,
                                             std::span<const int64_t> symbols) const {
  check_inputs(inputs.size(), symbols);
  std::unique_lock<std::recursive_mutex> order;
  if (device_) order = std::unique_lock(device_->order());
  Runner runner(*this, symbols);
  runner.swap(spare_arguments);
  for (size_t k = 0; k < inputs.size(); ++k) {
    const graph::Storage& input = *inputs[k];
    char* const data = static_cast<char*>(input.buffer->on(device_));
    runner.inputs[k] = input.offset == 0 ? data : data + input.offset * ir_[ir_.inputs[k]].type.dtype.size();
  }
  std::vector<Output> results(steps_.outputs.size());
  for (size_t k = 0; k < results.size(); ++k)
    if (const OutputPlan& out = steps_.outputs[k]; out.owns) {
      results[k].storage = {runtime::allocate_on(device_, static_cast<size_t>(out.bytes)), 0, out.strides};
      runner.outputs[k] = results[k].storage.buffer->on(device_);
    }
  for (int input : written_inputs_) inputs[static_cast<size_t>(input)]->buffer->overwritten_on(device_);
  const bool timed = device_ && runtime::recording();
  GraphCache::Key key = arena_ || timed ? runner.key() : GraphCache::Key{};
  if (timed) key.push_back(-1 - runner.note_times());
  const runtime::MayEnd may_end(!device_ && written_inputs_.empty());
  run(runner, key, timed && ran_);
  runner.swap(spare_arguments);
  if (timed) runner.keep_times();
  if (!ran_.load(std::memory_order_relaxed)) ran_ = true;
  if (most_runs_ < INT64_MAX) ++runs_;
  ++runtime::counters().programs_run;

  for (size_t k = 0; k < results.size(); ++k) {
    const OutputPlan& out = steps_.outputs[k];
    results[k].input = updated_input_[k];
    if (out.owns || results[k].input >= 0) continue;
    const auto from = static_cast<size_t>(out.location.index);
    if (out.location.in == Location::In::input)
      results[k].storage = {inputs[from]->buffer, inputs[from]->offset, out.strides};
    else results[k].storage = {results[from].storage.buffer, 0, out.strides};
  }
  return results;
}

std::unique_ptr<BoundProgram> CompiledProgram::bind(std::span<const int64_t> symbols, void* arena) const {
  /// Results that the plan finds in an input, or in an earlier result, are copied to where they were asked for.
  class Bound : public Runner {
   public:
    Bound(const CompiledProgram& program, std::span<const int64_t> lengths, void* arena)
        : Runner(program, lengths, arena) {
      for (size_t k = 0; k < program.steps_.outputs.size(); ++k) {
        const OutputPlan& out = program.steps_.outputs[k];
        const graph::Type& type = program.ir_[program.ir_.outputs[k]].type;
        if (!out.owns)
          shared_.push_back({k, out.location, static_cast<size_t>(volume(type.shape) * type.dtype.size())});
      }
    }
    void run() override {
      const bool timed = program_.device_ && runtime::recording();
      if (timed) note_times();
      Runner::run();
      if (timed) keep_times();
      for (const Shared& s : shared_)
        if (const void* from = address(s.location); from != outputs[s.output]) copy(outputs[s.output], from, s.bytes);
    }

   private:
    struct Shared {
      size_t output;
      Location location;
      size_t bytes;
    };
    std::vector<Shared> shared_;
  };
  if (symbols.size() != symbols_.size()) throw_internal("bind", "another number of lengths than the program has");
  return std::make_unique<Bound>(*this, symbols, arena);
}

CompiledProgram::Runner::Runner(const CompiledProgram& program, std::span<const int64_t> symbols, void* arena)
    : program_(program), arena_(arena ? nullptr : program.make_arena()),
      arena_base_(arena_ ? arena_->on(program.device_) : arena), symbols_(symbols.begin(), symbols.end()) {
  inputs.resize(program.ir_.inputs.size());
  outputs.resize(program.steps_.outputs.size());
}

/// Bound programs may run in the middle of others, so their arenas are their own. A captured run needs the arena of the
/// run before; a program that runs once keeps none.
runtime::BufferRef CompiledProgram::make_arena() const {
  if (steps_.arena_bytes == 0) return nullptr;
  if (arena_ && ran_) return arena_->arena(*device_, steps_.arena_bytes);
  return runtime::allocate_on(device_, static_cast<size_t>(steps_.arena_bytes));
}

GraphCache::Key CompiledProgram::Runner::key() const {
  GraphCache::Key key(symbols_.begin(), symbols_.end());
  for (const auto* list : {&inputs, &outputs})
    for (const void* p : *list) key.push_back(reinterpret_cast<int64_t>(p));
  return key;
}

void* CompiledProgram::Runner::address(const Location& location) const {
  void* base = location.in == Location::In::input    ? inputs[static_cast<size_t>(location.index)]
               : location.in == Location::In::output ? outputs[static_cast<size_t>(location.index)]
                                                     : arena_base_;
  return static_cast<char*>(base) + location.offset;
}

int64_t CompiledProgram::Runner::value(const Symbol* symbol) const {
  const auto& all = program_.symbols_;
  return symbols_[static_cast<size_t>(std::find(all.begin(), all.end(), symbol) - all.begin())];
}

void CompiledProgram::Runner::copy(void* to, const void* from, size_t bytes) const {
  if (program_.device_) program_.device_->copy(to, from, bytes);
  else std::memcpy(to, from, bytes);
}

void CompiledProgram::Runner::run() { run(0, program_.steps_.steps.size()); }

void CompiledProgram::Runner::run(size_t begin, size_t end) {
  const runtime::Span span("program", "run");
  if (runtime::recording())
    runtime::record_sample(
        "memory", static_cast<double>(program_.device_ ? program_.device_->memory().active : runtime::active_memory()));
  const runtime::nvtx::Range range([&] { return fmt::format("program {}", program_.number_); });
  if (times_ && begin == 0) times_->note(0);
  for (size_t k = begin; k < end; ++k) {
    const runtime::nvtx::Range step([&] { return label(program_.infos_[k]); });
    if (!program_.device_) runtime::check_interrupt();
    if (runtime::recording() && !program_.device_) execute_recorded(k);
    else execute(program_.steps_.steps[k]);
    if (times_) times_->note(k + 1);
  }
}

int64_t CompiledProgram::Runner::note_times() {
  const StepTimesRing::Slot slot = program_.step_times_.next(*program_.device_, program_.infos_, program_.number_);
  times_ = slot.times;
  return slot.index;
}

void CompiledProgram::Runner::keep_times() {
  runtime::record_later([times = times_, run = times_->given()] { times->settle(run); });
}

void CompiledProgram::Runner::execute_recorded(size_t k) {
  const StepInfo& info = program_.infos_[k];
  const int name = runtime::record_name(label(info));
  struct Launch {
    explicit Launch(int launched) : outer(runtime::set_current_launch(launched)) {}
    ~Launch() { runtime::set_current_launch(outer); }
    int outer;
  } launch(name);
  const double start = runtime::record_time();
  execute(program_.steps_.steps[k]);
  const double length = runtime::record_time() - start;
  runtime::record({.name = name,
                   .kind = info.kind,
                   .start = start,
                   .length = length,
                   .bytes = info.bytes,
                   .flops = info.flops,
                   .arithmetic = info.arithmetic,
                   .program = program_.number_,
                   .step = static_cast<int>(k)});
}

void CompiledProgram::Runner::execute(const Step& step) {
  runtime::Counters& counters = runtime::counters();
  auto& [values, pointers, segments] = arguments_;
  pointers.clear(), values.clear();
  if (step.kind == Step::Kind::copy) {
    copy(address(step.operands[1]), address(step.operands[0]), static_cast<size_t>(step.bytes));
    ++counters.copies;
    return;
  }
  for (const Location& location : step.operands) pointers.push_back(address(location));
  if (step.kind == Step::Kind::nested) {
    const size_t scratch = step.program->scratch_bytes() > 0 ? 1 : 0;
    return step.program->run(std::span(pointers).first(pointers.size() - scratch), scratch ? pointers.back() : nullptr,
                             [this](const Symbol* s) { return value(s); });
  }
  if (step.kind == Step::Kind::library) {
    for (const Symbol* s : step.lengths) values.push_back(value(s));
    step.call->run_with(pointers, values);
    ++counters.library_calls;
    return;
  }
  segments.clear();
  for (const StepSegment& s : step.segments) {
    for (const Location& location : s.buffers) pointers.push_back(address(location));
    for (const SymbolArgument& argument : s.symbols)
      values.push_back(argument.symbol ? value(argument.symbol) : argument.value);
  }
  size_t p = 0, v = 0;
  for (const StepSegment& s : step.segments) {
    const std::span<const int64_t> own(values.data() + v, s.symbols.size());
    const int64_t grid = s.count ? std::clamp<int64_t>(s.count.value(own), 0, s.grid) : s.grid;
    if (grid > 0) segments.push_back({std::span<void* const>(pointers.data() + p, s.buffers.size()), own, grid});
    p += s.buffers.size();
    v += s.symbols.size();
  }
  if (segments.empty()) return;  // lengths for which there are no programs
  program_.executables_[step.kernel]->run(segments, step.work);
  ++counters.kernel_launches;
}

std::string CompiledProgram::print_plan() const {
  std::string text =
      fmt::format("{} launches, {} library calls, {} copies\n", stats_.launches, stats_.library_calls, stats_.copies);
  text += fmt::format("{} nodes; ms: simplify {:.2f}, group {:.2f}, lower {:.2f}, code {:.2f}\n", ir_.size(),
                      stats_.simplify_ms, stats_.group_ms, stats_.lower_ms, stats_.compile_ms);
  return text + weft::compiler::print(steps_);
}

/// Several passes may have the name: their dumps follow each other.
std::string CompiledProgram::print_after(const std::string& pass) const {
  std::string text;
  bool kept = false;
  for (const PassResult& r : passes_) {
    if (pass != r.pass->name) continue;
    kept = kept || !r.applied || !r.text.empty();
    text += r.text;
  }
  if (!kept) throw_invalid("print", "the dump after " + pass + " was not kept: build while a BuildRecord(true) lives");
  return text;
}

std::string CompiledProgram::print(const std::string& stage) const {
  if (stage == "graph") return weft::compiler::print(ir_);
  if (stage == "groups") return groups_text_;
  if (stage == "schedules") return schedules_text_;
  if (stage == "plan") return print_plan();
  if (stage == "tune") return steps_.tuning;
  if (stage == "passes") return print_passes(passes_);
  check_printable(stage, "print");
  if (stage.starts_with("after:")) return print_after(stage.substr(6));
  std::string text;
  for (const kernel::Kernel& k : steps_.kernels) text += kernel::print(k) + "\n";
  return text;
}

}  // namespace

std::shared_ptr<const Program> compile_source(const Source& source, target::Target& target, const Policy& policy,
                                              bool texts) {
  return std::make_shared<CompiledProgram>(source, target, policy, texts);
}

}  // namespace weft::compiler
