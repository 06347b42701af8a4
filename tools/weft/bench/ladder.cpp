// weft bench ladder: the rungs of examples/kernels/ladders, each beside what the compiler makes of the same operation,
// with libraries and without, in turns within one run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "array/routines/kernel_stages.h"
#include "compiler/program.h"
#include "examples/kernels/ladders/ladder.h"
#include "kernel/language/trace.h"
#include "target/cuda/inspect.h"
#include "target/machine.h"
#include "tools/weft/bench/support.h"
#include "tools/weft/options.h"
#include "weft/compile.h"
#include "weft/device.h"
#include "weft/ops.h"
#include "weft/transforms.h"

namespace weft::tool {

namespace {

/// One thing that is timed: a rung, or what stands beside the rungs.
struct TimedRung {
  std::string name, dead_end;
  ArrayFunction run;
  int burst = 1;  // calls in a row, so that short ones are measured
  std::vector<double> ms = {};
  bool any_order = false;    // it adds floats in no order
  std::string refused = {};  // why it does not run on this device
  const ladders::Rung* rung = nullptr;
  double difference = 0;  // the largest one from the library's results

  /// Runs it for the first time, which compiles it, and compares what it gives.
  void begin(const std::vector<array>& inputs, const std::vector<array>& wanted, bool cpu_time) {
    try {
      time(inputs, cpu_time);
      const ladders::AnyOrder scope(any_order);
      const std::vector<array> got = run(inputs);
      for (size_t k = 0; k < wanted.size(); ++k) {
        const array apart = abs(astype(got[k], float32) - astype(wanted[k], float32));
        const double worst = max(apart).item<float>();
        difference = worst <= difference ? difference : worst;  // NaN stays
      }
    } catch (const std::invalid_argument& e) {
      refused = e.what();
    }
  }

  void time(const std::vector<array>& inputs, bool cpu_time) {
    const auto runs = [&] {
      for (int i = 0; i < burst; ++i) eval(run(inputs));
      synchronize();
    };
    const ladders::AnyOrder scope(any_order);
    const double seconds = seconds_of(runs, cpu_time);
    ms.push_back(1e3 * seconds / burst);
  }
  double median() {
    std::sort(ms.begin(), ms.end());
    return ms[ms.size() / 2];
  }
};

/// Says what a rung's kernel takes of a GPU, where NVRTC says it.
void add_code(Row& row, const ladders::Rung& rung, const std::vector<array>& inputs) {
  if (!rung.program || !target::cuda::nvrtc_available()) return;
  const ladders::AnyOrder scope(rung.any_order);
  const target::cuda::KernelCode code =
      target::cuda::code_of(rung.program(inputs).data().kernel, target::gpu_of(usual_arch()));
  row.whole("registers", code.usage.registers);
  row.whole("spill_bytes", code.usage.spill_store_bytes);
  row.whole("shared_bytes", code.shared_bytes);
  row.whole("threads", code.threads);
  row.number("occupancy", code.occupancy.share).text("limiter", code.occupancy.limiter);
}

ladders::Scale scale_of(const BenchOptions& o) {
  if (o.sizes.empty()) return default_device().type == Device::gpu ? ladders::Scale::gpu : ladders::Scale::cpu;
  return o.sizes == "gpu" ? ladders::Scale::gpu : o.sizes == "cpu" ? ladders::Scale::cpu : ladders::Scale::check;
}

void time_ladder(const ladders::Entry& entry, const BenchOptions& o) {
  const bool gpu = default_device().type == Device::gpu;
  const ladders::Ladder ladder = entry.make(scale_of(o));
  for (const array& x : ladder.inputs) eval(x);
  std::vector<TimedRung> all{{"the compiler's own", "", compiled_as(ladder.library, ladder.inputs, false)},
                             {"with libraries", "", compiled_as(ladder.library, ladder.inputs, true)}};
  for (const ladders::Rung& rung : ladder.rungs)
    if (!(gpu && rung.host)) {
      all.push_back({rung.name, rung.dead_end, rung.host ? rung.run : compile(rung.run, {})});
      all.back().any_order = rung.any_order, all.back().rung = &rung;
    }
  constexpr double enough = 30;  // milliseconds of a burst
  constexpr double slow = 2000;  // of a rung that is timed once
  const std::vector<array> wanted = ladder.check ? std::vector<array>() : ladder.library(ladder.inputs);
  eval(wanted);
  for (TimedRung& t : all) {
    t.begin(ladder.inputs, wanted, o.cpu_time);
    if (!t.refused.empty()) continue;
    if (t.ms[0] < slow) t.ms.clear(), t.time(ladder.inputs, o.cpu_time);
    t.burst = static_cast<int>(std::clamp(enough / t.ms[0], 1.0, 100.0));
  }
  for (int64_t turn = 0; turn < reps_of(o, 9); ++turn)  // in turns: other work of the machine affects all
    for (TimedRung& t : all)
      if (t.refused.empty() && t.ms[0] < slow) t.time(ladder.inputs, o.cpu_time);
  for (TimedRung& t : all)
    if (t.ms.size() > 1) t.ms.erase(t.ms.begin());
  const double own = all[0].median(), library = all[1].median();
  for (TimedRung& t : all) {
    Row row("ladder_" + ladder.name, o, std::string(dtype_name(ladder.inputs[0].dtype())));
    row.text("rung", t.name);
    if (!t.refused.empty()) {
      row.text("refused", t.refused).print();
      continue;
    }
    const double ms = t.median();
    row.number("ms", ms);
    if (ladder.bytes > 0) row.number("GBps", ladder.bytes / ms / 1e6);
    if (ladder.operations > 0) row.number("gflops", ladder.operations / ms / 1e6);
    row.number("compiler_ms", own).number("of_compiler", own / ms).number("of_library", library / ms);
    if (!wanted.empty()) row.number("difference", t.difference);
    if (gpu && t.rung) add_code(row, *t.rung, ladder.inputs);
    if (!t.dead_end.empty()) row.text("dead_end", t.dead_end);
    row.print();
  }
}

}  // namespace

void bench_ladder(const BenchOptions& o) {
  std::vector<std::string> known{"all"};
  for (const ladders::Entry& e : ladders::all()) known.push_back(e.name);
  if (std::find(known.begin(), known.end(), o.ladder) == known.end()) {
    const std::string near = nearest(o.ladder, known);
    throw UsageError(fmt::format("weft bench ladder needs the name of a ladder, {}{}", fmt::join(known, ", "),
                                 near.empty() ? "" : "; did you mean " + near + "?"));
  }
  for (const ladders::Entry& e : ladders::all())
    if (o.ladder == "all" || o.ladder == e.name) time_ladder(e, o);
}

}  // namespace weft::tool
