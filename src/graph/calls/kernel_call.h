#pragma once
// Kernels of users as nodes: a traced tile program that runs on whole row-major arrays (Op::call named "kernel", with
// attrs.kernel). The compiler launches it as one of its own kernels.
//
// The arrays of a kernel, in the order of its parameters, are read (in), written (out), or both (in_out). The node's
// inputs are those that are in or in_out, its results those that are out or in_out. An in_out result begins as its
// input, which does not change: the compiler lets both share memory where nothing else reads the input, and copies it
// otherwise. Elements of an out result that no program stores are unspecified.
#include "graph/build.h"
#include "kernel/length.h"
#include "kernel/tile.h"

namespace weft::graph {

enum class KernelUse : uint8_t { in, out, in_out };

struct KernelArray {
  KernelUse use = KernelUse::in;
  Type type;  // a symbolic axis has the memory of its bound
};

/// Operations of all programs of a launch, estimated from the instructions: a loop whose bounds are not known counts
/// once.
struct KernelWork {
  double operations = 0;  // basic operations of everything but products
  double products = 0;    // of these a multiplication and an addition are two
  Dtype operands = float32;
  bool tf32 = false;  // of the products of the largest dot
  double moved = 0;   // bytes that programs load and store, whatever several of them read
};

struct KernelTuning;

struct KernelProgram {
  kernel::Kernel kernel;
  std::vector<KernelArray> arrays;          // one for each of its parameters
  int64_t grid = 0;                         // programs, at most
  kernel::Length count = {};                // of programs, where it depends on the symbols
  std::vector<const Symbol*> symbols = {};  // of the kernel, in its order
  // The configurations that it is one of (graph/calls/kernel_tuning.h); null: there is nothing to choose.
  std::shared_ptr<const KernelTuning> tuning = {};
  // By array and axis, as Factors has them, where the user gives them; none: they follow from the kernel.
  std::vector<std::vector<int>> factors = {};
  // The members below are set by kernel_program.
  KernelWork work = {};
  std::string where = {};  // the user's first line: "softmax.cpp:31"
  Digest key = {};         // of all that the results depend on
};

/// Returns the program with its work, line and key. Throws std::invalid_argument "[kernel NAME] …" where it has no
/// results, or never stores to one of them, an array is complex, or the length of a result is that of no input.
std::shared_ptr<const KernelProgram> kernel_program(KernelProgram program);

/// Makes the node; returns a value for each out and in_out array. Throws std::invalid_argument "[kernel NAME] …" where
/// the number of inputs or their types are not the program's. Without programs (grid 0) there is no node: in_out
/// results are their inputs, others are zeros.
Values kernel_call(std::shared_ptr<const KernelProgram> program, Values inputs);

/// Returns the program of a whole batch: one that runs `extent` times the programs, the first `grid` of them on the
/// first element of each batched array. `batched`: for each array whether it has a batch axis, which is its first one;
/// results always have.
std::shared_ptr<const KernelProgram> batched_program(const KernelProgram& program, int64_t extent,
                                                     const std::vector<bool>& batched);

/// Return the cotangents of a kernel's inputs, given those of its results, and the tangents of its results, given those
/// of its inputs, by a kernel that is derived from its body. Throw std::invalid_argument "[kernel NAME] file:line: …"
/// for a body that has no derivative.
Values kernel_cotangents(const Node& node, std::span<const Value> inputs, std::span<const Value> cotangents);
Values kernel_tangents(const Node& node, std::span<const Value> inputs, std::span<const Value> tangents);

/// Returns for each array and axis the factor by which devices may divide it, -1 where it stays whole: those that are
/// given, or those of the kernel's index maps.
std::vector<std::vector<int>> factors_of(const KernelProgram& program);
/// Returns them as text: "[a b], [b] -> [a b]"; "-" for an axis that stays whole.
std::string factors_text(const KernelProgram& program);

/// Returns the largest values of the symbols of a program.
std::vector<int64_t> bounds_of(const KernelProgram& program);
/// Returns how many programs run where the symbols have these values.
int64_t programs_at(const KernelProgram& program, std::span<const int64_t> symbols);

KernelWork work_of(const kernel::Kernel& kernel, int64_t grid);

}  // namespace weft::graph
