#pragma once
// The table of instruction kinds: what the rules, the printer, the canonical form and the passes ask of a kind.
#include <array>
#include <string_view>

#include "kernel/tile.h"

namespace weft::kernel {

/// The fields of an instruction that only some kinds read.
enum Field : unsigned {
  scalar_op_field = 1U << 0,
  reducer_field = 1U << 1,
  number_field = 1U << 2,
  ref_field = 1U << 3,
  matrices_field = 1U << 4,
  axis_field = 1U << 5,
  strides_field = 1U << 6,
  streaming_field = 1U << 7,
  parallel_field = 1U << 8,
  axes_field = 1U << 9,
  reverse_field = 1U << 10,
  precision_field = 1U << 11,
  text_field = 1U << 12,
  lane_op_field = 1U << 13,
  ordering_field = 1U << 14,
  code_field = 1U << 15,
};

/// What an instruction does to buffers.
enum class Access : uint8_t { none, reads, writes, updates };

struct OpInfo {
  Op op;
  std::string_view name;
  int results = 1;      // -1: as many as its rule says
  int blocks = 0;       // -1: as many as its rule says
  unsigned fields = 0;  // that it reads, besides type, arguments, results and blocks
  Access access = Access::none;
  bool basic = true;  // targets render it, as far as `is_basic` says; others are rewritten
};

inline constexpr auto ops = std::to_array<OpInfo>({
    {Op::constant, "constant", 1, 0, number_field},
    {Op::program_id, "program_id"},
    {Op::symbol, "symbol", 1, 0, ref_field},
    {Op::arange, "arange"},
    {Op::scalar, "scalar", 1, 0, scalar_op_field},
    {Op::cast, "cast"},
    {Op::bitcast, "bitcast"},
    {Op::broadcast, "broadcast"},
    {Op::reshape, "reshape"},
    {Op::permute, "permute", 1, 0, axes_field},
    {Op::slice, "slice", 1, 0, axes_field | strides_field, Access::none, false},
    {Op::cat, "cat", 1, 0, axis_field, Access::none, false},
    {Op::reduce, "reduce", -1, -1, reducer_field | axis_field},
    {Op::scan, "scan", -1, -1, reducer_field | axis_field | reverse_field, Access::none, false},
    {Op::shift, "shift", 1, 0, axis_field},
    {Op::exchange, "exchange", 1, 0, axis_field},
    {Op::extract, "extract", 1, 0, axis_field},
    {Op::take, "take", 1, 0, axis_field, Access::none, false},
    {Op::sort, "sort", -1, 0, axis_field | reverse_field, Access::none, false},
    {Op::lanes, "lanes", 1, 0, lane_op_field | scalar_op_field | axis_field, Access::none, false},
    {Op::histogram, "histogram", 1, 0, 0, Access::none, false},
    {Op::dot, "dot", 1, 0, precision_field},
    {Op::load, "load", 1, 0, ref_field | number_field | strides_field | streaming_field, Access::reads},
    {Op::store, "store", 0, 0, ref_field | strides_field | streaming_field, Access::writes},
    {Op::gather, "gather", 1, 0, ref_field | number_field, Access::reads},
    {Op::scatter, "scatter", 0, 0, ref_field, Access::writes},
    {Op::atomic_add, "atomic_add", 0, 0, ref_field, Access::updates},
    {Op::atomic, "atomic", 1, 0, ref_field | scalar_op_field | ordering_field, Access::updates, false},
    {Op::exchange_memory, "exchange_memory", 1, 0, ref_field | ordering_field, Access::updates, false},
    {Op::compare_exchange, "compare_exchange", 1, 0, ref_field | ordering_field, Access::updates, false},
    {Op::wait_until, "wait_until", 1, 1, ref_field | ordering_field, Access::updates, false},
    {Op::prefetch, "prefetch", 0, 0, ref_field | number_field, Access::reads},
    {Op::alloc, "alloc", 0, 0, ref_field | number_field},
    {Op::loop, "loop", -1, 1, axis_field | parallel_field},
    {Op::when, "when", -1, 1},
    {Op::branch, "branch", -1, 2, 0, Access::none, false},
    {Op::while_loop, "while", -1, 2, 0, Access::none, false},
    {Op::copy_async, "copy_async", 0, 0, ref_field | matrices_field | strides_field | number_field, Access::writes,
     false},
    {Op::commit_copies, "commit_copies", 0, 0, 0, Access::none, false},
    {Op::wait_copies, "wait_copies", 0, 0, number_field, Access::none, false},
    {Op::arrive, "arrive", 0, 0, ref_field, Access::updates},
    {Op::await, "await", 0, 0, ref_field, Access::reads},
    {Op::roles, "roles", 0, -1, axes_field | strides_field},
    {Op::grid_barrier, "grid_barrier", 0, 0, 0, Access::none, false},
    {Op::cluster_barrier, "cluster_barrier", 0, 0, 0, Access::none, false},
    {Op::dot_async, "dot_async", 1, 0, precision_field, Access::none, false},
    {Op::wait_dot, "wait_dot", 1, 0, 0, Access::none, false},
    {Op::load_neighbour, "load_neighbour", 1, 0, ref_field | strides_field, Access::reads, false},
    {Op::store_neighbour, "store_neighbour", 0, 0, ref_field | strides_field, Access::writes, false},
    {Op::inline_code, "inline", -1, -1, code_field, Access::none, false},
    {Op::source, "source", 0, 0, code_field, Access::updates, false},
    {Op::print, "print", 0, 0, text_field, Access::none, false},
    {Op::assert_, "assert", 0, 0, text_field, Access::none, false},
    {Op::yield, "yield", 0},
});

consteval bool ops_in_order() {
  for (size_t k = 0; k < ops.size(); ++k)
    if (static_cast<size_t>(ops[k].op) != k) return false;
  return ops.size() == static_cast<size_t>(Op::yield) + 1;
}
static_assert(ops_in_order(), "every kind of instruction has a row, in the order of the enumeration");

constexpr const OpInfo& info(Op op) { return ops[static_cast<size_t>(op)]; }

/// Returns whether all programs of the grid, or of a cluster, wait for each other there.
constexpr bool is_barrier_of_programs(Op op) { return op == Op::grid_barrier || op == Op::cluster_barrier; }
/// Returns whether an instruction reaches the local buffers of another program.
constexpr bool reaches_neighbour(Op op) { return op == Op::load_neighbour || op == Op::store_neighbour; }
/// Returns whether a program waits for others there.
constexpr bool waits_for_programs(Op op) { return op == Op::wait_until || is_barrier_of_programs(op); }

/// Returns whether an instruction takes part in asynchronous work, or in what roles do at once.
constexpr bool is_asynchronous(Op op) { return op >= Op::copy_async && op <= Op::roles; }

}  // namespace weft::kernel
