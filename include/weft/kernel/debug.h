#pragma once
// A debugger of kernels: the interpreter stops at lines of the user's program, where values, arrays and loops are
// looked at. A function says what comes next, or somebody at a terminal (debug_shell).
//
//   k::Debugger debugger;
//   debugger.breakpoints = {{.file = "norm.cpp", .line = 31, .program = 2}};
//   debugger.stopped = [](k::Stop& stop) {
//     std::cout << stop.at().number << ": " << stop.print("sum[0:4]") << "\n";
//     return k::Go::line;
//   };
//   const array y = kernel.debug(debugger, x);
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/kernel/erased.h"
#include "weft/kernel/tile.h"

namespace weft::k {

/// What comes after a stop: the next instruction; the next line; the next line that is no deeper within loops and
/// conditions; the end of the innermost of those; all up to the next breakpoint; nothing more: the run ends with
/// std::runtime_error.
enum class Go : uint8_t { instruction, line, over, out, on, quit };

struct Breakpoint;

/// A place where a kernel stands: before an instruction, in one of its programs. It lives as long as the function that
/// it is given to runs.
class WEFT_API Stop {
 public:
  struct State;
  explicit Stop(State& state) : state_(state) {}
  Stop(const Stop&) = delete;
  Stop& operator=(const Stop&) = delete;
  /// Returns the number of the program.
  int64_t program() const;
  /// Returns the number of its role; -1: it has none.
  int64_t role() const;
  /// Returns the line of the user's program.
  Line at() const;
  /// Returns why it stands here: "begin", "breakpoint 1", "step", or what is wrong, where the run ends behind the stop.
  const std::string& reason() const;
  /// Returns the instruction that is next, as tile IR.
  std::string instruction() const;
  /// Returns the loops and conditions around it, the innermost first: "iteration 3 of a loop to 16
  /// by 1 at norm.cpp:28".
  std::vector<std::string> backtrace() const;
  /// Returns what has a name: values named by `watch`, then the kernel's arrays and buffers, then its run-time extents
  /// by the names of their symbols.
  std::vector<std::string> names() const;
  /// Returns a value or an array as text: of a name, a number in tile IR ("%7"), or a part of either by indices
  /// ("sum[3]", "p0[2, 0:8]", "%7[:, 1]"). An array without names is "p0", "p1", …, a buffer "l0", …, of one axis. An
  /// axis with a run-time extent ends there. At most 64 elements are shown. Throws std::invalid_argument where there is
  /// no such thing, or not yet.
  std::string print(std::string_view what) const;
  /// Returns one element as a number, of what print takes.
  double number(std::string_view what) const;
  /// Returns the debugger's breakpoints, which may be changed.
  std::vector<Breakpoint>& breakpoints() const;

 private:
  State& state_;
};

/// Where a kernel stops, and under which conditions. A line is where its first instruction is next; each iteration of a
/// loop comes to it anew.
struct Breakpoint {
  /// The end of the file's path, "norm.cpp"; empty: any file.
  std::string file = {};
  /// The line; 0: the first one that a program comes to, unless `value` is given.
  int line = 0;
  /// The number of the program; -1: all.
  int64_t program = -1;
  /// The name of a value (watch): it stops behind the instruction that computes it, on whatever line.
  std::string value = {};
  /// What else must hold.
  std::function<bool(const Stop&)> when = {};
};

/// What stops a kernel, and who is asked then. A mistake that the interpreter finds stops it as well.
struct Debugger {
  /// Where it stops.
  std::vector<Breakpoint> breakpoints = {};
  /// Says what comes next.
  std::function<Go(Stop&)> stopped = {};
  /// Whether it stops at the first line of all.
  bool at_begin = false;
};

/// Names a value for the debugger; the kernel stays the same. Of several values of one name the last one counts that
/// was computed.
WEFT_API void name_value(std::string_view name, const Any& v, Line at = Line::here());
/// Names a value for the debugger, and returns it: `const auto p = k::watch("p", k::exp(s));`.
template <TileLike V>
TileOf<V> watch(std::string_view name, const V& v, Line at = Line::here()) {
  const TileOf<V> tile = detail::as_tile(v, at);
  name_value(name, tile.any(), at);
  return tile;
}

/// Runs a traced kernel in the interpreter under a debugger, on row-major host memory, one pointer for each parameter.
/// Programs come in one order. `extents`: a value for each of `program.symbols()`; the arrays have room for the bounds.
/// Throws what Program::interpret throws, behind a stop.
WEFT_API void debug(const Program& program, std::span<void* const> arrays, const Debugger& debugger,
                    std::span<const int64_t> extents = {});
/// Returns a function for Debugger::stopped that reads commands from a stream, a line each, and writes what is asked
/// for: break, delete, step, next, instruction, finish, continue, print, backtrace, names, list, help, quit. At the end
/// of the stream the kernel runs on without stops.
WEFT_API std::function<Go(Stop&)> debug_shell(std::istream& in, std::ostream& out);

}  // namespace weft::k
