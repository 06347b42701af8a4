// Tiles of memory that several products read, as rows of one and as columns of another: they are copied once, and their
// space is free when the last product of an iteration has read them.
#include <algorithm>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Inst;
using kernel::Op;
using kernel::Value;

/// Returns whether all readers of a value are products on tensor cores of which it is an operand.
bool Renderer::are_products(const Uses& uses, Value v) const {
  const auto readers = uses.readers.find(v);
  return readers != uses.readers.end() &&
         std::all_of(readers->second.begin(), readers->second.end(), [&](const Uses::Position& reader) {
           const Inst& i = *reader.inst;
           return i.op == Op::dot && i.args[2] != v && products_.contains(i.results[0]);
         });
}

/// Returns whether nobody but products on tensor cores reads a tile, as it is or turned.
bool Renderer::only_multiplied(const Uses& uses, Value v) const {
  const auto readers = uses.readers.find(v);
  return readers != uses.readers.end() &&
         std::all_of(readers->second.begin(), readers->second.end(), [&](const Uses::Position& reader) {
           const Inst& i = *reader.inst;
           if (i.op == Op::permute && i.type.rank() == 2) return are_products(uses, i.results[0]);
           return i.op == Op::dot && i.args[2] != v && products_.contains(i.results[0]);
         });
}

/// Returns whether all products that read such a tile stand in one block.
bool Renderer::multiplied_within(const Uses& uses, Value v, const kernel::Block& block) const {
  const std::vector<Uses::Position>& readers = uses.readers.at(v);
  return std::all_of(readers.begin(), readers.end(), [&](const Uses::Position& reader) {
    return reader.inst->op == Op::permute ? multiplied_within(uses, reader.inst->results[0], block)
                                          : reader.block == &block;
  });
}

/// Finds for each tile that is copied ahead the product of an iteration that reads it last.
void Renderer::find_last_readers(const Uses& uses) {
  std::map<Value, Operand*> last;
  for (const Uses::Position& position : uses.order)
    for (auto& [dot, product] : products_) {
      if (product.made_by() != position.inst) continue;
      for (Operand* x : {&product.a, &product.b})
        if (x->ahead) last[x->load->results[0]] = x;
    }
  for (const auto& [load, operand] : last) operand->last = true;
}

}  // namespace weft::target::cuda
