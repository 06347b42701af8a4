#pragma once
// Which elements of its arrays a program touches, as far as sums of multiples of program ids, loops and lanes say it.
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "kernel/language/trace.h"
#include "kernel/tile.h"

namespace weft::kernel {

/// A number that runs from 0 to extent - 1: a digit of the program's number, floor(program / behind) mod extent; or how
/// often a loop has run, `extent` at most.
struct Atom {
  const Inst* loop = nullptr;  // null: a digit
  int64_t behind = 1, extent = 1;
  bool exact = true;  // the extent is the number of iterations, or of programs
  friend bool operator==(const Atom&, const Atom&) = default;
  friend bool operator<(const Atom& a, const Atom& b) {
    return std::tie(a.loop, a.behind, a.extent) < std::tie(b.loop, b.behind, b.extent);
  }
};

/// constant + Σ coefficient · atom, and of a tile Σ lanes[k] · position along axis k.
struct Affine {
  int64_t constant = 0;
  std::map<Atom, int64_t> atoms = {};
  std::vector<int64_t> lanes = {};
};

/// How a set of accesses touches an array.
struct Footprint {
  bool apart = false;  // no two programs touch one element
  bool once = false;   // no element is touched twice by a program, either
  bool all = false;    // and every element is touched
};

class Footprints {
 public:
  /// `exact`: there are so many programs, and not fewer. `bounds`: of the kernel's symbols; empty: not known.
  Footprints(const Kernel& kernel, int64_t programs, bool exact, std::vector<int64_t> bounds);

  /// Returns what is known of an integer scalar.
  k::Known known(Value v) const { return known_[static_cast<size_t>(v)]; }
  /// Returns the most iterations that a loop makes; nothing where no bound is known.
  std::optional<int64_t> iterations(const Inst& loop) const;
  /// Returns whether the lanes of an access go to different elements, axes of stride 0 apart.
  bool distinct_lanes(const Inst& access) const;

  /// Returns the footprint of the loads and gathers (`stores`: of stores and scatters; both: of all) of a buffer with
  /// these extents.
  enum class Which : uint8_t { loads, stores, both };
  Footprint of(Ref ref, const std::vector<int64_t>& dims, Which which) const;

  /// A digit of the program's number whose values have a block of the axis each: what these programs touch of the array
  /// lies in it, wherever else they touch.
  struct Division {
    Atom digit;
    size_t axis;
    int64_t block;
  };
  /// Returns the digits that divide an array; none where something that is touched is not known.
  std::vector<Division> divisions(Ref ref, const std::vector<int64_t>& dims, Which which) const;

 private:
  struct Access {
    const Inst* inst;
    std::vector<const Inst*> loops;  // around it
    bool conditional = false;
  };
  /// A coordinate of an element along one axis of the array.
  struct Coordinate {
    Affine position;
    bool limited = false;  // it ends with the array
  };

  Footprint along(Ref ref, const std::vector<int64_t>& dims, Which which) const;
  std::vector<const Access*> accesses_of(Ref ref, Which which) const;
  bool stays_in_block(const Access& access, const std::vector<Coordinate>& at, const Division& division) const;
  void block(const Block& b, std::vector<const Inst*>& loops, bool conditional);
  void learn(const Inst& inst);
  void enter(const Inst& loop);
  std::optional<Affine> affine(const Inst& inst) const;
  std::optional<Affine> scalar(const Inst& inst) const;
  std::optional<Affine> index_of(const Inst& access) const;
  std::optional<std::vector<Coordinate>> coordinates(const Access& access, const std::vector<int64_t>& dims) const;
  bool digits_apart(const std::vector<const Access*>& accesses, const std::vector<std::vector<Coordinate>>& at) const;
  bool touched_once(const Access& access, const std::vector<Coordinate>& at) const;
  bool touches_all(const Access& access, const std::vector<Coordinate>& at, const std::vector<int64_t>& dims) const;
  const std::vector<int64_t>& dims_of(const Inst& access) const;
  const Type& type(Value v) const { return kernel_.types[static_cast<size_t>(v)]; }

  const Kernel& kernel_;
  int64_t programs_;
  bool exact_;
  std::vector<int64_t> bounds_;
  std::vector<k::Known> known_;                // by value
  std::vector<std::optional<Affine>> affine_;  // by value
  std::map<const Inst*, Atom> loops_;          // the atom of each loop
  std::map<Ref, std::vector<Access>> accesses_;
};

}  // namespace weft::kernel
