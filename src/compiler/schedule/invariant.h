#pragma once
// Finds work of a map that repeats along axes of its domain, such as the cosines of rotary positions, which all heads
// share, or statistics that are read by all pixels. A program that loops over these axes does that work once.
#include <span>
#include <vector>

#include "compiler/ir/grouping.h"

namespace weft::compiler {

/// A loop over axes of a map inside of a program, which computes some tiles of lanes in each iteration. Empty `axes`:
/// no loop pays.
struct MapLoop {
  std::vector<int> axes;   // positions in the row axes, ascending; the loop runs over them as one flat index
  int64_t iterations = 1;  // of one program: a divisor of the axes' extent
  int64_t width = 1;       // lanes of a tile: a divisor of the lanes' extent
  int64_t tiles = 1;       // of one program
};

/// The tiles that a loop may have.
struct TileWidths {
  int64_t least, most;  // lanes, powers of two
};

/// Chooses the loop of a map whose programs compute blocks of `lanes`, the last axes of the domain, one block for each
/// index of the `outer` axes before them. The loop runs over those outer axes along which most operations repeat, if
/// they are more than the loop costs. Tiles are narrow enough to lie in one operand of a concat.
MapLoop choose_map_loop(const Ir& ir, const Grouping& grouping, Group& group, std::span<const DomainVariable> outer,
                        std::span<const DomainVariable> lanes, const TileWidths& widths);

}  // namespace weft::compiler
