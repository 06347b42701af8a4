#pragma once
// What is decided about products of users' kernels before they are rendered: where their operands come from, and what
// loops copy ahead.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kernel/tile.h"
#include "target/cuda/codegen/layout.h"
#include "target/cuda/codegen/render.h"

namespace weft::target::cuda {

constexpr int64_t other_registers = 56;  // addresses, descriptors, and what is computed beside the accumulators
constexpr int64_t most_of_three = 232;   // registers, where three warpgroups share them, one of which copies

/// Returns whether an instruction computes each element of its result from those at the same place.
inline bool is_elementwise(kernel::Op op) {
  return op == kernel::Op::scalar || op == kernel::Op::cast || op == kernel::Op::bitcast;
}

/// Who makes and who reads the values of a kernel.
struct Uses {
  struct Position {
    const kernel::Inst* inst = nullptr;
    const kernel::Block* block = nullptr;
  };
  std::vector<Position> order;  // all instructions
  std::map<kernel::Value, Position> made;
  std::map<kernel::Value, std::vector<Position>> readers;
  std::map<const kernel::Block*, Position> around;  // the instruction that a block belongs to
  std::set<kernel::Value> uniform;                  // tiles whose elements are all one number

  explicit Uses(const kernel::Kernel& kernel);
  const kernel::Inst* maker(kernel::Value v) const;
  bool read_once(kernel::Value v) const;
  bool is_uniform(kernel::Value v) const { return uniform.contains(v); }
};

/// Where the boxes begin that TMA copies of a matrix: at the ends of its axes less the limits of the load, if it has
/// any, else where its address says. `lines` and `columns`: the ends; 0 for an axis without a limit.
struct Box {
  kernel::Value line_limit = kernel::no_value, column_limit = kernel::no_value;
  AxisEnd lines, columns;
};

/// An operand of a product on tensor cores. It lies in shared memory as lines of 16-byte chunks, swizzled, as the tile
/// that it is a view of; or A in the fragments that another product left in registers.
struct Operand {
  kernel::Value value = kernel::no_value;  // the tile, before a permutation of it
  Dtype dtype;
  bool in_registers = false;
  bool depth_inside = false;  // neighbours of a line are neighbours along k
  int64_t lines = 0, length = 0;
  const kernel::Inst* load = nullptr;  // it is copied from memory without passing registers
  bool lines_last = false;             // its lines run along the first axis of the loaded tile
  bool ahead = false;                  // its loop copies it before it is needed
  bool last = false;                   // no later product of the iteration reads what is copied ahead
  bool single = false;                 // it stands outside of loops, and has a stage of their ring for itself
  bool in_turns = false;               // each iteration makes it, and stages it in one of two spaces in turns
  bool transposed = false;             // it lies in registers, and is staged with its axes exchanged
  int64_t offset = 0;                  // of its space among the stages, or in a stage
  int barrier = -1;                    // number of its mbarriers, where TMA copies it; and of its TensorMap
  int map = -1;
  Box box = {};
  int64_t panel = 0;  // chunks of a line that lie together, for wgmma: 8, 4 or 2; 0: all of them
  // Lines are an odd number of chunks apart instead of swizzled: addresses then differ by numbers, and fma has no time
  // for the arithmetic.
  bool padded = false;

  int64_t per() const { return 16 / dtype.size(); }  // elements of a chunk
  /// Returns the chunks between lines: such that 8 lines that follow each other use all banks.
  int64_t chunks() const;
  int64_t bytes() const;
  /// Returns the elements of a line in shared memory: whole panels. What is behind the tile's is copied with it, and
  /// nobody reads it.
  int64_t copied_length() const { return (length + panel * per() - 1) / (panel * per()) * panel * per(); }
  /// Returns the text of where a chunk of a line lies.
  std::string position(const std::string& line, const std::string& chunk) const;
};

/// A tile that TMA copies in boxes of `across` elements of its lines, which are `pitch` apart in memory.
struct BoxedTile {
  kernel::Ref ref;
  kernel::Value offset, line_limit, column_limit;
  int64_t pitch, lines, length, across;
};

/// Returns the tile of an operand that is copied from memory.
BoxedTile boxed_tile(const Operand& x);

/// A copy of the explicit level that TMA makes, and the number of its matrix.
struct BoxCopy {
  Box box;
  int map = 0;
};

/// A store of a tile of fragments that TMA copies from shared memory while warpgroups go on: boxes of 64 rows by 128
/// bytes.
struct BoxStore {
  static constexpr int64_t panel = 8, bytes = 8192;  // chunks of a line, bytes of a box
  Box box;
  int boxes = 0;  // of a warpgroup
  int map = -1;
};

/// A load of a tile of fragments behind the products, which TMA copies ahead: boxes of 128 bytes of all lines.
struct BoxLoad {
  Box box;
  int boxes = 0;
  int map = -1;
};

/// A tile that the producer copies once a program, and the instruction of the body that multiplies it last.
struct Kept {
  Operand tile;
  const kernel::Inst* last = nullptr;
};

struct Product {
  const kernel::Inst* dot = nullptr;
  const kernel::Inst* sum = nullptr;  // an addition to the product, which becomes its accumulator
  Layout layout;
  Operand a, b;
  /// Returns the instruction where the product is rendered, what it becomes part of, and what it is added to.
  const kernel::Inst* made_by() const { return sum ? sum : dot; }
  kernel::Value result() const { return made_by()->results[0]; }
  kernel::Value start() const {
    return !sum ? dot->args[2] : sum->args[0] == dot->results[0] ? sum->args[1] : sum->args[0];
  }
  /// Returns whether fused multiply-adds compute it: tensor cores have no exact float32.
  bool exact() const { return a.dtype == float32 && dot->precision == kernel::DotPrecision::exact; }
  const kernel::Inst* loop = nullptr;  // that copies its operands ahead
  bool in_place = false;  // the accumulators are what the loop carries, and nobody reads them before its end
};

/// A vector that is copied with the tiles of a stage: the number of its mbarriers, and its place in the stage.
struct RingVector {
  const kernel::Inst* load = nullptr;
  int barrier = -1;
  int64_t offset = 0;
  int64_t bytes() const { return load->type.size() * load->type.dtype.size(); }
};

/// What a loop copies ahead, into a ring of stages.
struct Ring {
  std::vector<kernel::Value> loads;
  std::vector<RingVector> vectors;           // by a producer alone
  std::vector<const kernel::Inst*> scalars;  // of the loop's body, that addresses are made of
  int stages = 0;
  int read = 1;  // stages that are read at a time: two where warpgroups still multiply what the iteration before had
  int64_t stage_bytes = 0, offset = 0;
};

}  // namespace weft::target::cuda
