#include "tools/weft/explain/trace_file.h"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "compiler/program.h"
#include "compiler/program/measured_rates.h"
#include "compiler/schedule/cost.h"
#include "weft/io.h"

namespace weft::tool {

namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Properties of a step other than its time.
std::string arguments(const runtime::Slice& s, const target::Rates& rates) {
  if (s.bytes == 0 && s.flops == 0) return "{}";
  const double ns = s.length * 1e3;
  std::string out = fmt::format("{{\"bytes\":{:.0f},\"flops\":{:.0f}", s.bytes, s.flops);
  if (ns > 0)
    out += fmt::format(",\"GB/s\":{:.3f},\"GFLOP/s\":{:.3f},\"fraction of peak\":{:.4f}", s.bytes / ns, s.flops / ns,
                       compiler::floor_seconds(s.bytes, s.flops, s.arithmetic, rates) * 1e9 / ns);
  return out + fmt::format(",\"program\":{},\"step\":{}}}", s.program, s.step);
}

}  // namespace

std::string trace_json(const runtime::Timeline& timeline, const target::Rates& rates) {
  std::string out = fmt::format(
      "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"peaks\":{},\"slices left out\":{}}},\"traceEvents\":[\n",
      quoted(to_string(rates)), timeline.dropped);
  out += "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"weft\"}}";
  const auto to = std::back_inserter(out);
  for (size_t k = 0; k < timeline.threads.size(); ++k)
    fmt::format_to(to, ",\n{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":{},\"args\":{{\"name\":{}}}}}", k,
                   quoted(timeline.threads[k]));
  std::vector<std::string> names;
  for (const std::string& name : timeline.names) names.push_back(quoted(name));
  for (const runtime::Slice& s : timeline.slices)
    fmt::format_to(
        to,
        ",\n{{\"ph\":\"X\",\"name\":{},\"cat\":\"{}\",\"pid\":1,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},\"args\":{}}}",
        names[static_cast<size_t>(s.name)], s.kind, s.thread, s.start, s.length, arguments(s, rates));
  for (const runtime::Sample& s : timeline.samples)
    fmt::format_to(to, ",\n{{\"ph\":\"C\",\"name\":{},\"pid\":1,\"ts\":{:.3f},\"args\":{{\"bytes\":{:.0f}}}}}",
                   quoted(s.track), s.time, s.value);
  return out + "\n]}\n";
}

void add_trace_option(OptionSet& set, std::string& file) {
  set.add("trace", "FILE", &file, "write a timeline of kernels and compiler for ui.perfetto.dev");
}

int traced(const std::string& file, const std::function<int()>& f) {
  if (file.empty()) return f();
  io::write_file_atomically(file, "");  // an unwritable file is reported before the work, not after it
  runtime::start_recording();
  // The device is known by now: its peaks are measured after the work.
  const auto finish = [&] {
    const runtime::Timeline timeline = runtime::stop_recording();
    io::write_file_atomically(file, trace_json(timeline, compiler::machine_rates(compiler::default_target())));
  };
  int code = 0;
  try {
    code = f();
  } catch (...) {
    try {
      finish();
    } catch (const std::exception&) {  // a failed device: the first error is reported
    }
    throw;
  }
  finish();
  return code;
}

}  // namespace weft::tool
