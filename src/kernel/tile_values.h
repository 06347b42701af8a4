#pragma once
// The values of tiles in the interpreter, row-major, and the instructions that compute them from values alone.
#include <vector>

#include "kernel/tile.h"

namespace weft::kernel {

using TileValue = std::vector<Number>;

/// Calls visit(lane, position) for each element of a tile in row-major order.
template <class Visit>
void each_element(const std::vector<int64_t>& dims, const Visit& visit) {
  std::vector<int64_t> position(dims.size(), 0);
  int64_t size = 1;
  for (int64_t d : dims) size *= d;
  for (int64_t lane = 0; lane < size; ++lane) {
    visit(static_cast<size_t>(lane), position);
    for (size_t k = dims.size(); k-- > 0;) {
      if (++position[k] < dims[k]) break;
      position[k] = 0;
    }
  }
}

/// How a reduction combines states of one number for each tile: the lower part's, then the upper part's.
using CombineValues = std::function<std::vector<Number>(const std::vector<Number>&, const std::vector<Number>&)>;

/// Compute an instruction from the types and values of its arguments; floats are rounded as they go.
TileValue scalar_value(const Inst& inst, Dtype t, const std::vector<const TileValue*>& args);
TileValue cast_value(const Inst& inst, Dtype from, const TileValue& v);
TileValue bitcast_value(const Inst& inst, Dtype from, const TileValue& v);
TileValue broadcast_value(const Inst& inst, const Type& from, const TileValue& v);
TileValue permute_value(const Inst& inst, const Type& from, const TileValue& v);
TileValue slice_value(const Inst& inst, const Type& from, const TileValue& v);
TileValue cat_value(const Inst& inst, const std::vector<Type>& types, const std::vector<const TileValue*>& args);
TileValue shift_value(const Inst& inst, const TileValue& v, const TileValue& into);
TileValue exchange_value(const Inst& inst, const TileValue& v);
TileValue take_value(const Inst& inst, const Type& from, const TileValue& v, const TileValue& index);
TileValue histogram_value(const Inst& inst, const TileValue& index);
TileValue dot_value(const Inst& inst, const Type& a_type, const TileValue& a, const TileValue& b, TileValue c);
std::vector<TileValue> sort_values(const Inst& inst, const Type& type, const std::vector<const TileValue*>& args);
std::vector<TileValue> reduce_values(const Inst& inst, const Type& type, const std::vector<const TileValue*>& args,
                                     const CombineValues& combine);
std::vector<TileValue> scan_values(const Inst& inst, const Type& type, const std::vector<const TileValue*>& args,
                                   const CombineValues& combine);

}  // namespace weft::kernel
