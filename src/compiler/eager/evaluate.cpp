// Eager evaluation: the pending graph of some values becomes Programs (looked up by structure), one for each segment on
// a stream. They run, and the values' nodes are materialised. Movement of data becomes views, without a Program.
#include <fmt/format.h>

#include <mutex>
#include <optional>
#include <set>

#include "compiler/eager/pending.h"
#include "compiler/eager/stream_segments.h"
#include "compiler/program.h"
#include "graph/table.h"
#include "runtime/executor.h"

namespace weft::compiler {

namespace {

using Values = std::span<const graph::Value>;

target::Target& target_of_stream(int stream) { return target_of(runtime::executor_device(stream)); }

/// The lock is held while the Program is looked up or built, since the graph must not change meanwhile. It is not held
/// while the Program runs.
Pending collect_locked(Values values, int stream, Unbuilt unbuilt, Keep keep) {
  std::shared_lock lock(graph::structure());
  return collect(values, target_of_stream(stream), unbuilt, keep);
}

/// Computes the values of one segment by one Program. Another evaluation may have computed some of them already.
void compute(Values values, int stream, Keep keep) { finish(collect_locked(values, stream, Unbuilt::build, keep)); }

std::string described(Values wanted, int stream) {
  const graph::Node& node = *wanted[0].node;
  const std::string name(node.op() == graph::Op::composite ? node.attrs().composite->name
                                                           : std::string(graph::row(node.op()).name));
  return fmt::format("{} {}{} on stream {}", name, graph::to_string(node.types()[0]),
                     wanted.size() > 1 ? " and others" : "", stream);
}

/// Does work for the values; its errors name them, since they surface elsewhere.
template <class Work>
auto with_description(Values wanted, int stream, Work work) {
  try {
    return work();
  } catch (const std::exception& e) {
    throw std::runtime_error("[async_eval] " + described(wanted, stream) + " failed: " + e.what());
  }
}

/// The segments of one evaluation, with an event for each: set when its values are ready, or with the error.
struct Work {
  Keep keep;
  std::vector<Segment> segments;
  std::vector<runtime::EventRef> events;
};

/// Waits for the segments that segment k reads, computes it, and sets its event. Errors go to the event and are thrown;
/// with `describe` they name the segment.
void do_segment(const Work& work, size_t k, bool describe) {
  const Segment& segment = work.segments[k];
  runtime::Event& event = *work.events[k];
  const auto computed = [&] { compute(segment.wanted, segment.stream, work.keep); };
  try {
    for (size_t before : segment.after) work.events[before]->wait();
    if (describe) with_description(segment.wanted, segment.stream, computed);
    else computed();
    event.set();
  } catch (...) {
    event.set(std::current_exception());
    throw;
  }
}

std::shared_ptr<Work> work_for(Values values, Keep keep) {
  auto work = std::make_shared<Work>();
  work->keep = keep;
  std::shared_lock lock(graph::structure());
  work->segments = segments(values);
  for (size_t k = 0; k < work->segments.size(); ++k) work->events.push_back(std::make_shared<runtime::Event>());
  return work;
}

std::optional<int> find_only_stream(Values values) {
  std::shared_lock lock(graph::structure());
  return only_stream(values);
}

void wait_for_device(int device) {
  if (device >= 0) target_of(device).device()->synchronize();
}

void evaluate_segments(Values values, Keep keep) {
  const std::shared_ptr<Work> work = work_for(values, keep);
  if (work->segments.empty()) return;
  const size_t last = work->segments.size() - 1;
  for (size_t k = 0; k < last; ++k)
    runtime::executor(work->segments[k].stream).enqueue([work, k] {
      try {
        do_segment(*work, k, false);
      } catch (...) {  // the event holds the error: the caller that waits rethrows it
      }
    });
  runtime::executor(work->segments[last].stream).run([&] { do_segment(*work, last, false); });
  for (const runtime::EventRef& event : work->events) event->wait();
  std::set<int> devices;
  for (const Segment& segment : work->segments) devices.insert(runtime::executor_device(segment.stream));
  for (int device : devices) wait_for_device(device);
}

/// Starts computing values on the stream's executor, which is idle, and returns what is left to do. Where the cost of
/// that is known to be less than of handing it over, nothing is left.
runtime::Executor::Task start(Values values, int stream) {
  return with_description(values, stream, [&]() -> runtime::Executor::Task {
    Pending pending = collect_locked(values, stream, Unbuilt::leave, Keep::held);
    if (pending.built() && is_brief(pending, target_of_stream(stream))) {
      finish(std::move(pending));
      return {};
    }
    return [wanted = graph::Values(values.begin(), values.end()), stream] {
      with_description(wanted, stream, [&] { compute(wanted, stream, Keep::held); });
    };
  });
}

}  // namespace

void evaluate(std::span<const graph::Value> values, Keep keep) {
  const std::optional<int> stream = find_only_stream(values);
  if (!stream) return evaluate_segments(values, keep);
  runtime::executor(*stream).run([&] { compute(values, *stream, keep); });
  wait_for_device(runtime::executor_device(*stream));
}

void evaluate_async(std::span<const graph::Value> values) {
  if (const std::optional<int> stream = find_only_stream(values)) {
    runtime::Executor& executor = runtime::executor(*stream);
    if (executor.start_here([&] { return start(values, *stream); })) return;
    return executor.enqueue([wanted = graph::Values(values.begin(), values.end()), stream = *stream] {
      with_description(wanted, stream, [&] { compute(wanted, stream, Keep::held); });
    });
  }
  const std::shared_ptr<Work> work = work_for(values, Keep::held);
  for (size_t k = 0; k < work->segments.size(); ++k)
    runtime::executor(work->segments[k].stream).enqueue([work, k] { do_segment(*work, k, true); });
}

}  // namespace weft::compiler
