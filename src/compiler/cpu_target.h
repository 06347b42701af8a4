#pragma once
// Whose programs the CPU's streams run.

namespace weft::target {
class Target;
}

namespace weft::compiler {

/// From now on work of the CPU, eager and compiled, is built for this target, whose data lies in the host's memory:
/// tests run the schedules of a GPU so.
void set_cpu_target(target::Target& target);

}  // namespace weft::compiler
