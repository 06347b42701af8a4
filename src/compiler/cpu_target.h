#pragma once
// Replaces the target that programs of the CPU's streams are built for.

namespace weft::target {
class Target;
}

namespace weft::compiler {

/// Builds all later work of the CPU, eager and compiled, for `target`, whose data must lie in the host's memory. Tests
/// use it to run the schedules of a GPU on the CPU.
void set_cpu_target(target::Target& target);

}  // namespace weft::compiler
