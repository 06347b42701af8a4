#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "weft/api.h"

/// Schedules as values: lists of steps on named axes that say how a kernel divides its work over the machine. They are
/// printed, parsed, compared and hashed; docs/schedules.md lists the steps, what each means and where it is legal.
///
///     const schedule::Steps rows = schedule::parse("split(r0, 16, {step, lane}); vectorize(lane)");
///     const schedule::Steps same = schedule::Steps().split("r0", 16, {"step", "lane"}).vectorize("lane");
namespace weft::schedule {

/// What a step does. Those up to `any_length` divide the loops of a kernel, those up to `split_reduce` say which values
/// kernels make and store, the others concern staging and launching.
enum class Kind : uint8_t {
  split,
  fuse,
  reorder,
  tile,
  bind,
  vectorize,
  unroll,
  pad,
  guard,
  any_length,
  compute_root,
  inlined,
  name,
  compute_at,
  split_reduce,
  online_softmax,
  tensorize,
  stage,
  pipeline,
  specialize,
  persistent,
  ping_pong,
  raster,
  warps,
  registers,
};

/// One step, as plain data. Which of the lists it uses follows from its kind.
struct Step {
  /// What it does.
  Kind kind = Kind::split;
  /// The axes that it takes, by their names; of `stage` an array, of `name` and `compute_at` a value.
  std::vector<std::string> axes = {};
  /// Its numbers: factors, extents, depths.
  std::vector<int64_t> numbers = {};
  /// Its word: a level, a memory with its layout, an instruction, on or off.
  std::string word = {};
  /// The names of the axes that it makes.
  std::vector<std::string> makes = {};
  friend bool operator==(const Step&, const Step&) = default;
};

/// A list of steps, applied in order. Its functions return it with one step more, and throw std::invalid_argument
/// where a name is no identifier, or a number or word is none that the step knows.
class WEFT_API Steps {
 public:
  Steps() = default;
  /// Makes a list of steps.
  explicit Steps(std::vector<Step> list);

  /// Splits an axis: the inner part has `factor` elements, the outer one as many parts as cover the axis.
  Steps split(const std::string& axis, int64_t factor, const std::vector<std::string>& outer_inner) const;
  /// Makes one axis of several, the last of them fastest.
  Steps fuse(const std::vector<std::string>& axes, const std::string& fused) const;
  /// Puts axes into another order, outermost first, in the positions that they have together.
  Steps reorder(const std::vector<std::string>& axes) const;
  /// Splits two axes and puts the outer parts before the inner ones: {outer x, outer y, inner x, inner y}.
  Steps tile(const std::string& x, const std::string& y, int64_t of_x, int64_t of_y,
             const std::vector<std::string>& parts) const;
  /// Runs an axis on a level: "program", "cluster", "warp", "serial" or "lane".
  Steps bind(const std::string& axis, const std::string& level) const;
  /// Makes an axis the elements of a tile: of vectors, or of the threads of a block.
  Steps vectorize(const std::string& axis) const;
  /// Writes the iterations of an axis one behind the other.
  Steps unroll(const std::string& axis) const;
  /// Lengthens an axis to an extent; what lies past its end is guarded.
  Steps pad(const std::string& axis, int64_t extent) const;
  /// Guards all tiles, in place of a second copy of the loop for those at the end.
  Steps guard() const;
  /// Makes one kernel for all lengths.
  Steps any_length() const;

  /// Stores the value, so that readers load it.
  Steps compute_root() const;
  /// Computes the value in the kernels of its readers, and does not store it.
  Steps inlined() const;
  /// Names the value, for the compute_at of others.
  Steps name(const std::string& value) const;
  /// Computes the value in the kernel of another one, which has this name.
  Steps compute_at(const std::string& value) const;
  /// Reduces in two steps: `parts` parts of a reduced axis, then what they gave. Changes bits.
  Steps split_reduce(const std::string& axis, int64_t parts) const;
  /// Computes a softmax by one pass over its rows (on), or attention as products and a softmax (off). Changes bits.
  Steps online_softmax(bool on = true) const;

  /// Multiplies by an instruction: "mma", "wgmma", "fma"; "library" by a library, "generated" by generated code. May
  /// change bits.
  Steps tensorize(const std::string& instruction) const;
  /// Copies an operand through shared memory, in a ring of `depth` stages.
  Steps stage(const std::string& operand, const std::string& layout, int64_t depth) const;
  /// Overlaps iterations of a loop: copies run up to `depth` iterations ahead.
  Steps pipeline(const std::string& axis, int64_t depth) const;
  /// Gives the copies warps of their own (on), or not.
  Steps specialize(bool on = true) const;
  /// Lets blocks take programs in turns (on), or gives each program a block.
  Steps persistent(bool on = true) const;
  /// Has two programs of a block multiply in turns: one computes and stores while the other has the tensor cores.
  Steps ping_pong(bool on = true) const;
  /// Orders programs in bands of `rows` rows of tiles.
  Steps raster(int64_t rows) const;
  /// Runs a program by so many warps.
  Steps warps(int64_t count) const;
  /// Limits the registers of a thread.
  Steps registers(int64_t most) const;

  /// Returns the steps in order.
  const std::vector<Step>& list() const { return list_; }
  /// Returns whether there are none.
  bool empty() const { return list_.empty(); }
  /// Returns these steps, and behind them those of another list.
  Steps then(const Steps& more) const;
  friend bool operator==(const Steps&, const Steps&) = default;

 private:
  std::vector<Step> list_;
};

/// Returns a step as text: "split(d0, 128, {block, lane})".
WEFT_API std::string to_string(const Step& step);
/// Returns a list as text, "; " between steps.
WEFT_API std::string to_string(const Steps& steps);
/// Reads such a text; steps are separated by ";" or by ends of lines, and "#" begins a comment. Throws
/// std::invalid_argument "[schedule] line 1, column 7: …" with what was expected there.
WEFT_API Steps parse(std::string_view text);
/// Returns a hash that is equal for equal lists, in every process.
WEFT_API size_t hash(const Steps& steps);

}  // namespace weft::schedule

/// The hash of lists of steps, for unordered containers.
template <>
struct std::hash<weft::schedule::Steps> {
  /// Returns weft::schedule::hash.
  size_t operator()(const weft::schedule::Steps& steps) const { return weft::schedule::hash(steps); }
};
