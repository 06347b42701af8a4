#pragma once
// A schedule is data: how the domain of a group is divided over the levels of the machine. Rules (rows.h) and the
// tuner make the same values, one function says which of them are legal, and the lowering does as they say.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/grouping.h"
#include "target/machine.h"

namespace weft::compiler {

/// Where the parts of a division run.
enum class Level : uint8_t {
  grid,     // programs
  cluster,  // blocks of a cluster, which combine the reductions of their parts
  warps,    // warps of a block, or of the blocks of a cluster, which do the same
  serial,   // iterations of a loop
  unroll,   // copies side by side in one program
  lanes,    // elements of a tile: of a vector, or of the threads of a block
};
constexpr int level_count = 6;

struct AxisPart {
  Level level;
  int64_t count;
  bool operator==(const AxisPart&) const = default;
};

/// Axes of a domain that one number counts, in row-major order, and how that number is divided, outermost part first:
/// with `grid 8, lanes 32`, program p and lane x stand for 32 p + x. What the counts exceed the extent by is guarded.
struct AxisDivision {
  std::vector<int> axes;  // positions in the group's domain; none: the number is always 0
  int64_t extent = 1;     // product of the axes' extents, symbols at their bounds
  std::vector<AxisPart> parts;

  /// Returns the count on a level; 1 without a part there.
  int64_t count(Level level) const;
  /// Returns the copies that are an equal share of the extent apart: of a leading part on level unroll.
  int64_t copies_apart() const;
  /// Returns what the parts behind such copies divide.
  int64_t share() const { return extent / copies_apart(); }
  bool operator==(const AxisDivision&) const = default;
};

/// The forms of a kernel. Reduced axes are the lanes of a row, and the loop of a column; a map reduces nothing. A
/// product and attention compute tiles of several axes: their programs, rows, lanes and loop have lanes each.
enum class RowClass : uint8_t { map, row, column, product, attention };

/// How a tiled kernel copies, launches and orders its programs; 0: as its code chooses.
struct Staging {
  int stages = 0;  // of the loop that copies ahead, at most
  int raster = 0;  // rows of tiles that alternate
  // Copies by warps of their own, programs in turns on blocks that stay, two programs of a block that multiply in
  // turns: 1 yes, 2 no.
  int specialize = 0, persistent = 0, ping_pong = 0;
  int warps = 0, registers = 0;
  std::string instruction = {};  // that steps want: "mma", "wgmma", "fma"
  bool operator==(const Staging&) const = default;
};

struct Schedule {
  RowClass kind = RowClass::map;
  // A program has the number of its row in `programs`, then that of its part of the loop, then that of its lanes. A row
  // divides its lanes among the blocks of a cluster, a column its loop among warps. Rows on level unroll: a leading
  // part computes rows that draw the same words of random numbers (both words of a call are used), a last part the rows
  // of a matrix that a GEMV reads the vector for once. A row's lanes on level unroll: tiles that a step brings to one
  // frame together, so that their state is brought there once.
  AxisDivision programs, lanes;
  AxisDivision loop;  // column: what is reduced; map: axes along which work repeats (invariant.h)
  AxisDivision rows;  // product: m, as lanes is n and loop is k; attention: queries, as loop is keys
  AxisDivision cut;   // map: the axis that is cut at the borders between a concat's operands; all of it is unrolled
  bool any_length = false;     // map over one flat axis whose length is a kernel argument: one kernel for all lengths
  bool guarded_tiles = false;  // map: the tiles of the loop are guarded, and there is no second copy for the remainder
  Staging staging;             // product, attention
  double operations = 0;       // rough cost of a point of the domain; not a choice

  /// Returns the lanes of a tile.
  int64_t tile() const { return lanes.count(Level::lanes); }
  /// Returns how many tiles of a row are combined with its states at once, where as many are left.
  int64_t tiles_of_step() const;
  /// Returns the lanes that a program computes, of a map or column.
  int64_t block() const;
  /// Returns the blocks or warps that share a reduction.
  int64_t sharers() const { return lanes.count(Level::cluster) * loop.count(Level::warps); }
  /// Returns whether a column's tiles are panels: the program loops over tiles within a few rows at a time.
  bool panels() const { return kind == RowClass::column && lanes.count(Level::serial) > 1; }
  /// Returns whether programs compute rows of a matrix side by side, as GEMVs do.
  bool gemv() const;
  bool operator==(const Schedule& other) const;
};

/// Returns a schedule as one word: "row;programs=0:grid8;lanes=1:serial4,lanes1024".
std::string to_string(const Schedule& schedule);
/// Reads such a word, without extents and operations; returns nothing for any other text.
std::optional<Schedule> parse_schedule(std::string_view text);

/// Computes the extents of the divisions from the group's domain. Returns false for an axis that the domain lacks.
bool set_extents(Schedule& schedule, const Group& group);

/// Returns why a kernel of this group cannot have the schedule on the machine; empty if it can.
std::string why_illegal(const Schedule& schedule, const Group& group, const target::Machine& machine);

/// Returns the schedules that one doubling or halving away lie: a factor of two moved between levels of a division.
std::vector<Schedule> neighbours(const Schedule& schedule);

}  // namespace weft::compiler
