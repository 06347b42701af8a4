// Renders parallel loops whose iterations each store one row into a local buffer that is reduced after the loop (column
// sums). Each warp takes an iteration. A block first reduces the partial rows of its warps, so that one row a block
// travels through the cluster. The highest bits of an iteration's index are its warp, so that the order of the
// reduction is that of kernel/tile.h.
#include <fmt/format.h>

#include <algorithm>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Block;
using kernel::Op;
using kernel::Ref;
using kernel::Value;

namespace {

template <class Visit>
void visit_all(const Block& block, const Visit& visit) {
  for (const kernel::Inst& inst : block.insts) {
    visit(inst);
    for (const Block& inner : inst.blocks) visit_all(inner, visit);
  }
}

}  // namespace

/// Returns the width of the rows by local buffer; empty if the kernel uses any of these buffers in another way.
std::map<Ref, int64_t> Renderer::rows_of_iterations(const kernel::Inst& loop, int iterations) const {
  std::map<Ref, int64_t> lines;
  const Value iteration = loop.blocks[0].arguments[0];
  std::map<Value, int64_t> times;  // by scalar: the factor of the iteration's index
  std::map<Value, int> uses;
  visit_all(kernel_.body, [&](const kernel::Inst& i) {
    for (Value v : i.args) ++uses[v];
  });
  for (const kernel::Inst& i : loop.blocks[0].insts) {
    if (i.op == Op::scalar && i.scalar_op == kernel::ScalarOp::mul && i.args[0] == iteration)
      if (const auto n = known_values_.find(i.args[1]); n != known_values_.end()) times[i.results[0]] = n->second;
    if (i.op == Op::store && is_local(i.ref) && type(i.args[0]).rank() == 1 && times.contains(i.args[1]) &&
        times[i.args[1]] == type(i.args[0]).size())
      lines[i.ref] = type(i.args[0]).size();
  }
  std::map<Ref, int> seen;
  std::map<Value, Ref> loaded;
  bool plain = true;
  visit_all(kernel_.body, [&](const kernel::Inst& i) {
    if (i.op == Op::reduce && loaded.contains(i.args[0])) plain = plain && i.axis == 0, loaded.erase(i.args[0]);
    if (!lines.contains(i.ref) ||
        (i.op != Op::load && i.op != Op::store && i.op != Op::gather && i.op != Op::scatter && i.op != Op::atomic_add))
      return;
    ++seen[i.ref];
    if (i.op == Op::store) return;
    const int64_t width = lines[i.ref];
    const bool whole = i.op == Op::load && i.type.dims == std::vector<int64_t>{iterations, width} &&
                       i.strides == std::vector<int64_t>{width, 1} && known_values_.contains(i.args[0]) &&
                       known_values_.at(i.args[0]) == 0 &&
                       std::all_of(i.args.begin() + 1, i.args.end(), [](Value v) { return v == kernel::no_value; });
    plain = plain && whole && uses[i.results[0]] == 1;
    loaded[i.results[0]] = i.ref;
  });
  plain = plain && loaded.empty() &&
          std::all_of(lines.begin(), lines.end(), [&](const auto& line) { return seen[line.first] == 2; });
  const auto locals = static_cast<Ref>(kernel_.locals.size());
  return plain && static_cast<Ref>(lines.size()) == locals ? lines : std::map<Ref, int64_t>{};
}

/// Returns the elements of a buffer: the warps' rows, followed in the first block by the rows of all blocks.
int64_t Renderer::row_elements(Ref ref) const {
  return (iterations_ + (cluster_ > 1 ? cluster_ : 0)) * partial_rows_.at(ref);
}

std::string Renderer::row_of_warp(Ref ref) const {
  return fmt::format("({} + ((block_t >> 5) - rank) * {})", buffer(ref), partial_rows_.at(ref));
}

/// Renders the reduction of element k of `count` rows that begin at `first`, into x[0].
void Renderer::reduce_partial_rows(const std::string& first, int64_t width, int count, Dtype dtype,
                                   kernel::Reducer reducer) {
  add(fmt::format("{} x[{}];", type_name(dtype), count));
  add(fmt::format("EACH (int j = 0; j < {}; ++j) x[j] = {}[j * {} + k];", count, first, width));
  for (int half = count / 2; half > 0; half /= 2) {
    const std::string args[] = {"x[j]", fmt::format("x[j + {}]", half)};
    add(fmt::format("EACH (int j = 0; j < {}; ++j) x[j] = {};", half,
                    expression(kernel::combine(reducer), dtype, args)));
  }
}

/// Renders the end of the loop in every block: the reduced row of its warps goes to the first block, which continues
/// alone.
void Renderer::gather_rows() {
  sync();
  if (cluster_ == 1) return;
  add("cluster_wait();");
  for (const auto& [ref, width] : partial_rows_) {
    open(fmt::format("for (int k = t; k < {}; k += {})", width, threads_));
    reduce_partial_rows(buffer(ref), width, iterations_, dtype_of(ref), row_reducers_.at(ref));
    const int64_t offset = local_offsets_[static_cast<size_t>(ref) - kernel_.params.size()];
    add(fmt::format("(({}*)(in_block(locals, 0) + {}))[(cluster_rank() + {}) * {} + k] = x[0];", memory_type(ref),
                    offset, iterations_, width));
    close();
  }
  add("cluster_arrive(), cluster_wait();");
  add("if (cluster_rank() != 0) return;");
}

/// Renders the reduction of a buffer's rows, in place of the load and the reduction of a tile.
void Renderer::reduction_of_rows(const kernel::Inst& inst, Ref ref) {
  const int64_t width = partial_rows_.at(ref);
  const Layout to = layout_of(inst.type);
  declare(inst.results[0]);
  open(fmt::format("EACH (int r = 0; r < {}; ++r)", to.registers()));
  add(fmt::format("const int k = {};",
                  to.ragged() ? fmt::format("imin<int>({}, {})", to.element("r"), to.size - 1) : to.element("r")));
  const std::string first = cluster_ == 1 ? buffer(ref) : fmt::format("({} + {})", buffer(ref), iterations_ * width);
  reduce_partial_rows(first, width, cluster_ == 1 ? iterations_ : cluster_, dtype_of(ref), inst.reducer);
  add(fmt::format("{}[r] = x[0];", fresh(inst.results[0])));
  close();
}

}  // namespace weft::target::cuda
