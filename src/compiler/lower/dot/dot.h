#pragma once
// The dot class: a program computes a tile or block of C. The form is chosen by extents and strides:
//
//   blocks   large matmuls: panels of both operands are packed into scratch, sums stay in registers (blocks.cpp)
//   columns  lanes along N (B's rows are contiguous): rank-1 updates, c[m, n] += a[m] · b[n]
//   rows     lanes along M (A's columns are contiguous): the same with A and B exchanged, C stored transposed
//   panels   a few rows times a large matrix, lanes along its columns: sums in scratch (panels.cpp)
//   shared   GPUs: a square tile of C, slices of K in shared memory
//   matmul   tensor cores, GPUs' float32: a loop multiplies tiles as a user's kernel does, then the tile is finished
//   and stored
//            (matmul.cpp)
//   inner    lanes along K (both operands are contiguous in K): partial sums, added by a tree at the end
#include <string>
#include <utility>
#include <vector>

#include "compiler/lower/emit.h"

namespace weft::compiler {

/// One operand as a matrix [rows, k] with strides; loads compute its prologue and convert it to the compute dtype.
struct Side {
  kernel::Ref ref;
  kernel::Value base;  // element (0, 0) of the program's batch
  int64_t row, depth;  // strides
  const DotPrologue& prologue;
  std::vector<kernel::Value> bases;  // the same of the prologue's arrays
};

/// An axis of an operand.
enum class Along : uint8_t { row, depth };

class DotLowering {
 public:
  DotLowering(const LowerContext& cx, Group& group, Schedule schedule)
      : cx_(cx), plan_(group.dot), d_(group.dot.desc), result_(group.roots[0].node),
        emit_(cx, group, "dot_" + std::to_string(result_)), schedule_(std::move(schedule)),
        b_(emit_.builder()), a_{-1, kernel::no_value, d_.a_m, d_.a_k, plan_.a_prologue, {}},
        bb_{-1, kernel::no_value, d_.b_n, d_.b_k, plan_.b_prologue, {}} {}

  Lowered run();

 private:
  kernel::Value batch_offset(kernel::Value batch, const std::vector<int64_t>& strides);
  kernel::Value load(const Side& side, kernel::Value row, kernel::Value depth, std::vector<int64_t> dims,
                     const std::vector<Along>& axes, std::vector<kernel::Value> limits);
  kernel::Value load_computed(const Side& side, kernel::Value row, kernel::Value depth,
                              const std::vector<int64_t>& dims, const std::vector<Along>& axes,
                              const std::vector<kernel::Value>& limits);
  kernel::Value load_source(const Side& side, size_t k, kernel::Value row, kernel::Value depth,
                            const std::vector<int64_t>& dims, const std::vector<Along>& axes,
                            const std::vector<kernel::Value>& limits);
  kernel::Value jumped(kernel::Value index, const kernel::Jump& jump);
  kernel::Value load_view(kernel::Ref ref, kernel::Value at, const std::vector<int64_t>& dims,
                          const std::vector<int64_t>& strides, const std::vector<kernel::Value>& limits);
  void shared_form();
  void outer_form(bool exchanged);
  void inner_form();

  // lower/dot/blocks.cpp
  class Blocks;
  bool blocks_fit() const;
  void blocks_form(bool exchanged);

  // lower/dot/panels.cpp
  bool panels_fit(bool exchanged) const;
  void panels_form(bool exchanged);

  // lower/dot/matmul.cpp
  kernel::Value matmul_operand(const Side& side, kernel::Value row, kernel::Value depth,
                               const std::vector<int64_t>& dims, const std::vector<Along>& axes,
                               const std::vector<kernel::Value>& limits);
  void matmul_form(bool exchanged);

  /// Where a tile of C lies: its first row and column, limits by axis, extents, and whether its first axis is n.
  struct EpilogueTile {
    kernel::Value m, n;
    std::vector<kernel::Value> limits;
    std::vector<int64_t> dims;
    bool n_first;
  };
  kernel::Value step(const kernel::EpilogueStep& s, const std::vector<kernel::Value>& values,
                     const std::vector<int64_t>& dims);
  kernel::Value operand(int k, const EpilogueTile& tile);
  void store(kernel::Value c, kernel::Value m, kernel::Value n, std::vector<int64_t> strides,
             std::vector<kernel::Value> limits, bool n_first);
  void begin_batch(kernel::Value batch);
  void tiles(int64_t bm, int64_t bn, kernel::Value& m0, kernel::Value& n0);
  void add_up(const Side& side, kernel::Value first, int64_t count, kernel::Value extent);
  kernel::Value nothing(std::vector<int64_t> dims) {
    return b_.constant(t_, t_ == int32 ? Number::of_int(0) : Number::of_real(0), std::move(dims));
  }

  const LowerContext& cx_;
  const DotPlan& plan_;
  const kernel::DotDesc& d_;
  int result_;
  Emitter emit_;
  const Schedule schedule_;  // of tiles; without rows there are none
  kernel::Builder& b_;
  kernel::Ref c_ = -1;
  Side a_, bb_;
  kernel::Value c_base_ = kernel::no_value, m_ = kernel::no_value, n_ = kernel::no_value, k_ = kernel::no_value,
                batch_ = kernel::no_value;
  Dtype t_ = float32;  // dtype of the sums
  int64_t grid_ = 1;
  bool any_size_ = false;  // products are multiplied as those of users' kernels are
};

}  // namespace weft::compiler
