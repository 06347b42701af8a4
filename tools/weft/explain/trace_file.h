#pragma once
// --trace FILE: the timeline of a command for ui.perfetto.dev or chrome://tracing.
#include <functional>
#include <string>

#include "runtime/trace.h"
#include "target/rates.h"
#include "tools/weft/options.h"

namespace weft::tool {

/// Chrome's trace format: a slice for each launch, library call, copy, run of a program and stage of the compiler, with
/// bytes, flops, rates and the fraction of the machine's peak; the threads' shares of each launch; memory in use as a
/// counter.
std::string trace_json(const runtime::Timeline& timeline, const target::Rates& rates);

void add_trace_option(OptionSet& set, std::string& file);

/// Runs `f` and, where `file` is not empty, writes its trace, also where `f` throws. Throws std::runtime_error at once
/// where the file cannot be written.
int traced(const std::string& file, const std::function<int()>& f);

}  // namespace weft::tool
