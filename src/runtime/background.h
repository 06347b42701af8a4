#pragma once
// Work that is begun now and asked for later: code that is compiled and plans that are made while the calling thread
// goes on. It has threads of its own, as many as the team, which sleep when there is nothing to do.
#include <functional>

namespace weft::runtime {

/// Does `job` some time, in the order given, unless the process ends first; at the process's end those that have begun
/// are waited for. What it throws is lost: it is to be something that whoever needs its result does himself where it
/// has not been done (under a std::once_flag).
void begin_in_background(std::function<void()> job);

}  // namespace weft::runtime
