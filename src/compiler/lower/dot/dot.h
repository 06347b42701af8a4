#pragma once
// The dot class: a program computes a tile or block of C by a program of src/kernels. What lies here is the choice
// among them, and what they call: loads of tiles of operands, which compute prologues, and the stores of results, which
// compute the epilogue.
//
//   CPUs   kernels/gemm/cpu.h, in a form that extents and strides decide on (cpu.cpp)
//   GPUs   kernels/gemm/gemm.h: tensor cores and exact float32 by the tiles of a schedule, all else by square ones
//   (gpu.cpp)
#include <string>
#include <utility>
#include <vector>

#include "compiler/lower/emit.h"
#include "compiler/region/jumping.h"
#include "kernel/language/trace.h"
#include "kernels/gemm/cpu.h"

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

/// A tile of an operand: where it begins, and for each of its axes the extent, which axis of the operand it is and how
/// many elements exist (no_value: all).
struct Piece {
  kernel::Value row, depth;
  std::vector<int64_t> dims;
  std::vector<Along> axes;
  std::vector<kernel::Value> limits;
  /// Returns the same with its axes in reverse order.
  Piece turned() const {
    return {row, depth, {dims.rbegin(), dims.rend()}, {axes.rbegin(), axes.rend()}, {limits.rbegin(), limits.rend()}};
  }
};

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
  void begin_batch(kernel::Value batch);
  int64_t batches() const;
  bool is_tiled() const { return !schedule_.rows.axes.empty(); }

  // Operands.
  /// Load a tile of an operand in the dtype of the sums, or in another one; loads compute a prologue.
  kernel::Value load(const Side& side, const Piece& piece);
  kernel::Value load(const Side& side, const Piece& piece, Dtype as);
  kernel::Value load_plain(const Side& side, const Piece& piece);
  kernel::Value load_computed(const Side& side, const Piece& piece, Dtype as);
  kernel::Value load_source(const Side& side, size_t k, const Piece& piece);
  kernel::Value load_shared(kernel::Ref ref, kernel::Value at, const Piece& piece, size_t line,
                            const kernel::Jump& jump);
  kernel::Value load_periods(kernel::Ref ref, kernel::Value at, const Piece& piece,
                             const std::vector<AxisLayout>& lies);
  kernel::Value jumped(kernel::Value index, const kernel::Jump& jump);
  kernel::Value load_view(kernel::Ref ref, kernel::Value at, const std::vector<int64_t>& dims,
                          const std::vector<int64_t>& strides, const std::vector<kernel::Value>& limits);

  // Results.
  /// Where a tile of C lies: its first row and column, limits by axis, extents, and whether its first axis is n.
  struct ResultPiece {
    kernel::Value m, n;
    std::vector<kernel::Value> limits;
    std::vector<int64_t> dims;
    bool n_first;
  };
  kernel::Value step(const kernel::EpilogueStep& s, const std::vector<kernel::Value>& values,
                     const std::vector<int64_t>& dims);
  kernel::Value operand(int k, const ResultPiece& piece);
  void store(kernel::Value c, kernel::Value row, kernel::Value column, std::vector<kernel::Value> limits,
             bool exchanged);

  // lower/dot/cpu.cpp
  /// `exchanged`: A is the right operand, and C is computed as [n, m].
  struct CpuChoice {
    kernels::CpuGemmForm form;
    bool exchanged;
  };
  CpuChoice choose_for_cpu() const;
  bool takes_blocks(bool exchanged) const;
  bool takes_panels(bool exchanged) const;
  kernels::CpuGemmShape cpu_shape(const CpuChoice& choice) const;
  bool reads_ahead(const kernels::CpuGemmShape& shape) const;
  void cpu_form();

  // lower/dot/gpu.cpp
  kernels::GemmTile square_tile() const;
  kernel::Value gpu_operand(const Side& side, const Piece& piece);
  void gpu_form();

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
};

}  // namespace weft::compiler
